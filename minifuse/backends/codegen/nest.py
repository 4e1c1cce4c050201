"""A kernel over the axes of its loop nest: which axes each expression depends on, and where neighbors are in memory."""

from collections.abc import Sequence
from functools import cached_property

from ...ir.kernel_ir import Expression, IndexedLoad, IndexValue, Kernel, Load, LoopNest, Op, ReadOutput, ReduceExpr
from .expression_printer import operand_name

Reductions = tuple[tuple[tuple[int, ...], frozenset[int]], ...]  # the dims of nested reductions, and their axes


def nested_reductions(kernel: Kernel, nest: LoopNest) -> Reductions:
    """Return the axes of each nested reduction of a kernel, by the dims that it reduces."""
    dims = dict.fromkeys(e.dims for e in kernel.order if isinstance(e, ReduceExpr) and e.dims is not None)
    return tuple((d, frozenset(nest.reduced_axes(d))) for d in dims)


class KernelNest:
    """A kernel, the sizes of its axes, and the strides of its operands.

    Attributes
    ----------
    kernel : Kernel
    sizes : list of int
        The size of each axis.
    reduced : frozenset of int
        The axes that reductions reduce.
    strides : dict of str to tuple of int
        The stride of each operand along each axis, by the operand's name in the text: out0, in0, base0.
    raws : tuple of str
        The stride kinds of each indexed operand: one letter for each dim.
    axes_of : dict of Expression to frozenset of int
        The axes that each expression depends on.
    """

    def __init__(
        self, kernel: Kernel, nest: LoopNest, raws: Sequence[str] = (), reductions: Reductions | None = None
    ) -> None:
        """Describe a kernel over a loop nest; `reductions` are the axes of nested reductions, by default the nest's."""
        self.kernel, self.sizes, self.raws = kernel, list(nest.sizes), tuple(raws)
        self.reductions_by_dims = dict(nested_reductions(kernel, nest) if reductions is None else reductions)
        count = len(self.sizes)
        has_reductions = any(isinstance(e, ReduceExpr) for e in kernel.order) or bool(kernel.row_outputs)
        self.reduced = frozenset(range(nest.row_axes, count)) if has_reductions else frozenset[int]()
        names = [f"out{k}" for k in range(len(kernel.outputs))] + [operand_name(e) for e in kernel.find_all(Load)]
        self.strides = dict(zip(names, nest.strides, strict=True))
        self.axes_of: dict[Expression, frozenset[int]] = {}
        for e in kernel.order:
            self.axes_of[e] = self.find_axes(e)

    def find_axes(self, e: Expression) -> frozenset[int]:
        """Return the axes that an expression depends on, given those of its inputs."""
        if isinstance(e, Load | ReadOutput):
            return frozenset(a for a, stride in enumerate(self.strides[operand_name(e)]) if stride)
        axes = frozenset[int]().union(*[self.axes_of[x] for x in e.inputs])
        return axes - self.axes_reduced_by(e) if isinstance(e, ReduceExpr) else axes

    def axes_reduced_by(self, e: ReduceExpr) -> frozenset[int]:
        """Return the axes that a reduction reduces."""
        return self.reduced if e.dims is None else self.reductions_by_dims[e.dims]

    @cached_property
    def reductions(self) -> list[ReduceExpr]:
        """All reductions, inputs first."""
        return self.kernel.find_all(ReduceExpr)

    def output_axes(self, k: int) -> frozenset[int]:
        """Return the axes along which output k has different elements."""
        every = frozenset(range(len(self.sizes)))
        if k >= len(self.kernel.pointwise_outputs):
            return every - self.reduced
        if not self.reductions_by_dims:
            return every
        strides = self.strides[f"out{k}"]  # with nested reductions, an output may be constant along some reduced axes
        return frozenset(a for a in every if a not in self.reduced or strides[a])

    @cached_property
    def depth(self) -> dict[Expression, int]:
        """The number of nested or consecutive reductions that each expression needs."""
        depth: dict[Expression, int] = {}
        for e in self.kernel.order:
            depth[e] = max((depth[x] for x in e.inputs), default=0) + isinstance(e, ReduceExpr)
        return depth

    @cached_property
    def sinks_of(self) -> dict[Expression, set[int]]:
        """The depths of the reductions and outputs that need each expression, without reductions in between."""
        found: dict[Expression, set[int]] = {e: set() for e in self.kernel.order}
        for e in self.kernel.outputs:
            found[e].add(self.depth[e])
        for e in reversed(self.kernel.order):
            for x in e.inputs:
                found[x] |= {self.depth[e] - 1} if isinstance(e, ReduceExpr) else found[e]
        return found

    def contiguous_index(self, e: IndexedLoad) -> Expression | None:
        """Return the index of an indexed load along the dim whose elements are adjacent in memory; None if there is none."""
        return next((x for x, kind in zip(e.inputs, self.raws[e.index], strict=False) if kind == "1"), None)

    def memory_operands(self) -> list[tuple[str, int]]:
        """Return (name, bytes of an element) of each operand in memory: outputs, then inputs."""
        outputs = [(f"out{k}", e.dtype.itemsize) for k, e in enumerate(self.kernel.outputs)]
        loads = [(f"in{e.index}", e.dtype.itemsize) for e in self.kernel.find_all(Load) if not isinstance(e, IndexValue)]
        return outputs + loads


def cost_of(expressions: Sequence[Expression]) -> int:
    """Return the arithmetic of some expressions at one point, in additions."""
    return sum(e.operator.cost for e in expressions if isinstance(e, Op | ReduceExpr) and e.operator)
