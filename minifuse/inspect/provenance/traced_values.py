"""Floats whose bits are an ID into a provenance log, which stores the operator and the operands of each value.

A kernel that runs on IDs instead of numbers records the order in which it combines them, operation by operation. An ID
is a float32 whose bits are a small integer: a subnormal number, which no kernel has as a constant. So it passes through
registers, shuffles and memory like any other number. This module uses no backend; `cell` runs the kernels.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import NamedTuple, SupportsFloat

import numpy as np

from ...core.errors import MinifuseError
from ...core.operators import TABLE
from ...simt.columnar import WARP_SIZE

FIRST_ID, ID_LIMIT = 1, 1 << 23  # IDs are the positive subnormal float32 numbers
ID_UNIT = 2.0**-149  # the float32 with the bits 1
PYTHON_METHODS = {  # operator of the table -> the name of Python's special method
    **{"add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "floordiv": "floordiv", "mod": "mod", "pow": "pow"},
    **{"neg": "neg", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"},
}
REFLECTED = ("add", "sub", "mul", "div", "floordiv", "mod", "pow")
ValueId = int | tuple[float]  # an ID, or (number,): as a dict key, the number 1 must differ from the ID 1
ThreadId = tuple[int, int]  # block and thread; on backends without threads: chunk and 0


class LoadRecord(NamedTuple):
    """An element that was read."""

    address: int
    thread: ThreadId
    line: int
    """The line of the kernel's source that reads the element; 0 if the kernel has no source."""


class OpRecord(NamedTuple):
    """An operator that ran."""

    operator: str
    operands: tuple[ValueId, ...]
    """IDs, or numbers such as an identity element."""
    thread: ThreadId
    exchange: str
    """How operands of other threads arrived: "shuffle 16", "shared", or "" if the thread used only its own."""
    line: int = 0
    """The line that ran it: of the kernel that called, if a function of the library exchanged the operands."""


class ProvenanceLog:
    """A log of the IDs of one launch: each is an element of memory, or the result of an operator."""

    def __init__(self, current_thread: Callable[[], ThreadId]) -> None:
        self.current_thread = current_thread
        self.records: list[OpRecord | LoadRecord] = []
        self.ranges: list[tuple[int, int, int]] = []  # (first ID, address of its element, number of elements)
        self.next_id = FIRST_ID
        self.float_type = traced_float_type(self)

    def add_memory(self, address: int, count: int) -> int:
        """Assign IDs to the elements of memory, and return the first ID. Call it before any operator runs."""
        first, self.next_id = self.next_id, self.next_id + count
        self.ranges.append((first, address, count))
        if self.next_id > ID_LIMIT:
            raise too_many_ids_error()
        return first

    def record_load(self, address: int, line: int = 0) -> np.float32:
        """Return a new ID for an element that is read."""
        return self.append(LoadRecord(address, self.current_thread(), line))

    def record_op(self, operator: str, *operands: SupportsFloat) -> np.float32:
        """Return an ID for the result of an operator."""
        frame = sys._getframe(2)
        exchange = exchange_of(frame)
        line = calling_line(frame) if exchange else frame.f_lineno
        return self.append(OpRecord(operator, tuple(map(decode_id, operands)), self.current_thread(), exchange, line))

    def append(self, record: OpRecord | LoadRecord) -> np.float32:
        """Append a record to the log, and return its ID."""
        self.records.append(record)
        value_id = self.next_id + len(self.records) - 1
        if value_id >= ID_LIMIT:
            raise too_many_ids_error()
        return self.float_type(ID_UNIT * value_id)

    def traced_operators(self) -> dict[str, Callable[..., np.float32]]:
        """Return the operators of the table, as functions that are logged."""
        return {name: self.traced_operator(name) for name in TABLE}

    def traced_operator(self, name: str) -> Callable[..., np.float32]:
        """Return one operator as a function that is logged. `is_word` makes the interpreter call it without rewriting it."""

        def traced(*operands: SupportsFloat) -> np.float32:
            return self.record_op(name, *operands)

        traced.__name__, traced.__dict__["is_word"] = name, True
        return traced

    def op_of(self, value_id: ValueId) -> OpRecord | None:
        """Return the operator record of an ID; None for an element or a number."""
        record = self.records[value_id - self.next_id] if isinstance(value_id, int) and value_id >= self.next_id else None
        return record if isinstance(record, OpRecord) else None

    def address_of(self, value_id: ValueId) -> int | None:
        """Return the address of the element of an ID; None if the ID is not an element."""
        if not isinstance(value_id, int):
            return None
        if value_id >= self.next_id:
            record = self.records[value_id - self.next_id]
            return record.address if isinstance(record, LoadRecord) else None
        return next(at + 4 * (value_id - first) for first, at, count in self.ranges if first <= value_id < first + count)

    def ancestors(self, *value_ids: ValueId) -> list[ValueId]:
        """Return these values and all values that they are computed from, operands before results."""
        done, pending, records, first = dict[ValueId, None](), list(reversed(value_ids)), self.records, self.next_id
        while pending:
            value = pending[-1]
            record = records[value - first] if type(value) is int and value >= first else None
            missing = [x for x in record.operands if x not in done] if type(record) is OpRecord else None
            if missing:
                pending += reversed(missing)
            else:
                done.setdefault(pending.pop())
        return list(done)


