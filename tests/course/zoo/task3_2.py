"""Wrong solutions of task 3.2, one a cell: `# %% name: the mistake that the check must name`."""


# %% all_products: all products are stored before they are summed
def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    to_row, to_column = out.strides[-2], out.strides[-1]
    products = np.empty((size_of(batch) * rows, columns, inner), np.float64)
    for task in prange(size_of(batch) * rows):
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = place_of(which, batch, a_batch, a.offset) + row * row_step
        b_place = place_of(which, batch, b_batch, b.offset)
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            total = 0.0
            for k in range(inner):
                products[task, column, k] = left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]
            for k in range(inner):
                total += products[task, column, k]
            to[to_place + column * to_column] = total


# %% array_each_time: an array is made in each iteration
def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in prange(size_of(batch) * rows):
        sums = [0.0] * columns
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = place_of(which, batch, a_batch, a.offset) + row * row_step
        b_place = place_of(which, batch, b_batch, b.offset)
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            for k in range(inner):
                sums[column] += left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]
            to[to_place + column * to_column] = sums[column]


# %% b_turned: the last two strides of b are swapped
def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-1], b.strides[-2]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in prange(size_of(batch) * rows):
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = place_of(which, batch, a_batch, a.offset) + row * row_step
        b_place = place_of(which, batch, b_batch, b.offset)
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            total = 0.0
            for k in range(inner):
                total += left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]
            to[to_place + column * to_column] = total


# %% batch_not_broadcast: the batch of an operand is read with its own strides, though it is broadcast
def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch, b_batch = a.strides[:-2], b.strides[:-2]
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in prange(size_of(batch) * rows):
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = place_of(which, batch[len(batch) - len(a_batch) :], a_batch, a.offset) + row * row_step
        b_place = place_of(which, batch[len(batch) - len(b_batch) :], b_batch, b.offset)
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            total = 0.0
            for k in range(inner):
                total += left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]
            to[to_place + column * to_column] = total


# %% inner_shared_out: the sum over k is what is shared out
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


# %% offsets_left_out: the offsets of the operands are left out
def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in prange(size_of(batch) * rows):
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = place_of(which, batch, a_batch, 0) + row * row_step
        b_place = place_of(which, batch, b_batch, 0)
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            total = 0.0
            for k in range(inner):
                total += left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]
            to[to_place + column * to_column] = total


# %% places_anew: each product works out its places anew
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


# %% sum_in_output: the sum is accumulated in the output
def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in prange(size_of(batch) * rows):
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = place_of(which, batch, a_batch, a.offset) + row * row_step
        b_place = place_of(which, batch, b_batch, b.offset)
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            place = to_place + column * to_column
            to[place] = 0.0
            for k in range(inner):
                to[place] += left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]


# %% first_matrix: only the first matrix of a batch is used
def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in prange(size_of(batch) * rows):
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = a.offset + row * row_step
        b_place = b.offset
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            total = 0.0
            for k in range(inner):
                total += left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]
            to[to_place + column * to_column] = total


# %% batch_of_a: some matrices of the batch are not made
def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in prange(size_of(a.shape[:-2]) * rows):
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = place_of(which, batch, a_batch, a.offset) + row * row_step
        b_place = place_of(which, batch, b_batch, b.offset)
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            total = 0.0
            for k in range(inner):
                total += left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]
            to[to_place + column * to_column] = total


# %% batch_shared_out: one iteration of the prange does most of the work
def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in prange(size_of(batch)):
        which = np.int64(task)
        for row in range(rows):
            a_place = place_of(which, batch, a_batch, a.offset) + row * row_step
            b_place = place_of(which, batch, b_batch, b.offset)
            to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
            for column in range(columns):
                total = 0.0
                for k in range(inner):
                    total += left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]
                to[to_place + column * to_column] = total
