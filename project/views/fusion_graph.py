"""The graph of a function with outlines around the nodes of each kernel. The plays of the page Fusion draw on it."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from .function_parts import FunctionParts
from .graph_layout import LayeredGraph, Reads, layer_graph, longest_paths
from .picture import IDLE, LOAD, OTHER, STORE, Cell, Edge, Hull

DEEP = 9  # layers; deeper graphs have less room between them
GAPS, DEEP_GAPS = (30, 24), (30, 20)  # pixels between nodes and between layers: two outlines fit between
MAX_SENTENCE = 110  # characters


def graph_of(found: FunctionParts) -> LayeredGraph:
    """Draw each value of the function once, below its inputs."""
    cells = list[Cell]()
    for k, node in enumerate(found.explained.nodes):
        readers = [j for j, inputs in enumerate(found.reads) if k in inputs]
        kernels = [f"launch{j}" for j in computing_kernels(found, k)]
        storage = (
            "an input in memory"
            if k in found.inputs
            else "no operation, which costs nothing"
            if k in found.free
            else f"computed in {' and '.join(kernels) or 'no kernel of its own'}, "
            + ("and stored" if k in found.stored else "never stored")
        )
        uses = f", read by {', '.join(f'%{j}' for j in readers)}" if readers else ", a result"
        label = f"%{k}: {node.operation} {node.name}".rstrip() + f", {node.dtype} {node.shape}, {storage}{uses}"
        edges = tuple(f"g{j}>{k}" for j in found.reads[k]) + tuple(f"g{k}>{j}" for j in readers)
        line = () if (number := line_of(found, k)) is None else (f"line {number}",)
        cells.append(Cell(0, 0, f"%{k} {found.glyphs[k]}", label, cell_kind(found, k), (f"g{k}", *edges, *line)))
    return draw_graph(cells, found.reads)


def draw_graph(cells: Sequence[Cell], reads: Reads) -> LayeredGraph:
    """Lay out the values of a function."""
    gaps = DEEP_GAPS if max(longest_paths(reads), default=0) >= DEEP else GAPS
    return layer_graph("graph", "Inputs above, results below", cells, reads, gaps)


def cell_kind(found: FunctionParts, k: int) -> str:
    """Return the kind of the cell of a value."""
    return LOAD if k in found.inputs else IDLE if k in found.free else STORE if k in found.stored else ""


def line_of(found: FunctionParts, k: int) -> int | None:
    """Return the number of the line that computes a value; None for an input."""
    number = found.explained.nodes[k].line.rpartition(":")[2]
    return int(number) if number else None


def last_line(found: FunctionParts, nodes: Iterable[int]) -> int | None:
    """Return the number of the line of the last of these values whose line is known."""
    return next((line for k in reversed([*nodes]) if (line := line_of(found, k)) is not None), None)


def computing_kernels(found: FunctionParts, k: int) -> list[int]:
    """Return the kernels that compute a value; several, if it is recomputed."""
    return [j for j, parts in enumerate(found.parts) if any(k in part.nodes for part in parts)]


def kernel_nodes(found: FunctionParts, kernel: int) -> tuple[int, ...]:
    """Return the values that a kernel computes."""
    return tuple(sorted({n for part in found.parts[kernel] for n in part.nodes}))


def with_views(found: FunctionParts, nodes: Iterable[int]) -> set[int]:
    """Return nodes with the views between them, which cost nothing and belong to the same kernel."""
    inside, between = set(nodes), dict[int, set[int]]()
    for k in sorted(found.free):  # inputs come before their readers
        inputs = found.reads[k]
        if inputs and all(j in inside or j in between for j in inputs):
            between[k] = {k}.union(*(between.get(j, set()) for j in inputs))
    read = [between[j] for k in tuple(inside) for j in found.reads[k] if j in between]
    return inside.union(*read)


def kernel_hull(found: FunctionParts, graph: LayeredGraph, nodes: Iterable[int], kind: str, text: str) -> tuple[Hull, ...]:
    """Return the outline around the nodes of a kernel; none if it computes no node of the graph."""
    places = sorted((graph.places[k] for k in with_views(found, nodes)), key=lambda place: place[1:])
    return (Hull(places[0], 1, 1, kind, text, tuple(places)),) if places else ()


def refusal_edges(found: FunctionParts, graph: LayeredGraph, producer: int, consumer: int) -> tuple[Edge, ...]:
    """Return the arrows on a shortest path between two values that were not merged; without a path, one arrow."""
    before, reached = {producer: producer}, [producer]
    for j in reached:  # breadth first
        for k, inputs in enumerate(found.reads):
            if j in inputs and k not in before:
                before[k] = j
                reached.append(k)
    if consumer not in before:
        return (graph.edge(producer, consumer, OTHER, "not fused"),)
    path, k = list[Edge](), consumer
    while k != producer:
        path.append(graph.edge(before[k], k, OTHER, "not fused" if before[k] == producer else ""))
        k = before[k]
    return tuple(path[::-1])


def memory_names(found: FunctionParts) -> dict[str, str]:
    """Return the nodes that are stored in arrays that are not arguments: the names of the arrays in kernels mean little."""
    arguments = {found.explained.nodes[k].name for k in found.inputs}
    return {
        part.memory: f"%{n}"
        for parts in found.parts
        for part in parts
        for j in part.reads
        for n in parts[j].nodes
        if part.kind == STORE and part.memory not in arguments
    }


def loading_edges(found: FunctionParts, graph: LayeredGraph, kernel: int) -> tuple[Edge, ...]:
    """Return the arrows along which a kernel loads: from inputs and stored values, through views, to what it computes."""
    nodes = kernel_nodes(found, kernel)
    ends = dict.fromkeys(edge for k in nodes for edge in loads_of(found, k, nodes))
    return tuple(graph.edge(*edge, LOAD) for edge in ends)


def loads_of(found: FunctionParts, k: int, nodes: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield the edges to a value from memory, through views, if a kernel computes these nodes."""
    for j in found.reads[k]:
        if j in nodes:
            continue
        above = list(loads_of(found, j, nodes)) if j in found.free else []
        if above or j in found.inputs | found.stored:
            yield from above
            yield j, k


def shorten_sentence(text: str) -> str:
    """Return a sentence without its last clauses, if it is long.

    Examples
    --------
    >>> shorten_sentence("Find the launches that need each temporary, " + "and its offset in the arena of the call, " * 2)
    'Find the launches that need each temporary, and its offset in the arena of the call.'
    """
    while len(text) > MAX_SENTENCE and (clauses := re.split(r"[,;:] (?=[^,;:]*$)", text))[1:]:
        text = f"{clauses[0]}."
    return text
