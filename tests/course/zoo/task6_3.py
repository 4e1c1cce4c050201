"""Wrong solutions of task 6.3, one a cell: `# %% name: the mistake that the check must name`."""


# %% floor: the rest of the division is lost
def split_columns(w, b, rank, size):
    count = w.shape[1] // size
    return w[:, rank * count : (rank + 1) * count], b[rank * count : (rank + 1) * count]


# %% rows_first: columns and rows are exchanged
def split_columns(w, b, rank, size):
    return np.array_split(w, size)[rank], b


# %% whole_bias: each rank has the whole bias of the first layer
def split_columns(w, b, rank, size):
    start, stop = rank * w.shape[1] // size, (rank + 1) * w.shape[1] // size
    return w[:, start:stop], b


# %% sum_forward: the sum is in the wrong direction
class CopyToRanks:
    @staticmethod
    def forward(x, group):
        return group.all_reduce(x)

    @staticmethod
    def backward(d, group):
        return d


# %% bias_on_each: the bias is added on each rank
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = np.maximum(CopyToRanks.forward(x, group) @ w1 + b1, 0)
    y = SumOverRanks.forward(hidden @ w2 + b2, group)
    return y, (x, w1, hidden, w2)


# %% own_gradient: the gradient of x is that of one rank
def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = saved
    inner = SumOverRanks.backward(d, group)
    before = (inner @ w2.T) * (hidden > 0)
    dx = before @ w1.T
    return dx, x.T @ before, before.sum(0), hidden.T @ inner, d.sum(0)


# %% summed_twice: gradients are summed that all ranks have already
def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = saved
    inner = group.all_reduce(d)
    before = (inner @ w2.T) * (hidden > 0)
    dx = CopyToRanks.backward(before @ w1.T, group)
    return dx, x.T @ before, before.sum(0), hidden.T @ inner, d.sum(0)


# %% bias_gradient_summed: more is sent than the two sums
def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = saved
    inner = SumOverRanks.backward(d, group)
    before = (inner @ w2.T) * (hidden > 0)
    dx = CopyToRanks.backward(before @ w1.T, group)
    return dx, x.T @ before, before.sum(0), hidden.T @ inner, group.all_reduce(d.sum(0)) / group.size


# %% relu_forgotten: a gradient passes relu where the hidden value is 0
def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = saved
    before = d @ w2.T
    dx = CopyToRanks.backward(before @ w1.T, group)
    return dx, x.T @ before, before.sum(0), hidden.T @ d, d.sum(0)


# %% relu_without_the_bias: a gradient passes relu where the hidden value is 0
def mlp_backward(d, saved, group):
    x, w1, hidden, w2 = saved
    before = (d @ w2.T) * (x @ w1 > 0)
    dx = CopyToRanks.backward(before @ w1.T, group)
    return dx, x.T @ before, before.sum(0), hidden.T @ d, d.sum(0)


# %% dealt_out: ranks do not have neighboring columns or rows
def split_columns(w, b, rank, size):
    return w[:, rank::size], b[rank::size]


# %% rows_dealt_out: ranks do not have neighboring columns or rows
def split_rows(w, rank, size):
    return w[rank::size]


# %% hidden_summed: ranks sum arrays that belong to their own parts
def mlp_forward(x, w1, b1, w2, b2, group):
    hidden = group.all_reduce(np.maximum(x @ w1 + b1, 0))
    return group.all_reduce(hidden @ w2) + b2, (x, w1, hidden, w2)
