"""The graph that the passes of the compiler hand on: the nodes of a call, and all that is decided about them so far."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_
from typing import NamedTuple, TypedDict, Unpack

from ..backends.base import Backend
from ..core.errors import ShapeError
from ..core.interning import toposort
from ..core.layout import Layout
from ..core.operators import Operator
from ..ir.array_functions import SliceUpdate, View
from ..ir.graph import Node, inputs_of, strip_views
from ..ir.kernel_ir import Kernel, ReadOutput
from ..ir.steps import NO_BUFFER, BufferView, Step
from .format_node import NodeNames, format_node
from .iteration_space import IterationSpace, without_repeated_reshapes

EXACT, EARLY, LATE = range(3)  # the phases of a call


class Store(NamedTuple):
    """An in-place change: the value is stored in the elements of an argument that `update` selects."""

    argument: Node
    update: SliceUpdate
    value: Node


class Refusal(NamedTuple):
    """Two nodes that are not fused, and why."""

    producer: Node
    """A node that is in memory, or that a separate kernel computes."""
    consumer: Node
    """A node that is computed from it."""
    reason: str


class Lifetime(NamedTuple):
    """The first and the last step that need a buffer, and its size."""

    first_step: int
    last_step: int
    nbytes: int


class KernelGroup(NamedTuple):
    """The nodes that one kernel computes."""

    space: IterationSpace
    """The loops of the kernel."""
    members: tuple[Node, ...]
    """The nodes that it may store, inputs first. It inlines the pointwise nodes between them."""
    stored: tuple[Node, ...]
    """The members that are stored, because the call returns them or another kernel loads them."""
    phase: int
    """0 for values that must be computed once, before all others; 2 for values that are computed after the in-place changes
    of the call; else 1. A kernel may load the members of all kernels of its own and of earlier phases."""


class Decisions(TypedDict, total=False):
    """The fields of a graph that passes fill in, and that change none of its nodes."""

    not_nested: Mapping[Node, str]
    materialized: Mapping[Node, str]
    kernels: tuple[KernelGroup, ...]
    refusals: tuple[Refusal, ...]
    steps: tuple[Step, ...]
    late_step: int
    copies: Mapping[Node, BufferView]
    buffers: Mapping[Node, BufferView]
    buffer_nbytes: tuple[int, ...]
    lifetimes: Mapping[int, Lifetime]
    offsets: Mapping[int, int] | None
    arena_nbytes: int
    waits: Mapping[int, int]


@dataclass(frozen=True, eq=False)
class Graph:
    """The nodes of a call, and the decisions of the passes. A pass returns a new graph: `graph.decide(steps=...)`."""

    outputs: tuple[Node, ...]
    """The values that the call returns."""
    saved: tuple[Node, ...] = ()
    """The values that the backward pass loads."""
    exact: frozenset[Node] = frozenset()
    """Those of `saved` that the backward pass compares bit by bit, as for `max`: no kernel may compute them again."""
    arguments: tuple[Node, ...] = ()
    """The inputs, in the order of their slots."""
    layouts: tuple[Layout | None, ...] = ()
    """The layout of each argument; None for a number."""
    aliases: Mapping[Node, BufferView] = field(default_factory=dict)
    """Nodes in the memory of an argument: node -> (slot, layout)."""
    required_layouts: Mapping[Node, Layout] = field(default_factory=dict)
    """Layouts that outputs must have."""
    stores: tuple[Store, ...] = ()
    """The in-place changes, in order."""
    contents: tuple[tuple[Node, Node], ...] = ()
    """The arguments that are changed, each with the node of its contents after all changes."""
    late: frozenset[Node] = frozenset()
    """Outputs and saved values that are computed from these contents, so after the changes."""
    not_nested: Mapping[Node, str] = field(default_factory=dict)
    """Reductions that are not computed inside other kernels: node -> reason."""
    materialized: Mapping[Node, str] = field(default_factory=dict)
    """Values that a kernel stores before others read them: node -> reason."""
    kernels: tuple[KernelGroup, ...] = ()
    """In the order in which they run."""
    refusals: tuple[Refusal, ...] = ()
    """Pairs of nodes that are not fused."""
    steps: tuple[Step, ...] = ()
    """The launches of the call, in order."""
    late_step: int = 0
    """The index of the first step that runs after the in-place changes."""
    buffers: Mapping[Node, BufferView] = field(default_factory=dict)
    """Where nodes are stored: node -> (slot, layout)."""
    copies: Mapping[Node, BufferView] = field(default_factory=dict)
    """Row-major copies of stored nodes, for views that no strides describe: node -> (slot, layout)."""
    buffer_nbytes: tuple[int, ...] = ()
    """The size of each buffer of the call, in bytes. The first one is slot `len(arguments)`."""
    lifetimes: Mapping[int, Lifetime] = field(default_factory=dict)
    """When each temporary is needed: slot -> lifetime."""
    offsets: Mapping[int, int] | None = None
    """Where each temporary starts in the arena of the call, in bytes: slot -> offset. None if there is no arena, because
    launches are not submitted together."""
    arena_nbytes: int = 0
    """The size of the arena, in bytes."""
    waits: Mapping[int, int] = field(default_factory=dict)
    """The collectives, which may run beside later steps: index of the step -> the first step that must wait for it."""

    @cached_property
    def results(self) -> tuple[Node, ...]:
        """The outputs, then the saved values."""
        return self.outputs + self.saved

    @cached_property
    def roots(self) -> tuple[Node, ...]:
        """All nodes whose values the call needs: results, and values that are stored in arguments."""
        return (*self.results, *[store.value for store in self.stores])

    @cached_property
    def memory(self) -> dict[Node, BufferView]:
        """The nodes that are in memory before the call: tensors among the arguments, and nodes in their memory."""
        slots = enumerate(zip(self.arguments, self.layouts, strict=True))
        return {node: (k, layout) for k, (node, layout) in slots if layout is not None} | dict(self.aliases)

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """The phases in which the call computes values."""
        return (*[EXACT] * bool(self.exact), EARLY, *[LATE] * bool(self.late))

    def requested(self, phase: int) -> list[Node]:
        """Return the nodes that are computed in a phase, without the views of them that the call returns."""
        if phase == EXACT:
            found = [x for x in self.saved if x in self.exact]
        elif phase == EARLY:
            found = [*[x for x in self.results if x not in self.late], *[store.value for store in self.stores]]
        else:
            found = [x for x in self.results if x in self.late]
        return list(dict.fromkeys(map(strip_views, found)))

    def loaded_nodes(self, phase: int) -> set[Node]:
        """Return the nodes that kernels of a phase load, but for the kernel that computes them."""
        contents = [node for _, node in self.contents] if phase == LATE else []
        members = [node for kernel in self.kernels if kernel.phase <= phase for node in kernel.members]
        return {*self.memory, *members, *contents}

    def locate(self, node: Node) -> BufferView:
        """Return where a stored node, or a view of one, is in memory."""
        return self.buffers.get(node) or locate_view(node, self.buffers, self.copies)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes that the roots are computed from, inputs before users."""
        return tuple(toposort(self.roots, inputs_of))

    @cached_property
    def kinds(self) -> frozenset[type | Operator]:
        """The classes of the functions of the nodes, the operators, and `Store` if the call changes an argument."""
        functions = [node.function for node in self.nodes]
        classes = {kind for function in functions for kind in type(function).__mro__}
        return frozenset(classes.union(map(type, self.stores), [x for x in functions if isinstance(x, Operator)]))

    @cached_property
    def ops(self) -> tuple[Node, ...]:
        """The nodes that are computed: all but the arguments and numbers, and views of other nodes."""
        return tuple([x for x in self.nodes if x.inputs and not isinstance(x.function, View)])

    @cached_property
    def stored_roots(self) -> set[Node]:
        """The roots without views. They are stored in any case."""
        return set(map(strip_views, self.roots))

    @cached_property
    def users(self) -> dict[Node, dict[Node, None]]:
        """The nodes that read each node, as ordered sets."""
        users: dict[Node, dict[Node, None]] = {node: {} for node in self.nodes}
        for node in self.nodes:
            for x in node.inputs:
                users[x][node] = None
        return users

    def readers(self, node: Node, passes: Callable[[Node], bool]) -> Iterator[Node]:
        """Yield the nodes that read a node, directly or through nodes that `passes` accepts, which are not yielded."""
        pending = [node]
        for x in pending:
            for user in self.users[x]:
                if passes(user):
                    pending.append(user)
                else:
                    yield user

    @cached_property
    def read_once(self) -> frozenset[Node]:
        """The nodes that exactly one other node reads, and that the call does not return."""
        return frozenset(x for x, users in self.users.items() if len(users) == 1).difference(self.roots)

    def has(self, *kinds: type) -> bool:
        """Return whether a node has a function of one of these kinds."""
        return not self.kinds.isdisjoint(kinds)

    def may_change(self, run: "Pass") -> bool:
        """Return whether a pass may change this graph: whether the graph has all that the pass needs."""
        return self.find_change((run,), 0) == 0

    def find_change(self, passes: Sequence["Pass"], first: int) -> int:
        """Return the index of the next pass, from the first one on, that may change this graph; if none, their number."""
        found, op_count, step_count = self.kinds, len(self.ops), len(self.steps)
        for k in range(first, len(passes)):
            kinds, ops, steps = NEEDS.get(passes[k], NO_NEEDS)
            if (not kinds or not found.isdisjoint(kinds)) and op_count >= ops and step_count >= steps:
                return k
        return len(passes)

    def decide(self, **decisions: Unpack[Decisions]) -> "Graph":
        """Return this graph with more decisions. All that is known about its nodes is kept."""
        graph = object.__new__(Graph)
        graph.__dict__.update(self.__dict__, **decisions)
        return graph

    def rewrite(self, rule: Callable[[Node], Node]) -> "Graph":
        """Replace each node by `rule(node)`, inputs first. The inputs of the node that the rule gets are replaced already.

        A graph that the rule does not change is returned as it is.
        """
        return self.rebuild(lambda _, node: rule(node))

    def rebuild(self, rule: Callable[[Node, Node], Node]) -> "Graph":
        """Replace each node by `rule(node, rebuilt)`, inputs first: `rebuilt` is the node with its replaced inputs."""
        return self.replace_nodes(rule, {})

    def substitute(self, values: Mapping[Node, Node]) -> "Graph":
        """Replace some nodes by values, which may be computed from nodes that are replaced, too."""
        return self.replace_nodes(lambda _, rebuilt: rebuilt, values)

    def replace_nodes(self, rule: Callable[[Node, Node], Node], values: Mapping[Node, Node]) -> "Graph":
        """Replace the nodes in `values` by their values, and each other node by `rule(node, rebuilt)`."""
        new: dict[Node, Node] = {}
        for node in toposort(
            [*self.roots, *[x for _, x in self.contents]], lambda x: (values[x],) if x in values else x.inputs
        ):
            if node in values:
                new[node] = new[values[node]]
                continue
            inputs = tuple(new[x] for x in node.inputs)
            is_same = all(map(is_, inputs, node.inputs))
            new[node] = rule(node, node if is_same else Node(node.function, inputs, node.shape, node.dtype))
        if all(map(is_, new.keys(), new.values())):
            return self
        return replace(
            self,
            outputs=tuple(new[x] for x in self.outputs),
            saved=tuple(new[x] for x in self.saved),
            exact=frozenset(new[x] for x in self.exact),
            required_layouts={new[x]: layout for x, layout in self.required_layouts.items()},
            stores=tuple(store._replace(value=new[store.value]) for store in self.stores),
            contents=tuple((argument, new[node]) for argument, node in self.contents),
            not_nested={new[x]: reason for x, reason in self.not_nested.items() if x in new},
        )

    def names(self) -> NodeNames:
        """Return a name for each node: add0, add1, max0. Arguments are x0, x1, ..."""
        names = NodeNames()
        names.add(self.nodes)
        return names

    def format_refusal(self, refusal: Refusal, names: Mapping[Node, str] | None = None) -> str:
        """Return a refusal as a sentence."""
        names = names or self.names()
        producer, consumer = (names.get(strip_views(x), "a value") for x in refusal[:2])
        return f"{producer} is not fused into {consumer}: {refusal.reason}"

    def format_nodes(self, names: Mapping[Node, str]) -> dict[str, str]:
        """Return a line for each node that is computed, by its name, and for each store, by its index."""
        notes: dict[Node, list[str]] = {node: ["stored"] for node in self.materialized}
        for k, group in enumerate(self.kernels):
            for node in group.members:
                notes.setdefault(node, []).append(f"kernel {k}")

        def name(node: Node) -> str:
            return names.get(node) or format_node(node, name)

        lines = {}
        for node in self.nodes:
            if node.inputs and node in names:
                line = f"{names[node]} = {format_node(node, name)}"
                lines[names[node]] = "  # ".join([line, ", ".join(notes[node])] if node in notes else [line])
        stores = enumerate(self.stores)
        return lines | {f"<- {k}": f"{name(argument)} <- {name(value)}" for k, (argument, _, value) in stores}

    def format_launches(self, names: Mapping[Node, str]) -> list[str]:
        """Return a line for each step, with the arrays that it reads and writes, and for each buffer that is freed."""
        slot_names = {k: names.get(node, f"x{k}") for k, node in enumerate(self.arguments)}
        for node, (slot, _) in self.buffers.items():
            if node in names:
                slot_names.setdefault(slot, names[node])

        def name_all(slots: Iterable[int]) -> str:
            return ", ".join(slot_names.get(slot, "a value") for slot in dict.fromkeys(slots))

        offsets = [f"{name_all([slot])} at {offset}" for slot, offset in (self.offsets or {}).items()]
        lines = [f"arena of {self.arena_nbytes} bytes: {', '.join(offsets)}"] if offsets else []
        for k, step in enumerate(self.steps):
            changed = [step.outputs[e.index] for e in Kernel(step.kernel.outputs, ()).find_all(ReadOutput)]
            reads = [slot for slot, _ in (*changed, *step.inputs, *step.indexed_operands) if slot != NO_BUFFER]
            texts = name_all(reads), name_all(slot for slot, _ in step.outputs)
            lines.append(f"launch({' -> '.join(filter(None, texts))})")
            if self.offsets is None and (freed := [slot for slot, x in self.lifetimes.items() if x.last_step == k]):
                lines.append(f"free({name_all(freed)})")
        return lines

    def __str__(self) -> str:
        names = self.names()
        return "\n".join([*self.format_nodes(names).values(), *self.format_launches(names)])


