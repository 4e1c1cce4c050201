"""Loads from padded arrays: a kernel loads an element only where its index is inside, so the index needs no clamp."""

from ....core.operators import maximum, minimum, where
from ....ir.kernel_ir import Constant, Expression, IndexedLoad, Kernel, Op, is_op, with_inputs


def with_padded_loads(kernel: Kernel) -> Kernel:
    """Return a kernel whose loads from padded arrays have no clamps: they run only where their indices are inside."""
    new: dict[Expression, Expression] = {}
    for e in kernel.order:
        inputs = tuple(new[x] for x in e.inputs)
        if is_padded_load(e):
            load = with_inputs(e.inputs[1], tuple(without_clamps(x) for x in inputs[1].inputs))
            inputs = inputs[0], load, inputs[2]
        new[e] = with_inputs(e, inputs) if inputs else e
    return Kernel(tuple(new[e] for e in kernel.pointwise_outputs), tuple(new[e] for e in kernel.row_outputs))


def is_padded_load(e: Expression) -> bool:
    """Return whether an expression selects an element that is loaded at indices without clamps."""
    return isinstance(e, Op) and e.operator is where and isinstance(e.inputs[1], IndexedLoad)


def without_clamps(e: Expression) -> Expression:
    """Return an index without the limits to a range, as `inline_padding` writes them: minimum(maximum(x, 0), last)."""
    if isinstance(e, Op) and e.operator is minimum and is_op(e.inputs[0], maximum):
        low, limit = e.inputs[0].inputs
        if isinstance(limit, Constant) and limit.value == 0:
            return low
    return e
