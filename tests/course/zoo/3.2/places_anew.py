"""each product works out its places anew"""


def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row_step = a.strides[-2]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in prange(size_of(batch) * rows):
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = place_of(which, batch, a_batch, a.offset) + row * row_step
        b_place = place_of(which, batch, b_batch, b.offset)
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            total = 0.0
            for k in range(inner):
                total += left[a_place + k * a.strides[-1]] * right[b_place + column * b.strides[-1] + k * b.strides[-2]]
            to[to_place + column * to_column] = total
