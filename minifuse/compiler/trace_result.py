"""What a capture finds: calls that did not run, the graph, and what becomes of the results of a run."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from ..ir.graph import Node
from .plan import TracedGraph

BACKWARD = "backward"  # noted in the place of a function, with the call whose result is differentiated


class CallRecord(NamedTuple):
    """A call that the function would have made by itself."""

    function: Any
    inputs: tuple[Any, ...]
    """The spec or the number of each."""
    line: str
    """Of the user's code, file:line."""
    reads: tuple[int, ...]
    """For each input, which call made its memory; -1 where none did."""
    same: tuple[int, ...] = ()
    """For each input the first one that is the very same."""
    targets: int = 0
    """How many of the first inputs it changes in place."""


class InputEffects(NamedTuple):
    """The inputs of a captured function, by their numbers, that are changed in place, and how the others are used then."""

    stored: frozenset[int]
    """Inputs whose memory is changed."""
    read_after: frozenset[tuple[int, int]]
    """(stored, read): the second is read, or stored in, after a change of the first."""
    exposed: frozenset[int]
    """Inputs that a result is a view of, or that receive a gradient."""
    hidden: list[Any]
    """Tensors that the function found by itself, which are no inputs of the call."""


class TraceResult(NamedTuple):
    """A captured function: its graph, and what becomes of the results of a run."""

    program: TracedGraph
    tree: Any
    """What the function gave, with a place (`OutputRef` or `InputRef`) for each tensor."""
    grads: "list[tuple[int, OutputRef | InputRef | None]]"
    """(input, the tensor that is its gradient from now on; None for none)."""
    modified_inputs: list[int]
    """Inputs whose memory is changed."""
    calls: list[CallRecord]
    """Each call that the function would have made by itself, in order."""
    returned_calls: frozenset[int]
    """The calls whose results the function gives."""
    lines: dict[Node, str]
    """The line of the user's code, file:line, that a node comes from."""
    effects: InputEffects
    """How inputs are changed and used."""


@dataclass(frozen=True)
class OutputRef:
    """Output `index` of the run."""

    index: int
    is_spent: bool = False
    """Whether a gradient went through it that freed what it was computed from."""
    is_leaf: bool = False
    """Whether it requires a gradient by itself, since the function said so."""
    depends_on_leaves: bool = False
    """Whether it was computed from leaves that the function made, and keeps to itself."""
    grad: "OutputRef | InputRef | None" = None
    """The gradient that it has."""


@dataclass(frozen=True)
class InputRef:
    """Input `index` of the call, the very object."""

    index: int
