"""Estimate the memory of a plan from the number of its parts: measuring it would take longer than planning.

The constants were fitted to measurements with `tracemalloc` of single ops, loops, networks and training steps, on 64-bit
Python 3.11. Compiled kernels belong to the kernel cache, and are not counted.
"""

from typing import TYPE_CHECKING, Any

from ..core.interning import toposort
from ..ir.graph import inputs_of

if TYPE_CHECKING:
    from .plan import Plan

PLAN_NBYTES = 5_000  # bytes of an empty plan; then bytes of each of its parts
NODE_NBYTES = 400
STEP_NBYTES = 1_500
OPERAND_NBYTES = 500
EXPRESSION_NBYTES = 350


def plan_nbytes(plan: "Plan") -> int:
    """Return the approximate size of a plan, in bytes."""
    roots = [*plan.outputs, *[value for _, value in plan.graph.stores], *(plan.backward.saved if plan.backward else ())]
    nodes = len(toposort(roots, inputs_of))
    operands = sum(len(step.inputs) + len(step.outputs) for step in plan.steps)
    outputs = [x for step in plan.steps for x in kernel_roots(step.kernel)]
    expressions = len(toposort(outputs, lambda x: x.inputs))
    nbytes = PLAN_NBYTES + NODE_NBYTES * nodes + STEP_NBYTES * len(plan.steps) + OPERAND_NBYTES * operands
    return nbytes + EXPRESSION_NBYTES * expressions + len(plan.text)


def kernel_roots(kernel: Any) -> tuple[Any, ...]:
    """Return the expressions of a kernel: for a matmul, its operands and its outputs."""
    return (kernel.a, kernel.b, *kernel.pointwise_outputs) if hasattr(kernel, "a") else kernel.outputs
