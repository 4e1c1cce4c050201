"""Graphs in layers: inputs above, what reads them below, with few crossings. igraph computes the places.

A layer is a row of a grid. An edge that skips layers bends around the nodes between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import igraph

from .picture import Cell, Edge, Grid, Place

GAPS = (26, 30)  # pixels between nodes and between layers
NODE, BEND = 0.5, 0.2  # half of the room of a node and of an edge that passes, in columns

Reads = Sequence[Sequence[int]]
"""The inputs of each node."""


@dataclass(frozen=True)
class LayeredGraph:
    """A drawn graph: node k is the cell at `places[k]`."""

    grid: Grid
    places: tuple[Place, ...]
    bends: dict[tuple[int, int], tuple[tuple[float, float], ...]]
    """(row, column) of the bends of the edge from each input to each of its readers."""

    def edge(self, start: int, end: int, kind: str = "", text: str = "") -> Edge:
        """Return the edge between two nodes. It may point backward, from a reader to its input."""
        bends = self.bends.get((start, end)) or self.bends.get((end, start), ())[::-1]
        return Edge(self.places[start], self.places[end], kind, text, bends)

    def edges(self) -> tuple[Edge, ...]:
        """Return all edges, from inputs to readers."""
        return tuple(self.edge(*ends) for ends in self.bends)


def layer_graph(name: str, title: str, cells: Sequence[Cell], reads: Reads, gaps: tuple[int, int] = GAPS) -> LayeredGraph:
    """Lay out a directed acyclic graph in layers.

    Parameters
    ----------
    name, title : str
        The name and the title of the grid.
    cells : sequence of Cell
        The cell of each node. Its own row and column are ignored.
    reads : sequence of sequences of int
        The inputs of each node.
    gaps : (int, int)
        Pixels between nodes and between layers, so that edges have room.
    """
    layers = longest_paths(reads)
    ends = list(dict.fromkeys((j, k) for k, inputs in enumerate(reads) for j in inputs))
    rows, steps, bends = list(layers), list[tuple[int, int]](), dict[tuple[int, int], list[int]]()
    for j, k in ends:  # a vertex in each layer that an edge skips
        bends[j, k] = list(range(len(rows), len(rows) + layers[k] - layers[j] - 1))
        rows += range(layers[j] + 1, layers[k])
        steps += pairwise([j, *bends[j, k], k])
    columns = place_in_layers(rows, steps, len(cells))
    ranks = [sum(other == row and columns[i] < columns[k] for i, other in enumerate(layers)) for k, row in enumerate(layers)]
    placed = tuple(
        Cell(row, rank, c.text, c.label, c.kind, c.links) for c, row, rank in zip(cells, layers, ranks, strict=True)
    )
    size = 1 + max(layers, default=0), 1 + max(ranks, default=0)
    grid = Grid(name, title, *size, placed, offsets=tuple(columns[: len(cells)]), gaps=gaps)
    return LayeredGraph(
        grid,
        tuple((name, c.row, c.column) for c in placed),
        {edge: tuple((rows[v], round(columns[v], 3)) for v in through) for edge, through in bends.items()},
    )


def longest_paths(reads: Reads) -> list[int]:
    """Return the layer of each node: the number of edges on the longest path to it."""
    layers = list[int]()
    for inputs in reads:  # inputs come before their readers
        layers.append(1 + max([layers[j] for j in inputs], default=-1))
    return layers


def place_in_layers(rows: Sequence[int], edges: Sequence[tuple[int, int]], nodes: int) -> list[float]:
    """Return the column of each vertex. Edges join adjacent rows; the first `nodes` vertices need the room of a node."""
    graph = igraph.Graph(n=len(rows), edges=edges, directed=True)
    columns = [x for x, _ in graph.layout_sugiyama(layers=list(rows))] if rows else []
    for row in set(rows):  # igraph may put vertices closer than its gap
        layer = sorted((k for k, other in enumerate(rows) if other == row), key=lambda k: (columns[k], k))
        for left, right in pairwise(layer):
            room = sum(NODE if k < nodes else BEND for k in (left, right))
            columns[right] = max(columns[right], columns[left] + room)
    first = min(columns, default=0.0)
    return [column - first for column in columns]
