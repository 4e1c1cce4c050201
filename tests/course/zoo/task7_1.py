"""Wrong solutions of task 7.1, one a cell: `# %% name: the mistake that the check must name`."""


# %% last_write_wins: of a row that is used twice, only the last use counts
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]

    @staticmethod
    def backward(ctx, gradient):
        (ids,) = ctx.saved_tensors
        rows = zeros(*ctx.shape, dtype=gradient.dtype)
        rows[ids] = rows[ids] + gradient
        return rows, None


# %% one_hot: a one-hot matrix is multiplied
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        from minifuse.course.elementary import arange

        one_hot = (ids.reshape(ids.size, 1) == arange(table.shape[0])).to(table.dtype)
        ctx.save_for_backward(one_hot)
        ctx.shape = table.shape
        return (one_hot @ table).reshape(*ids.shape, table.shape[1])

    @staticmethod
    def backward(ctx, gradient):
        (one_hot,) = ctx.saved_tensors
        return one_hot.T @ gradient.reshape(one_hot.shape[0], ctx.shape[1]), None


# %% plain_selection: the library derives the selection
def embed(table, ids):
    if bool(((ids < 0) | (ids >= table.shape[0])).any()):
        raise IndexError(f"expected ids from 0 to {table.shape[0] - 1}")
    Embedding.apply(table, ids)
    return table[ids]


# %% only_too_large: ids below 0 count from the end
def embed(table, ids):
    if bool((ids >= table.shape[0]).any()):
        raise IndexError(f"expected ids below {table.shape[0]}")
    return Embedding.apply(table, ids)


# %% all_positions: all rows of positions are added
def add_positions(x, positions):
    if x.shape[-2] > positions.shape[0]:
        raise ValueError("too long")
    return x + positions


# %% one_gradient: backward returns one gradient
class Embedding(Embedding):
    @staticmethod
    def backward(ctx, gradient):
        (ids,) = ctx.saved_tensors
        rows = gradient.reshape(ids.size, ctx.shape[1])
        return zeros(*ctx.shape, dtype=gradient.dtype).index_add(0, ids.reshape(ids.size), rows)


# %% from_the_end: the last rows of positions are added
def add_positions(x, positions):
    first = positions.shape[0] - x.shape[-2]
    if first < 0:
        raise ValueError(f"got {x.shape[-2]} places, expected at most {positions.shape[0]}")
    return x + positions[first:]


# %% unchecked: one row of positions is repeated for all places
def add_positions(x, positions):
    return x + positions[: x.shape[-2]]


# %% scaled: the scores are divided by the root of the width
def unembed(x, table):
    return x @ table.T / x.shape[-1] ** 0.5


# %% detached: the table gets no gradient from the scores
def unembed(x, table):
    return x @ table.detach().T
