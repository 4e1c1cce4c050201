"""Print where a thread is: its first index along each axis, positions in operands, elements of local arrays."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import NamedTuple

from ....core.dtypes import int32, int64
from ....ir.kernel_ir import (
    Constant,
    Expression,
    IndexedLoad,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    ReadOutput,
    ReduceExpr,
)
from ...codegen.expression_printer import operand_name
from ...codegen.nest import KernelNest
from ...codegen.schedule import LoopSchedule, Tile
from .dialect import CudaPrinter, storage_of
from .padded_loads import is_padded_load

LETTERS = "xyz"

Axes = frozenset[int]


class Value(NamedTuple):
    """A value in registers: a variable, or a local array with an element for each register element of some axes."""

    name: str
    axes: tuple[int, ...]


class StagedTile(NamedTuple):
    """The part of an operand that a block has in shared memory: a matrix of axes, whose last one is contiguous."""

    name: str
    axes: tuple[int, ...]
    pitches: dict[int, int]
    size: int


class AxisPrinter(CudaPrinter):
    """The text of a kernel under construction, and where its thread is along each axis.

    Parameters
    ----------
    nest : KernelNest
        The kernel and its axes. Only kinds of strides and the sizes of constant axes are in the text.
    schedule : LoopSchedule
    kernel : Kernel, optional
        The kernel that is launched, if it has more parameters than that of the nest.
    index_bits : int
        The bits of indices, sizes and strides: 32 or 64.
    """

    def __init__(self, nest: KernelNest, schedule: LoopSchedule, kernel: Kernel | None = None, index_bits: int = 64) -> None:
        super().__init__(nest.kernel, frozenset({int64}))
        self.launched, self.index_bits = kernel or nest.kernel, index_bits
        self.padded = {x.inputs[1] for x in nest.kernel.order if is_padded_load(x)}
        self.nest, self.schedule = nest, schedule
        self.raws = {f"raw{k}": kinds for k, kinds in enumerate(nest.raws)}
        self.tiles: dict[int, Tile] = dict(enumerate(schedule.tiles))
        self.index: dict[int, str] = {a: f"i{a}" for a in self.tiles}
        self.every = frozenset(self.tiles)
        self.values: dict[Expression, Value] = {}
        self.checked: set[int] = {a for a, tile in self.tiles.items() if not self.may_exceed(a, tile)}
        self.bound: set[int] = set()  # the serial axes whose loops are open
        self.declarations: list[str] = []  # of arrays
        self.variables: set[str] = set()
        self.accumulator_sizes: dict[str, int] = {}  # by name
        self.exchanged: set[ReduceExpr] = set()  # the reductions with several states that threads combine
        self.used: dict[str, None] = {}  # names of sizes and strides that the text reads
        self.layout_of = self.shared_layouts()
        self.has_barriers = bool(schedule.staged) or any(self.tiles[a].threads > 1 for a in nest.reduced)
        self.staged: dict[str, StagedTile] = {}  # the operands whose present elements are in shared memory

    def may_exceed(self, a: int, tile: Tile) -> bool:
        """Return whether the index of an axis may be past its end."""
        if tile.is_constant or a in self.nest.reduced:
            return not tile.is_constant
        schedule = self.schedule
        is_exact = schedule.column in (None, a) or schedule.row is not None  # else y and z of the grid may exceed
        return tile.length > 1 or not is_exact

    def shared_layouts(self) -> dict[str, str]:
        """Return for each operand the first operand with the same strides: their positions are computed once."""
        first: dict[tuple[int, ...], str] = {}
        return {name: first.setdefault(strides, name) for name, strides in self.nest.strides.items()}

    def parameters(self) -> list[tuple[str, str]]:
        """Return names and types in the order of the launch: operands, indexed ones last, numbers, sizes and strides."""
        kernel = self.launched
        operands = [(f"out{k}", f"*{storage_of(e.dtype)}") for k, e in enumerate(kernel.outputs)]
        operands += [
            (operand_name(e), e.dtype.short if isinstance(e, IndexValue) else f"*{storage_of(e.dtype)}")
            for e in kernel.find_all(Load)
        ]
        operands += [(f"raw{k}", f"*{storage_of(dtype)}") for k, dtype in enumerate(kernel.indexed_dtypes())]
        numbers = [(f"p{p.index}", storage_of(p.dtype)) for p in kernel.find_all(KernelParameter)]
        return [*operands, *numbers, *[(name, f"i{self.index_bits}") for name in self.used]]

    def use(self, name: str) -> str:
        """Note that the text reads a size or a stride, and return its name."""
        self.used[name] = None
        return name

    def size(self, a: int) -> str:
        """Return the size of an axis: a parameter."""
        return self.use(f"n{a}")

    def bind_index(self, name: str, value: str, comment: str = "") -> None:
        """Emit the definition of an index. Numba computes integers with 64 bits, so a narrow index is converted."""
        is_narrow = self.index_bits == 32 and " " in value
        self.line(f"{name} = {f'i32({value})' if is_narrow else value}{comment}")

    def grid_axes(self) -> list[int]:
        """Return the axes that are distributed over blocks."""
        return [a for a in self.tiles if a not in self.nest.reduced and not self.tiles[a].is_constant]

    def bind_axes(self) -> None:
        """Emit the first index of the thread along each axis."""
        column, split = self.schedule.column, self.schedule.split
        rest = [a for a in self.grid_axes() if a not in (column, self.schedule.row)]
        row = "cuda.blockIdx.x" if column is None else "cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y"
        if self.schedule.row is not None:
            row = "cuda.blockIdx.z"
            self.bind(self.schedule.row, "cuda.blockIdx.y")
        if split:
            self.bind_index("row", row)
            row = "row"
        divided = rest if split else rest[1:]
        for a in reversed(divided):
            has_blocks = self.tiles[a].length > 1
            count = self.use(f"blocks{a}") if has_blocks else self.size(a)
            outer = "row" if split or a != divided[0] else self.block_name(rest[0])
            self.line(f"{outer}, {self.block_name(a)} = divmod{self.index_bits}({row}, {count})")
            row = outer
            if has_blocks:
                self.bind(a, self.block_name(a))
        if rest and not split and row != f"i{rest[0]}":
            self.bind(rest[0], row)
        if column is not None:
            self.bind(column, "cuda.blockIdx.x")
        self.bind_chunks()
        for a in sorted(self.nest.reduced):
            tile = self.tiles[a]
            if not tile.serial and not tile.is_constant:
                self.bind_index(f"i{a}", self.first_index(a) or "0")

    def block_name(self, a: int) -> str:
        """Return the name for the number of a block along an axis: the index itself, if a block has one element."""
        return f"block{a}" if self.tiles[a].length > 1 else f"i{a}"

    def bind_chunks(self) -> None:
        """Emit the first index of the chunk that this block reduces along each split axis, and the index after its last."""
        number, comment = "row", "  # what is left of the number of the row is that of the chunk"
        for k, a in enumerate(self.schedule.split):
            is_last = k == len(self.schedule.split) - 1
            part = number if is_last else f"{number} % {self.use(f'chunks{a}')}"
            self.line(f"first{a} = {part} * {self.use(f'chunk{a}')}{comment}")
            self.bind_index(f"end{a}", f"min(first{a} + chunk{a}, {self.size(a)})")
            number, comment = f"{number} // chunks{a}", ""

    def bind(self, a: int, block: str) -> None:
        """Emit the first index along an axis of the grid."""
        length, first = self.tiles[a].length, self.first_index(a)
        start = block if length == 1 else f"{length} * {block if ' ' not in block else f'({block})'}"
        self.bind_index(f"i{a}", " + ".join(filter(None, [start, first])))

    def first_index(self, a: int) -> str:
        """Return the first index of the thread within the elements that one step covers; empty if it is 0."""
        tile = self.tiles[a]
        if tile.threads == 1:
            return ""
        return f"{f'{tile.vector} * ' * (tile.vector > 1)}cuda.threadIdx.{LETTERS[self.schedule.order.index(a)]}"

    def inside(self, a: int, is_vector: bool = True) -> str:
        """Return the condition that the present index along an axis is not past the end.

        A row that is kept in registers fills all of them but the last. If the index was moved back, a flag has the answer.
        """
        if self.is_one_step(a) if a in self.nest.reduced else self.has_barriers and self.is_clamped(a):
            return f"is_i{a}"
        end, tile = f"end{a}" if a in self.schedule.split else self.size(a), self.tiles[a]
        condition = f"{self.position(a, is_vector, is_clamped=False)} < {end}"
        is_row = a in self.nest.reduced and not tile.serial and tile.registers > 1
        return f"(r{a} < {tile.registers - 1} or {condition})" if is_row else condition

    def clamp_indices(self) -> None:
        """Emit a flag for each index that may be past the end, and move the index back: the thread must reach barriers."""
        for a in [*self.grid_axes(), *filter(self.is_one_step, sorted(self.nest.reduced))]:
            if a not in self.checked and self.is_clamped(a):
                self.line(f"is_i{a} = i{a} < {self.size(a)}")
                step = self.tiles[a].vector
                comment = "  # past the end it stores nothing, but reaches the barriers"
                self.bind_index(f"i{a}", f"min(i{a}, n{a} - {step})", comment)

    def is_one_step(self, a: int) -> bool:
        """Return whether a thread has one element of a row along a reduced axis."""
        tile = self.tiles[a]
        return not tile.serial and not tile.is_constant and tile.elements == 1

    def is_clamped(self, a: int) -> bool:
        """Return whether an index of the thread is moved back if it is past the end: there is one, or one whole vector."""
        return self.tiles[a].registers == 1 and (self.tiles[a].vector == 1 or not self.schedule.staged)

    def is_moved_back(self, a: int) -> bool:
        """Return whether an index past the end is moved back for loads, instead of a condition for them."""
        return a not in self.nest.reduced and (bool(self.schedule.staged) or self.tiles[a].elements == 1)

    def thread_of(self, a: int) -> str:
        """Return the number of the thread along an axis."""
        return f"cuda.threadIdx.{LETTERS[self.schedule.order.index(a)]}"

    @contextmanager
    def state(self) -> Iterator[None]:
        """Restore what is known about axes and values at the end of a scope."""
        saved = dict(self.tiles), dict(self.index), set(self.checked), set(self.bound), dict(self.values)
        yield
        self.tiles, self.index, self.checked, self.bound, self.values = saved

    # Positions.

    def element_axes(self, axes: Axes) -> tuple[int, ...]:
        """Return those axes of which a thread has several elements in registers."""
        found = [a for a in sorted(axes) if self.tiles[a].elements > 1]
        return tuple(sorted(found, key=lambda a: self.tiles[a].vector))

    def element(self, axes: Sequence[int], vector: int | None = None) -> str:
        """Return the index in a local array of the present element along some axes; of the first of a vector along one."""
        text = ""
        for a in axes:
            tile = self.tiles[a]
            terms = [f"{tile.vector} * r{a}" if tile.vector > 1 else f"r{a}"] * (tile.registers > 1)
            terms += [f"v{a}"] * (tile.vector > 1 and a != vector)
            outer = f"{tile.elements} * {text if ' ' not in text else f'({text})'}" if text else ""
            text = " + ".join(filter(None, [outer, *terms]))
        return text or "0"

    def element_count(self, axes: Sequence[int]) -> int:
        """Return the length of a local array over some axes."""
        return prod(self.tiles[a].elements for a in axes)

    def position(self, a: int, is_vector: bool = False, is_clamped: bool = True) -> str:
        """Return the present index along an axis: the first of a vector, if `is_vector`."""
        tile = self.tiles[a]
        step = tile.threads * tile.vector
        terms = [] if tile.is_constant else [self.index[a]]
        if tile.registers > 1:
            terms.append(f"{step} * r{a}" if step > 1 else f"r{a}")
        text = " + ".join(terms)
        if tile.vector > 1 and not is_vector:
            text = f"{text} + v{a}" if text else f"v{a}"
        if is_clamped and tile.elements > 1 and self.is_moved_back(a) and a not in self.checked:
            text = f"min({text}, {self.size(a)} - {tile.vector if is_vector else 1})"
        return text or "0"

    def address(self, name: str, is_vector: bool = False) -> str:
        """Return the present position in an operand, or in its tile."""
        if name in self.staged:
            return self.tile_address(name, is_vector)
        terms, layout = [], self.layout_of[name]
        for a, stride in enumerate(self.nest.strides[name]):
            if not stride:
                continue
            index = self.position(a, is_vector and a == self.vector_axis(name))
            if stride != 1:
                index = f"({index})" if " " in index and not index.startswith("min(") else index
                index = f"{index} * {self.use(f'{layout}_{a}')}"
            if index != "0":
                terms.append(index)
        return " + ".join(terms) or "0"

    def output_address(self, name: str, is_vector: bool = False) -> str:
        """Return the present position in an output, which has an array of partial results for each chunk."""
        address = self.address(name, is_vector)
        if not self.schedule.split:
            return address
        return f"row * {self.use('rows')}{f' + {address}' * (address != '0')}"

    def vector_axis(self, name: str) -> int | None:
        """Return the axis along which an operand is loaded or stored as vectors."""
        tile = self.staged.get(name)
        if tile is not None:
            return next((a for a in tile.axes if tile.pitches[a] == 1 and self.tiles[a].vector > 1), None)
        if name not in self.schedule.vectors:
            return None
        strides = self.nest.strides[name]
        return next((a for a, tile in self.tiles.items() if tile.vector > 1 and strides[a] == 1), None)

    def tile_address(self, name: str, is_vector: bool) -> str:
        """Return the position of the present element in the tile of an operand."""
        raise NotImplementedError

    # Expressions.

    def leaf_text(self, e: Expression) -> str:
        """Return the text of a load, or of an index."""
        if isinstance(e, IndexedLoad):
            return self.dialect.load(f"raw{e.index}[{self.indexed_position(e)}]", e.dtype)
        assert isinstance(e, Load | ReadOutput)
        name = operand_name(e)
        if isinstance(e, IndexValue):
            address = self.address(name)
            text = f"({name} + {address})" if address != "0" else name
            return f"i32{text}" if e.dtype is int32 and address != "0" else text
        return self.dialect.load(f"{self.memory(name)}[{self.address(name)}]", e.dtype)

    def memory(self, name: str) -> str:
        """Return the name of the memory that has the present elements of an operand: its tile, or the operand itself."""
        return self.staged[name].name if name in self.staged else name

    def indexed_position(self, e: IndexedLoad) -> str:
        """Return the position of an indexed load in its operand."""
        terms = []
        for d, (x, kind) in enumerate(zip(e.inputs, self.raws[f"raw{e.index}"], strict=True)):
            if kind == "0" or (isinstance(x, Constant) and x.value == 0):
                continue
            terms.append(self.text(x) if kind == "1" else f"{self.text(x)} * {self.use(f'raw{e.index}_{d}')}")
        return " + ".join(terms) or "0"

    def text(self, e: Expression) -> str:
        """Return the text of an expression."""
        if e not in self.names and is_padded_load(e):
            condition, load, other = map(self.text, e.inputs)
            return f"({load} if {condition} else {other})"  # loaded only inside
        return super().text(e)
