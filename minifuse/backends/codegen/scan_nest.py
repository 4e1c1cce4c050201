"""The loops of a scan, its prologue and epilogue, and the function that combines two values: for compiled backends."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...core.dtypes import DType
from ...core.interning import toposort
from ...core.layout import Layout
from ...core.operators import Operator
from ...ir.kernel_ir import Expression, IndexValue, Kernel, Load, LoopNest, ReduceExpr, expressions_of, reduce_expr
from ...ir.monoid import monoid_of
from ...ir.scan import Scan
from ...ir.step_kernels import ScanKernel
from .expression_printer import ExpressionPrinter, combiner_key

# Whole lines; the totals of chunks; chunks, given the totals before them; chunks that look for the totals before them.
SCAN, TOTALS, RESUME, LOOK_BACK = "scan", "totals", "resume", "look back"


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


class ScanPrinter(ExpressionPrinter):
    """Prints the prologue and the epilogue of a scan, and the function that combines two values.

    Attributes
    ----------
    place : function of a str
        Returns the position of the present point in the array of a name.
    """

    def __init__(self, kernel: ScanKernel, states: Sequence[DType], wrapping: frozenset[DType]) -> None:
        """Prepare to print. `states` are the dtypes in which the scan accumulates."""
        combination = combination_of(kernel.op.operator, states)
        super().__init__(Kernel(kernel.outputs, (combination,)), wrapping)
        self.scan, self.states = kernel, tuple(states)
        self.dtypes = dict(zip([*output_names(kernel), *input_names(kernel)], kernel.operand_dtypes(), strict=True))
        self.outputs, self.inputs = output_names(kernel), input_names(kernel)
        self.index_values = {f"in{e.index}" for e in kernel.find_all(IndexValue)}
        self.combine_name = self.combiners[combiner_key(combination)]
        self.numbers = dict(self.names)
        self.place: Callable[[str], str] = lambda name: name

    def at(self, place: Callable[[str], str]) -> None:
        """Begin to print the values of a point."""
        self.place, self.names = place, dict(self.numbers)

    def array_element(self, e: Load) -> str:
        """Return the text of an element of an array."""
        raise NotImplementedError

    def leaf_text(self, e: Expression) -> str:
        """Return the text of an element of an array, or of an index."""
        assert isinstance(e, Load)
        return f"(in{e.index} + {self.place(f'in{e.index}')})" if isinstance(e, IndexValue) else self.array_element(e)

    def prologue(self, is_reused: bool = False) -> list[str]:
        """Emit the prologue at this point, and return the states. The epilogue may use its values again if `is_reused`."""
        roots = self.scan.states
        shared = self.epilogue_values() if is_reused else set[Expression]()
        self.define(roots, shared.intersection(expressions_of(*roots)))
        return [
            self.bare(e) if e.dtype is x else f"{x.short}({self.bare(e)})" for e, x in zip(roots, self.states, strict=True)
        ]

    def epilogue(self, states: Sequence[str], outputs: Sequence[Expression] | None = None) -> list[str]:
        """Emit the epilogue at this point, given the states of the scan, and return the outputs, or other expressions."""
        outputs = self.scan.outputs if outputs is None else outputs
        for e in self.scan.scanned:
            k = self.scan.state_of(e)
            self.names[e] = states[k] if e.dtype is self.states[k] else f"{e.dtype.short}({states[k]})"
        self.define(outputs)
        return [self.bare(e) for e in outputs]

    def epilogue_values(self) -> set[Expression]:
        """Return the values that the epilogue is computed from, besides the scan."""
        scanned = self.scan.scanned
        return {*toposort(self.scan.outputs, lambda e: () if e in scanned else e.inputs)} - {*scanned}


def output_names(kernel: ScanKernel) -> list[str]:
    """Return the names of the outputs in the text of a kernel."""
    return [f"out{k}" for k in range(len(kernel.outputs))]


def input_names(kernel: ScanKernel) -> list[str]:
    """Return the names of the inputs in the text of a kernel."""
    return [f"in{e.index}" for e in kernel.find_all(Load)]


def combination_of(operator: Operator, dtypes: Sequence[DType]) -> ReduceExpr:
    """Return a reduction whose combining function is that of a scan."""
    loads = tuple(Load(k, dtype) for k, dtype in enumerate(dtypes))
    return reduce_expr(monoid_of(operator).states[0], loads, dtype=dtypes[0])


def combination_kernel(operator: Operator, dtypes: Sequence[DType]) -> Kernel:
    """Return the kernel of which `ExpressionPrinter.functions` prints the function that combines two values of a scan.

    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.operators import add
    >>> (lines,) = ExpressionPrinter(combination_kernel(add, [float32])).functions()
    >>> lines
    ['def combine(a, b):', '    return a + b']
    """
    return Kernel((), (combination_of(operator, dtypes),))
