"""Print the copies of operands to shared memory, and the loops over chunks that are there."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod

from ....core.rounding import ceil_div
from ....ir.kernel_ir import Load
from ...codegen.expression_printer import operand_name
from .axis_printer import AxisPrinter, StagedTile
from .dialect import storage_of


class TilePrinter(AxisPrinter):
    """The text of a kernel whose block may have parts of operands in shared memory."""

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
        dtype = next(e.dtype for e in self.kernel.find_all(Load) if operand_name(e) == name)
        self.declarations.append(f"{name}_tile = cuda.shared.array({size}, {storage_of(dtype)})")
        steps = ceil_div(self.tile_count(axes), self.schedule.threads)
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
        lines = [f"for m in range({ceil_div(count, threads)}):", f"e = thread + {threads} * m"]
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
        if a in self.schedule.split:
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
