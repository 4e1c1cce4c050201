"""Right solutions of task 6.3 that are written in unusual ways. Each is appended to the reference."""

# %% array_split: parts as np.array_split cuts them
def split_columns(w, b, rank, size):
    return np.array_split(w, size, axis=1)[rank].copy(), np.array_split(b, size)[rank].copy()

def split_rows(w, rank, size):
    return np.array_split(w, size)[rank].copy()

# %% bias_on_rank_0: rank 0 adds the bias to its term; saved is a function
def mlp_forward(x, w1, b1, w2, b2, group):
    before = x @ w1 + b1
    term = np.where(before > 0, before, 0) @ w2
    if group.rank == 0:
        term = term + b2

    def back(d):
        inner = np.where(before > 0, d @ w2.T, 0)
        return group.all_reduce(inner @ w1.T), x.T @ inner, inner.sum(0), np.maximum(before, 0).T @ d, d.sum(0)

    return group.all_reduce(term), back

def mlp_backward(d, saved, group):
    return saved(d)

# %% einsum: products by einsum, and the pair makes copies
class CopyToRanks:
    @staticmethod
    def forward(x, group):
        return x.copy()

    @staticmethod
    def backward(d, group):
        return group.all_reduce(d)

def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = saved
    inner = np.einsum("no,ho->nh", d, w2) * np.sign(hidden)
    dx = CopyToRanks.backward(np.einsum("nh,ih->ni", inner, w1), group)
    return [dx, np.einsum("ni,nh->ih", x, inner), inner.sum(axis=0), np.einsum("nh,no->ho", hidden, d), d.sum(axis=0)]
