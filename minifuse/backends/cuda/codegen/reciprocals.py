"""Replace divisions by a value of the row by products with its reciprocal: one division per row instead of one per element.

A division rounds once, the product with a reciprocal twice. So the result may differ by one more unit in the last place, as
docs/guide/numbers.md allows. An exact division of float32 takes about ten instructions and a branch. A fast one takes fewer,
but more than the product that replaces it.
"""

from collections.abc import Mapping

from ....core.operators import div, mul
from ....ir.kernel_ir import Expression, Kernel, Load, Op, ReduceExpr, constant, is_op, with_inputs


def with_reciprocals(kernel: Kernel, varies: Mapping[Expression, bool]) -> Kernel:
    """Return the kernel without divisions by values of a row. `varies` contains whether each expression varies along it.

    Divisions by kernel parameters remain: a kernel may consist of one, and its result should be exact.

    Examples
    --------
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.kernel_ir import Load, reduce_expr
    >>> from minifuse.core.operators import add
    >>> x = Load(0, float32)
    >>> kernel = Kernel((div(x, reduce_expr(add, x)),), ())
    >>> varies = {e: not isinstance(e, ReduceExpr) for e in kernel.order}
    >>> with_reciprocals(kernel, varies).pointwise_outputs[0].operator.name
    'mul'
    """
    new: dict[Expression, Expression] = {}
    for e in kernel.order:
        inputs = tuple(new[x] for x in e.inputs)
        if isinstance(e, Op) and is_op(e, div) and varies[e] and is_of_row(e.inputs[1], varies):
            x, y = inputs
            new[e] = Op(mul, (x, Op(e.operator, (constant(1, e.dtype), y), e.dtype)), e.dtype)
        else:
            new[e] = with_inputs(e, inputs) if inputs else e
    return Kernel(tuple(new[e] for e in kernel.pointwise_outputs), tuple(new[e] for e in kernel.row_outputs))


def is_of_row(e: Expression, varies: Mapping[Expression, bool]) -> bool:
    """Return whether a value is constant along a row, and computed from values of that row."""
    part = Kernel((e,), ())
    return not varies[e] and bool(part.find_all(ReduceExpr) or part.find_all(Load))
