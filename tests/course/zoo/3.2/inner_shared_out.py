"""the sum over k is what is shared out"""


def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in range(size_of(batch) * rows):
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = place_of(which, batch, a_batch, a.offset) + row * row_step
        b_place = place_of(which, batch, b_batch, b.offset)
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            total = 0.0
            for k in prange(inner):
                total += left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]
            to[to_place + column * to_column] = total
