"""The loops of a scan, and the function that combines two of its values: shared by the compiled backends."""

from collections.abc import Sequence
from typing import NamedTuple

from ...core.dtypes import DType
from ...core.layout import Layout
from ...core.operators import Operator
from ...ir.kernel_ir import Kernel, Load, LoopNest, reduce_expr
from ...ir.monoid import monoid_of
from ...ir.scan import Scan

SCAN, TOTALS, RESUME = "scan", "totals", "resume"  # whole lines; the totals of chunks; chunks, given the totals before them


class ScanNest(NamedTuple):
    """The loops of a scan: n elements of each line, and the axes of the lines, in the memory order of the first output.

    Operands are the outputs, then the inputs. A scan from the end runs over negative strides.
    """

    n: int
    starts: tuple[int, ...]
    """The position of the first element of each operand."""
    steps: tuple[int, ...]
    """The distance between neighbors on a line of each operand."""
    sizes: tuple[int, ...]
    """The number of lines along each axis."""
    strides: tuple[tuple[int, ...], ...]
    """The strides of each operand along these axes."""

    @classmethod
    def of_layouts(cls, op: Scan, layouts: Sequence[Layout]) -> "ScanNest":
        """Return the loops over operands with these layouts, whose offsets are 0."""
        d, n = op.dim, layouts[0].shape[op.dim]
        lines = [without_dim(x, d) for x in layouts]
        nest = LoopNest(lines[0].shape, (), lines)
        steps = tuple(-x.strides[d] if op.reverse else x.strides[d] for x in layouts)
        starts = tuple(max(n - 1, 0) * x.strides[d] if op.reverse else 0 for x in layouts)
        return cls(n, starts, steps, tuple(nest.sizes), tuple(map(tuple, nest.strides)))


def without_dim(x: Layout, dim: int) -> Layout:
    """Return the layout of a slice along a dim, whose positions are counted from its first element."""
    return Layout((*x.shape[:dim], *x.shape[dim + 1 :]), (*x.strides[:dim], *x.strides[dim + 1 :]), 0)


def combination_kernel(operator: Operator, dtypes: Sequence[DType]) -> Kernel:
    """Return the kernel of which `ExpressionPrinter.functions` prints the function that combines two values of a scan.

    >>> from minifuse.backends.codegen.expression_printer import ExpressionPrinter
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.operators import add
    >>> (lines,) = ExpressionPrinter(combination_kernel(add, [float32])).functions()
    >>> lines
    ['def combine(a, b):', '    return a + b']
    """
    loads = tuple(Load(k, dtype) for k, dtype in enumerate(dtypes))
    return Kernel((), (reduce_expr(monoid_of(operator).states[0], loads, dtype=dtypes[0]),))