def too_many_ids_error() -> MinifuseError:
    """Return the error for more IDs than float32 can represent."""
    return MinifuseError(f"more than {ID_LIMIT:,} elements and operators; use a smaller shape")


def decode_id(number: SupportsFloat) -> ValueId:
    """Return the ID that a number encodes; for a plain number, a tuple with the number."""
    value = float(number)
    return int(value / ID_UNIT) if 0 < value < ID_LIMIT * ID_UNIT else (value,)


def exchange_of(frame: FrameType) -> str:
    """Return how operands of other threads arrive at an operator, by the library function that calls it."""
    caller = frame.f_code.co_name
    is_shared = caller in ("fold_states_along_y", "fold_of_column")
    return f"shuffle {frame.f_locals['step']}" if caller == "fold_lanes" else "shared" * is_shared


def calling_line(frame: FrameType) -> int:
    """Return the line that called into the file of a frame."""
    caller: FrameType | None = frame
    while caller is not None and caller.f_code.co_filename == frame.f_code.co_filename:
        caller = caller.f_back
    return caller.f_lineno if caller is not None else 0


def traced_float_type(log: ProvenanceLog) -> type[np.float32]:
    """Return the float type of the IDs of a log; arithmetic on it is logged."""

    class TracedFloat(np.float32):
        __array_ufunc__ = None  # so that `scalar + value` of a NumPy scalar calls __radd__ of this type
        __hash__ = None  # type: ignore[assignment]  # not hashable: use decode_id(x) as a dict key

        def __bool__(self) -> bool:
            raise MinifuseError("a kernel branches on the value of an element; its results cannot be traced")

    def define_operator(name: str, method: str) -> None:
        def direct(*operands: SupportsFloat) -> np.float32:
            return log.record_op(name, *operands)

        def reflected(a: SupportsFloat, b: SupportsFloat) -> np.float32:
            return log.record_op(name, b, a)

        setattr(TracedFloat, f"__{method}__", direct)
        if name in REFLECTED:
            setattr(TracedFloat, f"__r{method}__", reflected)

    for name, method in PYTHON_METHODS.items():
        define_operator(name, method)
    return TracedFloat


# The tree of a cell, which is one element of a result, over all launches.


class ProvenanceNode(NamedTuple):
    """An element, a number, or an operator with its operands."""

    operator: str = ""
    operands: tuple[int, ...] = ()
    """Indices of the operands in the list of nodes, all smaller than the index of this node."""
    array: str = ""
    """The input that an element belongs to."""
    element: int = 0
    """The index of the element in the memory of that input."""
    number: float = 0
    launch: int = 0
    thread: ThreadId = (0, 0)
    exchange: str = ""
    line: int = 0
    """The line of the kernel's text that ran the operator; the text may lack it."""

    @property
    def is_element(self) -> bool:
        """Return True for an element of an input."""
        return bool(self.array)


@dataclass(frozen=True)
class ProvenanceTree:
    """The values that one cell is computed from; the last node is the cell."""

    nodes: tuple[ProvenanceNode, ...]

    @cached_property
    def earlier_results(self) -> Sequence[int]:
        """The nodes that earlier launches passed to the last one; none if there is one launch."""
        last = len(self.nodes) - 1
        launch = self.nodes[last].launch
        return [k for k in nodes_of_launch(self, last) if self.nodes[k].operator and self.nodes[k].launch != launch]

    def values(self, inputs: Mapping[str, np.ndarray], dtype: type[np.floating] = np.float64) -> list[np.floating]:
        """Compute the value of each node in the order of the tree; the inputs are flat."""
        values = list[np.floating]()
        with np.errstate(all="ignore"):
            for node in self.nodes:
                if node.operator:
                    value = TABLE[node.operator].body(*[values[k] for k in node.operands])
                else:
                    value = inputs[node.array][node.element] if node.is_element else node.number
                values.append(dtype(value))
        return values

    def elements(self) -> list[tuple[str, int]]:
        """Return the elements of inputs, as array and index."""
        return [(node.array, node.element) for node in self.nodes if node.is_element]

    def depth(self) -> int:
        """Return the length of the longest chain of operators."""
        depths = list[int]()
        for node in self.nodes:
            depths.append(max((depths[k] for k in node.operands), default=0) + bool(node.operator))
        return depths[-1]

    def text(self, root: int, longest: int = 400, names: Mapping[int, str] | None = None) -> str:
        """Format a node as a Python expression, cut off at `longest` characters; nodes in `names` are written by name.

        Examples
        --------
        >>> nodes = ProvenanceNode(number=0.0), ProvenanceNode(array="x", element=3), ProvenanceNode("add", (0, 1))
        >>> ProvenanceTree(nodes).text(2)
        '0 + x[3]'
        """
        text, pending = "", list[int | str]([root])
        while pending and len(text) <= longest:
            piece = pending.pop()
            text += piece if isinstance(piece, str) else ""
            if isinstance(piece, int):
                name = (names or {}).get(piece)
                pending += [name] if name else reversed(self.pieces(piece, piece == root))
        return text if not pending and len(text) <= longest else text[:longest] + " ..."

    def pieces(self, k: int, is_outer: bool) -> list[int | str]:
        """Return the texts and operands that one node is formatted from."""
        node = self.nodes[k]
        if not node.operator:
            return [f"{node.array}[{node.element}]" if node.is_element else f"{node.number:g}"]
        symbol = TABLE[node.operator].symbol
        if symbol is None:
            between: list[int | str] = [x for p in node.operands for x in (p, ", ")]
            return [f"{node.operator}(", *between[:-1], ")"]
        if len(node.operands) == 1:
            return [symbol, node.operands[0]]
        a, b = node.operands
        inside: list[int | str] = [a, f" {symbol} ", b]
        return inside if is_outer else ["(", *inside, ")"]


