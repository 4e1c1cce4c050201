"""Module 7: embeddings. Tokens are numbers, and a table has a row for each.

Tensors are those of the library, `mf.Tensor`. Write with elementary operations: `+ - * / @`, comparisons, `|`, `x.sum(dim)`,
`x.any()`, `x.reshape(...)`, `x.T`, `x[ids]`. `x.index_add(0, ids, rows)` returns x with rows[k] added to its row ids[k], for
all k, also if an id occurs twice. `bool(x)` reads a tensor with one element. `zeros(m, n, dtype=x.dtype)` makes a tensor.
"""

from minifuse.course import todo
from minifuse.course.elementary import Function, zeros

# Task 7.1


class Embedding(Function):
    """Rows of a table, with a derivative of its own: `Embedding.apply(table, ids)`."""

    @staticmethod
    def forward(ctx, table, ids):
        """Return table[ids]: the shape is that of ids, and the size of a row. Save what backward needs.

        A tensor is saved by `ctx.save_for_backward(ids)`, and read in backward by `(ids,) = ctx.saved_tensors`.
        """
        # begin 7.1a
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]
        # end

    @staticmethod
    def backward(ctx, gradient):
        """Return the gradients of table and ids; that of ids is None."""
        # begin 7.1b
        (ids,) = ctx.saved_tensors
        count, width = ctx.shape
        rows = gradient.reshape(ids.size, width)
        return zeros(count, width, dtype=gradient.dtype).index_add(0, ids.reshape(ids.size), rows), None
        # end


def embed(table, ids):
    """Return the rows of a table (count, width) for a tensor of ids, by `Embedding`.

    Raise IndexError if an id is below 0, or not below count.
    """
    # begin 7.1c
    if bool(((ids < 0) | (ids >= table.shape[0])).any()):
        raise IndexError(f"embed: got an id outside of the table; expected ids from 0 to {table.shape[0] - 1}")
    return Embedding.apply(table, ids)
    # end


def add_positions(x, positions):
    """Return x (..., length, width) with row t of `positions` (longest, width) added at place t.

    Raise ValueError if x is longer than the table of positions.
    """
    # begin 7.1d
    length = x.shape[-2]
    if length > positions.shape[0]:
        raise ValueError(f"add_positions: got {length} places, expected at most {positions.shape[0]}, the rows of positions")
    return x + positions[:length]
    # end


def unembed(x, table):
    """Return a score for each row of the table: x (..., width) and table (count, width) to (..., count)."""
    # begin 7.1e
    return x @ table.T
    # end
