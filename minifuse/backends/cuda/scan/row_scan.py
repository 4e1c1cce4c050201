"""The text of a scan kernel for lines whose elements are neighbors in memory.

A warp has 128 elements of a line at a time: a lane loads four by one instruction and combines them. Then the lanes combine
their totals in five steps, after which each has the total of all lanes before it: in step k, a lane adds the value of the
lane 2 ** k below it [1]_. The warps of a line exchange their totals in shared memory.

References
----------
.. [1] W. D. Hillis, G. L. Steele, Data parallel algorithms, 1986, Communications of the ACM 29 (12)
"""

from collections.abc import Sequence

from ...codegen.scan_nest import SCAN
from .source import WARP, CudaScanSource


class RowScanSource(CudaScanSource):
    """The text of a kernel for lines whose elements are neighbors. Threads along x share a line; lines are along y."""

    @property
    def strips(self) -> int:
        """Return the number of groups of four that a thread has."""
        return self.tile.items // 4

    @property
    def tile_length(self) -> int:
        """Return the number of elements of a line in a tile."""
        return WARP * self.tile.warps * self.tile.items

    def declare(self) -> None:
        """Emit the arrays: the elements of a thread, the totals before its groups, and the totals of the warps."""
        for k, dtype in enumerate(self.states):
            if self.tile.warps > 1:
                self.line(f"parts{k} = cuda.shared.array({2 * self.tile.lines * self.tile.warps}, {dtype.short})")
            self.line(f"x{k} = cuda.local.array({self.tile.items}, {dtype.short})")
            self.line(f"before{k} = cuda.local.array({self.strips}, {dtype.short})")

    def locate(self) -> None:
        """Emit the line of a thread: past the last one, the last one is computed again, and not stored."""
        self.line("lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5")
        items = " * ".join(["chunks"] * (self.form.mode != SCAN) + [f"n{a}" for a in range(self.form.axes)])
        items = items or "1"
        self.line(f"items = {items}")
        self.line(f"item = cuda.blockIdx.x * {self.tile.lines} + cuda.threadIdx.y")
        self.line("is_line = item < items")
        self.line("item = min(item, items - 1)")
        self.locate_line(self.form.axes)

    def combine_totals(self) -> None:
        """Emit the combination of the totals of all chunks before: each lane combines some of them, then all lanes."""
        each = self.each
        with self.block("if chunk > 0:"):
            self.line("share = (chunk + 31) // 32")
            with self.block("for c in range(lane * share, min((lane + 1) * share, chunk)):"):
                self.add_to_carry(each("total", f"[{self.total_place()} + c]"))
            self.scan_lanes("carry")
            self.shuffle("carry", "carry", "cuda.shfl_sync(ALL_LANES, {}, (chunk - 1) // share)")
            self.line("has_carry = True")

    def scan_lanes(self, name: str) -> None:
        """Emit the scan of a value of each lane."""
        with self.block("for step in (1, 2, 4, 8, 16):"):
            self.shuffle("y", name, "cuda.shfl_up_sync(ALL_LANES, {}, step)")
            with self.block("if lane >= step:"):
                self.combine(self.each(name), self.each("y"), self.each(name))

    def load_tile(self) -> None:
        """Emit the loads and the prologue. Past the end, the last elements are loaded again."""
        self.loaded = {}
        own = self.tile.items * WARP
        self.line(f"start = first + {f'warp * {own} + ' * (self.tile.warps > 1)}lane * 4")
        with self.block(f"for k in range({self.strips}):"):
            if self.wide:
                self.line(f"i = min(start + {4 * WARP} * k, end - 4)")
                self.load_groups(self.prologue_inputs)
                for j in range(4):
                    self.at_element(j)
                    self.line(f"{self.each('x', f'[4 * k + {j}]')} = {', '.join(self.prologue())}")
            else:
                self.line(f"i = start + {4 * WARP} * k")
                with self.block("for j in range(4):"):
                    self.line("p = min(i + j, end - 1)")
                    self.at(lambda name: self.position(name, "p"))
                    self.line(f"{self.each('x', '[4 * k + j]')} = {', '.join(self.prologue())}")

    def load_groups(self, names: Sequence[str]) -> None:
        """Emit the loads of a group of four elements of each array in which they are adjacent."""
        for name in [x for x in names if x in self.wide]:
            targets = [f"{name}v{j}" for j in range(4)]
            self.line(f"{', '.join(self.in_order(name, targets))} = load4({name}, {self.first_position(name)})")

    def in_order(self, name: str, elements: Sequence[str]) -> Sequence[str]:
        """Return the elements of a group of four in the order of an array in memory."""
        return elements[::-1] if self.kind_of[name] == "-1" else elements

    def first_position(self, name: str) -> str:
        """Return the position of a group of four in an array."""
        return f"{self.position(name, 'i')}{' - 3' * (self.kind_of[name] == '-1')}"

    def at_element(self, j: int) -> None:
        """Begin to print the values of element j of a group of four."""
        self.loaded = {name: f"{name}v{j}" for name in self.inputs if name in self.wide}
        self.at(lambda name: self.position(name, f"(i + {j})" if j else "i"))

    def scan_tile(self) -> None:
        """Emit the scan of each group of four, of the lanes, and of the warps."""
        each = self.each
        self.line(f"{each('run')} = {each('x', '[0]')}")
        with self.block(f"for k in range({self.strips}):"):
            with self.block("for j in range(4 * k + 1, 4 * k + 4):"):
                self.combine(each("x", "[j]"), each("x", "[j - 1]"), each("x", "[j]"))
            self.line(f"{each('t')} = {each('x', '[4 * k + 3]')}")
            self.scan_lanes("t")
            self.shuffle("y", "t", "cuda.shfl_up_sync(ALL_LANES, {}, 1)")
            self.shuffle("t", "t", "cuda.shfl_sync(ALL_LANES, {}, 31)")
            with self.block("if k > 0 and lane > 0:"):
                self.combine(each("y"), each("run"), each("y"))
            with self.block("elif k > 0:"):
                self.line(f"{each('y')} = {each('run')}")
            self.line(f"{each('before', '[k]')} = {each('y')}")
            with self.block("if k > 0:"):
                self.combine(each("run"), each("run"), each("t"))
            with self.block("else:"):
                self.line(f"{each('run')} = {each('t')}")
        if self.tile.warps > 1:
            line = f"(slot * {self.tile.lines} + cuda.threadIdx.y)" if self.tile.lines > 1 else "slot"
            self.line(f"place = {line} * {self.tile.warps}")
        self.exchange_totals(each("run"), 1, "if lane == 31:")

    def store_tile(self) -> None:
        """Emit the combination of each group of four with all elements before it, the epilogue and the stores."""
        each = self.each
        self.loaded = {}
        with self.block(f"for k in range({self.strips}):"):
            self.line(f"{each('b')} = {each('before', '[k]')}")
            self.line("has_before = k > 0 or lane > 0")
            with self.block("if has_prefix and has_before:"):
                self.combine(each("b"), each("prefix"), each("b"))
            with self.block("elif has_prefix:"):
                self.line(f"{each('b')} = {each('prefix')}")
            with self.block("if has_prefix or has_before:", "for j in range(4 * k, 4 * k + 4):"):
                self.combine(each("x", "[j]"), each("b"), each("x", "[j]"))
            self.line(f"i = start + {4 * WARP} * k")
            with self.block("if is_line and i < end:"):
                if self.wide:
                    self.load_groups(self.epilogue_inputs)
                    for j in range(4):
                        self.at_element(j)
                        values = self.epilogue(each("x", f"[4 * k + {j}]").split(", "))
                        self.line(f"{', '.join(f'y{n}_{j}' for n in range(len(values)))} = {', '.join(values)}")
                    for n, name in enumerate(self.outputs):
                        elements = [f"y{n}_{j}" for j in range(4)]
                        if name in self.wide:
                            group = ", ".join(self.in_order(name, elements))
                            self.line(f"store4({name}, {self.first_position(name)}, ({group}))")
                        else:
                            for j, element in enumerate(elements):
                                self.line(f"{name}[{self.position(name, f'(i + {j})')}] = {element}")
                else:
                    with self.block("for j in range(4):", "if i + j < end:"):
                        self.at(lambda name: self.position(name, "(i + j)"))
                        values = self.epilogue(each("x", "[4 * k + j]").split(", "))
                        for name, value in zip(self.outputs, values, strict=True):
                            self.line(f"{name}[{self.position(name, '(i + j)')}] = {value}")

    def store_totals(self) -> None:
        """Emit the store of the total of a chunk by the first thread of the line."""
        with self.block("if is_line and cuda.threadIdx.x == 0:"):
            for k in range(len(self.states)):
                self.line(f"total{k}[line * chunks + chunk] = carry{k}")
