"""Print a scheduled loop nest as Python for Numba CUDA: the code of one thread.

The text is made of *stages*. A stage is a loop over the register elements of some axes, and computes all values that depend
on these axes and no others. Values that another stage needs are in local arrays of the thread. All loops over register
elements have constant lengths, so the compiler unrolls them, and the local arrays become registers.

A reduction is a stage that adds to an accumulator, inside the loops over its serial axes, if any; at the end the threads of
the axis combine their results. Values that do not depend on an axis are computed before the loop over it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import NamedTuple

from ....core.dtypes import DType, bool_, int64
from ....core.interning import toposort
from ....ir.kernel_ir import (
    Constant,
    Expression,
    IndexedLoad,
    IndexValue,
    KernelParameter,
    Load,
    Op,
    ReadOutput,
    ReduceExpr,
)
from ...codegen.expression_printer import ExpressionPrinter, literal
from ...codegen.nest import KernelNest, leaf_operand
from ...codegen.schedule import Schedule, Tile
from .dialect import CudaDialect

WARP = 32
MAX_RECOMPUTED_COST = 8  # cost of an operator in additions; above, its value is kept in registers for a later stage
REDUCTION_WORDS = {"add": "sum", "mul": "product", "maximum": "max", "minimum": "min", "and_": "all", "or_": "any"}
LETTERS = "xyz"

Axes = frozenset[int]


class Value(NamedTuple):
    """A value in registers: a variable, or a local array with an element for each register element of some axes."""

    name: str
    axes: tuple[int, ...]


class Sink(NamedTuple):
    """What happens to a value at each point: it is accumulated, stored, or kept in registers."""

    value: Expression
    axes: Axes
    emit: Callable[[], None]
    finish: Callable[[], None] | None = None  # printed after the loop over vector elements
    vector: int | None = None  # the axis of that loop
    is_complete: bool = False  # whether nothing is printed in that loop


class StagedTile(NamedTuple):
    """The part of an operand that a block has in shared memory: a matrix of axes, whose last one is contiguous."""

    name: str
    axes: tuple[int, ...]
    pitches: dict[int, int]
    size: int


class LoopNestPrinter(ExpressionPrinter):
    """The text of a kernel under construction.

    Parameters
    ----------
    nest : KernelNest
        The kernel and its axes. Only kinds of strides and the sizes of constant axes are in the text.
    schedule : Schedule
    """

    def __init__(self, nest: KernelNest, schedule: Schedule) -> None:
        super().__init__(nest.kernel, frozenset({int64}))
        self.nest, self.schedule, self.dialect = nest, schedule, CudaDialect()
        self.raws = {f"raw{k}": kinds for k, kinds in enumerate(nest.raws)}
        self.tiles: dict[int, Tile] = dict(enumerate(schedule.tiles))
        self.index: dict[int, str] = {a: f"i{a}" for a in self.tiles}
        self.every = frozenset(self.tiles)
        self.values: dict[Expression, Value] = {}
        self.checked: set[int] = {a for a, tile in self.tiles.items() if not self.may_exceed(a, tile)}
        self.bound: set[int] = set()  # the serial axes whose loops are open
        self.declarations: list[str] = []  # of arrays
        self.variables: set[str] = set()
        self.used: dict[str, None] = {}  # names of sizes and strides that the text reads
        self.layout_of = self.shared_layouts()
        self.has_barriers = bool(schedule.staged) or any(self.tiles[a].threads > 1 for a in nest.reduced)
        self.staged: dict[str, StagedTile] = {}  # the operands whose present elements are in shared memory

    def may_exceed(self, a: int, tile: Tile) -> bool:
        """Return whether the index of an axis may be past its end."""
        if tile.is_constant or a in self.nest.reduced:
            return not tile.is_constant
        is_exact = self.schedule.column is None or a == self.schedule.column  # y and z of the grid may exceed
        return tile.length > 1 or not is_exact

    def shared_layouts(self) -> dict[str, str]:
        """Return for each operand the first operand with the same strides: their positions are computed once."""
        first: dict[tuple[int, ...], str] = {}
        return {name: first.setdefault(strides, name) for name, strides in self.nest.strides.items()}

    # The whole text.

    def emit(self) -> str:
        """Return the text of the kernel and of the functions that it calls."""
        self.bind_axes()
        if self.schedule.staged:
            self.bind_tiles()
        if self.has_barriers:
            self.clamp_indices()
            if self.schedule.staged and not any(tile.chunk for tile in self.tiles.values()):
                self.stage_whole()
            self.body()
        else:
            whole = [a for a in self.grid_axes() if self.tiles[a].registers == 1 and a != self.schedule.tail]
            guards = [self.inside(a) for a in whole if a not in self.checked]
            self.checked |= set(whole)
            with self.block(*[f"if {' and '.join(guards)}:"] * bool(guards)):
                self.body()
        names = ", ".join(name for name, _ in self.parameters())
        head = ["    " + line for line in dict.fromkeys(self.declarations)]
        kernel = "\n".join([f"def kernel({names}):", *head, *self.lines]) + "\n"
        return "\n\n".join(["\n".join(lines) + "\n" for lines in self.functions()] + [kernel])

    def parameters(self) -> list[tuple[str, str]]:
        """Return names and types in the order of the launch: operands, indexed ones last, numbers, sizes and strides."""
        kernel = self.kernel
        operands = [(f"out{k}", f"*{storage_of(e.dtype)}") for k, e in enumerate(kernel.outputs)]
        operands += [
            (leaf_operand(e), "i64" if isinstance(e, IndexValue) else f"*{storage_of(e.dtype)}")
            for e in kernel.find_all(Load)
        ]
        operands += [(f"raw{k}", f"*{storage_of(dtype)}") for k, dtype in enumerate(kernel.indexed_dtypes())]
        numbers = [(f"p{p.index}", storage_of(p.dtype)) for p in kernel.find_all(KernelParameter)]
        return [*operands, *numbers, *[(name, "i64") for name in self.used]]

    def use(self, name: str) -> str:
        """Note that the text reads a size or a stride, and return its name."""
        self.used[name] = None
        return name

    def size(self, a: int) -> str:
        """Return the size of an axis: a parameter."""
        return self.use(f"n{a}")

    def grid_axes(self) -> list[int]:
        """Return the axes that are distributed over blocks."""
        return [a for a in self.tiles if a not in self.nest.reduced and not self.tiles[a].is_constant]

    def bind_axes(self) -> None:
        """Emit the first index of the thread along each axis."""
        column = self.schedule.column
        rest = [a for a in self.grid_axes() if a != column]
        blocks: dict[int, str] = {}
        if column is not None:
            blocks[column] = "cuda.blockIdx.x"
        row = "cuda.blockIdx.x" if column is None else "cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y"
        if rest:
            split = self.schedule.split
            if len(rest) > 1 or split is not None:
                self.line(f"row = {row}")
            for a in reversed(rest[split is None :]):
                length = self.tiles[a].length
                count = self.size(a)
                if length > 1:
                    self.line(f"blocks{a} = ({count} + {length - 1}) // {length}")
                    count = f"blocks{a}"
                blocks[a] = f"row % {count}"
                if length > 1 or self.tiles[a].threads > 1:
                    self.line(f"block{a} = row % {count}")
                    blocks[a] = f"block{a}"
                self.bind(a, blocks[a])
                self.line(f"row //= {count}")
            if split is None:
                blocks[rest[0]] = "row" if len(rest) > 1 else row
                self.bind(rest[0], blocks[rest[0]])
        elif self.schedule.split is not None:
            self.line(f"row = {row}")
        if column is not None:
            self.bind(column, blocks[column])
        if self.schedule.split is not None:
            self.bind_chunk(self.schedule.split)
        for a in sorted(self.nest.reduced):
            tile = self.tiles[a]
            if not tile.serial and not tile.is_constant:
                self.line(f"i{a} = {self.first_index(a) or 0}")

    def bind_chunk(self, a: int) -> None:
        """Emit the first index of the chunk that this block reduces, and the index after its last."""
        self.line(f"first{a} = row * {self.use('chunk')}  # what is left of the number of the row is that of the chunk")
        self.line(f"end{a} = min(first{a} + chunk, {self.size(a)})")

    def bind(self, a: int, block: str) -> None:
        """Emit the first index along an axis of the grid."""
        length, first = self.tiles[a].length, self.first_index(a)
        start = block if length == 1 else f"{length} * {block if ' ' not in block else f'({block})'}"
        self.line(f"i{a} = {' + '.join(filter(None, [start, first]))}")

    def first_index(self, a: int) -> str:
        """Return the first index of the thread within the elements that one step covers; empty if it is 0."""
        tile = self.tiles[a]
        if tile.threads == 1:
            return ""
        return f"{f'{tile.vector} * ' * (tile.vector > 1)}cuda.threadIdx.{LETTERS[self.schedule.order.index(a)]}"

    def inside(self, a: int, is_vector: bool = True) -> str:
        """Return the condition that the present index along an axis is not past the end.

        A row that is kept in registers fills all of them but the last.
        """
        if a in self.nest.reduced and self.is_one_step(a):
            return f"is_i{a}"
        end, tile = f"end{a}" if a == self.schedule.split else self.size(a), self.tiles[a]
        condition = f"{self.position(a, is_vector, is_clamped=False)} < {end}"
        is_row = a in self.nest.reduced and not tile.serial and tile.registers > 1
        return f"(r{a} < {tile.registers - 1} or {condition})" if is_row else condition

    def clamp_indices(self) -> None:
        """Emit a flag for each index that may be past the end, and move the index back: the thread must reach barriers."""
        for a in [*self.grid_axes(), *filter(self.is_one_step, sorted(self.nest.reduced))]:
            if a not in self.checked and self.is_clamped(a):
                self.line(f"is_i{a} = i{a} < {self.size(a)}")
                step = self.tiles[a].vector
                self.line(f"i{a} = min(i{a}, n{a} - {step})  # past the end it stores nothing, but reaches the barriers")

    def is_one_step(self, a: int) -> bool:
        """Return whether a thread has one element of a row along a reduced axis."""
        tile = self.tiles[a]
        return not tile.serial and not tile.is_constant and tile.elements == 1

    def is_clamped(self, a: int) -> bool:
        """Return whether an index of the thread is moved back if it is past the end: there is one, or one whole vector."""
        return self.tiles[a].registers == 1 and (self.tiles[a].vector == 1 or not self.schedule.staged)

    def body(self) -> None:
        """Emit the reductions and the stores."""
        tail = self.schedule.tail
        if tail is None or tail in self.nest.reduced:
            self.store_outputs()
            return
        tile, n = self.tiles[tail], self.size(tail)
        step = tile.threads * tile.vector
        last = " + ".join([f"i{tail}", *[str(step * (tile.registers - 1) + tile.vector)]])
        with self.block(f"if {last} <= {n}:"), self.state():
            self.checked.add(tail)
            self.store_outputs()
        index, lines = f"k{tail}", ["else:  # the last elements, one at a time"]
        if tile.vector == 1:
            lines.append(f"for {index} in range(i{tail}, min(i{tail} + {tile.length - tile.threads + 1}, {n}), {step}):")
        else:
            first = f"i{tail} + {step} * r{tail}" if tile.registers > 1 else f"i{tail}"
            lines += [f"for r{tail} in range({tile.registers}):"] * (tile.registers > 1)
            lines.append(f"for {index} in range({first}, min({first} + {tile.vector}, {n})):")
        with self.block(*lines), self.state():
            self.line("no_unroll()")
            self.tiles[tail], self.index[tail] = Tile(), index
            self.checked.add(tail)
            self.store_outputs()

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
        if (
            is_clamped
            and (tile.registers > 1 or not self.is_clamped(a))
            and a not in self.checked
            and a not in self.nest.reduced
        ):
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
        if self.schedule.split is None:
            return address
        return f"row * {self.use('chunks')}{f' + {address}' * (address != '0')}"

    def vector_axis(self, name: str) -> int | None:
        """Return the axis along which an operand is loaded or stored as vectors."""
        tile = self.staged.get(name)
        if tile is not None:
            return next((a for a in tile.axes if tile.pitches[a] == 1 and self.tiles[a].vector > 1), None)
        if name not in self.schedule.vectors:
            return None
        strides = self.nest.strides[name]
        return next((a for a, tile in self.tiles.items() if tile.vector > 1 and strides[a] == 1), None)

    # Tiles in shared memory.

    def is_staged_axis(self, a: int) -> bool:
        """Return whether a block has several elements along an axis of a staged operand."""
        return self.schedule.span(a) > 1

    def make_tile(self, name: str) -> StagedTile:
        """Declare the tile of an operand: axes of threads are contiguous in it, those of the lanes first."""
        strides = self.nest.strides[name]
        found = [a for a in self.tiles if strides[a] and self.is_staged_axis(a)]
        lanes = [a for a in self.schedule.order if a in found]
        last = next((a for a in lanes if self.tiles[a].vector > 1), lanes[0])
        axes = (*[a for a in found if a != last], last)
        is_transposed = strides[last] != 1
        pad = (4 if self.tiles[last].vector > 1 else 1) if is_transposed else 0
        pitches, size = {last: 1}, self.schedule.span(last) + pad
        for a in reversed(axes[:-1]):
            pitches[a] = size
            size *= self.schedule.span(a)
        dtype = next(e.dtype for e in self.kernel.find_all(Load) if leaf_operand(e) == name)
        self.declarations.append(f"{name}_tile = cuda.shared.array({size}, {storage_of(dtype)})")
        steps = -(-self.tile_count(axes) // self.schedule.threads)
        self.declarations.append(f"{name}_next = cuda.local.array({steps}, {storage_of(dtype)})")
        return StagedTile(f"{name}_tile", axes, pitches, size)

    def tile_count(self, axes: Sequence[int]) -> int:
        """Return the number of elements of a tile."""
        return prod(self.schedule.span(a) for a in axes)

    def tile_indices(self, name: str, tile: StagedTile) -> dict[int, str]:
        """Return the index along each axis of a tile of its element number `e`: the contiguous axis in memory first."""
        strides, indices, passed = self.nest.strides[name], dict[int, str](), 1
        order = sorted(tile.axes, key=lambda a: strides[a])
        for k, a in enumerate(order):
            span = self.schedule.span(a)
            text = "e" if passed == 1 else f"e // {passed}"
            indices[a] = text if k == len(order) - 1 else f"{text} % {span}"
            passed *= span
        return indices

    def fetch(self, tiles: dict[str, StagedTile], starts: dict[int, str]) -> None:
        """Emit loads of a thread's share of each tile to registers; past the end of an axis, its last element."""
        for name, tile in tiles.items():
            indices = self.tile_indices(name, tile)
            terms = []
            for a, stride in enumerate(self.nest.strides[name]):
                if not stride:
                    continue
                if a in indices:
                    start = starts.get(a) or self.tile_start(a)
                    index = f"{start} + {indices[a]}" if start != "0" else indices[a]
                    index = f"min({index}, {self.size(a)} - 1)"
                else:
                    index = self.position(a)
                layout = self.layout_of[name]
                terms.append(index if stride == 1 else f"{index} * {self.use(f'{layout}_{a}')}")
            with self.share_of_tile(tile):
                self.line(f"{name}_next[m] = {name}[{' + '.join(terms)}]")

    def put(self, tiles: dict[str, StagedTile]) -> None:
        """Emit stores of a thread's share of each tile from registers to shared memory."""
        for name, tile in tiles.items():
            indices = self.tile_indices(name, tile)
            terms = []
            for a in tile.axes:
                text, pitch = indices[a], tile.pitches[a]
                terms.append(text if pitch == 1 else f"{f'({text})' if ' ' in text else text} * {pitch}")
            with self.share_of_tile(tile):
                self.line(f"{tile.name}[{' + '.join(terms)}] = {name}_next[m]")

    @contextmanager
    def share_of_tile(self, tile: StagedTile) -> Iterator[None]:
        """Open the loop over the elements `e` of a tile that the thread copies."""
        count, threads = self.tile_count(tile.axes), self.schedule.threads
        lines = [f"for m in range({-(-count // threads)}):", f"e = thread + {threads} * m"]
        lines += [f"if e < {count}:"] * (count % threads > 0)
        with self.block(*lines):
            yield

    def tile_start(self, a: int) -> str:
        """Return the first index of the block along an axis."""
        return f"start{a}" if a not in self.nest.reduced and not self.tiles[a].is_constant else "0"

    def bind_tiles(self) -> None:
        """Emit the number of the thread in its block, and the first index of the block along each axis of a tile."""
        x, y, z = self.schedule.block()
        terms = ["cuda.threadIdx.x"] * (x > 1) + [f"{x} * cuda.threadIdx.y"] * (y > 1)
        self.line(f"thread = {' + '.join([*terms, *[f'{x * y} * cuda.threadIdx.z'] * (z > 1)])}")
        axes = {a for name in self.schedule.staged for a, s in enumerate(self.nest.strides[name]) if s}
        for a in sorted(axes):
            if self.tile_start(a) != "0" and self.is_staged_axis(a):
                first = self.first_index(a)
                self.line(f"start{a} = i{a}{f' - {first}' * bool(first)}")

    def tile_address(self, name: str, is_vector: bool) -> str:
        """Return the position of the present element in the tile of an operand."""
        tile, terms = self.staged[name], []
        for a in tile.axes:
            if self.schedule.tiles[a].chunk:
                text = f"k{a}"
            else:
                t, first = self.tiles[a], self.first_index(a)
                step = t.threads * t.vector
                parts = [first] * bool(first)
                parts += [f"{step} * r{a}" if step > 1 else f"r{a}"] * (t.registers > 1)
                parts += [f"v{a}"] * (t.vector > 1 and not (is_vector and tile.pitches[a] == 1))
                text = " + ".join(parts) or "0"
            pitch = tile.pitches[a]
            if pitch > 1:
                text = f"{f'({text})' if ' ' in text else text} * {pitch}"
            if text != "0":
                terms.append(text)
        return " + ".join(terms) or "0"

    def staged_loop(self, a: int, body: Callable[[], None]) -> None:
        """Emit a loop over chunks: while one is used from shared memory, the next one is on its way to registers."""
        chunk, n, first = self.tiles[a].chunk, self.size(a), "0"
        tiles = {name: self.make_tile(name) for name in self.schedule.staged}
        if a == self.schedule.split:
            n, first = f"end{a}", f"first{a}"
            whole = f"whole{a}"
            self.line(f"{whole} = {first} + ({n} - {first}) // {chunk} * {chunk}")
        else:
            whole = f"{n} // {chunk} * {chunk}"
        part = f"part{a}"
        self.fetch(tiles, {a: first})
        with self.block(f"for {part} in range({first}, {whole}, {chunk}):"):
            self.use_chunk(a, tiles, part, f"for k{a} in range({chunk}):", body, fetches=True)
        with self.block(f"if {whole} < {n}:  # the last part is shorter"):
            self.line(f"{part} = {whole}")
            self.use_chunk(a, tiles, part, f"for k{a} in range({n} - {part}):", body, fetches=False)

    def use_chunk(
        self, a: int, tiles: dict[str, StagedTile], first: str, loop: str, body: Callable[[], None], fetches: bool
    ) -> None:
        """Emit the work on one chunk, between barriers."""
        self.put(tiles)
        self.line("cuda.syncthreads()")
        if fetches:
            self.fetch(tiles, {a: f"{first} + {self.tiles[a].chunk}"})
        with self.block(loop), self.state():
            self.checked.add(a)
            self.staged, self.index[a] = tiles, f"({first} + k{a})"
            body()
        self.staged = {}
        self.line("cuda.syncthreads()")

    def stage_whole(self) -> None:
        """Emit the copies of operands that are staged before all loops."""
        tiles = {name: self.make_tile(name) for name in self.schedule.staged}
        self.fetch(tiles, {})
        self.put(tiles)
        self.line("cuda.syncthreads()")
        self.staged = tiles

    # Expressions.

    def word(self, name: str, dtype: DType) -> str:
        """Return the name of the function that computes an operator."""
        return self.dialect.word(name, dtype)

    def leaf_text(self, e: Expression) -> str:
        """Return the text of a load, or of an index."""
        if isinstance(e, IndexedLoad):
            return self.dialect.load(f"raw{e.index}[{self.indexed_position(e)}]", e.dtype)
        assert isinstance(e, Load | ReadOutput)
        name = leaf_operand(e)
        if isinstance(e, IndexValue):
            address = self.address(name)
            return f"({name} + {address})" if address != "0" else name
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
        if e not in self.names and isinstance(e, Op) and e.operator is not None:
            special = self.dialect.operation(e, [self.text(x) for x in e.inputs], super().text)
            if special is not None:
                return special
        return super().text(e)

    def operands_of_combiner(self, dtype: DType) -> dict[Expression, str]:
        """Return the two operands of a combiner; accumulators of bools are integers."""
        found = super().operands_of_combiner(dtype)
        return {e: f"({name} != 0)" for e, name in found.items()} if dtype is bool_ else found

    def combiner_result(self, e: Expression) -> str:
        """Return the result of a combiner as an expression; a bool is converted to an integer."""
        return f"i32({self.bare(e)})" if e.dtype is bool_ else super().combiner_result(e)

    # Values in registers.

    def declare(self, name: str, count: int, dtype: DType) -> None:
        """Declare a local array of the thread."""
        self.declarations.append(f"{name} = cuda.local.array({count}, {storage_of(dtype)})")

    def value_text(self, e: Expression) -> str:
        """Return the text of a value in registers, at the present element."""
        name, axes = self.values[e]
        if not axes:
            return name
        return self.dialect.load(f"{name}[{self.element(axes)}]", e.dtype)

    def needed(self, roots: Sequence[Expression]) -> list[Expression]:
        """Return what must be computed for some values, inputs first."""
        order = toposort(roots, lambda e: () if e in self.values else e.inputs)
        return [e for e in order if e not in self.values and not isinstance(e, Constant | KernelParameter)]

    # Reductions.

    def reduce_needed(self, roots: Sequence[Expression]) -> None:
        """Emit the reductions that some values need, those with the same axes together."""
        while True:
            pending = [e for e in self.needed(roots) if isinstance(e, ReduceExpr) and self.is_in_scope(e)]
            if not pending:
                return
            waiting = set(pending)
            ready = [e for e in pending if not waiting.intersection(self.needed(e.inputs))]
            first = ready[0]
            over, axes = self.nest.axes_reduced_by(first), self.nest.axes_of[first]
            self.reduce([e for e in ready if self.nest.axes_reduced_by(e) == over and self.nest.axes_of[e] == axes])

    def is_in_scope(self, e: Expression) -> bool:
        """Return whether the indices along all axes of a value are known: no loop over them is still to be opened."""
        return all(a in self.bound or not self.tiles[a].serial for a in self.nest.axes_of[e])

    def reduce(self, group: Sequence[ReduceExpr]) -> None:
        """Emit reductions over the same axes."""
        over, axes = self.nest.axes_reduced_by(group[0]), self.nest.axes_of[group[0]]
        elements = self.element_axes(axes)
        count = self.element_count(elements)
        lanes = next((a for a in sorted(over) if self.tiles[a].vector > 1 and not self.tiles[a].is_constant), None)
        width = 1 if lanes is None else self.tiles[lanes].vector
        totals: dict[ReduceExpr, str] = {}
        for e in group:
            name = totals[e] = self.accumulator_name(e)
            start = f"i32({int(e.operator.identity_for(bool_))})" if e.dtype is bool_ else self.identity(e)
            if count * width == 1:
                self.line(f"{name} = {start}")
                continue
            self.declarations.append(f"{name} = cuda.local.array({count * width}, {accumulator_of(e.dtype)})")
            with self.block(f"for k in range({count * width}):"):
                self.line(f"{name}[k] = {start}")
        index = self.accumulator_index(elements, lanes)
        is_scalar = count * width == 1
        places = {e: name if is_scalar else f"{name}[{index}]" for e, name in totals.items()}
        serial = [a for a in sorted(over) if self.tiles[a].serial]
        roots = [e.inputs[0] for e in group]
        if serial:
            self.hoist(roots, frozenset(serial))

        def accumulate(e: ReduceExpr) -> Callable[[], None]:
            return lambda: self.accumulate(e, places_in_scope(e))

        def places_in_scope(e: ReduceExpr) -> str:
            if lanes is not None and self.tiles[lanes].vector == 1 and not is_scalar:  # in the loop over the rest
                return f"{totals[e]}[{self.accumulator_index(elements, None) if count > 1 else '0'}]"
            return places[e]

        def body() -> None:
            self.compute([Sink(e.inputs[0], self.nest.axes_of[e.inputs[0]] | over, accumulate(e)) for e in group])

        self.loops(serial, body)
        for e, name in totals.items():
            self.finish_reduction(e, name, elements, count, lanes, over)

    def identity(self, e: ReduceExpr) -> str:
        """Return the identity of a reduction as a literal."""
        return literal(e.operator.identity_for(e.dtype), e.dtype)

    def accumulator_name(self, e: ReduceExpr) -> str:
        """Return the name of the accumulator of a reduction."""
        word = REDUCTION_WORDS.get(e.operator.name, "total")
        return f"{word}{self.nest.reductions.index(e)}"

    def accumulator_index(self, elements: tuple[int, ...], lanes: int | None) -> str:
        """Return the index of the present accumulator: one for each element of the result and of a vector."""
        index = self.element(elements) if elements else ""
        if lanes is None or self.tiles[lanes].vector == 1:
            return index or "0"
        width = self.tiles[lanes].vector
        return f"{width} * {f'({index})' if ' ' in index else index} + v{lanes}" if index else f"v{lanes}"

    def accumulate(self, e: ReduceExpr, place: str) -> None:
        """Emit the accumulation of one value of a reduction."""
        x, symbol = self.bare(e.inputs[0]), self.symbol(e)
        if symbol is None:
            self.line(f"{place} = {self.operator_name(e)}({place}, {x})")
        elif e.dtype.is_float:
            self.line(f"{place} {symbol}= {x}")
        else:
            self.line(f"{place} = {accumulator_of(e.dtype)}({place} {symbol} ({x}))")

    def combine(self, e: ReduceExpr, a: str, b: str) -> str:
        """Return the text that combines two partial results."""
        symbol = self.symbol(e)
        if symbol is None:
            return f"{self.operator_name(e)}({a}, {b})"
        return f"{a} {symbol} {b}" if e.dtype.is_float else f"{accumulator_of(e.dtype)}({a} {symbol} {b})"

    def finish_reduction(
        self, e: ReduceExpr, name: str, elements: tuple[int, ...], count: int, lanes: int | None, over: Axes
    ) -> None:
        """Emit the combination of the accumulators of a vector, then of all threads that share the reduction."""
        width = 1 if lanes is None else self.tiles[lanes].vector
        final, loop, at = name, list[str](), name
        if width > 1:
            final = f"{name}_of_{'row' if count == 1 else 'rows'}"
            if count > 1:
                self.declarations.append(f"{final} = cuda.local.array({count}, {accumulator_of(e.dtype)})")
        if count > 1:
            loop = [f"for k in range({count}):"]
            at = f"{final}[k]"
        elif width > 1:
            at = final
        threaded = [a for a in self.schedule.order if a in over and self.tiles[a].threads > 1]
        if width == 1 and not threaded:
            self.values[e] = Value(name, elements)
            self.finish_bool(e, count)
            return
        with self.block(*loop):
            if width > 1:
                first = f"{width} * k + " * (count > 1)
                parts = [f"{name}[{first}{v}]" for v in range(width)]
                while len(parts) > 1:
                    pairs = zip(parts[::2], parts[1::2], strict=True)
                    parts = [self.combine(e, a, b) for a, b in pairs]
                    parts = [f"({x})" if " " in x and len(parts) > 1 else x for x in parts]
                self.line(f"{at} = {parts[0]}")
            for a in threaded:
                self.line(f"{at} = {self.combine_threads(e, at, a, count)}")
        self.values[e] = Value(final, elements)
        self.finish_bool(e, count)

    def finish_bool(self, e: ReduceExpr, count: int) -> None:
        """Convert the result of a reduction of bools, which is an integer, to a bool."""
        if e.dtype is bool_ and count == 1:
            name = self.values[e].name
            self.line(f"is_{name} = {name} != 0")
            self.values[e] = Value(f"is_{name}", ())

    def combine_threads(self, e: ReduceExpr, at: str, a: int, count: int) -> str:
        """Return the call that combines the partial results of all threads along an axis."""
        along = LETTERS[self.schedule.order.index(a)]
        parts = f"parts{self.nest.reductions.index(e)}{'' if along == 'x' else along}"
        room = WARP if along == "x" else self.schedule.threads
        self.declarations.append(f"{parts} = cuda.shared.array({room * count}, {accumulator_of(e.dtype)})")
        first = f", {room} * k" * (count > 1)
        return f"fold_along_{along}({self.operator_name(e)}, {at}, {parts}{first})"

    def hoist(self, roots: Sequence[Expression], serial: Axes) -> None:
        """Compute the values that do not depend on the axes of a loop before it."""
        needed = self.needed(roots)
        outside = {e for e in needed if not self.nest.axes_of[e] & serial}
        users = {x for e in needed if e not in outside for x in e.inputs} | set(roots)
        self.keep([e for e in needed if e in outside and e in users and not isinstance(e, IndexValue)])

    def loops(self, serial: Sequence[int], body: Callable[[], None]) -> None:
        """Emit the loops over serial axes: whole steps, then the rest, one element at a time."""
        if not serial:
            body()
            return
        a, *rest = serial
        self.bound.add(a)
        self.open_loops(a, rest, body)
        self.bound.discard(a)

    def open_loops(self, a: int, rest: Sequence[int], body: Callable[[], None]) -> None:
        """Emit the loop over one serial axis, and the loops inside."""
        if self.tiles[a].chunk:
            self.staged_loop(a, lambda: self.loops(rest, body))
            return
        tile, index, n = self.tiles[a], self.index[a], self.size(a)
        first = self.first_index(a) or "0"
        is_chunk = a == self.schedule.split
        if is_chunk:
            n, first = f"end{a}", " + ".join(filter(None, [f"first{a}", self.first_index(a)]))
        if tile.elements == 1:
            with self.block(f"for {index} in {range_text(first, n, tile.threads)}:"), self.state():
                self.checked.add(a)
                self.loops(rest, body)
            return
        whole = f"{n} // {tile.length} * {tile.length}"
        if is_chunk:
            self.line(f"whole{a} = first{a} + (end{a} - first{a}) // {tile.length} * {tile.length}")
            whole = f"whole{a}"
        with self.block(f"for {index} in {range_text(first, whole, tile.length)}:"), self.state():
            self.checked.add(a)
            self.loops(rest, body)
        if tile.vector == 1 or a != self.schedule.tail:  # the rest fills a part of one step
            self.line(f"{index} = {' + '.join(filter(None, [whole, self.first_index(a)]))}")
            with self.state():
                self.loops(rest, body)
            return
        start = " + ".join([whole, *([self.thread_of(a)] if tile.threads > 1 else [])])
        with self.block(f"for {index} in {range_text(start, n, tile.threads)}:"), self.state():
            self.line("no_unroll()")
            self.tiles[a] = Tile(threads=tile.threads, serial=True)
            self.checked.add(a)
            self.loops(rest, body)

    def thread_of(self, a: int) -> str:
        """Return the number of the thread along an axis."""
        return f"cuda.threadIdx.{LETTERS[self.schedule.order.index(a)]}"

    # Stages.

    def keep(self, values: Sequence[Expression]) -> None:
        """Compute values and keep them in registers."""
        self.compute([], keep=values)

    def compute(self, sinks: Sequence[Sink], keep: Sequence[Expression] = ()) -> None:
        """Emit the stages that compute some values, and what happens to each."""
        roots = [*[sink.value for sink in sinks], *keep]
        self.reduce_needed(roots)
        order = self.needed(roots)
        elements = {e: self.element_axes(self.nest.axes_of[e]) for e in order}
        users: dict[Expression, set[tuple[int, ...]]] = {e: set() for e in order}
        stores = any(sink.finish is not None for sink in sinks)
        for e in order:
            for x in e.inputs:
                if x in users:
                    users[x].add(elements[e])
        for sink in sinks:
            if sink.value in users:
                users[sink.value].add(self.element_axes(sink.axes))
        kept = {e for e in order if e in keep or self.is_kept(e, elements[e], users[e], stores)}
        groups = dict.fromkeys([*[elements[e] for e in order if e in kept], *[self.element_axes(s.axes) for s in sinks]])
        for axes in sorted(groups, key=len):
            self.stage(
                axes,
                [e for e in order if e in kept and elements[e] == axes],
                [sink for sink in sinks if self.element_axes(sink.axes) == axes],
            )

    def is_kept(self, e: Expression, axes: tuple[int, ...], users: set[tuple[int, ...]], stores: bool) -> bool:
        """Return whether a value is kept in registers: for another stage, or so that all loads precede the first store."""
        if isinstance(e, IndexValue):
            return False
        is_shared = any(x != axes for x in users)
        is_load = isinstance(e, Load | ReadOutput | IndexedLoad)
        is_in_loop = any(self.tiles[a].serial for a in self.nest.axes_of[e] & self.nest.reduced)
        later = len(self.nest.sinks_of[e]) > 1 and not is_in_loop
        if is_load:
            is_vector = not isinstance(e, IndexedLoad) and bool(axes) and self.is_vector_load(e, axes)
            return is_shared or is_vector or later or (stores and bool(axes))
        is_dear = isinstance(e, Op) and e.operator is not None and e.operator.cost > MAX_RECOMPUTED_COST
        return (is_shared and self.is_worth_keeping(e)) or (is_dear and later)

    def is_worth_keeping(self, e: Expression) -> bool:
        """Return whether a value is more than a cast of another one."""
        return isinstance(e, Op | ReduceExpr)

    def is_vector_load(self, e: Expression, axes: tuple[int, ...]) -> bool:
        """Return whether a load is a vector load in a stage over some axes."""
        if not isinstance(e, Load | ReadOutput) or isinstance(e, IndexValue):
            return False
        a = self.vector_axis(leaf_operand(e))
        return a is not None and a in axes

    def stage(self, axes: tuple[int, ...], kept: Sequence[Expression], sinks: Sequence[Sink]) -> None:
        """Emit one stage: first its loads, then the values and sinks that depend on them."""
        loads = [e for e in kept if isinstance(e, Load | ReadOutput)]
        for e in loads:
            self.values[e] = self.new_value(e, axes)
        vectors = [e for e in loads if self.is_vector_load(e, axes)]
        scalars = [e for e in loads if e not in vectors]
        if not axes:
            self.define_scalars(kept, sinks)
            return
        along = {e: self.vector_axis(leaf_operand(e)) for e in vectors}
        for a in dict.fromkeys(along.values()):
            with self.element_loops(axes, a):
                for e in [e for e in vectors if along[e] == a]:
                    name = leaf_operand(e)
                    target = f"{self.values[e].name}, {self.element(axes, a)}"
                    self.line(f"put4({target}, load4({self.memory(name)}, {self.address(name, is_vector=True)}))")
        if scalars:
            with self.element_loops(axes):
                for e in scalars:
                    assert isinstance(e, Load | ReadOutput)
                    name = leaf_operand(e)
                    self.line(f"{self.values[e].name}[{self.element(axes)}] = {self.memory(name)}[{self.address(name)}]")
        others = [e for e in kept if e not in loads]
        if not others and not sinks:
            return
        for a in dict.fromkeys([sink.vector for sink in sinks] or [None]):
            group = [sink for sink in sinks if sink.vector == a]
            with self.element_loops(axes, a):
                if others or not all(sink.is_complete for sink in group):
                    with self.block(*[f"for v{a} in range({self.tiles[a].vector}):"] if a is not None else []):
                        self.define_elements(axes, others, group)
                for sink in group:
                    if sink.finish is not None:
                        sink.finish()
            others = []

    def define_scalars(self, kept: Sequence[Expression], sinks: Sequence[Sink]) -> None:
        """Emit a stage without loops: one variable for each value."""
        saved = dict(self.names)
        self.enter_scope()
        for e in kept:
            if isinstance(e, Load | ReadOutput):
                self.names.pop(e, None)
                self.line(f"{self.values[e].name} = {self.leaf_text(e)}")
            else:
                self.define([e])
                self.values[e] = self.new_value(e, ())
                self.names.pop(e, None)
                self.line(f"{self.values[e].name} = {self.bare(e)}")
            self.names[e] = self.values[e].name
        self.emit_sinks(sinks, ())
        self.names = saved

    def define_elements(self, axes: tuple[int, ...], kept: Sequence[Expression], sinks: Sequence[Sink]) -> None:
        """Emit the values and sinks of a stage, inside its loops."""
        saved = dict(self.names)
        self.enter_scope()
        self.define([*kept, *[sink.value for sink in sinks if not self.conditions(sink, axes)]])
        for e in kept:
            self.values[e] = self.new_value(e, axes)
            self.line(f"{self.values[e].name}[{self.element(axes)}] = {self.bare(e)}")
        self.emit_sinks(sinks, axes)
        self.names = saved

    def enter_scope(self) -> None:
        """Name all values in registers, at the present element."""
        self.names |= {e: self.value_text(e) for e in self.values}

    def conditions(self, sink: Sink, axes: tuple[int, ...]) -> tuple[str, ...]:
        """Return the conditions that the axes of a sink need, apart from those of the loops."""
        return tuple(
            self.inside(a) for a in sorted(sink.axes & self.nest.reduced) if a not in axes and a not in self.checked
        )

    def emit_sinks(self, sinks: Sequence[Sink], axes: tuple[int, ...]) -> None:
        """Emit sinks, those under the same conditions together."""
        for conditions in dict.fromkeys(self.conditions(sink, axes) for sink in sinks):
            group = [sink for sink in sinks if self.conditions(sink, axes) == conditions]
            saved = dict(self.names)
            with self.block(*[f"if {' and '.join(conditions)}:"] * bool(conditions)):
                self.define([sink.value for sink in group])
                for sink in group:
                    sink.emit()
                    if sink.finish is not None and not axes:
                        sink.finish()
            if conditions:
                self.names = saved

    def new_value(self, e: Expression, axes: tuple[int, ...]) -> Value:
        """Return a new variable, or a new local array."""
        stem = f"x{e.index}" if isinstance(e, Load) else f"old{e.index}" if isinstance(e, ReadOutput) else f"t{self.count}"
        if not isinstance(e, Load | ReadOutput):
            self.count += 1
        name = stem if not self.is_declared(stem) else f"{stem}_{self.count}"
        if name != stem:
            self.count += 1
        if axes:
            self.declare(name, self.element_count(axes), e.dtype)
        else:
            self.variables.add(name)
        return Value(name, axes)

    def is_declared(self, name: str) -> bool:
        """Return whether a name is in use."""
        return name in self.variables or any(line.startswith(f"{name} =") for line in self.declarations)

    @contextmanager
    def element_loops(self, axes: tuple[int, ...], vector: int | None = None) -> Iterator[None]:
        """Open the loops over register elements, except those of the vectors along an axis.

        There is a condition where an index of a reduction may be past the end.
        """
        guarded = [a for a in axes if a in self.nest.reduced and a not in self.checked]
        lines = [f"for r{a} in range({self.tiles[a].registers}):" for a in axes if self.tiles[a].registers > 1]
        lines += [f"if {' and '.join(map(self.inside, guarded))}:"] * bool(guarded)
        lines += [f"for v{a} in range({self.tiles[a].vector}):" for a in axes if self.tiles[a].vector > 1 and a != vector]
        with self.block(*lines):
            yield

    # Stores.

    def store_outputs(self) -> None:
        """Emit all outputs: those of each point, then those of each row."""
        kernel, nest = self.kernel, self.nest
        points = list(enumerate(kernel.pointwise_outputs))
        rows = [(k, e) for k, e in enumerate(kernel.outputs) if k >= len(points)]
        self.reduce_needed(kernel.outputs)
        serial = [a for a in sorted(nest.reduced) if self.tiles[a].serial]
        if points:
            if serial:
                self.hoist([e for _, e in points], frozenset(serial))
            self.loops(serial, lambda: self.compute([self.store_sink(k, e) for k, e in points]))
        if rows:
            self.compute([self.store_sink(k, e) for k, e in rows])

    def store_sink(self, k: int, e: Expression) -> Sink:
        """Return the sink that stores an output."""
        axes = self.nest.output_axes(k)
        elements = self.element_axes(axes)
        name = f"out{k}"
        vector = self.vector_axis(name)
        is_vector = vector is not None and vector in elements
        array, in_registers = f"y{k}", False
        if is_vector and e in self.values and self.values[e].axes == elements:
            array, in_registers = self.values[e].name, True
        elif is_vector:
            while self.is_declared(array):
                array += "_"
            self.declare(array, self.element_count(elements), e.dtype)

        def emit() -> None:
            if in_registers:
                return
            if is_vector:
                self.line(f"{array}[{self.element(elements)}] = {self.bare(e)}")
                return
            with self.guarded(axes, None):
                self.line(f"{name}[{self.output_address(name)}] = {self.bare(e)}")

        def finish() -> None:
            if is_vector:
                with self.guarded(axes, vector):
                    values = f"beside4({array}, {self.element(elements, vector)})"
                    self.line(f"store4({name}, {self.output_address(name, is_vector=True)}, {values})")

        return Sink(e, axes, emit, finish, vector if is_vector else None, in_registers)

    @contextmanager
    def guarded(self, axes: Axes, vector: int | None) -> Iterator[None]:
        """Open the condition under which the thread stores: its indices are inside, and no other thread has the value."""
        conditions = []
        for a in self.grid_axes():
            if a in self.checked:
                continue
            is_flag = self.has_barriers and self.is_clamped(a)
            conditions.append(f"is_i{a}" if is_flag else self.inside(a, a == vector))
        if self.schedule.split is not None:
            conditions.append(f"first{self.schedule.split} < {self.size(self.schedule.split)}")
        conditions += [f"{self.thread_of(a)} == 0" for a in sorted(self.nest.reduced - axes) if self.tiles[a].threads > 1]
        with self.block(*[f"if {' and '.join(conditions)}:"] * bool(conditions)):
            yield


def range_text(start: str, stop: str, step: int) -> str:
    """Return a range, as short as possible."""
    if step == 1:
        return f"range({stop})" if start == "0" else f"range({start}, {stop})"
    return f"range({start}, {stop}, {step})"


def storage_of(dtype: DType) -> str:
    """Return the type of an element in memory: a bool is a byte."""
    return "u8" if dtype is bool_ else dtype.short


def accumulator_of(dtype: DType) -> str:
    """Return the type of a reduction's accumulator: an integer for bools, since shuffles do not support bools."""
    return "i32" if dtype is bool_ else dtype.short
