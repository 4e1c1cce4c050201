"""The text of a scan kernel for lines whose elements are neighbors in memory.

A warp has 128 elements of a line at a time: a lane loads four by one instruction and combines them. Then the lanes combine
their totals in five steps, after which each has the total of all lanes before it: in step k, a lane adds the value of the
lane 2 ** k below it [1]_. The warps of a line exchange their totals in shared memory.

References
----------
.. [1] W. D. Hillis, G. L. Steele, Data parallel algorithms, 1986, Communications of the ACM 29 (12)
"""

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
        items = " * ".join(["chunks", *[f"n{a}" for a in range(self.form.axes)]])
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

    def position(self, name: str, i: str) -> str:
        """Return the position of element i of the line."""
        kind = self.kind_of[name]
        return f"{name}_at" + {"0": "", "1": f" + {i}", "-1": f" - {i}", "s": f" + {i} * {name}_step"}[kind]

    def load_tile(self) -> None:
        """Emit the loads: all before the first element is used. Past the end, the last elements are loaded again."""
        own = self.tile.items * WARP
        self.line(f"start = first + {f'warp * {own} + ' * (self.tile.warps > 1)}lane * 4")
        with self.block(f"for k in range({self.strips}):"):
            self.line(f"i = {'min(' if self.form.is_wide else ''}start + {4 * WARP} * k{', end - 4)' * self.form.is_wide}")
            for k, name in enumerate(self.inputs):
                kind = self.kind_of[name]
                elements = [f"x{k}[4 * k{f' + {j}' * (j > 0)}]" for j in range(4)]
                if kind == "0":
                    self.line(f"{' = '.join(elements)} = {name}[{name}_at]")
                elif self.form.is_wide and kind in ("1", "-1"):
                    back = " - 3" * (kind == "-1")
                    targets = elements if kind == "1" else elements[::-1]
                    self.line(f"{', '.join(targets)} = load4({name}, {self.position(name, 'i')}{back})")
                else:
                    with self.block("for j in range(4):"):
                        self.line("p = min(i + j, end - 1)")
                        self.line(f"x{k}[4 * k + j] = {name}[{self.position(name, 'p')}]")

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

    def shuffle(self, target: str, source: str, call: str) -> None:
        """Emit the exchange of all states of a value between lanes."""
        for k in range(len(self.states)):
            self.line(f"{target}{k} = {call.format(f'{source}{k}')}")

    def store_tile(self) -> None:
        """Emit the combination of each group of four with all elements before it, and the stores."""
        each = self.each
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
            wide = [name for name in self.outputs if self.form.is_wide]
            with self.block("if is_line and i < end:"):
                for output, state in zip(self.outputs, self.kept, strict=True):
                    elements = [f"x{state}[4 * k{f' + {j}' * (j > 0)}]" for j in range(4)]
                    if output in wide:
                        is_back = self.kind_of[output] == "-1"
                        position = f"{self.position(output, 'i')}{' - 3' * is_back}"
                        self.line(f"store4({output}, {position}, ({', '.join(elements[::-1] if is_back else elements)}))")
                    else:
                        with self.block("for j in range(4):", "if i + j < end:"):
                            self.line(f"{output}[{self.position(output, '(i + j)')}] = x{state}[4 * k + j]")

    def store_totals(self) -> None:
        """Emit the store of the total of a chunk by the first thread of the line."""
        with self.block("if is_line and cuda.threadIdx.x == 0:"):
            for k in range(len(self.states)):
                self.line(f"total{k}[line * chunks + chunk] = carry{k}")
