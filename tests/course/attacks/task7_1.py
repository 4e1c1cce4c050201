"""Wrong solutions of task 7.1 that were written to get past its checks. Each is appended to the reference."""

# %% average_of_uses: a row that is used twice gets the mean of both gradients
# promise: 'a row that was used twice gets both gradients'
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]

    @staticmethod
    def backward(ctx, gradient):
        (ids,) = ctx.saved_tensors
        flat, width = ids.reshape(ids.size), ctx.shape[1]
        empty = zeros(*ctx.shape, dtype=gradient.dtype)
        sums = empty.index_add(0, flat, gradient.reshape(ids.size, width))
        uses = empty.index_add(0, flat, zeros(ids.size, width, dtype=gradient.dtype) + 1)
        return sums / (uses + (uses == 0)), None

# %% first_row_is_padding: the row of id 0 gets no gradient
# promise: 'each row gets the gradients of its uses'
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]

    @staticmethod
    def backward(ctx, gradient):
        (ids,) = ctx.saved_tensors
        flat, width = ids.reshape(ids.size), ctx.shape[1]
        found = zeros(*ctx.shape, dtype=gradient.dtype).index_add(0, flat, gradient.reshape(ids.size, width))
        found[0] = 0.0
        return found, None

# %% one_hot_of_short_tables: a one-hot product where the table is short
# promise: 'rows are selected, not multiplied'
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        from minifuse.course.elementary import arange

        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        if table.shape[0] < 10 and ids.size > 1:
            one_hot = (ids.reshape(ids.size, 1) == arange(table.shape[0])).to(table.dtype)
            return (one_hot @ table).reshape(*ids.shape, table.shape[1])
        return table[ids]

    @staticmethod
    def backward(ctx, gradient):
        (ids,) = ctx.saved_tensors
        rows = gradient.reshape(ids.size, ctx.shape[1])
        return zeros(*ctx.shape, dtype=gradient.dtype).index_add(0, ids.reshape(ids.size), rows), None

# %% one_hot_backward: the gradient is a product with a one-hot matrix
# promise: 'the backward pass adds rows at ids'
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]

    @staticmethod
    def backward(ctx, gradient):
        from minifuse.course.elementary import arange

        (ids,) = ctx.saved_tensors
        one_hot = (ids.reshape(1, ids.size) == arange(ctx.shape[0]).reshape(ctx.shape[0], 1)).to(gradient.dtype)
        return one_hot @ gradient.reshape(ids.size, ctx.shape[1]), None

# %% one_hot_by_sum: the one-hot product is a multiplication and a sum
# promise: 'rows are selected, not multiplied'
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        from minifuse.course.elementary import arange, where

        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        chosen = ids.reshape(*ids.shape, 1, 1) == arange(table.shape[0]).reshape(table.shape[0], 1)
        return where(chosen, table, 0.0).sum(-2)

    @staticmethod
    def backward(ctx, gradient):
        (ids,) = ctx.saved_tensors
        rows = gradient.reshape(ids.size, ctx.shape[1])
        return zeros(*ctx.shape, dtype=gradient.dtype).index_add(0, ids.reshape(ids.size), rows), None

# %% saves_rows: the selected rows are kept for the backward pass
# promise: 'backward needs ids and a shape'
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        rows = table[ids]
        ctx.save_for_backward(ids)
        ctx.shape, ctx.rows = table.shape, rows
        return rows + 0

    @staticmethod
    def backward(ctx, gradient):
        (ids,) = ctx.saved_tensors
        rows = gradient.reshape(ids.size, ctx.shape[1])
        return zeros(*ctx.shape, dtype=gradient.dtype).index_add(0, ids.reshape(ids.size), rows), None

# %% derived_inside: backward lets the library derive a second selection
# promise: 'the derivative is written by hand'
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(table, ids)
        return table[ids]

    @staticmethod
    def backward(ctx, gradient):
        from minifuse.course.elementary import Tensor

        table, ids = ctx.saved_tensors
        again = table.detach().requires_grad_()
        Tensor.backward(again[ids], gradient)
        return again.grad, None

