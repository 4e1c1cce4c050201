"""Run the kernels of a student's schedule one after the other with NumPy, and count launches and bytes.

A kernel can read only the values that it loads and computes. So a schedule fails here if it omits a load, or runs a kernel
before one that stores a value it loads.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .check import current
from .formula_links import page_link
from .fusion import Graph, Kernel, can_share
from .graph_evaluation import NUMPY_FUNCTIONS
from .kernel_groups import count_bytes, nbytes, nodes_to_compute
from .strided import Array
from .verdicts import Wrong


class ScheduleCost(NamedTuple):
    """The cost of a schedule."""

    launches: int
    nbytes: int
    outputs: list[Array]


def unfused_cost(graph: Graph) -> tuple[int, int]:
    """Return the launches and bytes of one kernel for each node."""
    computed = nodes_to_compute(graph)
    return len(computed), count_bytes(graph, [frozenset({k}) for k in computed])


def format_kernels(kernels: Sequence[Kernel]) -> list[str]:
    """Return one line of text for each kernel."""

    def numbers(values: Sequence[int]) -> str:
        return " ".join(f"%{k}" for k in values) or "nothing"

    return [
        f"kernel {at}: loads {numbers(k.loads)}; computes {numbers(k.nodes)}; stores {numbers(k.stores)}"
        for at, k in enumerate(kernels)
    ]


def schedule_error(
    message: str,
    graph: Graph,
    kernels: Sequence[Kernel],
    kind: str,
    expected: object = None,
    got: object = None,
    case: object = None,
) -> Wrong:
    """Return a failure whose picture shows the graph and the kernels."""
    picture = [*str(graph).splitlines(), "", *format_kernels(kernels)]
    link = page_link("fusion", graph)
    return Wrong(message, case_text=current[0], drawing=picture, link=link, kind=kind, expected=expected, got=got, case=case)


def validate_schedule(graph: Graph, schedule: object) -> tuple[Kernel, ...]:
    """Check the types of a schedule and return it as a tuple."""
    if not isinstance(schedule, list | tuple) or not all(isinstance(kernel, Kernel) for kernel in schedule):
        raise Wrong("a schedule is a tuple of Kernel(nodes, loads, stores), in the order of their launches", got=schedule)
    for at, kernel in enumerate(schedule):
        for name, part in zip(kernel._fields, kernel, strict=True):
            if not isinstance(part, tuple) or not all(isinstance(k, int) and 0 <= k < len(graph.nodes) for k in part):
                raise Wrong(f"{name} of kernel {at} must be a tuple of numbers of nodes", case_text=current[0], got=part)
    return tuple(schedule)


def run_schedule(graph: Graph, schedule: object, arrays: Sequence[Array]) -> ScheduleCost:
    """Run a schedule and return its cost and outputs.

    Raises
    ------
    Wrong
        The schedule breaks a rule, or a kernel reads a value that is not loaded or not stored.
    """
    kernels = validate_schedule(graph, schedule)
    homes: dict[int, list[int]] = {}
    for at, kernel in enumerate(kernels):
        for k in kernel.nodes:
            homes.setdefault(k, []).append(at)
        if not kernel.nodes or not can_share(graph, kernel.nodes):
            matmul = [k for k in kernel.nodes if graph.nodes[k].op == "matmul"]
            why = (
                f"%{matmul[0]} is a matmul, which must be a separate kernel"
                if matmul
                else "can_share returns False for its nodes"
            )
            raise schedule_error(f"kernel {at} cannot be one launch: {why}", graph, kernels, "rule")
    for k in nodes_to_compute(graph):
        if len(homes.get(k, [])) != 1:
            message = "no kernel computes" if k not in homes else f"kernels {homes[k]} all compute"
            raise schedule_error(f"{message} %{k}; each value is computed once", graph, kernels, "once")
    for k in homes:
        if k not in nodes_to_compute(graph):
            message = f"kernel {homes[k][0]} computes %{k}, and no output of the graph depends on it"
            raise schedule_error(message, graph, kernels, "nobody needs")
    check_no_cycle(graph, kernels, {k: at[0] for k, at in homes.items()})
    memory = {k: np.asarray(arrays[int(n.value or 0)]) for k, n in enumerate(graph.nodes) if n.op == "input"}
    moved = 0
    for at, kernel in enumerate(kernels):
        run_kernel(graph, kernels, at, memory)
        moved += sum(nbytes(graph, k) for k in (*kernel.loads, *kernel.stores))
    for k in graph.outputs:
        if k not in memory and graph.nodes[k].op != "constant":
            raise schedule_error(f"%{k} is given back, and no kernel stores it", graph, kernels, "output")
    return ScheduleCost(len(kernels), moved, [memory[k] for k in graph.outputs if k in memory])


def check_no_cycle(graph: Graph, kernels: Sequence[Kernel], home: dict[int, int]) -> None:
    """Raise `Wrong` if two kernels wait for each other, directly or through others."""
    needs: list[set[int]] = [
        {home[i] for k in kernel.nodes for i in graph.nodes[k].inputs if i in home} - {at}
        for at, kernel in enumerate(kernels)
    ]
    for at in range(len(kernels)):
        seen, stack = set[int](), list(needs[at])
        while stack:
            other = stack.pop()
            if other == at:
                via = min(k for k in needs[at] if at in reachable_kernels(needs, k))
                raise schedule_error(
                    f"kernels {at} and {via} wait for each other: a cycle, so neither can run first", graph, kernels, "cycle"
                )
            if other not in seen:
                seen.add(other)
                stack += needs[other]


def reachable_kernels(needs: Sequence[set[int]], start: int) -> set[int]:
    """Return all kernels for which a kernel waits, directly or through others."""
    seen, stack = set[int](), [start]
    while stack:
        for other in needs[stack.pop()] - seen:
            seen.add(other)
            stack.append(other)
    return seen


def run_kernel(graph: Graph, kernels: Sequence[Kernel], at: int, memory: dict[int, Array]) -> None:
    """Run one kernel: load, compute its nodes in order, store."""
    kernel = kernels[at]
    missing = [k for k in kernel.loads if k not in memory]
    for k in missing:
        if graph.nodes[k].op == "constant":
            raise schedule_error(
                f"kernel {at} loads %{k}, a constant; constants are written in the code of a kernel, not loaded",
                graph,
                kernels,
                "constant",
            )
    if missing:
        raise schedule_error(
            f"kernel {at} loads %{missing[0]}, which is not in memory when it runs: nothing before it stores it",
            graph,
            kernels,
            "order",
        )
    values: dict[int, Array] = {k: memory[k] for k in kernel.loads}
    for k in kernel.nodes:
        node = graph.nodes[k]
        for i in node.inputs:
            if graph.nodes[i].op == "constant":
                values[i] = np.asarray(graph.nodes[i].value)
            elif i not in values:
                where = "is computed after it in this kernel" if i in kernel.nodes else "is not among its loads"
                raise schedule_error(f"kernel {at} needs %{i} for %{k}, and %{i} {where}", graph, kernels, "missing")
        operands = [values[i] for i in node.inputs]
        with np.errstate(all="ignore"):
            values[k] = (
                np.broadcast_to(operands[0], node.shape)
                if node.op == "expand"
                else np.asarray(NUMPY_FUNCTIONS[node.op](*operands))
            )
    for k in kernel.stores:
        if k not in kernel.nodes:
            raise schedule_error(f"kernel {at} stores %{k}, which it does not compute", graph, kernels, "stores")
        memory[k] = values[k]
