"""Scatter on a GPU, given a sorted index: each position finds its slices by binary search, and combines them in order.

The threads of a warp have adjacent columns of one position, if there are enough columns. Otherwise each thread has one
element of the result or, if many slices belong to each, the lanes of a warp share them.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from ....core.dtypes import DType
from ....core.layout import Layout
from ....core.operators import Operator
from ....core.rounding import ceil_div, power_of_two
from ....ir.monoid import monoid_of
from ....ir.sorted_scatter import SortedScatter
from ....ir.steps import Step
from ...codegen.expression_printer import literal
from ...codegen.scan_nest import combination_kernel
from ...executable import Cost, Executable, Launcher, do_nothing
from ..codegen.dialect import CudaDialect, CudaPrinter, storage_of
from ..compiler import kernel_from_text
from ..launch_plan import GpuLaunch, GpuPlan, OperandAddress
from ..planned_launcher import AlignmentFlags, PlannedLauncher
from ..tile_shapes import GpuKernel

if TYPE_CHECKING:
    from ..device import CudaDevice

WARP, THREADS = 32, 256
SHARED_SLICES = 32  # slices of an element of the result for which the lanes of a warp share them
SIZES = ("batch", "positions", "slices", "columns")
STRIDES = ("out_b", "out_v", "out_d", "values_b", "values_k", "values_d", "keys_b", "keys_step", "order_b", "order_step")


class ScatterSource(CudaPrinter):
    """The text of a kernel under construction: `form` is columns, elements or warps."""

    def __init__(self, operator: Operator, dtype: DType, key: DType, form: str) -> None:
        self.operator, self.dtype, self.key, self.form = monoid_of(operator).states[0], dtype, key, form
        super().__init__(combination_kernel(operator, [dtype]), CudaDialect.wrapping)

    def word(self, name: str, dtype: DType) -> str:
        """Return the name of the function that computes an operator."""
        return CudaDialect().word(name, dtype)

    def parameters(self) -> list[tuple[str, str]]:
        """Return the names and types of the arguments."""
        storage = storage_of(self.dtype)
        pointers = [("out", f"*{storage}"), ("values", f"*{storage}"), ("keys", f"*{self.key.short}"), ("order", "*i64")]
        return [*pointers, *[(name, "i64") for name in (*SIZES, *STRIDES)]]

    def emit(self) -> str:
        """Return the text."""
        (combine,) = self.functions()
        if self.form == "columns":
            self.line("item = i64(cuda.blockIdx.x) * cuda.blockDim.y + cuda.threadIdx.y")
            with self.block("if item < batch * positions:"):
                self.line("b, v = item // positions, item % positions")
                self.find_slices()
                with self.block("for d in range(cuda.threadIdx.x, columns, cuda.blockDim.x):"):
                    self.combine_slices("first", "1")
                    self.store()
        else:
            share = WARP if self.form == "warps" else 1
            self.line(f"item = (i64(cuda.blockIdx.x) * {THREADS} + cuda.threadIdx.x) // {share}")
            with self.block("if item < batch * positions * columns:"):
                self.line("d, rest = item % columns, item // columns")
                self.line("b, v = rest // positions, rest % positions")
                self.find_slices()
                if share == 1:
                    self.combine_slices("first", "1")
                    self.store()
                else:
                    self.line("lane = cuda.threadIdx.x & 31")
                    self.combine_slices("first + lane", str(WARP))
                    with self.block("for step in (1, 2, 4, 8, 16):"):
                        self.line("total = combine(total, cuda.shfl_xor_sync(ALL_LANES, total, step))")
                    with self.block("if lane == 0:"):
                        self.store()
        names = ", ".join(name for name, _ in self.parameters())
        return "\n".join([SEARCH, "", "", *combine, "", "", f"def kernel({names}):", *self.lines]) + "\n"

    def find_slices(self) -> None:
        """Emit the binary searches for the slices of a position."""
        self.line("first = search(keys, b * keys_b, keys_step, slices, v)")
        self.line("end = search(keys, b * keys_b, keys_step, slices, v + 1)")

    def combine_slices(self, start: str, step: str) -> None:
        """Emit the combination of the slices from a start on."""
        self.line(f"total = {self.dtype.short}({literal(self.operator.identity_for(self.dtype), self.dtype)})")
        with self.block(f"for k in range({start}, end, {step}):"):
            self.line("x = values[b * values_b + order[b * order_b + k * order_step] * values_k + d * values_d]")
            self.line("total = combine(total, x)")

    def store(self) -> None:
        """Emit the store of a result."""
        self.line("out[b * out_b + v * out_v + d * out_d] = total")


SEARCH = """@device
def search(keys, start, step, count, key):
    low, high = i64(0), count
    while low < high:
        middle = (low + high) >> 1
        if keys[start + middle * step] < key:
            low = middle + 1
        else:
            high = middle
    return low"""


@lru_cache(1024)
def make_scatter(operator: Operator, dtype: DType, key: DType, form: str) -> GpuKernel:
    """Return a kernel."""
    source = ScatterSource(operator, dtype, key, form)
    text = source.emit()
    signature = tuple(kind for _, kind in source.parameters())
    return GpuKernel("sorted_scatter", (form,), kernel_from_text(text), signature, THREADS, text=text)


class CudaSortedScatter(Executable):
    """A scatter by a sorted index."""

    def __init__(self, device: "CudaDevice", step: Step, op: SortedScatter) -> None:
        super().__init__(step)
        self.device, self.op = device, op

    @cached_property
    def launch(self) -> GpuLaunch:
        """The launch."""
        (out,), (values, keys, order) = self.step.layouts()
        batch, positions, columns = out.shape
        slices, elements = values.shape[1], out.size
        form = "columns" if columns >= WARP else "warps" if slices >= SHARED_SLICES * positions else "elements"
        block, grid = (THREADS, 1, 1), ceil_div(elements * (WARP if form == "warps" else 1), THREADS)
        if form == "columns":
            across = WARP * min(power_of_two(ceil_div(columns, WARP)), THREADS // WARP)
            block, grid = (across, THREADS // across, 1), ceil_div(batch * positions, THREADS // across)
        dtypes = self.step.kernel.operand_dtypes()
        shared = (0,) * (keys.ndim == 1)  # by all batches
        strides = *out.strides, *values.strides, *shared, *keys.strides, *shared, *order.strides
        operands = [OperandAddress(k) for k in range(4)]
        kernel = make_scatter(self.op.operator, dtypes[0], dtypes[2], form)
        return GpuLaunch(kernel, (grid, 1, 1), block, (*operands, batch, positions, slices, columns, *strides))

    @property
    def source(self) -> str:
        """The text of the kernel."""
        return "" if 0 in self.step.shape else self.launch.kernel.text

    def cost(self) -> Cost:
        """Return 1 launch."""
        return Cost(0 if 0 in self.step.shape else 1)

    def load(self) -> Launcher:
        """Return a launcher."""
        if 0 in self.step.shape:
            return do_nothing
        layouts = [x for group in self.step.layouts() for x in group]
        return SortedScatterLauncher(self.device, layouts, self.step.kernel.operand_dtypes(), self.launch)


class SortedScatterLauncher(PlannedLauncher):
    """A launcher of a scatter by a sorted index."""

    def __init__(self, device: "CudaDevice", layouts: Sequence[Layout], dtypes: Sequence[DType], launch: GpuLaunch) -> None:
        self.single = launch
        super().__init__(device, layouts, [*dtypes, dtypes[0]], [range(len(layouts))])

    def plan(self, aligned: AlignmentFlags) -> GpuPlan:
        """Return the launch."""
        return GpuPlan((self.single,))
