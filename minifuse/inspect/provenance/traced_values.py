"""Numbers that tell what they are made of: each is a name, and a ledger knows which operator made it of which others.

A kernel that runs on names instead of numbers leaves the order in which it combines them, operation by operation. A name is
a float32 whose bits are a small whole number: far below the normal numbers, where no kernel has a constant. So it passes
through registers, shuffles and memory like any other number. Nothing here knows a backend; `cell` runs the kernels.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import MinifuseError
from ...core.operators import TABLE
from ...simt.columnar import WARP_SIZE

FIRST_ID, ID_LIMIT = 1, 1 << 23  # of names: what is below the normal float32 numbers
ID_UNIT = 2.0**-149  # the float32 with the bits 1
PYTHON_METHODS = {  # of operators: how Python calls them
    **{"add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "floordiv": "floordiv", "mod": "mod", "pow": "pow"},
    **{"neg": "neg", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"},
}
REFLECTED = ("add", "sub", "mul", "div", "floordiv", "mod", "pow")
ValueId = int | tuple[float]  # or a plain number, which a dict must not take for a name
ThreadId = tuple[int, int]  # block and thread; of backends without threads: chunk and 0


class LoadRecord(NamedTuple):
    """An element that was read."""

    address: int
    thread: ThreadId
    line: int
    """Of the kernel's text; 0 where it has none."""


class OpRecord(NamedTuple):
    """An operator that ran."""

    operator: str
    parts: tuple[ValueId, ...]
    """Names, or numbers such as an identity."""
    thread: ThreadId
    exchange: str
    """How the parts of others came: "shuffle 16", "shared", or "" where a thread works alone."""


class ProvenanceLog:
    """What every name of one launch stands for: an element of memory, or the result of an operator."""

    def __init__(self, who: Callable[[], ThreadId]) -> None:
        self.thread = who
        self.records: list[OpRecord | LoadRecord] = []
        self.ranges: list[tuple[int, int, int]] = []  # first name, address of its element, elements
        self.next = FIRST_ID
        self.number = traced_float_type(self)

    def memory(self, address: int, count: int) -> int:
        """Name the elements of memory; gives the first name. No operator must have run yet."""
        first, self.next = self.next, self.next + count
        self.ranges.append((first, address, count))
        if self.next > ID_LIMIT:
            raise too_many_ids()
        return first

    def load(self, address: int, line: int = 0) -> Any:
        """An element, under a name that is new each time."""
        return self.append(LoadRecord(address, self.thread(), line))

    def join(self, operator: str, *parts: Any) -> Any:
        """The result of an operator."""
        frame = sys._getframe(2)
        return self.append(OpRecord(operator, tuple(map(decode_id, parts)), self.thread(), exchange_of(frame)))

    def append(self, made: OpRecord | LoadRecord) -> Any:
        """A new name for what was made."""
        self.records.append(made)
        name = self.next + len(self.records) - 1
        if name >= ID_LIMIT:
            raise too_many_ids()
        return self.number(ID_UNIT * name)

    def traced_operators(self) -> dict[str, Callable[..., Any]]:
        """The operators of the table, as functions that are taken down."""
        return {name: self.traced_operator(name) for name in TABLE}

    def traced_operator(self, name: str) -> Callable[..., Any]:
        """One operator that is taken down; the interpreter takes it as a word of its own."""

        def tell(*parts: Any) -> Any:
            return self.join(name, *parts)

        tell.__name__, tell.is_word = name, True  # type: ignore[attr-defined]
        return tell

    def op_of(self, name: ValueId) -> OpRecord | None:
        """The operator behind a name; None of an element or a plain number."""
        made = self.records[name - self.next] if isinstance(name, int) and name >= self.next else None
        return made if isinstance(made, OpRecord) else None

    def address_of(self, name: ValueId) -> int | None:
        """Where the element of a name lies; None where it is no element."""
        if not isinstance(name, int):
            return None
        if name >= self.next:
            made = self.records[name - self.next]
            return made.address if isinstance(made, LoadRecord) else None
        return next(at + 4 * (name - first) for first, at, count in self.ranges if first <= name < first + count)

    def ancestors(self, *names: ValueId) -> list[ValueId]:
        """All that some names are made of, and they themselves; parts before what is made of them."""
        found, waiting, made, first = dict[ValueId, None](), list(reversed(names)), self.records, self.next
        while waiting:
            one = waiting[-1]
            join = made[one - first] if type(one) is int and one >= first else None
            missing = [part for part in join.parts if part not in found] if type(join) is OpRecord else None
            if missing:
                waiting += reversed(missing)
            else:
                found.setdefault(waiting.pop())
        return list(found)


