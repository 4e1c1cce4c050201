"""The text of a scan kernel for lines that lie side by side in memory, and for short lines.

Each lane has a line, so that a warp loads 32 neighbors in one instruction. A thread has several elements of its line, whose
loads are in flight together, and those of the next tile are loaded before the present ones are combined. The warps have
parts of a tile one below the other, and exchange their totals in shared memory.
"""

from ....ir.kernel_ir import Load
from ..codegen.dialect import storage_of
from .source import WARP, CudaScanSource


class ColumnScanSource(CudaScanSource):
    """The text of a kernel for lines side by side: lanes are along x, the warps of a line along y, more lines along z."""

    @property
    def tile_length(self) -> int:
        """Return the number of elements of a line in a tile."""
        return self.tile.warps * self.tile.items

    def declare(self) -> None:
        """Emit the arrays: the elements of a thread, those of the next tile, and the totals of the warps."""
        for k, dtype in enumerate(self.states):
            if self.tile.warps > 1:
                self.line(f"parts{k} = cuda.shared.array({2 * self.tile.threads}, {dtype.short})")
            self.line(f"x{k} = cuda.local.array({self.tile.items}, {dtype.short})")
        for name in self.prologue_inputs:
            self.line(f"next_{name} = cuda.local.array({self.tile.items}, {storage_of(self.dtypes[name])})")

    def locate(self) -> None:
        """Emit the column of a thread: past the last one, the last one is computed again, and not stored."""
        last, width = self.form.axes - 1, WARP * self.tile.lines
        self.line("warp = cuda.threadIdx.y")
        self.line(f"bands = (n{last} + {width - 1}) // {width}")
        self.line("item = cuda.blockIdx.x // bands")
        self.line(f"across = (cuda.blockIdx.x - item * bands) * {width} + cuda.threadIdx.z * {WARP} + cuda.threadIdx.x")
        self.line(f"is_line = across < n{last}")
        self.line(f"column = min(across, n{last} - 1)")
        self.locate_line(last)
        for name in (*self.outputs, *self.inputs):
            kind = self.kind_of[name]
            if kind != "0":
                self.line(f"{name}_at += column{f' * {name}_{last}' * (kind != '1')}")

    def total_place(self) -> str:
        """Return the position of the first chunk of a line among the totals."""
        return f"(line * n{self.form.axes - 1} + column) * chunks"

    def before_tiles(self) -> None:
        """Emit the loads of the first tile."""
        self.load_next("first")

    def load_next(self, first: str) -> None:
        """Emit the loads of a tile. Past the end, the last element is loaded again."""
        items = self.tile.items
        self.line(f"start = {first}{f' + warp * {items}' * (self.tile.warps > 1)}")
        with self.block(f"if start + {items} <= end:"):
            for name in self.prologue_inputs:
                self.line(f"at = {name}_at + start * {name}_step")
                with self.block(f"for r in range({items}):"):
                    self.line(f"next_{name}[r] = {name}[at]")
                    self.line(f"at += {name}_step")
        with self.block("else:", f"for r in range({items}):"):
            self.line("i = min(start + r, end - 1)")
            for name in self.prologue_inputs:
                self.line(f"next_{name}[r] = {name}[{name}_at + i * {name}_step]")

    def load_tile(self) -> None:
        """Emit the prologue of the tile that has been loaded, and the loads of the next one."""
        self.line(f"own = first{f' + warp * {self.tile.items}' * (self.tile.warps > 1)}")
        self.loaded = {name: f"next_{name}[r]" for name in self.prologue_inputs}
        with self.block(f"for r in range({self.tile.items}):"):
            self.at(lambda name: f"{name}_at + (own + r) * {name}_step")
            self.line(f"{self.each('x', '[r]')} = {', '.join(self.prologue())}")
        with self.block(f"if first + {self.tile_length} < end:"):
            self.load_next(f"first + {self.tile_length}")

    def scan_tile(self) -> None:
        """Emit the scan of a thread's elements, and of the warps."""
        each, items = self.each, self.tile.items
        with self.block(f"for r in range(1, {items}):"):
            self.combine(each("x", "[r]"), each("x", "[r - 1]"), each("x", "[r]"))
        pitch = WARP * self.tile.lines
        if self.tile.warps > 1:
            self.line(f"place = slot * {self.tile.threads} + cuda.threadIdx.z * {WARP} + cuda.threadIdx.x")
        self.exchange_totals(each("x", f"[{items - 1}]"), pitch, "")

    def store_tile(self) -> None:
        """Emit the combination of a thread's elements with all before them, the epilogue and the stores."""
        each, epilogue_loads = self.each, [e for e in self.epilogue_values() if isinstance(e, Load)]
        moving = [*self.outputs, *sorted(f"in{e.index}" for e in epilogue_loads)]
        self.loaded = {}
        with self.block("if has_prefix:", f"for r in range({self.tile.items}):"):
            self.combine(each("x", "[r]"), each("prefix"), each("x", "[r]"))
        self.line("rows = end - own if is_line else 0")
        for name in moving:
            self.line(f"{name}_place = {name}_at + own * {name}_step")
        with self.block(f"for r in range({self.tile.items}):"):
            with self.block("if r < rows:"):
                self.at(lambda name: f"{name}_place")
                for name, value in zip(self.outputs, self.epilogue(each("x", "[r]").split(", ")), strict=True):
                    self.line(f"{name}[{name}_place] = {value}")
            for name in moving:
                self.line(f"{name}_place += {name}_step")

    def store_totals(self) -> None:
        """Emit the store of the total of a chunk by the first warp."""
        with self.block("if is_line and warp == 0:"):
            for k in range(len(self.states)):
                self.line(f"total{k}[{self.total_place()} + chunk] = carry{k}")