class ProvenanceStage(NamedTuple):
    """One step of a tree: a title, and the nodes computed by then."""

    title: str
    nodes: tuple[int, ...]
    """Indices of the nodes in the tree."""
    launch: int
    is_shared: bool = False


def split_stages(tree: ProvenanceTree, root: int | None = None) -> list[ProvenanceStage]:
    """Split the tree of a node into steps of its launch: the value of each thread, then how threads combine them."""
    root = len(tree.nodes) - 1 if root is None else root
    launch, level, nodes = tree.nodes[root].launch, dict[int, int](), list(nodes_of_launch(tree, root))
    exchanges = [k for k in nodes if tree.nodes[k].exchange and tree.nodes[k].launch == launch]
    exchange_set = set(exchanges)
    for k in nodes:
        level[k] = max((level.get(p, 0) for p in tree.nodes[k].operands), default=0) + (k in exchange_set)
    if not exchanges:
        return [ProvenanceStage("result of the launch", (root,), launch)]
    thread_values = [p for k in exchanges for p in tree.nodes[k].operands if p not in exchange_set]
    is_column = tree.nodes[exchanges[0]].exchange == "shared"
    title = "in shared memory: value of each thread" if is_column else "value of each thread"
    stages = [ProvenanceStage(title, sort_by_thread(tree, thread_values), launch, is_column)]
    for step in range(1, level[root] + 1):
        level_nodes = sort_by_thread(tree, [k for k in exchanges if level[k] == step])
        first = tree.nodes[level_nodes[0]]
        if first.exchange != "shared" and crosses_warps(tree, level_nodes[0]) and not crosses_warps(tree, first.operands[0]):
            warps = sort_by_thread(tree, [p for k in level_nodes for p in tree.nodes[k].operands])
            stages.append(ProvenanceStage("in shared memory: value of each warp", warps, launch, True))
        if is_column:
            title = f"combined with the value of the thread at y = {step}"
        else:
            action = "adds" if first.operator == "add" else f"takes the {first.operator} with"
            title = f"shuffle: each lane {action} the value of lane ^ {first.exchange.removeprefix('shuffle ')}"
        stages.append(ProvenanceStage(title, level_nodes, launch))
    if root not in exchange_set:
        stages.append(ProvenanceStage("combined with other inputs of the launch", (root,), launch))
    return stages


def sort_by_thread(tree: ProvenanceTree, nodes: Sequence[int]) -> tuple[int, ...]:
    """Sort nodes by the thread that computed them; values that no thread computed, such as an identity, are last."""
    return tuple(sorted(nodes, key=lambda k: (not tree.nodes[k].operator, tree.nodes[k].thread)))


def nodes_of_launch(tree: ProvenanceTree, root: int) -> Iterator[int]:
    """Yield the nodes below a node that its launch computed or read, operands before results."""
    launch, requested = tree.nodes[root].launch, {root}
    for k in range(root, -1, -1):
        if k in requested and tree.nodes[k].operator and tree.nodes[k].launch == launch:
            requested.update(tree.nodes[k].operands)
    yield from sorted(requested)


def crosses_warps(tree: ProvenanceTree, k: int) -> bool:
    """Return True if a node combines values of other warps."""
    node = tree.nodes[k]
    producers = [tree.nodes[p] for p in node.operands if tree.nodes[p].operator and tree.nodes[p].launch == node.launch]
    return bool(node.exchange) and any(x.thread[1] // WARP_SIZE != node.thread[1] // WARP_SIZE for x in producers)


def all_stages(tree: ProvenanceTree, index: int = 0) -> list[ProvenanceStage]:
    """Return the stages of the earlier result with this index, if there is any, then the stages of the last launch."""
    earlier, last = tree.earlier_results, split_stages(tree)
    if not earlier:
        return last
    root, launch = earlier[min(index, len(earlier) - 1)], last[-1].launch
    return [
        *split_stages(tree, root),
        ProvenanceStage("results of earlier launches", tuple(earlier), launch),
        *last,
    ]
