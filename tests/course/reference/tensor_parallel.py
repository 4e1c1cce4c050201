"""Module 6: two linear layers whose weights are shared among ranks, relu(x @ w1 + b1) @ w2 + b2.

All ranks run the same program with the same x. `group` connects them: `group.rank`, `group.size`, and
`group.all_reduce(array)`, which returns the sum over all ranks.
"""

import numpy as np

from minifuse.course import todo

# Task 6.3


def split_columns(w, b, rank, size):
    """Return this rank's columns of a weight (inputs, outputs), and its elements of the bias (outputs,).

    Ranks have neighboring columns, in their order. The numbers of columns of two ranks differ by at most one.
    """
    # begin 6.3a
    start, stop = rank * w.shape[1] // size, (rank + 1) * w.shape[1] // size
    return w[:, start:stop], b[start:stop]
    # end


def split_rows(w, rank, size):
    """Return this rank's rows of a weight (inputs, outputs), as `split_columns` splits the columns of the layer before."""
    # begin 6.3b
    return w[rank * len(w) // size : (rank + 1) * len(w) // size]
    # end


class CopyToRanks:
    """The identity before the columns: each rank uses the same x, so its gradient is the sum over ranks."""

    @staticmethod
    def forward(x, group):
        """Return x."""
        # begin 6.3c
        return x
        # end

    @staticmethod
    def backward(d, group):
        """Return the gradient of x, from this rank's gradient d."""
        # begin 6.3d
        return group.all_reduce(d)
        # end


class SumOverRanks:
    """The sum after the rows: each rank has a term of the result, and receives the whole gradient."""

    @staticmethod
    def forward(x, group):
        """Return the sum of x over ranks."""
        # begin 6.3e
        return group.all_reduce(x)
        # end

    @staticmethod
    def backward(d, group):
        """Return the gradient of this rank's x, from the gradient d of the sum, which all ranks have."""
        # begin 6.3f
        return d
        # end


def mlp_forward(x, w1, b1, w2, b2, group):
    """Return (y, saved): y is the result of both layers, on all ranks, and saved is whatever `mlp_backward` needs.

    w1, b1 and w2 are this rank's parts, and b2 is the whole bias. One all-reduce, of as many elements as y has.
    """
    # begin 6.3g
    hidden = np.maximum(CopyToRanks.forward(x, group) @ w1 + b1, 0)
    y = SumOverRanks.forward(hidden @ w2, group) + b2
    return y, (x, w1, hidden, w2)
    # end


def mlp_backward(d, saved, group):
    """Return (dx, dw1, db1, dw2, db2), the gradients of x, of this rank's parts, and of b2, from the gradient d of y.

    All ranks have the same d. One all-reduce, of as many elements as x has.
    """
    # begin 6.3h
    x, w1, hidden, w2 = saved
    inner = SumOverRanks.backward(d, group)
    before = (inner @ w2.T) * (hidden > 0)
    dx = CopyToRanks.backward(before @ w1.T, group)
    return dx, x.T @ before, before.sum(0), hidden.T @ inner, d.sum(0)
    # end
