"""The result of tracing a function: its graph, the changes of its inputs, and the structure of its return value.

It also lists the calls that the function would have made without fusion, for `explain`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from ..core.layout import Layout
from ..ir.array_methods import Array
from ..ir.graph import Node
from .tensor_meta import TensorMeta

PlannedFunction = Callable[..., Any]  # an Operator, a composite op, a gradient, or a Python function: of tensors or of nodes
PlanInput = Array | bool | int | float
# The `function` of the CallRecord of a backward pass, which reads only the call whose result is differentiated.
BACKWARD: Literal["backward"] = "backward"


class CallRecord(NamedTuple):
    """A call that the function would have made without fusion."""

    function: PlannedFunction | Literal["backward"]
    inputs: tuple[TensorMeta | bool | int | float, ...]
    """The TensorMeta or the number of each input."""
    line: str
    """The line of the user's code, as file:line."""
    reads: tuple[int, ...]
    """For each input, the call that allocated its memory; -1 if no call did."""
    alias_of: tuple[int, ...] = ()
    """For each input, the first input that is the same tensor."""
    target_count: int = 0
    """How many inputs the call changes in place; they are its first inputs."""


class InputEffects(NamedTuple):
    """Which inputs a traced function changes in place, and how it uses the others. An int is the index of an input."""

    stored: frozenset[int]
    """Inputs whose memory is changed."""
    read_after: frozenset[tuple[int, int]]
    """Pairs (stored, read): the second is read or changed after a change of the first."""
    exposed: frozenset[int]
    """Inputs that a result is a view of, or that receive a gradient."""
    hidden: list[Any]
    """Tensors of the function's closure, which are not arguments of the call."""


class TracedGraph(NamedTuple):
    """The graph of a call, as tracing found it."""

    arguments: list[Node]
    """Tensors and numbers: the inputs of the call, then the hidden inputs."""
    hidden: "list[Array | PerCallInput]"
    """The values of the hidden inputs: tensors of the function's closure, and values that each call computes."""
    outputs: list[Node]
    stores: list[tuple[Node, Node]]
    """In-place changes: (argument, the value stored in its memory)."""
    is_tuple: bool = True
    aliases: Mapping[Node, tuple[int, Layout]] = MappingProxyType({})
    """Nodes that share memory with an argument: node -> (index of the argument, layout relative to its address)."""
    nondifferentiable: Collection[int] = ()
    """Outputs without a gradient, although they are computed from inputs that have one."""
    layouts: Mapping[Node, Layout] = MappingProxyType({})
    """Required layouts of outputs."""
    leaves: Mapping[Node, Node] = MappingProxyType({})
    """Nodes that get the gradient of an argument, too: its new value after an in-place change."""
    owners: Mapping[int, int] = MappingProxyType({})
    """Outputs that are views of an argument: {output: argument}. The result shares the buffer of that argument."""
    copies: Collection[int] = ()
    """Arguments that are copies of memory, because the call changes that memory after it reads them."""

    def changed_arguments(self) -> list[Node]:
        """Return the arguments that are changed in place, or copied before a change, and all nodes in their memory."""
        changed = [*[argument for argument, _ in self.stores], *[self.arguments[k] for k in self.copies]]
        shared = {self.aliases[node][0] for node in changed if node in self.aliases}
        return changed + [node for node, (index, _) in self.aliases.items() if index in shared]


class PerCallInput(NamedTuple):
    """A hidden input that is computed in each call."""

    text: str
    """An expression of the inputs x0, x1, ... in the host program."""
    names: dict[str, object]
    """Other names in the expression."""
    value: PlanInput
    """Its value in the call that was traced."""
    get: Callable[[Sequence[PlanInput]], PlanInput] | None = None
    """A function that computes the value from the inputs, as `text` does."""


class TraceResult(NamedTuple):
    """A traced function: its graph, and how the results of a run become the results of a call."""

    graph: TracedGraph
    tree: object
    """The return value, with an `OutputRef` or an `InputRef` in the place of each tensor."""
    grads: "list[tuple[int, OutputRef | InputRef | None]]"
    """New `.grad` attributes: (input, its gradient or None)."""
    modified_inputs: list[int]
    """Inputs whose memory is changed."""
    calls: list[CallRecord]
    """The calls that the function would have made without fusion, in order."""
    returned_calls: frozenset[int]
    """The calls whose results the function returns."""
    lines: dict[Node, str]
    """The line of the user's code that a node comes from, as file:line."""
    effects: InputEffects


@dataclass(frozen=True)
class OutputRef:
    """A reference to output `index` of the run."""

    index: int
    is_freed: bool = False
    """True if a backward pass inside the function has freed the values that it was computed from."""
    is_leaf: bool = False
    """True if the function made it a leaf that requires a gradient."""
    depends_on_leaves: bool = False
    """True if it was computed from leaves that the function made and does not return."""
    grad: "OutputRef | InputRef | None" = None
    """Its gradient."""


@dataclass(frozen=True)
class InputRef:
    """A reference to input `index` of the call: the same object is returned."""

    index: int
