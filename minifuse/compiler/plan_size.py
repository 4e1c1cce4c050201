"""Estimate the memory of a plan from the number of its parts: measuring it would take longer than planning.

The constants were fitted to measurements with `tracemalloc` of single ops, loops, networks and training steps, on 64-bit
Python 3.11. Compiled kernels belong to the kernel cache, and are not counted.
"""

from collections.abc import Sequence

from ..core.interning import toposort
from ..ir.graph import inputs_of
from ..ir.kernel_ir import Expression, Kernel, MatmulKernel
from ..ir.steps import Step
from ..ir.vjp import Backward
from .trace_result import TracedGraph

PLAN_NBYTES = 5_000  # bytes of an empty plan; then bytes of each of its parts
NODE_NBYTES = 400
STEP_NBYTES = 1_500
OPERAND_NBYTES = 500
EXPRESSION_NBYTES = 350


def plan_nbytes(graph: TracedGraph, backward: Backward | None, steps: Sequence[Step], text: str) -> int:
    """Return the approximate size of a plan with a host program `text`, in bytes."""
    roots = [*graph.outputs, *[value for _, value in graph.stores], *(backward.saved if backward else ())]
    nodes = len(toposort(roots, inputs_of))
    operands = sum(len(step.inputs) + len(step.outputs) for step in steps)
    outputs = [x for step in steps for x in kernel_roots(step.kernel)]
    expressions = len(toposort(outputs, lambda x: x.inputs))
    nbytes = PLAN_NBYTES + NODE_NBYTES * nodes + STEP_NBYTES * len(steps) + OPERAND_NBYTES * operands
    return nbytes + EXPRESSION_NBYTES * expressions + len(text)


def kernel_roots(kernel: Kernel | MatmulKernel) -> tuple[Expression, ...]:
    """Return the expressions of a kernel: for a matmul, its operands and its outputs."""
    return (kernel.a, kernel.b, *kernel.pointwise_outputs) if isinstance(kernel, MatmulKernel) else kernel.outputs