def too_many_ids() -> MinifuseError:
    """The error of more names than float32 tells apart."""
    return MinifuseError(f"more than {ID_LIMIT:,} elements and operators; ask for a smaller shape")


def decode_id(number: Any) -> ValueId:
    """The name that a number is, or the number itself."""
    found = float(number)
    return int(found / ID_UNIT) if 0 < found < ID_LIMIT * ID_UNIT else (found,)


def exchange_of(frame: Any) -> str:
    """How the numbers of other threads come to an operator, by the word of the library that calls it."""
    word = frame.f_code.co_name
    is_shared = word in ("fold_along_y", "fold_of_column")
    return f"shuffle {frame.f_locals['step']}" if word == "fold_among" else "shared" * is_shared


def traced_float_type(ledger: ProvenanceLog) -> type[np.float32]:
    """The type of the names of a ledger: what is written with signs is taken down too."""

    class Told(np.float32):
        __array_ufunc__ = None  # so that NumPy's own numbers leave `number + name` to the name
        __hash__ = None  # type: ignore[assignment]

        def __bool__(self) -> bool:
            raise MinifuseError("a kernel decides by the value of an element, so its order is not the same for all values")

    def sign(name: str, method: str) -> None:
        def forward(*parts: Any) -> Any:
            return ledger.join(name, *parts)

        def backward(a: Any, b: Any) -> Any:
            return ledger.join(name, b, a)

        setattr(Told, f"__{method}__", forward)
        if name in REFLECTED:
            setattr(Told, f"__r{method}__", backward)

    for name, method in PYTHON_METHODS.items():
        sign(name, method)
    return Told


# What a cell is made of, over all launches.


class ProvenanceNode(NamedTuple):
    """An element, a number, or an operator of some parts."""

    operator: str = ""
    parts: tuple[int, ...] = ()
    """Where they stand in the list of parts: always before."""
    array: str = ""
    """Of an element: the input that it is from."""
    element: int = 0
    """Its place in the memory of that input."""
    number: float = 0
    launch: int = 0
    thread: ThreadId = (0, 0)
    exchange: str = ""

    @property
    def is_element(self) -> bool:
        """Whether it is an element of an input."""
        return bool(self.array)


@dataclass(frozen=True)
class ProvenanceTree:
    """What one cell is made of: the last part is the cell."""

    parts: tuple[ProvenanceNode, ...]

    def values(self, inputs: dict[str, Any], dtype: Any = np.float64) -> list[Any]:
        """The value of each part, computed in the order of the tree; inputs are flat."""
        found = list[Any]()
        with np.errstate(all="ignore"):
            for part in self.parts:
                if part.operator:
                    value = TABLE[part.operator].body(*[found[k] for k in part.parts])
                else:
                    value = inputs[part.array][part.element] if part.is_element else part.number
                found.append(dtype(value))
        return found

    def elements(self) -> list[tuple[str, int]]:
        """The elements that it has, by array and place."""
        return [(part.array, part.element) for part in self.parts if part.is_element]

    def depth(self) -> int:
        """The most operators that wait for one another."""
        deep = list[int]()
        for part in self.parts:
            deep.append(max((deep[k] for k in part.parts), default=0) + bool(part.operator))
        return deep[-1]

    def text(self, root: int, longest: int = 400, names: Mapping[int, str] | None = None) -> str:
        """A part as Python writes it, cut off where it becomes long; parts that have names are not written out.

        Examples
        --------
        >>> Tree((Part(number=0.0), Part(array="x", element=3), Part("add", (0, 1)))).text(2)
        '0 + x[3]'
        """
        text, waiting = "", list[Any]([root])
        while waiting and len(text) <= longest:
            one = waiting.pop()
            text += one if isinstance(one, str) else ""
            if isinstance(one, int):
                known = (names or {}).get(one)
                waiting += [known] if known else reversed(self.pieces(one, one == root))
        return text if not waiting and len(text) <= longest else text[:longest] + " ..."

    def pieces(self, k: int, is_outer: bool) -> list[Any]:
        """Texts and places that one part is written with."""
        part = self.parts[k]
        if not part.operator:
            return [f"{part.array}[{part.element}]" if part.is_element else f"{part.number:g}"]
        symbol = TABLE[part.operator].symbol
        if symbol is None:
            between = [x for p in part.parts for x in (p, ", ")][:-1]
            return [f"{part.operator}(", *between, ")"]
        if len(part.parts) == 1:
            return [symbol, part.parts[0]]
        a, b = part.parts
        inside = [a, f" {symbol} ", b]
        return inside if is_outer else ["(", *inside, ")"]


