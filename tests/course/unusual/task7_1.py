"""Right solutions of task 7.1 that are written in unusual ways. Each is appended to the reference."""

# %% scatter_in_place: rows are added in place, and the checks are two
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.ids, ctx.count = ids, table.shape[0]
        return table.index_select(0, ids.reshape(ids.size)).reshape(*ids.shape, table.shape[1])

    @staticmethod
    def backward(ctx, gradient):
        found = zeros(ctx.count, gradient.shape[-1], dtype=gradient.dtype)
        found.index_add_(0, ctx.ids.reshape(ctx.ids.size), gradient.reshape(ctx.ids.size, gradient.shape[-1]))
        return found, None


def embed(table, ids):
    if int(ids.min()) < 0 or int(ids.max()) >= len(table):
        raise IndexError(f"ids are {int(ids.min())} to {int(ids.max())}, the table has {len(table)} rows")
    return Embedding.apply(table, ids)

# %% scatter_by_element: each element is scattered, and positions are split off
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids, :]

    @staticmethod
    def backward(ctx, gradient):
        (ids,) = ctx.saved_tensors
        at = ids.reshape(ids.size, 1).expand(ids.size, ctx.shape[1])
        return zeros(*ctx.shape, dtype=gradient.dtype).scatter_add(0, at, gradient.reshape(*at.shape)), None


def add_positions(x, positions):
    *_, length, width = x.shape
    if length > len(positions):
        raise ValueError(f"{length} places, {len(positions)} positions")
    return positions.split([length, len(positions) - length])[0].reshape(length, width) + x

# %% transposed_scores: the table is on the left, and rows of x are columns
def unembed(x, table):
    if len(x.shape) == 1:
        return table @ x
    flat = x.reshape(x.size // x.shape[-1], x.shape[-1])
    return (table @ flat.T).T.reshape(*x.shape[:-1], len(table)) if len(x.shape) == 2 else x @ table.permute(1, 0)
