"""Describe the decisions of the compiler in words, one sentence each."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..compiler.fusion_log import (
    COPIED,
    EMITTED,
    GROUPED,
    IN_PLACE,
    INLINED,
    PLACED,
    REDUCTION_FUSED,
    REFUSED,
    RESTARTED,
    STARTED,
    Decision,
)
from ..compiler.graph import Refusal
from ..core.operators import detach
from ..ir.array_functions import Alias, Full, Matmul
from ..ir.graph import Node

MAX_LISTED_VALUES = 3  # values that a sentence names; the others are counted


@dataclass(frozen=True)
class DecisionText:
    """A decision of the compiler, as a sentence.

    All decisions about one kernel have the same `kernel` number: the kernel is "begun", and later it is "made", or discarded
    and started "again" with a new number. A copy has a number, too, but only the kind "copied".
    """

    kind: str
    """A constant of `compiler.fusion_log`: GROUPED "joined", STARTED "begun", INLINED "taken", REDUCTION_FUSED "held",
    REFUSED "refused", RESTARTED "again", EMITTED "made", COPIED "copied" or IN_PLACE "in place"."""
    kernel: int | None
    """The number of the kernel, in the order in which kernels were started."""
    launch: int | None
    """The launch that the kernel became; None if it was discarded."""
    values: tuple[int, ...]
    """The numbers of the nodes that the decision is about."""
    text: str
    """The decision as a sentence."""


def describe_decisions(
    decisions: Iterable[Decision],
    launches: Mapping[int, int],
    listed: Collection[Refusal],
    describe: Callable[[Node], str],
    numbers: Mapping[Node, int],
) -> Iterator[DecisionText]:
    """Yield decisions as sentences.

    Refusals that are not in `listed`, elided copies, the growth of groups and nodes that compute nothing are omitted.
    `launches` maps the number of a kernel to the index of its launch.
    """
    targets: dict[int, frozenset[Node]] = {}
    matmul_kernels = set[int]()
    for kind, kernel, nodes, reason in decisions:
        if kind == REFUSED and Refusal(nodes[0], nodes[1], reason) not in listed:
            continue
        if kind == PLACED or (kind == COPIED and kernel not in launches):
            continue
        if kind in (INLINED, REDUCTION_FUSED):
            nodes = tuple(x for x in nodes if not (isinstance(x.function, Full | Alias) or x.function is detach))
        elif kind != REFUSED:
            nodes = tuple(map(strip_detach, nodes))
        if not nodes:
            continue
        if kind == STARTED:
            targets[kernel] = frozenset(nodes)
        launch = launches.get(kernel)
        name = "This kernel" if launch is None else f"launch{launch}"
        if kind == REDUCTION_FUSED and isinstance(nodes[0].function, Matmul):
            matmul_kernels.add(kernel)
        if kind == INLINED and not reason:
            is_target = not targets.get(kernel, frozenset()).isdisjoint(nodes)
            reason = "in its epilogue" if kernel in matmul_kernels else "inline" * (not is_target)
        text = format_decision(Decision(kind, kernel, nodes, reason), name, [describe(x) for x in nodes])
        values = tuple(numbers[x] for x in nodes if x in numbers)
        yield DecisionText(kind, kernel if kernel >= 0 else None, launch, values, text)


def strip_detach(node: Node) -> Node:
    """Return the input under a chain of `detach` nodes. No kernel computes them: they only stop gradients."""
    while node.function is detach:
        (node,) = node.inputs
    return node


def format_decision(decision: Decision, name: str, values: Sequence[str]) -> str:
    """Format a decision about these values, and about the kernel with this name, as a sentence."""
    kind, _, nodes, reason = decision
    listed = format_list(values)
    if kind == GROUPED:
        return f"{values[0]} will share a kernel with {values[1]}: both read one array, and iterate over {reason}."
    if kind == STARTED:
        return f"{name.replace('This', 'A')} over {reason} starts, to compute {listed}{' together' * (len(nodes) > 1)}."
    if kind == INLINED:
        return f"{name} computes {listed}{f' {reason}' * bool(reason)}."
    if kind == REDUCTION_FUSED:
        return f"{name} {'accumulates' if isinstance(nodes[0].function, Matmul) else 'reduces its rows:'} {listed}."
    if kind == REFUSED:
        return f"{values[0]} is not fused into {values[1]}: {reason}."
    if kind == RESTARTED:
        return f"{name} is discarded{f': {reason}' * bool(reason)}. It starts again when {listed} can be loaded from memory."
    if kind == EMITTED:
        return f"{name} is complete, and stores {listed}."
    if kind == IN_PLACE:
        return f"{name} stores {values[0]} in the memory of {values[1]}."
    return f"{name} stores {listed}, {reason}."


def format_list(texts: Sequence[str]) -> str:
    """Join texts with commas and a final 'and'; count those that do not fit.

    Examples
    --------
    >>> format_list(["a"]), format_list(["a", "b"]), format_list(["a", "b", "c", "d", "e"])
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    parts = list(texts[:MAX_LISTED_VALUES])
    if len(texts) > MAX_LISTED_VALUES:
        parts.append(f"{len(texts) - MAX_LISTED_VALUES} more")
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
