"""How many operators a call does, element by element: what places it under the roof of a machine.

Each operator of the table counts as one, an exponential like an addition; an addition of a product counts as it does in
FLOP/s, so a product of (M, K) and (K, N) has 2 M N K. What kernels compute again, or never, is not seen: this counts
the plan.
"""

from math import prod
from typing import Any

from minifuse.compiler.plan import Plan
from minifuse.ir.kernel_ir import Expression, Load, Op, ReduceExpr
from minifuse.ir.steps import KernelLaunch, MatmulLaunch


def operations_of(plan: Plan) -> int:
    """Operators of all steps of a plan; 0 where one of them is known to a backend only.

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


def operations_in(step: Any) -> int:
    """Those of a step."""
    points = prod(step.shape) if isinstance(step, KernelLaunch | MatmulLaunch) else 0
    if isinstance(step, MatmulLaunch):
        depth = step.inputs[0][1].shape[-1]
        return 2 * points * depth + points * sum(isinstance(e, Op) for e in expressions_of(step))
    if not isinstance(step, KernelLaunch):
        return 0
    rows, total, of_rows = points // max(prod(step.shape[d] for d in step.dims), 1), 0, dict[Expression, bool]()
    for e in step.kernel.expressions():
        of_rows[e] = isinstance(e, ReduceExpr) or (not isinstance(e, Load) and all(of_rows[x] for x in e.inputs))
        if isinstance(e, Op):
            total += rows if of_rows[e] else points
        elif isinstance(e, ReduceExpr):
            total += points
    return total


def expressions_of(step: MatmulLaunch) -> list[Expression]:
    """What is done to the sums of a product."""
    found, rest = list[Expression](), list[Expression](step.kernel.pointwise_outputs)
    while rest:
        e = rest.pop()
        if e not in found:
            found.append(e)
            rest.extend(e.inputs)
    return found
