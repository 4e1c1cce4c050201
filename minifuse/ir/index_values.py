"""Find the positions of a point that an index of a load grows with."""

from ..core.operators import where
from .kernel_ir import Expression, IndexValue, Kernel, is_op


def index_values(index: Expression) -> list[IndexValue]:
    """Return the positions in an index of a load, but for those that only decide which of two indices is read.

    >>> from minifuse.core.dtypes import int64
    >>> from minifuse.ir.kernel_ir import Op
    >>> i, j = IndexValue(0, int64), IndexValue(1, int64)
    >>> [x.index for x in index_values(Op(where, (j, i, i), int64))]
    [0]
    """
    return Kernel(tuple(index_choices(index)), ()).find_all(IndexValue)


def index_choices(index: Expression) -> list[Expression]:
    """Return the indices between which an index chooses."""
    return [choice for x in index.inputs[1:] for choice in index_choices(x)] if is_op(index, where) else [index]
