"""The axes of nested reductions in the iteration space of a kernel that is under construction.

A kernel begins with the axes of its own loops. Each nested reduction appends an axis for every dim that it reduces. Nested
reductions that are equally deep and reduce equally many elements share their axes.
"""

from collections.abc import Sequence
from functools import cache

from ..core.layout import Layout
from ..ir.kernel_ir import Expression, Kernel, ReduceExpr, reduce_expr, renumber_operands, replace_in
from ..ir.steps import BufferView, Step
from .iteration_space import Reindex

Shape = tuple[int, ...]


class NestedAxes:
    """The axes of the nested reductions of one kernel.

    Attributes
    ----------
    rank : int
        The number of axes of the kernel's own loops.
    shape : tuple of int
        The sizes of all axes so far.
    depth : int
        The number of nested reductions around the expression that is being built.
    groups : dict
        The axes of reductions of some sizes at some depth: (depth, sizes) -> axes.
    """

    def __init__(self, shape: Shape) -> None:
        self.rank, self.shape, self.depth = len(shape), shape, 0
        self.groups: dict[tuple[int, Shape], tuple[int, ...]] = {}

    def axes(self, sizes: Shape) -> tuple[int, ...]:
        """Return the axes of a nested reduction of dims of some sizes at this depth. Append them if there are none."""
        key = self.depth, sizes
        if key not in self.groups:
            self.groups[key] = tuple(range(len(self.shape), len(self.shape) + len(sizes)))
            self.shape += sizes
        return self.groups[key]

    def pad(self, layout: Layout) -> Layout:
        """Return a layout that is constant along all axes that it does not have yet."""
        missing = len(self.shape) - layout.ndim
        return Layout(self.shape, (*layout.strides, *[0] * missing), layout.offset) if missing else layout

    def strip(self, layout: Layout) -> Layout:
        """Return a layout along the axes of the kernel's own loops."""
        return Layout(layout.shape[: self.rank], layout.strides[: self.rank], layout.offset) if self.groups else layout

    def reindex(self, layout: Layout, axes: Sequence[int], outer: Reindex) -> Layout:
        """Return the layout in which loops read an array inside a nested reduction of its last dims.

        `outer` maps the layout of the other dims.
        """
        count = layout.ndim - len(axes)
        padded = self.pad(outer(Layout(layout.shape[:count], layout.strides[:count], layout.offset)))
        strides = list(padded.strides)
        for axis, stride in zip(axes, layout.strides[count:], strict=True):
            strides[axis] = stride
        return Layout(self.shape, tuple(strides), padded.offset)

    def depth_of(self, varying: set[int]) -> int:
        """Return how deep a reduction must be that varies along some axes: deeper than the reductions of these axes."""
        return max((depth + 1 for (depth, _), axes in self.groups.items() if varying.intersection(axes)), default=0)


def finish_nested(step: Step, nested: NestedAxes) -> Step:
    """Return the step of a kernel with nested reductions, with all axes that they reduce, and the inputs that it reads."""
    expressions, used_inputs = renumber_operands(step.kernel.outputs)
    reductions = Kernel(expressions, ()).find_all(ReduceExpr)
    used = {d for e in reductions for d in e.reduced(step.dims)} | {*range(nested.rank)}
    axes = sorted(used)
    shape = tuple(nested.shape[d] for d in axes)
    new_axis = {d: k for k, d in enumerate(axes)}
    dims = tuple(sorted({new_axis[d] for e in reductions for d in e.reduced(step.dims)}))

    @cache
    def renumber(e: ReduceExpr) -> Expression:
        own = tuple(new_axis[d] for d in e.reduced(step.dims))
        return reduce_expr(e.operator, replace_in(e.inputs, ReduceExpr, renumber), None if own == dims else own, e.dtype)

    def view(buffer: BufferView) -> BufferView:
        slot, layout = buffer
        strides = nested.pad(layout).strides
        return slot, Layout(shape, tuple(strides[d] for d in axes), layout.offset)

    outputs = replace_in(expressions, ReduceExpr, renumber)
    count = len(step.kernel.pointwise_outputs) if step.dims else 0  # without rows of its own, all outputs are rows
    kernel = Kernel(outputs[:count], outputs[count:]) if dims else Kernel(outputs, ())
    inputs = [view(step.inputs[k]) for k in used_inputs]
    return Step(kernel, shape, dims, [view(x) for x in step.outputs], inputs, step.numbers, step.indexed_operands)
