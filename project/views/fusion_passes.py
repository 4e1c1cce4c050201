"""The passes of the compiler as frames: the graph as it is after each pass, and its kernels as they grow.

All graphs are drawn in one layout, in which a node has its place in all steps; where it does not exist, its box is empty.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from minifuse.core.wording import format_count
from minifuse.inspect.explanation import CompilerPassFacts, GraphNodeFacts

from .function_parts import FunctionParts
from .fusion_graph import draw_graph, last_line, line_of, shorten_sentence
from .graph_layout import LayeredGraph
from .picture import CHOSEN, IDLE, LOAD, STORE, WRONG, Cell, Frame, Hull

MEANS = (
    ("", "computed; an empty box: not in the graph now"),
    (LOAD, "an input; bytes that are read"),
    (STORE, "stored in memory; bytes that are written"),
    (IDLE, "costs nothing"),
    (CHOSEN, "new or changed by this pass"),
    (WRONG, "removed by this pass"),
)
MAX_NAME = 9  # characters of the name of a node
INPUT, LAUNCH = "input", "+ launch("  # the operation of an argument; a line of a launch

Nodes = Mapping[str, GraphNodeFacts]


class PassFrames:
    """The graphs between the passes of a function, in one layout."""

    def __init__(self, found: FunctionParts) -> None:
        self.found = found
        self.passes = found.explained.passes
        self.captured = by_name(found.explained.captured)
        self.graphs = [self.captured, *[by_name(x.nodes) for x in self.passes if x.nodes]]
        self.reads = merge_reads(self.graphs)
        self.names = [*self.reads]
        self.number = {name: k for k, name in enumerate(self.names)}

    @cached_property
    def layout(self) -> LayeredGraph:
        """All nodes of all graphs in layers."""
        cells = [self.cell(name) for name in self.names]
        reads = [[self.number[x] for x in self.reads[name]] for name in self.names]
        return draw_graph(cells, reads)

    def cell(self, name: str) -> Cell:
        """Draw a node as it is in the last graph that has it."""
        node = next(graph[name] for graph in reversed(self.graphs) if name in graph)
        readers = [other for other, inputs in self.reads.items() if name in inputs]
        edges = [f"{x}>{name}" for x in self.reads[name]] + [f"{name}>{x}" for x in readers]
        k = self.found.named.get(name)
        line = () if k is None or (number := line_of(self.found, k)) is None else (f"line {number}",)
        label = f"{name} = {node.operation}, {node.dtype} {node.shape}"
        text = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
        return Cell(0, 0, text, label, "", (self.link(name), *edges, *line))

    def link(self, name: str) -> str:
        """Return the link of a node: that of the captured value, if it is one."""
        return f"g{self.found.named[name]}" if name in self.found.named else name

    def frames(self) -> Iterator[Frame]:
        """Yield a frame of the captured graph, and one or more for each pass that changes something."""
        changed = [x for x in self.passes if x.changes]
        count = f"{len(changed)} of {len(self.passes)} passes change something here."
        yield self.frame(f"The graph as it was captured. {count}", self.captured, self.captured)
        before, word = self.captured, "kernel "
        for x in changed:
            after = by_name(x.nodes)
            yield from self.growth(x, before, after)
            word = "launch" if any(line.startswith(LAUNCH) for line in x.changes) else word
            kernels = sorted({k for node in after.values() for k in node.kernels})
            hulls = [h for k in kernels for h in self.hull(after, kernel_members(after, k), "", f"{word}{k}")]
            yield self.frame(shorten_sentence(f"{x.name}: {x.summary}"), before, after, hulls, len(x.changes))
            before = after

    def growth(self, x: CompilerPassFacts, before: Nodes, after: Nodes) -> Iterator[Frame]:
        """Yield a frame each time that a node joins a kernel or begins one; the frame of the pass shows the last of them."""
        groups = list[tuple[str, ...]]()
        for members in x.growth[:-1]:
            groups = [group for group in groups if not {*group} & {*members}] + [members]
            others = f"joins the kernel of {' and '.join(members[:-1])}" if members[1:] else "begins a kernel"
            kinds = {members: CHOSEN}
            hulls = [h for g in groups for h in self.hull(after, computed(after, g), kinds.get(g, ""), "")]
            yield self.frame(
                shorten_sentence(f"{x.name}: {members[-1]} {others}."), before, before, hulls, about=members[-1:]
            )

    def frame(
        self,
        sentence: str,
        before: Nodes,
        after: Nodes,
        hulls: Sequence[Hull] = (),
        changes: int = 0,
        about: Sequence[str] = (),
    ) -> Frame:
        """Return the frame of a graph, with what differs from that before. The lit line is that of the last new node."""
        fresh = [x for x, node in after.items() if x not in before or node.operation != before[x].operation]
        kinds = {x: node_kind(node) for x, node in after.items()} | dict.fromkeys(fresh, CHOSEN)
        kinds |= {x: WRONG for x in before if x not in after}
        lit = about or fresh or [x for x, node in after.items() if node.is_stored] or [*after]
        operations = sum(not node.is_free and node.operation != INPUT for node in after.values())
        return Frame(
            sentence,
            tuple((self.link(x), kind) for x, kind in kinds.items()),
            tuple((self.link(x), "") for x in self.names if x not in kinds),
            edges=tuple(self.layout.edge(self.number[j], self.number[x]) for x in after for j in after[x].reads),
            hulls=tuple(hulls),
            line=last_line(self.found, [self.found.named[x] for x in lit if x in self.found.named]),
            numbers=(
                (f"{operations}", format_count(operations, "operation").partition(" ")[2]),
                (f"{changes}", format_count(changes, "change").partition(" ")[2]),
                (f"{len(hulls)}", "kernels so far"),
            ),
        )

    def hull(self, graph: Nodes, members: Collection[str], kind: str, text: str) -> tuple[Hull, ...]:
        """Return the outline around nodes of a graph and the views between them; none if there are none."""
        inside = set[str]()
        for x, node in graph.items():
            if x in members and (not node.is_free or node.is_stored or any(j in inside for j in node.reads)):
                inside.add(x)
        places = sorted((self.layout.places[self.number[x]] for x in inside), key=lambda place: place[1:])
        return (Hull(places[0], 1, 1, kind, text, tuple(places)),) if places else ()


def by_name(nodes: Iterable[GraphNodeFacts]) -> Nodes:
    """Return nodes by their names."""
    return {node.name: node for node in nodes}


def merge_reads(graphs: Sequence[Nodes]) -> dict[str, tuple[str, ...]]:
    """Return what each node reads in any of several graphs, inputs before users. An edge that would close a circle is left
    out: a pass may exchange two nodes."""
    every = dict[str, dict[str, None]]()
    for graph in graphs:
        for name, node in graph.items():
            every.setdefault(name, {}).update(dict.fromkeys(node.reads))
    order, open_ = dict[str, tuple[str, ...]](), set[str]()

    def visit(name: str) -> None:
        open_.add(name)
        kept = [x for x in every[name] if x not in open_]
        for x in kept:
            if x not in order:
                visit(x)
        open_.discard(name)
        order[name] = tuple(kept)

    for name in every:
        if name not in order:
            visit(name)
    return order


def node_kind(node: GraphNodeFacts) -> str:
    """Return the kind of the cell of a node."""
    return LOAD if node.operation == INPUT else STORE if node.is_stored else IDLE if node.is_free else ""


def kernel_members(graph: Nodes, kernel: int) -> set[str]:
    """Return the nodes that a kernel computes."""
    return {x for x, node in graph.items() if kernel in node.kernels}


def computed(graph: Nodes, members: Sequence[str]) -> set[str]:
    """Return the nodes that a kernel computes on the way to its members so far."""
    found = dict.fromkeys(members)
    pending = [*found]
    for name in pending:
        for x in graph[name].reads:
            if x not in found and graph[x].operation != INPUT and not graph[x].is_stored:
                found[x] = None
                pending.append(x)
    return {*found}