class ProvenanceStage(NamedTuple):
    """One step of a tree: what was done, and the parts that there are then."""

    title: str
    parts: tuple[int, ...]
    launch: int
    is_shared: bool = False


def split_stages(tree: ProvenanceTree, root: int | None = None) -> list[ProvenanceStage]:
    """The tree of a part in steps, within the launch that made it: what each thread has, then what they do together."""
    root = len(tree.parts) - 1 if root is None else root
    launch, level, inside = tree.parts[root].launch, dict[int, int](), list(nodes_of_launch(tree, root))
    joins = [k for k in inside if tree.parts[k].exchange and tree.parts[k].launch == launch]
    meets = set(joins)
    for k in inside:
        level[k] = max((level.get(p, 0) for p in tree.parts[k].parts), default=0) + (k in meets)
    if not joins:
        return [ProvenanceStage("what it has in the end", (root,), launch)]
    own = [p for k in joins for p in tree.parts[k].parts if p not in meets]
    is_column = tree.parts[joins[0]].exchange == "shared"
    title = "in shared memory: what each thread has" if is_column else "what each thread has"
    found = [ProvenanceStage(title, sort_by_thread(tree, own), launch, is_column)]
    for step in range(1, level[root] + 1):
        now = sort_by_thread(tree, [k for k in joins if level[k] == step])
        first = tree.parts[now[0]]
        if first.exchange != "shared" and crosses_warps(tree, now[0]) and not crosses_warps(tree, first.parts[0]):
            warps = sort_by_thread(tree, [p for k in now for p in tree.parts[k].parts])
            found.append(ProvenanceStage("in shared memory: what each warp has", warps, launch, True))
        does = "adds" if first.operator == "add" else f"takes the {first.operator} with"
        meeting = (
            f"after the thread at y = {step}"
            if is_column
            else f"shuffle: each lane {does} that of lane ^ {first.exchange[8:]}"
        )
        found.append(ProvenanceStage(meeting, now, launch))
    if root not in meets:
        found.append(ProvenanceStage("with what else the launch is given", (root,), launch))
    return found


def sort_by_thread(tree: ProvenanceTree, parts: Sequence[int]) -> tuple[int, ...]:
    """Parts in the order of the threads that made them; those that nobody made, such as an identity, last."""
    return tuple(sorted(parts, key=lambda k: (not tree.parts[k].operator, tree.parts[k].thread)))


def nodes_of_launch(tree: ProvenanceTree, root: int) -> Iterator[int]:
    """The parts below a part that were made by the same launch, or given to it; parts before what is made of them."""
    launch, wanted = tree.parts[root].launch, {root}
    for k in range(root, -1, -1):
        if k in wanted and tree.parts[k].operator and tree.parts[k].launch == launch:
            wanted.update(tree.parts[k].parts)
    yield from sorted(wanted)


def crosses_warps(tree: ProvenanceTree, k: int) -> bool:
    """Whether a part was made of what other warps made."""
    part = tree.parts[k]
    makers = [tree.parts[p] for p in part.parts if tree.parts[p].operator and tree.parts[p].launch == part.launch]
    return bool(part.exchange) and any(maker.thread[1] // WARP_SIZE != part.thread[1] // WARP_SIZE for maker in makers)


def earlier_results(tree: ProvenanceTree) -> Sequence[int]:
    """The parts that earlier launches handed to the last: its second stage; none where there is one launch."""
    last = len(tree.parts) - 1
    launch = tree.parts[last].launch
    return [k for k in nodes_of_launch(tree, last) if tree.parts[k].operator and tree.parts[k].launch != launch]


def all_stages(tree: ProvenanceTree, piece: int = 0) -> list[ProvenanceStage]:
    """The steps of a whole tree: those of one piece, where earlier launches made pieces, then those of the last launch."""
    pieces, last = earlier_results(tree), split_stages(tree)
    if not pieces:
        return last
    chosen, launch = pieces[min(piece, len(pieces) - 1)], last[-1].launch
    return [*split_stages(tree, chosen), ProvenanceStage("second stage: what the pieces gave", tuple(pieces), launch), *last]
