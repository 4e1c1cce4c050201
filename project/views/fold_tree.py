"""The tree of a cell as rows of nodes: the elements read, the value of each thread, each step, and the result at the foot.

A loop adds one element after another, so its tree is a chain: running totals below the elements. Threads make a tree: each
has a value, and each step combines two of them. Rows that are too wide to read are omitted, and `Tree.omitted` says so.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from minifuse.inspect.provenance import ProvenanceNode, ProvenanceStage, ProvenanceTree

from .picture import IDLE, LOAD, OTHER, SHARED, STORE, Cell, Edge, Grid, Place

READ = "elements read"  # the title of the first row
MAX_ROW_CHARACTERS = 96  # characters of all numbers in a row that can be read in one window
ROW_NAMES = (
    (r"in shared memory: value of each (\w+)", r"shared: each \1"),
    (r"value of each thread", "each thread"),
    (r"shuffle: .*(lane \^ \d+)", r"+ \1"),
    (r"combined with the value of the thread at (y = \d+)", r"+ \1"),
    (r"results of earlier launches", "pieces"),
    (r"result of the launch", "total"),
    (r"combined with other inputs of the launch", "+ inputs"),
)


class TreeRow(NamedTuple):
    """A row of nodes: the elements, a stage, or the result."""

    name: str
    nodes: tuple[int, ...]
    """Indices of the nodes in the provenance tree."""
    kind: str
    title: str
    """What the row does: the title of its stage."""


@dataclass(frozen=True)
class Tree:
    """The rows of a tree, from the elements to the result."""

    provenance: ProvenanceTree
    values: Sequence[float]
    rows: tuple[TreeRow, ...]
    omitted: int
    """Number of elements of a chain, or of rows of a tree, that are too many to draw."""
    is_chain: bool
    """True if one loop or thread combines all elements."""
    has_threads: bool
    """True if the nodes are computed by threads of a GPU."""

    def parts(self, row: int, column: int) -> list[tuple[int, int]]:
        """Return the nodes, as row and column, from which a node is made."""
        return self.all_parts[row][column]

    @cached_property
    def all_parts(self) -> list[list[list[tuple[int, int]]]]:
        """The parts of each node of each row."""
        found, places = list[list[list[tuple[int, int]]]](), dict[int, tuple[int, int]]()
        for r, row in enumerate(self.rows):
            moves = any(node in places for node in row.nodes)  # values are stored or passed on, none is computed
            parts, earlier = list[list[tuple[int, int]]](), places if self.is_chain else dict(places)
            for column, node in enumerate(row.nodes):
                if moves:
                    parts.append([earlier[node]] if node in earlier else [])
                else:
                    parts.append(list(self.reach(node, earlier)) if r else [])
                places[node] = (r, column)
            found.append(parts)
        return found

    def reach(self, node: int, places: dict[int, tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the nearest drawn nodes below a node, in the order of the operands."""
        pending = list(reversed(self.provenance.nodes[node].operands))
        while pending:
            k = pending.pop()
            if k in places:
                yield places[k]
            else:
                pending += reversed(self.provenance.nodes[k].operands)

    @cached_property
    def offsets(self) -> list[list[float]]:
        """The place of each node in its row: a node stands in the middle of its parts; those of a chain below an element."""
        found, free = [[-1.0] * len(row.nodes) for row in self.rows], 0.0
        last = len(self.rows) - 1
        for r, c in self.depth_first(last):
            parts = [found[i][j] for i, j in self.parts(r, c) if not (self.is_chain and i == r)]
            if parts:
                found[r][c] = sum(parts) / len(parts)
            else:
                found[r][c], free = free, free + 1
        return found

    def depth_first(self, last: int) -> Iterator[tuple[int, int]]:
        """Yield all nodes, parts before the node that they make, in the order of the tree."""
        seen = set[tuple[int, int]]()
        pending = [(r, c) for r in range(last + 1) for c in reversed(range(len(self.rows[r].nodes)))]
        while pending:
            at = pending[-1]
            missing = [part for part in self.parts(*at) if part not in seen] if at not in seen else []
            if missing:
                pending += reversed(missing)
            elif at in seen:
                pending.pop()
            else:
                seen.add(pending.pop())
                yield at

    @cached_property
    def leaves(self) -> list[list[frozenset[str]]]:
        """The links of the leaves below each node: of the elements, or of the first nodes that are drawn."""
        found = [[frozenset[str]()] * len(row.nodes) for row in self.rows]
        for r, c in self.depth_first(len(self.rows) - 1):
            below = [found[i][j] for i, j in self.parts(r, c)]
            found[r][c] = frozenset[str]().union(*below) if below else frozenset({self.leaf_link(r, c)})
        return found

    def leaf_link(self, row: int, column: int) -> str:
        """Return the link of a node without parts: that of its element, if it is one."""
        node = self.provenance.nodes[self.rows[row].nodes[column]]
        return f"{node.array}.{node.element}" if node.is_element else f"leaf{row}.{column}"

    @cached_property
    def link_of_element(self) -> dict[tuple[str, int], str]:
        """The link of the leaf that contains an element, for the elements that are not nodes themselves."""
        nodes, owner = self.provenance.nodes, dict[int, str]()
        for r, row in enumerate(self.rows):
            for c, node in enumerate(row.nodes):
                if not self.parts(r, c):
                    owner.setdefault(node, self.leaf_link(r, c))
        for k in range(len(nodes) - 1, -1, -1):
            if k in owner:
                for p in nodes[k].operands:
                    owner.setdefault(p, owner[k])
        return {(nodes[k].array, nodes[k].element): link for k, link in owner.items() if nodes[k].is_element}

    def place(self, row: int, column: int) -> Place:
        """Return the cell of a node."""
        return "tree", row, column

    def edges_into(self, row: int, column: int, kind: str = "") -> list[Edge]:
        """Return the edges from the parts of a node to it."""
        more = f"and {self.omitted:,} more" if self.is_chain and self.omitted and row == len(self.rows) - 1 else ""
        return [Edge(self.place(*part), self.place(row, column), kind, more) for part in self.parts(row, column)]

    def text(self, row: int, column: int) -> str:
        """Return the number of a node."""
        return f"{self.values[self.rows[row].nodes[column]]:g}"

    def grid(self, title: str) -> Grid:
        """Draw the rows."""
        cells, offsets = list[Cell](), list[float]()
        for r, row in enumerate(self.rows):
            for c, node in enumerate(row.nodes):
                links = node_link(r, c), *sorted(self.leaves[r][c])
                label = f"{row.title}: {self.describe(r, c, self.provenance.nodes[node])}"
                kind = LOAD if row.title == READ and self.provenance.nodes[node].is_element else row.kind
                cells.append(Cell(r, c, self.text(r, c), label, kind, links))
                offsets.append(self.offsets[r][c])
        names = tuple(row.name for row in self.rows)
        width = max(len(row.nodes) for row in self.rows)
        return Grid(
            "tree", title, len(self.rows), width, tuple(cells), names, (), tuple(offsets), (16 if self.is_chain else 4, 26)
        )

    def describe(self, row: int, column: int, node: ProvenanceNode) -> str:
        """Describe a node: its value, its thread, and the numbers it is made of."""
        parts = self.parts(row, column)
        sign = " and " if node.operator not in ("add", "mul") else {"add": " + ", "mul": " * "}[node.operator]
        made = f" = {sign.join(self.text(*part) for part in parts[:8])}" if len(parts) > 1 else ""
        made += f"{sign}..." if len(parts) > 8 else ""
        where = f"{node.array}[{node.element}], " if node.is_element else ""
        where += f"thread {node.thread[1]}, " if self.has_threads and node.operator else ""
        return f"{where}{self.text(row, column)}{made}"


