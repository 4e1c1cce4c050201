"""Scans on the CPU: lines in parallel, and a line by chunks if there are few.

The elements of a line depend on each other, so a thread advances on several lines at once: on a block of columns, in
vectors, if the lines lie side by side in memory; else on LANES of them, whose additions overlap in the pipeline. If there
are too few lines for all threads, each is cut into chunks and scanned in three steps: the totals of all chunks, the scan of
these totals, and the scan of each chunk, which starts from the total of the chunks before it.

Floats are accumulated in float64. The prologue is computed where an element is loaded, the epilogue where it is stored.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache, partial
from math import prod
from typing import NamedTuple

from ...core.layout import row_major
from ...core.rounding import ceil_div
from ...ir.kernel_ir import Kernel, KernelParameter, Load
from ...ir.monoid import monoid_of
from ...ir.scan import Scan
from ...ir.step_kernels import ScanKernel, plain_scan
from ...ir.steps import Step
from ...runtime.memory_pool import allocate, round_to_size_class
from ..codegen.loop_emitter import COLUMNS_PER_BLOCK
from ..codegen.scan_nest import RESUME, SCAN, TOTALS, ScanNest, ScanPrinter
from ..executable import Cost, Executable, Launcher, do_nothing
from ..fallback_scan import accumulator_dtype
from .compiler import SerialLoops, compile_kernel_text
from .driver import PARALLEL_WORK, THREADS, CpuKernelLauncher, count_chunks

LANES = 4  # lines that a thread advances on at once
MIN_COLUMNS = 16  # lines side by side that are worth a vector loop
MIN_CHUNK = 4096  # elements of a chunk
CHUNKS_PER_THREAD = 2 * LANES


class CpuScan(Executable):
    """A scan along a dim, with its prologue and epilogue."""

    def __init__(self, step: Step, kernel: ScanKernel) -> None:
        super().__init__(step)
        self.kernel, self.op = kernel, kernel.op
        self.states = [accumulator_dtype(e.dtype) for e in kernel.states]

    @cached_property
    def nest(self) -> ScanNest:
        """The loops."""
        outputs, inputs = self.step.layouts()
        return ScanNest.of_layouts(self.op, [*outputs, *inputs])

    @cached_property
    def columns(self) -> int:
        """The number of lines that lie side by side, along the last axis; 0 if elements of a line do, or too few lines."""
        nest = self.nest
        return nest.sizes[-1] if abs(nest.steps[0]) != 1 and nest.sizes[-1] >= MIN_COLUMNS else 0

    @cached_property
    def width(self) -> int:
        """The number of columns of a block, or of lines that a thread advances on."""
        if not self.columns:
            return LANES if prod(self.nest.sizes) * self.chunks >= LANES else 1
        return min(COLUMNS_PER_BLOCK, max(MIN_COLUMNS, ceil_div(self.columns, 2 * THREADS * MIN_COLUMNS) * MIN_COLUMNS))

    @cached_property
    def chunks(self) -> int:
        """The number of chunks of a line."""
        lines = prod(self.nest.sizes) // (MIN_COLUMNS if self.columns else 1)
        if (self.step.shape and prod(self.step.shape) <= PARALLEL_WORK) or lines >= 2 * THREADS:
            return 1
        length = ceil_div(self.nest.n, max(1, min(CHUNKS_PER_THREAD * THREADS // max(lines, 1), self.nest.n // MIN_CHUNK)))
        return ceil_div(self.nest.n, length)

    def text(self, mode: str) -> str:
        """Return the text of a kernel."""
        nest, axis = self.nest, len(self.nest.sizes) - 1
        inner = [strides[axis] for strides in nest.strides] if self.columns else list(nest.steps)
        kinds = tuple(str(x) if x in (0, 1) else "s" for x in inner)
        width = 0 if self.columns else self.width
        return scan_text(self.kernel, CpuScanForm(mode, len(nest.sizes), kinds, width))

    @property
    def source(self) -> str:
        """The text of the kernel or, with chunks, of the first and the last."""
        return self.text(SCAN) if self.chunks == 1 else f"{self.text(TOTALS)}\n{self.text(RESUME)}"

    def cost(self) -> Cost:
        """Return 1 launch, or with chunks 3, and the bytes of their totals."""
        if 0 in self.step.shape:
            return Cost(0)
        return Cost(1) if self.chunks == 1 else Cost(3, 2 * self.totals_nbytes)

    @property
    def totals_nbytes(self) -> int:
        """The bytes of the totals of all chunks."""
        return prod(self.nest.sizes) * self.chunks * sum(x.itemsize for x in self.states)

    def load(self) -> Launcher:
        """Return the launches."""
        if 0 in self.step.shape:
            return do_nothing
        return self.launcher(SCAN) if self.chunks == 1 else self.load_chunks()

    def launcher(self, mode: str) -> CpuKernelLauncher:
        """Return the launch of one kernel."""
        nest, count = self.nest, prod(self.nest.sizes) * self.chunks
        if self.columns:
            count = count // self.columns * ceil_div(self.columns, self.width)
        cost = monoid_of(self.op.operator).cost(self.states) + Kernel(self.kernel.outputs, ()).cost()
        work = prod(self.step.shape) * cost
        numbers = [nest.n, self.chunks, ceil_div(nest.n, self.chunks), self.width, *nest.sizes, *nest.starts, *nest.steps]
        numbers += [s for strides in nest.strides for s in strides]
        addresses = len(self.step.buffer_views()) + (len(self.states) if mode != SCAN else 0)
        parameters = self.kernel.find_all(KernelParameter)
        chunks = min(count_chunks(count, work), ceil_div(count, LANES) if not self.columns else count)
        return CpuKernelLauncher(compile_kernel_text(self.text(mode)), count, chunks, addresses, parameters, numbers)

    def load_chunks(self) -> Launcher:
        """Return a function that runs the three launches."""
        lines = row_major((prod(self.nest.sizes), self.chunks))
        op = Scan(self.op.operator, 1, False, tuple(range(len(self.states))))
        kernel, layouts = plain_scan(op, self.states), [lines] * len(self.states)
        scan_totals = CpuScan(Step.of_layouts(kernel, lines.shape, (), layouts, layouts), kernel).load()
        sum_chunks, scan_chunks = self.launcher(TOTALS), self.launcher(RESUME)
        sizes, count = [lines.size * x.itemsize for x in self.states], len(self.step.buffer_views())

        def launch(*values: int) -> None:
            addresses, numbers = values[:count], values[count:]
            totals, scanned = ([allocate(round_to_size_class(n)) for n in sizes] for _ in range(2))
            places, scanned_places = ([x.address for x in buffers] for buffers in (totals, scanned))
            sum_chunks(*addresses, *places, *numbers)
            scan_totals(*scanned_places, *places)
            scan_chunks(*addresses, *scanned_places, *numbers)

        return launch


class CpuScanForm(NamedTuple):
    """The form of the loops: the mode, the number of axes of lines, the kinds of the inner strides, and the lanes.

    Without lanes, the inner loop runs over a block of columns.
    """

    mode: str
    axes: int
    kinds: tuple[str, ...]
    lanes: int


@lru_cache(1024)
def scan_text(kernel: ScanKernel, form: CpuScanForm) -> str:
    """Return the text of a kernel."""
    return (LaneScanSource if form.lanes else CpuColumnScanSource)(kernel, form).emit()


class CpuScanSource(ScanPrinter):
    """The text of a scan kernel under construction. `states` are the dtypes of the accumulators."""

    def __init__(self, kernel: ScanKernel, form: CpuScanForm) -> None:
        super().__init__(kernel, [accumulator_dtype(e.dtype) for e in kernel.states], SerialLoops.wrapping)
        self.form, self.operands = form, [*self.outputs, *self.inputs]

    def emit(self) -> str:
        """Return the text."""
        for function in self.functions():
            for text in function:
                self.line(text)
        pointers = {**self.dtypes, **{f"total{k}": x for k, x in enumerate(self.states) if self.form.mode != SCAN}}
        places = [
            (name, "args[{}]" if name in self.index_values else f"pointer_{dtype.short}(args[{{}}])")
            for name, dtype in pointers.items()
        ]
        parameters = self.scan.find_all(KernelParameter)
        if any(p.dtype.is_float for p in parameters):
            self.line("numbers = pointer_f64(args)")
        places += [
            (f"p{p.index}", f"{p.dtype.short}({'numbers' if p.dtype.is_float else 'args'}[{{}}])") for p in parameters
        ]
        numbers = ["n", "chunks", "length", "width", *[f"n{a}" for a in range(self.form.axes)]]
        numbers += [f"{name}_{part}" for part in ("start", "step") for name in self.operands]
        numbers += [f"{name}_{a}" for name in self.operands for a in range(self.form.axes)]
        for k, (name, value) in enumerate([*places, *[(name, "args[{}]") for name in numbers]]):
            self.line(f"{name} = {value.format(k)}")
        self.body()
        return "def kernel(start, stop, args):\n" + "\n".join(self.lines) + "\n"

    def body(self) -> None:
        """Emit the loops."""
        raise NotImplementedError

    def locate(self, item: str, axes: int, suffix: str) -> None:
        """Emit the chunk and the line of an item, its number of elements, and the position of its first elements."""
        self.line(f"line{suffix} = {item} // chunks")
        self.line(f"chunk{suffix} = {item} - line{suffix} * chunks")
        self.line(f"first = chunk{suffix} * length")
        self.line(f"count{suffix} = min(length, n - first)")
        self.line(f"rest = line{suffix}")
        for a in reversed(range(axes)):
            self.line(f"i{a} = rest % n{a}" if a else "i0 = rest")
            if a:
                self.line(f"rest = rest // n{a}")
        for name in self.operands:
            terms = [f"{name}_start", f"first * {name}_step", *[f"i{a} * {name}_{a}" for a in range(axes)]]
            self.line(f"{name}_at{suffix} = {' + '.join(terms)}")

    def array_element(self, e: Load) -> str:
        """Return the text of an element of an array."""
        name = f"in{e.index}"
        return SerialLoops().load(f"{name}[{self.place(name)}]", e.dtype)

    def store(self, totals: Sequence[str]) -> None:
        """Emit the epilogue and the stores of all outputs at this point, unless only totals are computed."""
        if self.form.mode != TOTALS:
            for name, value in zip(self.outputs, self.epilogue(totals), strict=True):
                self.line(f"{name}[{self.place(name)}] = {value}")

    def combine(self, a: Sequence[str], b: Sequence[str]) -> None:
        """Emit the combination of the accumulators a with a value."""
        self.line(f"{', '.join(a)} = {self.combine_name}({', '.join([*a, *b])})")


class LaneScanSource(CpuScanSource):
    """The text of a kernel that advances on several lines, or chunks of lines, at once."""

    def body(self) -> None:
        """Emit the loop over groups of lines. Past the last line, the last one is computed again."""
        form, count = self.form, len(self.states)
        lanes = range(form.lanes)
        with self.block(f"for group in range(start, stop, {form.lanes}):"):
            for r in lanes:
                self.locate(f"min(group + {r}, stop - 1)", form.axes, f"_{r}")
            totals = {r: [f"a{k}_{r}" for k in range(count)] for r in lanes}
            for r in lanes:
                self.at(partial(self.position, r, "0"))
                self.line(f"{', '.join(totals[r])} = {', '.join(self.prologue(is_reused=form.mode != TOTALS))}")
                if form.mode == RESUME:
                    before = [f"total{k}[line_{r} * chunks + chunk_{r} - 1]" for k in range(count)]
                    with self.block(f"if chunk_{r} > 0:"):
                        self.line(f"{', '.join(totals[r])} = {self.combine_name}({', '.join([*before, *totals[r]])})")
                self.store(totals[r])
            common = "count_0" if form.lanes == 1 else f"min({', '.join(f'count_{r}' for r in lanes)})"
            self.line(f"common = {common}")
            with self.block("for i in range(1, common):"):
                for r in lanes:
                    self.advance(r, totals[r])
            for r in lanes:
                if form.mode != SCAN:
                    with self.block(f"for i in range(common, count_{r}):"):
                        self.advance(r, totals[r])
                if form.mode == TOTALS:
                    for k in range(count):
                        self.line(f"total{k}[line_{r} * chunks + chunk_{r}] = a{k}_{r}")

    def advance(self, r: int, totals: Sequence[str]) -> None:
        """Emit one element of a line."""
        self.at(partial(self.position, r, "i"))
        self.combine(totals, self.prologue(is_reused=self.form.mode != TOTALS))
        self.store(totals)

    def position(self, r: int, i: str, name: str) -> str:
        """Return the position of element i of a line."""
        kind = self.form.kinds[self.operands.index(name)]
        step = "" if kind == "0" or i == "0" else f" + {i}" if kind == "1" else f" + {i} * {name}_step"
        return f"{name}_at_{r}{step}"


class CpuColumnScanSource(CpuScanSource):
    """The text of a kernel that advances on a block of columns, with an accumulator for each."""

    def body(self) -> None:
        """Emit the loop over blocks."""
        form, count, last = self.form, len(self.states), self.form.axes - 1
        totals = [f"a{k}[c]" for k in range(count)]
        self.line(f"blocks = (n{last} + width - 1) // width")
        for k, dtype in enumerate(self.states):
            self.line(f"a{k} = block_of_{dtype.short}()")
        with self.block("for item in range(start, stop):"):
            self.line("group = item // blocks")
            self.line("column = (item - group * blocks) * width")
            self.line(f"columns = min(width, n{last} - column)")
            self.locate("group", last, "")
            for name in self.operands:
                self.line(f"{name}_at += column * {name}_{last}")
            place = f"(line * n{last} + column + c) * chunks + chunk"
            with self.block("for c in range(columns):"):
                self.at(self.position)
                for total, value in zip(totals, self.prologue(), strict=True):
                    self.line(f"{total} = {value}")
            if form.mode == RESUME:
                before = [f"total{k}[{place} - 1]" for k in range(count)]
                with self.block("if chunk > 0:", "for c in range(columns):"):
                    self.line(f"{', '.join(totals)} = {self.combine_name}({', '.join([*before, *totals])})")
            if form.mode != TOTALS:
                with self.block("for c in range(columns):"):
                    self.at(self.position)
                    self.store(totals)
            with self.block("for i in range(1, count):"):
                for name in self.operands:
                    self.line(f"{name}_at += {name}_step")
                with self.block("for c in range(columns):"):
                    names = [f"y{k}" for k in range(count)]
                    self.at(self.position)
                    values = self.prologue(is_reused=form.mode != TOTALS)
                    self.line(f"{', '.join(names)} = {self.combine_name}({', '.join([*totals, *values])})")
                    for total, name in zip(totals, names, strict=True):
                        self.line(f"{total} = {name}")
                    self.store(names)
            if form.mode == TOTALS:
                with self.block("for c in range(columns):"):
                    for k in range(count):
                        self.line(f"total{k}[{place}] = {totals[k]}")

    def position(self, name: str) -> str:
        """Return the position of an element of the block."""
        kind = self.form.kinds[self.operands.index(name)]
        step = "" if kind == "0" else " + c" if kind == "1" else f" + c * {name}_{self.form.axes - 1}"
        return f"{name}_at{step}"