def locate_view(
    node: Node,
    buffers: Mapping[Node, BufferView],
    copies: Mapping[Node, BufferView],
    add_copy: Callable[[Node, BufferView], None] | None = None,
) -> BufferView:
    """Return where a view of a stored node is in memory.

    If no strides describe a view, a row-major copy of the node under it is viewed. `add_copy(base, buffer)` adds a copy that
    is not in `copies` yet; without this function, ShapeError is raised.
    """
    views, x = list[Node](), node
    while x not in buffers:
        views.append(x)
        (x,) = x.inputs
    slot, layout = buffers[x]
    needed = without_repeated_reshapes([view.function for view in reversed(views)])
    if len(needed) < len(views):
        with suppress(ShapeError):  # then the array between two reshapes decides where a copy is needed
            found = layout
            for function in needed:
                found = function.layout(found)
            return slot, found
    for view in reversed(views):
        try:
            layout = view.function.layout(layout)
        except ShapeError:
            (base,) = view.inputs
            if base not in copies:
                if add_copy is None:
                    raise
                add_copy(base, (slot, layout))
            slot, layout = copies[base]
            layout = view.function.layout(layout)
    return slot, layout


Pass = Callable[[Graph, Backend], Graph]


class Needs(NamedTuple):
    """The functions, ops and steps that a graph must have so that a pass may change it."""

    kinds: frozenset[type | Operator]
    """One of these operators, or a function of one of these classes; `Store` if the call must change an argument."""
    ops: int
    """At least so many nodes that are computed."""
    steps: int
    """At least so many steps."""


NO_NEEDS = Needs(frozenset(), 0, 0)
NEEDS: dict[Pass, Needs] = {}  # of each pass that may change only some graphs


def needs(*kinds: type | Operator, ops: int = 0, steps: int = 0) -> Callable[[Pass], Pass]:
    """Declare what a graph must have so that a pass may change it. The pipeline runs the pass on no other graph."""

    def declare(run: Pass) -> Pass:
        NEEDS[run] = Needs(frozenset(kinds), ops, steps)
        return run

    return declare