def node_link(row: int, column: int) -> str:
    """Return the link of one node alone."""
    return f"node{row}.{column}"


def short_name(title: str) -> str:
    """Return the name of a row from the title of its stage."""
    return next((re.sub(pattern, name, title) for pattern, name in ROW_NAMES if re.fullmatch(pattern, title)), title)


def build_tree(
    provenance: ProvenanceTree, stages: Sequence[ProvenanceStage], values: Sequence[float], has_threads: bool
) -> Tree:
    """Arrange a tree in rows: the elements, then its stages, then the result.

    Parameters
    ----------
    provenance : ProvenanceTree
        The tree of the cell.
    stages : sequence of ProvenanceStage
        The stages that are drawn; one stage is a loop, drawn as a chain.
    values : sequence of float
        The value of each node.
    has_threads : bool
        True if threads of a GPU compute the nodes.
    """
    nodes, root = provenance.nodes, len(provenance.nodes) - 1
    result = TreeRow("out", (root,), STORE, "result")
    if len(stages) == 1:
        leaves = [k for k in range(root + 1) if not nodes[k].operator]
        totals = [k for k in range(root + 1) if nodes[k].operator]
        most = MAX_ROW_CHARACTERS // longest(values, [*leaves, *totals])
        drawn = leaves[:most]
        kept = set(drawn)
        chain = list[int]()
        for k in totals:
            if kept.issuperset(nodes[k].operands):
                kept.add(k)
                chain.append(k)
        rows = [TreeRow("read", tuple(drawn), IDLE, READ), TreeRow(nodes[root].operator, tuple(chain), OTHER, "so far")]
        found = [row for row in (*rows, result) if row.nodes]
        return Tree(provenance, values, tuple(found), len(leaves) - len(drawn), True, has_threads)
    elements = TreeRow("read", tuple(elements_below(provenance, stages[0].nodes)), LOAD, READ)
    rows = [
        elements,
        *[TreeRow(short_name(s.title), s.nodes, SHARED if s.is_shared else OTHER, s.title) for s in stages],
        result,
    ]
    first = next(r for r in range(len(rows)) if all(is_readable(values, row.nodes) for row in rows[r:]))
    return Tree(provenance, values, tuple(rows[first:]), first, False, has_threads)


def elements_below(provenance: ProvenanceTree, roots: Sequence[int]) -> list[int]:
    """Return the elements below some nodes, each once, in the order of the operands."""
    found, pending = dict[int, None](), list(reversed(roots))
    while pending:
        k = pending.pop()
        if provenance.nodes[k].is_element:
            found.setdefault(k)
        pending += reversed(provenance.nodes[k].operands)
    return list(found)


def longest(values: Sequence[float], nodes: Sequence[int]) -> int:
    """Return the most characters of the numbers of some nodes."""
    return max((len(f"{values[k]:g}") for k in nodes), default=1)


def is_readable(values: Sequence[float], nodes: Sequence[int]) -> bool:
    """Return True if the numbers of some nodes fit side by side."""
    return len(nodes) <= MAX_ROW_CHARACTERS and len(nodes) * longest(values, nodes) <= MAX_ROW_CHARACTERS
