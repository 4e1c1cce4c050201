"""The text of a scan kernel for short lines whose elements are neighbors in memory.

A block copies some lines to shared memory: neighboring lanes load neighbors, whatever the alignment of a line is. Then few
threads share a line, of which each combines the elements of its part one after the other, so most of the work is done
without exchanges between lanes. At the end, neighboring lanes store neighbors, and combine them if rows are reduced, too.
"""

from typing import NamedTuple

from ....core.dtypes import int32
from ....core.rounding import ceil_div, power_of_two
from ....ir.kernel_ir import ReduceExpr
from ....ir.step_kernels import ScanKernel
from ...codegen.expression_printer import literal
from ..codegen.dialect import accumulator_of
from .source import WARP, CudaScanForm, CudaScanSource, ScanTile

THREADS = 128  # of a block
TILE = ScanTile(THREADS // WARP, 1, 1, 5)
SHARED_BYTES = 1 << 14  # of the lines of a block: 14 blocks on a multiprocessor of 228 KiB
MAX_STAGED_LINE = 96  # elements; lanes scan longer lines in less time
MAX_REDUCED_LINE = 256  # elements of lines that are reduced, too


class SharedScanTile(NamedTuple):
    """The lines of a block: `lanes` threads load a line, `items` elements each; lines are `pitch` elements apart."""

    lanes: int
    items: int
    lines: int
    pitch: int

    @property
    def passes(self) -> int:
        """Return the number of lines that each thread loads elements of."""
        return self.lines * self.lanes // THREADS

    @property
    def parts(self) -> int:
        """Return the number of threads that share a line when it is scanned."""
        return THREADS // self.lines

    @classmethod
    def for_lines(cls, n: int, nbytes: int) -> "SharedScanTile":
        """Return the tile for lines of n elements, given the bytes of all states of an element.

        >>> SharedScanTile.for_lines(101, 4), SharedScanTile.for_lines(16, 4)
        (SharedScanTile(lanes=32, items=4, lines=32, pitch=101), SharedScanTile(lanes=16, items=1, lines=128, pitch=17))
        """
        pitch = n | 1  # so that parts of neighboring lines are in different banks
        lines = min(THREADS, max(THREADS // WARP, power_of_two(SHARED_BYTES // (pitch * nbytes) + 1) // 2))
        lanes = min(WARP, max(power_of_two(n), THREADS // lines))
        return cls(lanes, ceil_div(n, lanes), lines, pitch)


class StagedScanSource(CudaScanSource):
    """The text of a kernel for short lines."""

    def __init__(self, kernel: ScanKernel, form: CudaScanForm, staged: SharedScanTile) -> None:
        super().__init__(kernel, form)
        self.staged, self.reductions = staged, kernel.find_all(ReduceExpr)

    def declare(self) -> None:
        """Emit the lines in shared memory, and the elements that a thread loads, all before it stores the first."""
        for k, dtype in enumerate(self.states):
            self.line(f"x{k} = cuda.shared.array({self.staged.lines * self.staged.pitch}, {accumulator_of(dtype)})")
            self.line(f"own{k} = cuda.local.array({self.staged.passes * self.staged.items}, {accumulator_of(dtype)})")

    def locate(self) -> None:
        """Emit the first line of the block."""
        tile = self.staged
        self.line(f"items = {' * '.join(f'n{a}' for a in range(self.form.axes)) or '1'}")
        self.line(f"first_item = cuda.blockIdx.x * {tile.lines}")
        self.line(f"lane = cuda.threadIdx.x & {tile.lanes - 1}")
        self.line(f"own_row = cuda.threadIdx.x // {tile.lanes}")

    def loop(self) -> None:
        """Emit the loads and the prologue, the scan, the epilogue and the stores."""
        rows, loaded = THREADS // self.staged.lanes, f"[k * {self.staged.items} + r]"
        with self.block(f"for k in range({self.staged.passes}):"):
            self.locate_row("min(first_item + row, items - 1)")
            with self.block(f"for r in range({self.staged.items}):"):
                self.line(f"i = lane + r * {self.staged.lanes}")
                self.line("p = min(i, n - 1)")
                self.at(lambda name: self.position(name, "p"))
                self.line(f"{self.each('own', loaded)} = {', '.join(self.prologue())}")
        with self.block(f"for k in range({self.staged.passes}):", f"for r in range({self.staged.items}):"):
            self.line(f"i = lane + r * {self.staged.lanes}")
            with self.block("if i < n:"):
                self.line(f"place = (own_row + k * {rows}) * {self.staged.pitch} + i")
                self.line(f"{self.each('x', '[place]')} = {self.each('own', loaded)}")
        self.line("cuda.syncthreads()")
        self.scan_parts()
        self.line("cuda.syncthreads()")
        with self.block(f"for k in range({self.staged.passes}):"):
            self.locate_row("min(first_item + row, items - 1)")
            self.line("is_line = first_item + row < items")
            for k, e in enumerate(self.reductions):
                self.line(f"total{k} = {literal(e.identity, e.dtype)}")
            with self.block(f"for r in range({self.staged.items}):"):
                self.line(f"i = lane + r * {self.staged.lanes}")
                with self.block(f"if i < n{' and is_line' * (not self.reductions)}:"):
                    self.finish_element()
            self.store_rows()

    def finish_element(self) -> None:
        """Emit the epilogue of an element, its store, and its part of the reductions of the line."""
        self.at(lambda name: self.position(name, "i"))
        pointwise = self.scan.pointwise_outputs
        roots = [*pointwise, *[e.inputs[0] for e in self.reductions]]
        values = self.epilogue(self.each("x", "[place + i]").split(", "), roots)
        with self.block(*["if is_line:"] * bool(self.reductions and pointwise)):
            for name, value in zip(self.outputs, values[: len(pointwise)], strict=False):
                self.line(f"{name}[{self.position(name, 'i')}] = {value}")
        for k, (e, value) in enumerate(zip(self.reductions, values[len(pointwise) :], strict=True)):
            self.line(f"total{k} = {self.reduced(e, f'total{k}', value)}")

    def store_rows(self) -> None:
        """Emit the reductions of a line by the lanes that share it, and the stores of its row outputs."""
        if not self.reductions:
            return
        for k, e in enumerate(self.reductions):
            step = self.staged.lanes // 2
            while step:
                self.line(f"total{k} = {self.reduced(e, f'total{k}', f'cuda.shfl_xor_sync(ALL_LANES, total{k}, {step})')}")
                step //= 2
        with self.block("if is_line and lane == 0:"):
            self.at(lambda name: self.position(name, "0"))
            self.names |= {e: f"total{k}" for k, e in enumerate(self.reductions)}
            self.define(self.scan.row_outputs)
            rows = self.outputs[len(self.scan.pointwise_outputs) :]
            for name, value in zip(rows, map(self.bare, self.scan.row_outputs), strict=True):
                self.line(f"{name}[{self.position(name, '0')}] = {value}")

    def reduced(self, e: ReduceExpr, a: str, b: str) -> str:
        """Return the text that combines two values of a reduction."""
        symbol = self.symbol(e)
        text = f"{a} {symbol} {b}" if symbol else f"{self.operator_name(e)}({a}, {b})"
        return f"i32({text})" if e.dtype is int32 else text

    def locate_row(self, item: str) -> None:
        """Emit the line of pass k: its place in shared memory, and its position in each operand."""
        self.line(f"row = own_row + k * {THREADS // self.staged.lanes}")
        self.line(f"place = row * {self.staged.pitch}")
        self.line(f"item = {item}")
        self.locate_line(self.form.axes)

    def scan_parts(self) -> None:
        """Emit the scan of each line in shared memory by the threads that share it."""
        each, tile, parts = self.each, self.staged, self.staged.parts
        self.line(f"part = cuda.threadIdx.x & {parts - 1}")
        self.line(f"size = (n + {parts - 1}) // {parts}")
        self.line(f"place = cuda.threadIdx.x // {parts} * {tile.pitch}")
        self.line("begin = min(part * size, n - 1)")
        self.line("stop = min(part * size + size, n)")
        if parts > 1:
            self.line(f"{each('t')} = {each('x', '[place + begin]')}")
            with self.block("for i in range(begin + 1, stop):"):
                self.combine(each("t"), each("t"), each("x", "[place + i]"))
            step = 1
            while step < parts:  # the total of this part and all before
                self.shuffle("y", "t", f"cuda.shfl_up_sync(ALL_LANES, {{}}, {step})")
                with self.block(f"if part >= {step}:"):
                    self.combine(each("t"), each("y"), each("t"))
                step *= 2
            self.shuffle("t", "t", "cuda.shfl_up_sync(ALL_LANES, {}, 1)")
        with self.block("if part * size < n:"):
            self.line(f"{each('y')} = {each('x', '[place + begin]')}")
            if parts > 1:
                with self.block("if part > 0:"):
                    self.combine(each("y"), each("t"), each("y"))
            self.line(f"{each('x', '[place + begin]')} = {each('y')}")
            with self.block("for i in range(begin + 1, stop):"):
                self.combine(each("y"), each("y"), each("x", "[place + i]"))
                self.line(f"{each('x', '[place + i]')} = {each('y')}")
