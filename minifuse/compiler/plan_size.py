"""How much memory a plan takes: an estimate from what it consists of, since measuring would cost more than planning.

The figures were fitted to what `tracemalloc` measures of operations, loops, networks and training steps, on Python 3.11 of
64 bits. Kernels that are compiled belong to the kernel cache, and are not counted.
"""

from typing import Any

from ..core.interning import toposort
from ..ir.graph import inputs_of

PLAN_NBYTES = 5_000  # bytes of any plan, and of each part of one:
NODE_NBYTES = 400
STEP_NBYTES = 1_500
OPERAND_NBYTES = 500
EXPRESSION_NBYTES = 350


def plan_nbytes(plan: Any) -> int:
    """Return about how many bytes a plan takes."""
    roots = [*plan.outputs, *[value for _, value in plan.graph.stores], *(plan.backward.saved if plan.backward else ())]
    nodes = len(toposort(roots, inputs_of))
    operands = sum(len(step.inputs) + len(step.outputs) for step in plan.steps)
    outputs = [x for step in plan.steps for x in kernel_roots(step.kernel)]
    expressions = len(toposort(outputs, lambda x: x.inputs))
    nbytes = PLAN_NBYTES + NODE_NBYTES * nodes + STEP_NBYTES * len(plan.steps) + OPERAND_NBYTES * operands
    return nbytes + EXPRESSION_NBYTES * expressions + len(plan.text)


def kernel_roots(kernel: Any) -> tuple[Any, ...]:
    """Return what a kernel computes: of a matrix product its operands, too."""
    return (kernel.a, kernel.b, *kernel.pointwise_outputs) if hasattr(kernel, "a") else kernel.outputs
