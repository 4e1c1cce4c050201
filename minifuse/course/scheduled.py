"""Kernels that a student's schedule names, run one after the other over a memory that counts what is moved.

A launch has what it loads and what it computes, nothing else; so a schedule that forgets a load, or runs a kernel before the
one that it waits for, shows here. NumPy computes the nodes.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from .check import current
from .fusion import Graph, Kernel, can_share
from .programs import NUMPY, needed
from .strided import Array
from .verdicts import Wrong

ITEM = 8  # bytes of an element: float64


class Moved(NamedTuple):
    """The cost of a schedule."""

    launches: int
    nbytes: int
    outputs: list[Array]


def nbytes(graph: Graph, k: int) -> int:
    """Of a value."""
    return ITEM * prod(graph.nodes[k].shape)


def wanted_of(graph: Graph) -> list[int]:
    """The nodes that kernels have to compute."""
    return [k for k in needed(graph) if graph.nodes[k].op not in ("input", "constant")]


def kernel_of(graph: Graph, group: Iterable[int], wanted: Iterable[int]) -> Kernel:
    """The kernel that computes some nodes, and loads and stores no more than it must."""
    nodes = tuple(sorted(group))
    loads = {i for k in nodes for i in graph.nodes[k].inputs if i not in nodes and graph.nodes[i].op != "constant"}
    outside = {i for k in wanted if k not in nodes for i in graph.nodes[k].inputs} | set(graph.outputs)
    return Kernel(nodes, tuple(sorted(loads)), tuple(k for k in nodes if k in outside))


def bytes_of(graph: Graph, groups: Sequence[Iterable[int]]) -> int:
    """Count the bytes that kernels of these nodes move at least."""
    wanted = wanted_of(graph)
    kernels = [kernel_of(graph, group, wanted) for group in groups]
    return sum(nbytes(graph, k) for kernel in kernels for k in (*kernel.loads, *kernel.stores))


def in_order(graph: Graph, groups: Sequence[frozenset[int]]) -> list[frozenset[int]] | None:
    """The kernels in an order in which none waits for a later one; None if there is none."""
    left, done, found = [g for g in groups if g], set[int](), list[frozenset[int]]()
    wanted = set().union(*left) if left else set[int]()
    while left:
        ready = [g for g in left if all(i in done or i in g or i not in wanted for k in g for i in graph.nodes[k].inputs)]
        if not ready:
            return None
        found.append(ready[0])
        left.remove(ready[0])
        done |= ready[0]
    return found


def unfused(graph: Graph) -> tuple[int, int]:
    """Launches and bytes with a kernel for each node."""
    wanted = wanted_of(graph)
    return len(wanted), bytes_of(graph, [frozenset({k}) for k in wanted])


def told_kernels(kernels: Sequence[Kernel]) -> list[str]:
    """A schedule in lines."""

    def numbers(values: Sequence[int]) -> str:
        return " ".join(f"%{k}" for k in values) or "nothing"

    return [
        f"kernel {at}: loads {numbers(k.loads)}; computes {numbers(k.nodes)}; stores {numbers(k.stores)}"
        for at, k in enumerate(kernels)
    ]


def wrong(
    said: str,
    graph: Graph,
    kernels: Sequence[Kernel],
    kind: str,
    expected: object = None,
    got: object = None,
    case: object = None,
) -> Wrong:
    """Build a failure that shows the graph and the kernels."""
    picture = [*str(graph).splitlines(), "", *told_kernels(kernels)]
    return Wrong(said, told=current[0], drawing=picture, kind=kind, expected=expected, got=got, case=case)


def checked(graph: Graph, found: object) -> tuple[Kernel, ...]:
    """A schedule of kernels, of the right kinds."""
    if not isinstance(found, list | tuple) or not all(isinstance(kernel, Kernel) for kernel in found):
        raise Wrong("a schedule is a tuple of Kernel(nodes, loads, stores), in the order of their launches", got=found)
    for at, kernel in enumerate(found):
        for name, part in zip(kernel._fields, kernel, strict=True):
            if not isinstance(part, tuple) or not all(isinstance(k, int) and 0 <= k < len(graph.nodes) for k in part):
                raise Wrong(f"{name} of kernel {at} is to be a tuple of numbers of nodes", told=current[0], got=part)
    return tuple(found)


def run(graph: Graph, found: object, arrays: Sequence[Array]) -> Moved:
    """Run a schedule.

    Raises
    ------
    Wrong
        It breaks a rule, or a kernel needs what is not there.
    """
    kernels = checked(graph, found)
    homes: dict[int, list[int]] = {}
    for at, kernel in enumerate(kernels):
        for k in kernel.nodes:
            homes.setdefault(k, []).append(at)
        if not kernel.nodes or not can_share(graph, kernel.nodes):
            matmul = [k for k in kernel.nodes if graph.nodes[k].op == "matmul"]
            why = f"%{matmul[0]} is a matmul, and a kernel of its own" if matmul else "can_share says no to its nodes"
            raise wrong(f"kernel {at} cannot be one launch: {why}", graph, kernels, "rule")
    for k in wanted_of(graph):
        if len(homes.get(k, [])) != 1:
            said = "no kernel computes" if k not in homes else f"kernels {homes[k]} all compute"
            raise wrong(f"{said} %{k}; each value is computed once", graph, kernels, "once")
    for k in homes:
        if k not in wanted_of(graph):
            said = f"kernel {homes[k][0]} computes %{k}, and nothing that the graph gives depends on it"
            raise wrong(said, graph, kernels, "nobody needs")
    no_cycle(graph, kernels, {k: at[0] for k, at in homes.items()})
    memory = {k: np.asarray(arrays[int(n.value or 0)]) for k, n in enumerate(graph.nodes) if n.op == "input"}
    moved = 0
    for at, kernel in enumerate(kernels):
        launch(graph, kernels, at, memory)
        moved += sum(nbytes(graph, k) for k in (*kernel.loads, *kernel.stores))
    for k in graph.outputs:
        if k not in memory and graph.nodes[k].op != "constant":
            raise wrong(f"%{k} is given back, and no kernel stores it", graph, kernels, "output")
    return Moved(len(kernels), moved, [memory[k] for k in graph.outputs if k in memory])


def no_cycle(graph: Graph, kernels: Sequence[Kernel], home: dict[int, int]) -> None:
    """Refuse kernels of which each waits for the other, directly or not."""
    needs: list[set[int]] = [
        {home[i] for k in kernel.nodes for i in graph.nodes[k].inputs if i in home} - {at}
        for at, kernel in enumerate(kernels)
    ]
    for at in range(len(kernels)):
        seen, open_ = set[int](), list(needs[at])
        while open_:
            other = open_.pop()
            if other == at:
                via = min(k for k in needs[at] if at in reach(needs, k))
                raise wrong(
                    f"kernels {at} and {via} wait for each other: a cycle, so neither can run first", graph, kernels, "cycle"
                )
            if other not in seen:
                seen.add(other)
                open_ += needs[other]


def reach(needs: Sequence[set[int]], start: int) -> set[int]:
    """All kernels that one waits for."""
    seen, open_ = set[int](), [start]
    while open_:
        for other in needs[open_.pop()] - seen:
            seen.add(other)
            open_.append(other)
    return seen


def launch(graph: Graph, kernels: Sequence[Kernel], at: int, memory: dict[int, Array]) -> None:
    """Run one kernel: what it loads, its nodes in order, what it stores."""
    kernel = kernels[at]
    missing = [k for k in kernel.loads if k not in memory]
    for k in missing:
        if graph.nodes[k].op == "constant":
            raise wrong(f"kernel {at} loads %{k}, a constant; its number stands in the kernel", graph, kernels, "constant")
    if missing:
        raise wrong(
            f"kernel {at} loads %{missing[0]}, which is not in memory when it runs: nothing before it stores it",
            graph,
            kernels,
            "order",
        )
    here: dict[int, Array] = {k: memory[k] for k in kernel.loads}
    for k in kernel.nodes:
        node = graph.nodes[k]
        for i in node.inputs:
            if graph.nodes[i].op == "constant":
                here[i] = np.asarray(graph.nodes[i].value)
            elif i not in here:
                where = "is computed after it in this kernel" if i in kernel.nodes else "is not among its loads"
                raise wrong(f"kernel {at} needs %{i} for %{k}, and %{i} {where}", graph, kernels, "missing")
        operands = [here[i] for i in node.inputs]
        with np.errstate(all="ignore"):
            here[k] = (
                np.broadcast_to(operands[0], node.shape) if node.op == "expand" else np.asarray(NUMPY[node.op](*operands))
            )
    for k in kernel.stores:
        if k not in kernel.nodes:
            raise wrong(f"kernel {at} stores %{k}, which it does not compute", graph, kernels, "stores")
        memory[k] = here[k]
