"""The number of scalar operators of a call, for its place in the roofline.

Each operator counts as one, an exponential like an addition. A product of (M, K) and (K, N) has 2 M N K, as in FLOP/s. The
plan is counted, so what kernels compute twice, or skip, makes no difference.
"""

from math import prod

from minifuse.compiler.plan import Plan
from minifuse.ir.kernel_ir import Expression, Load, Op, ReduceExpr
from minifuse.ir.step_kernels import CompositeKernel
from minifuse.ir.steps import Step


def operations_of(plan: Plan) -> int:
    """Return the number of operators of all steps of a plan; 0 if only a backend knows that of one step.

    Examples
    --------
    >>> import minifuse as mf
    >>> operations_of(Plan(lambda x, y: (x * y + 1).exp(), [mf.zeros(10, 7), mf.zeros(7)]))
    210
    >>> operations_of(Plan(lambda x: x / x.sum(1, keepdim=True).sqrt(), [mf.zeros(10, 7)]))
    150
    """
    found = [operations_in(step) for step in plan.steps]
    return sum(found) if all(found) else 0


def operations_in(step: Step) -> int:
    """Return the number of operators of a step."""
    if isinstance(step.kernel, CompositeKernel):
        return 0
    points = prod(step.shape)
    if step.kernel.factors:
        depth = step.inputs[0][1].shape[-1]
        return 2 * points * depth + points * sum(isinstance(e, Op) for e in expressions_of(step))
    rows, total, of_rows = points // max(prod(step.shape[d] for d in step.dims), 1), 0, dict[Expression, bool]()
    for e in step.kernel.order:
        of_rows[e] = isinstance(e, ReduceExpr) or (not isinstance(e, Load) and all(of_rows[x] for x in e.inputs))
        if isinstance(e, Op):
            total += rows if of_rows[e] else points
        elif isinstance(e, ReduceExpr):
            total += points
    return total


def expressions_of(step: Step) -> list[Expression]:
    """Return the expressions that are applied to the sums of a product."""
    found, rest = list[Expression](), list[Expression](step.kernel.pointwise_outputs)
    while rest:
        e = rest.pop()
        if e not in found:
            found.append(e)
            rest.extend(e.inputs)
    return found
