"""The text of a scan kernel for few long lines: one pass over memory, by decoupled look-back [1]_.

Each block scans one tile of a line, so that it reads and writes each element once, and has many bytes in flight. A block
stores the total of its tile, looks back for the totals before it, and stores the total of all tiles up to its own. It looks
at 32 tiles at once, and stops at the nearest one that has stored the total up to its own, so no block waits for a whole
chain of others.

A block takes a ticket when it begins, which is the number of its tile: so all tiles that it waits for belong to blocks that
run or have ended.

References
----------
.. [1] D. Merrill, M. Garland, Single-pass parallel prefix scan with decoupled look-back, 2016, NVIDIA technical report
"""

from ..compiler import kernel_from_text
from ..tile_shapes import GpuKernel
from .row_scan import RowScanSource

NOTHING, TILE, LINE = 0, 1, 2  # what a tile has stored: nothing, its own total, the total of its line up to its end
CLEAR_THREADS = 256

CLEAR = f"""def kernel(flags, count):
    i = cuda.blockIdx.x * {CLEAR_THREADS} + cuda.threadIdx.x
    if i < count:
        flags[i] = 0
"""


def make_clear() -> GpuKernel:
    """Return the kernel that resets the ticket and the flags of all tiles."""
    return GpuKernel("clear", (), kernel_from_text(CLEAR), ("*i32", "i64"), CLEAR_THREADS, 1, 0, CLEAR)


class LookBackScanSource(RowScanSource):
    """The text of a kernel whose blocks scan one tile each. flags[0] is the next ticket, then there is one for each tile."""

    def parameters(self) -> list[tuple[str, str]]:
        """Return the names and types of the arguments."""
        operands = len(self.outputs) + len(self.inputs)
        before, after = (x := super().parameters())[:operands], x[operands:]
        totals = [(f"{name}{k}", f"*{x.short}") for name in ("total", "line_total") for k, x in enumerate(self.states)]
        return [*before, ("flags", "*i32"), *totals, *after]

    def declare(self) -> None:
        """Emit the arrays: those of a tile, the ticket, and the total of all tiles before."""
        super().declare()
        self.line("ticket = cuda.shared.array(1, i32)")
        for k, dtype in enumerate(self.states):
            self.line(f"all_before{k} = cuda.shared.array(1, {dtype.short})")

    def locate(self) -> None:
        """Emit the tile of this block, which follows those of all blocks that began before."""
        self.line("lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5")
        with self.block("if cuda.threadIdx.x == 0:"):
            self.line("ticket[0] = fetch_add(flags, 0, 1)")
        self.line("cuda.syncthreads()")
        self.line("item = i64(ticket[0])")
        self.line("is_line = True")
        self.locate_line(self.form.axes)

    def loop(self) -> None:
        """Emit the scan of the tile, and the look-back."""
        self.start_tiles()
        self.load_tile()
        self.scan_tile()
        with self.block("if warp == 0:"):
            with self.block("if chunk > 0:"):
                self.publish("total", self.each("carry"), TILE)
                self.look_back()
            with self.block("else:"):
                self.publish("line_total", self.each("carry"), LINE)
        self.line("cuda.syncthreads()")
        with self.block("if chunk > 0:"):
            self.line(f"{self.each('b')} = {self.each('all_before', '[0]')}")
            with self.block("if has_prefix:"):
                self.combine(self.each("prefix"), self.each("b"), self.each("prefix"))
            with self.block("else:"):
                self.line(f"{self.each('prefix')} = {self.each('b')}")
            self.line("has_prefix = True")
        self.store_tile()

    def publish(self, target: str, value: str, flag: int) -> None:
        """Emit the store of a total, and then of the flag that tells other blocks of it."""
        with self.block("if lane == 0:"):
            self.line(f"{self.each(target, '[item]')} = {value}")
            self.line("cuda.threadfence()")
            self.line(f"atomic_store(flags, 1 + item, {flag})")

    def look_back(self) -> None:
        """Emit the combination of the totals of all tiles before, the nearest 32 first. Lane 0 has the nearest one."""
        each = self.each
        self.line("p = item - 1 - lane")
        self.line("known = i64(0)")
        self.line(f"{each('b')} = {each('carry')}")
        self.line("has_before = False")
        with self.block("while known == 0:"):
            self.line(f"flag, {each('v')} = i32({NOTHING}), {each('carry')}")
            with self.block("if p >= item - chunk:"):
                with self.block(f"while flag == {NOTHING}:"):
                    self.line("flag = load_acquire(flags, 1 + p)")
                with self.block(f"if flag == {LINE}:"):
                    self.line(f"{each('v')} = {each('line_total', '[p]')}")
                with self.block("else:"):
                    self.line(f"{each('v')} = {each('total', '[p]')}")
            self.line(f"known = i64(cuda.ballot_sync(ALL_LANES, flag == {LINE})) & ALL_LANES")
            self.line("oldest = cuda.popc((known & -known) - 1) if known != 0 else 31")
            with self.block("for step in (1, 2, 4, 8, 16):"):
                self.shuffle("y", "v", "cuda.shfl_down_sync(ALL_LANES, {}, step)")
                with self.block("if lane + step <= oldest:"):
                    self.combine(each("v"), each("y"), each("v"))
            with self.block("if has_before:"):
                self.combine(each("b"), each("v"), each("b"))
            with self.block("else:"):
                self.line(f"{each('b')} = {each('v')}")
            self.line("has_before = True")
            self.line("p -= 32")
        self.line(f"{each('t')} = {each('carry')}")
        self.combine(each("t"), each("b"), each("t"))
        self.publish("line_total", each("t"), LINE)
        with self.block("if lane == 0:"):
            self.line(f"{each('all_before', '[0]')} = {each('b')}")