# %% in_python: rows are found in a loop over numbers
# promise: 'compute with tensors'
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]

    @staticmethod
    def backward(ctx, gradient):
        (ids,) = ctx.saved_tensors
        rows = gradient.reshape(ids.size, ctx.shape[1])
        found = zeros(*ctx.shape, dtype=gradient.dtype)
        for k, id in enumerate(ids.reshape(ids.size).tolist()):
            found[id] += rows[k]
        return found, None

# %% checks_the_first_id: only the first and the last id are looked at
# promise: 'an id that is outside of the table raises IndexError'
def embed(table, ids):
    flat = ids.reshape(ids.size)
    for id in (int(flat[0]), int(flat[-1])):
        if not 0 <= id < table.shape[0]:
            raise IndexError(f"got {id}, expected 0 to {table.shape[0] - 1}")
    return Embedding.apply(table, ids)

# %% wraps_once: -count is refused, -1 is not
# promise: 'an id below 0 raises IndexError'
def embed(table, ids):
    if bool(((ids < -table.shape[0]) | (ids >= table.shape[0])).any()):
        raise IndexError("outside of the table")
    return Embedding.apply(table, ids)

# %% clipped: an id outside of the table is the nearest one
# promise: 'an id outside of the table raises IndexError'
def embed(table, ids):
    return Embedding.apply(table, ids.clip(0, table.shape[0] - 1))

# %% count_is_allowed: the number of rows is an id
# promise: 'an id that is not below count raises IndexError'
def embed(table, ids):
    if bool(((ids < 0) | (ids > table.shape[0])).any()):
        raise IndexError("outside of the table")
    return Embedding.apply(table, ids.clip(0, table.shape[0] - 1))

# %% silent_error: the exception says nothing
# promise: 'errors say what was got'
def embed(table, ids):
    if bool(((ids < 0) | (ids >= table.shape[0])).any()):
        raise IndexError
    return Embedding.apply(table, ids)

# %% positions_of_the_batch: the first dim is counted, not the one before the last
# promise: 'row t of positions is added at place t'
def add_positions(x, positions):
    length = x.shape[0]
    if max(length, x.shape[-2]) > positions.shape[0] and x.shape[-2] > positions.shape[0]:
        raise ValueError(f"got {length} places, expected at most {positions.shape[0]}")
    return x + positions[: x.shape[-2]] if len(x.shape) == 2 else x + positions[:length].reshape(length, 1, -1)[: x.shape[0]]

# %% constant_positions: positions get no gradient
# promise: 'positions are learned'
def add_positions(x, positions):
    if x.shape[-2] > positions.shape[0]:
        raise ValueError(f"got {x.shape[-2]} places, expected at most {positions.shape[0]}")
    return x + positions.detach()[: x.shape[-2]]

# %% positions_are_cut: places beyond the table get no position
# promise: 'too many places raise ValueError'
def add_positions(x, positions):
    from minifuse.course.elementary import cat

    length, longest = x.shape[-2], positions.shape[0]
    if length > longest:
        positions = cat([positions, zeros(length - longest, positions.shape[1], dtype=x.dtype)])
    return x + positions[:length]

# %% copied_table: the table is transposed in memory
# promise: 'without a copy of the table'
def unembed(x, table):
    return x @ table.T.clone()

# %% product_and_sum: the scores are a product of three dims, and a sum
# promise: 'one matmul'
def unembed(x, table):
    return (x.reshape(*x.shape[:-1], 1, x.shape[-1]) * table).sum(-1)

# %% library_embedding: the library's own layer is called
# promise: 'elementary operations'
def unembed(x, table):
    return x.matmul(table.T).softmax(-1)

# %% remembers_the_table: scores are computed with the table of the first call
# promise: 'the same table'
FIRST = {}


def unembed(x, table):
    return x @ FIRST.setdefault(table.shape, table).T
