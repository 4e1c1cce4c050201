"""Estimate the memory of a plan from the number of its parts: measuring it would take longer than planning.

The constants were fitted to measurements with `tracemalloc` of single ops, loops, networks and training steps, on 64-bit
Python 3.11. Compiled kernels belong to the kernel cache, and are not counted.
"""

from collections.abc import Sequence

from ..core.interning import toposort
from ..ir.graph import inputs_of
from ..ir.steps import Step
from ..ir.vjp import Backward
from .trace_result import TracedGraph

PLAN_NBYTES = 3_000  # bytes of an empty plan
NODE_NBYTES = 350  # bytes of a node of its graph
STEP_NBYTES = 1_000  # bytes of a step, without its operands
OPERAND_NBYTES = 400  # bytes of an operand of a step
EXPRESSION_NBYTES = 200  # bytes of a distinct expression of its kernels


def plan_nbytes(graph: TracedGraph, backward: Backward | None, steps: Sequence[Step], text: str) -> int:
    """Return the approximate size of a plan with a host program `text`, in bytes."""
    roots = [*graph.outputs, *[value for _, value in graph.stores], *(backward.saved if backward else ())]
    node_count = len(toposort(roots, inputs_of))
    operand_count = sum([len(step.inputs) + len(step.outputs) for step in steps])
    expression_count = len({e for step in steps for e in step.kernel.order})
    nbytes = PLAN_NBYTES + NODE_NBYTES * node_count + STEP_NBYTES * len(steps) + OPERAND_NBYTES * operand_count
    return nbytes + EXPRESSION_NBYTES * expression_count + len(text)
