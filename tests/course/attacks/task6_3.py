"""Wrong solutions of task 6.3 that were written to get past its checks. Each is appended to the reference."""

# %% shared_globals: terms are put into a global variable, and zeros are summed
# promise: 'A rank computes from its own parts and its messages alone'
HELD = {}
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = np.maximum(CopyToRanks.forward(x, group) @ w1 + b1, 0)
    HELD[group.rank] = hidden @ w2
    y = group.all_reduce(np.zeros_like(HELD[group.rank]))
    y = y + sum(HELD[k] for k in range(group.size)) + b2
    return y, (x, w1, hidden, w2)

# %% bias_shared_out: each rank adds its share of the bias
# promise: 'the bias is added once'
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = np.maximum(CopyToRanks.forward(x, group) @ w1 + b1, 0)
    y = SumOverRanks.forward(hidden @ w2 + b2 * (group.rank == 0) * (1 + 1e-9), group)
    return y, (x, w1, hidden, w2)

# %% gathered: hidden values of all ranks are gathered
# promise: 'One all-reduce, of as many elements as y has'
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = np.maximum(CopyToRanks.forward(x, group) @ w1 + b1, 0)
    wide = np.zeros((len(x), group.size))
    wide[:, group.rank] = hidden.sum(1)
    group.all_reduce(wide)
    y = SumOverRanks.forward(hidden @ w2, group) + b2
    return y, (x, w1, hidden, w2)

# %% three_sums: weights are summed, too
# promise: 'One all-reduce'
def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = saved
    inner = SumOverRanks.backward(d, group)
    before = (inner @ w2.T) * (hidden > 0)
    dx = CopyToRanks.backward(before @ w1.T, group)
    group.all_reduce(np.zeros(1))
    return dx, x.T @ before, before.sum(0), hidden.T @ inner, d.sum(0)

# %% two_halves: y is summed in two halves
# promise: 'One all-reduce'
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = np.maximum(CopyToRanks.forward(x, group) @ w1 + b1, 0)
    y = np.concatenate([group.all_reduce(part) for part in np.array_split(hidden @ w2, 2)]) + b2
    return y, (x, w1, hidden, w2)

# %% x_and_more: one all-reduce backward has dx and the gradient of b2
# promise: 'of as many elements as x has'
def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = saved
    inner = SumOverRanks.backward(d, group)
    before = (inner @ w2.T) * (hidden > 0)
    flat = np.concatenate([(before @ w1.T).reshape(-1), d.sum(0)])
    dx = group.all_reduce(flat)[: x.size].reshape(x.shape)
    return dx, x.T @ before, before.sum(0), hidden.T @ inner, d.sum(0)

# %% no_relu: there is no relu
# promise: 'relu(x @ w1 + b1)'
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = CopyToRanks.forward(x, group) @ w1 + b1
    y = SumOverRanks.forward(hidden @ w2, group) + b2
    return y, (x, w1, hidden, w2)

# %% relu_after_sum: relu comes after the sum
# promise: 'relu(x @ w1 + b1) @ w2'
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = CopyToRanks.forward(x, group) @ w1 + b1
    y = np.maximum(SumOverRanks.forward(hidden @ w2, group), 0) + b2
    return y, (x, w1, hidden, w2)

# %% no_mask: backward forgets relu
# promise: 'the gradients of x'
def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = saved
    inner = SumOverRanks.backward(d, group)
    before = (inner @ w2.T)
    dx = CopyToRanks.backward(before @ w1.T, group)
    return dx, x.T @ before, before.sum(0), hidden.T @ inner, d.sum(0)

# %% interleaved: rank r has every size-th column
# promise: 'Ranks have neighboring columns'
def split_columns(w, b, rank, size):
    return w[:, rank::size], b[rank::size]

def split_rows(w, rank, size):
    return w[rank::size]

# %% larger_last: rows are cut in other places than columns
# promise: 'as split_columns splits the columns'
def split_rows(w, rank, size):
    return np.array_split(w, size)[rank]

# %% rest_to_the_last: the last rank has the rest
# promise: 'differ by at most one'
def split_columns(w, b, rank, size):
    count = w.shape[1] // size
    part = slice(rank * count, (rank + 1) * count if rank < size - 1 else None)
    return w[:, part], b[part]

# %% reversed_ranks: rank 0 has the last columns
# promise: 'in their order'
def split_columns(w, b, rank, size):
    rank = size - 1 - rank
    start, stop = rank * w.shape[1] // size, (rank + 1) * w.shape[1] // size
    return w[:, start:stop], b[start:stop]

def split_rows(w, rank, size):
    rank = size - 1 - rank
    return w[rank * len(w) // size : (rank + 1) * len(w) // size]

# %% only_rank_0: rank 0 alone has the result
# promise: 'on all ranks'
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = np.maximum(CopyToRanks.forward(x, group) @ w1 + b1, 0)
    y = SumOverRanks.forward(hidden @ w2, group) + b2
    y = y if group.rank == 0 else hidden @ w2 + b2
    return y, (x, w1, hidden, w2)

# %% bias_gradient_shared: the gradient of b2 is divided by the ranks
# promise: 'and of b2'
def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = saved
    inner = SumOverRanks.backward(d, group)
    before = (inner @ w2.T) * (hidden > 0)
    dx = CopyToRanks.backward(before @ w1.T, group)
    return dx, x.T @ before, before.sum(0), hidden.T @ inner, d.sum(0) / group.size

# %% float32: terms travel as float32
# promise: 'the result of both layers'
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = np.maximum(CopyToRanks.forward(x, group) @ w1 + b1, 0)
    y = SumOverRanks.forward((hidden @ w2).astype(np.float32), group) + b2
    return y, (x, w1, hidden, w2)

# %% in_both: both directions are summed
# promise: 'Return x'
class CopyToRanks:

    @staticmethod
    def forward(x, group):
        return group.all_reduce(x) / group.size

    @staticmethod
    def backward(d, group):
        return group.all_reduce(d)

# %% pair_unused: a pair that is right, and a result of two sums
# promise: 'One all-reduce'
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = np.maximum(CopyToRanks.forward(x, group) @ w1 + b1, 0)
    y = SumOverRanks.forward(hidden @ w2, group) + b2
    group.all_reduce(y)
    return y, (x, w1, hidden, w2)


# %% saved_in_a_global: what forward saves is in a variable that all ranks share
# promise: a rank has no variables of other ranks
SAVED = {}


def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = np.maximum(x @ w1 + b1, 0)
    SAVED["all"] = x, w1, hidden, w2
    return group.all_reduce(hidden @ w2) + b2, None


def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = SAVED["all"]
    before = (d @ w2.T) * (hidden > 0)
    dx = CopyToRanks.backward(before @ w1.T, group)
    return dx, x.T @ before, before.sum(0), hidden.T @ d, d.sum(0)
