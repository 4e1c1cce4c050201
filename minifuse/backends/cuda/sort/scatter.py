"""Scatter and update on a GPU, given a sorted index: slices with one index are adjacent, a run, and are combined in order.

The sorted slices are cut into chunks. The threads of a chunk have some columns each, and combine the slices of one run after
the other. A run within a chunk is stored at once. Of a run that crosses chunks, each chunk stores its part in a workspace,
and a second kernel combines the parts. So no index makes a thread wait for more than a chunk, however often it repeats.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import isqrt
from typing import TYPE_CHECKING

from ....core.dtypes import DType
from ....core.operators import Operator
from ....core.rounding import ceil_div, power_of_two
from ....ir.inline_slices import AXES
from ....ir.kernel_ir import Expression, IndexedLoad, Kernel, Load, constant, copy_kernel
from ....ir.monoid import monoid_of
from ....ir.sorted_scatter import SortedScatter, SortedUpdate
from ....ir.steps import Step
from ...codegen.expression_printer import literal
from ...codegen.scan_nest import combination_kernel
from ...executable import Cost, Executable, Launcher, do_nothing
from ..codegen.dialect import CudaDialect, CudaPrinter, storage_of
from ..compiler import kernel_from_text
from ..launch_plan import WORKSPACE, GpuLaunch, GpuPlan, OperandAddress
from ..launch_sequence import LaunchSequence
from ..launcher import CudaKernelLauncher, CudaLauncher
from ..planned_launcher import PlanLauncher
from ..tile_shapes import GpuKernel

if TYPE_CHECKING:
    from ..device import CudaDevice

Leaf = tuple[DType, tuple[int, ...]]
THREADS = 256
MAX_COLUMNS = 4  # of a thread
LOADED_SLICES = 4  # of a chunk that are loaded at once
MIN_CHUNK, MAX_CHUNK = 16, 256  # slices
WIDE = 256  # columns of a slice that make enough threads, so that chunks may be shorter
MAX_GRID_Y = 64
SIZES = ("chunks", "length", "batch", "positions", "slices", "columns")
STRIDES = ("out_b", "out_v", "out_d", "keys_b", "keys_step", "order_b", "order_step")


class ScatterSource(CudaPrinter):
    """The text of a kernel under construction: of the runs of chunks or, with no `columns`, of the runs that cross them.

    Parameters
    ----------
    is_update : bool
        Whether a result is combined with the element of the output, not stored there.
    columns : int
        The columns of a thread.
    leaves : sequence of (DType, stride kinds)
        The inputs that slices are computed from. A stride is 0 or not.
    """

    def __init__(
        self, operator: Operator, value: Expression, leaves: Sequence[Leaf], key: DType, is_update: bool, columns: int
    ) -> None:
        self.operator, self.value, self.leaves, self.key = monoid_of(operator).states[0], value, leaves, key
        self.dtype = dtype = value.dtype
        self.is_update, self.columns = is_update, range(columns)
        self.identity = f"{dtype.short}({literal(self.operator.identity_for(dtype), dtype)})"
        super().__init__(combination_kernel(operator, [dtype]), CudaDialect.wrapping)

    def parameters(self) -> list[tuple[str, str]]:
        """Return the names and types of the arguments."""
        storage = f"*{storage_of(self.dtype)}"
        leaves = [(f"leaf{k}", f"*{storage_of(dtype)}") for k, (dtype, _) in enumerate(self.leaves)]
        pointers = [("out", storage), *leaves, ("keys", f"*{self.key.short}"), ("order", "*i64"), ("work", storage)]
        strides = [f"leaf{k}_{a}" for k, (_, kinds) in enumerate(self.leaves) for a in range(len(kinds))]
        return [*pointers, *[(name, "i64") for name in (*SIZES, *STRIDES, *strides)]]

    def leaf_text(self, e: Expression) -> str:
        """Return the text of an element of a leaf: at this slice and column, or at computed indices."""
        assert isinstance(e, Load | IndexedLoad)
        kinds = self.leaves[e.index][1]
        indices = e.inputs if isinstance(e, IndexedLoad) else AXES
        terms = [f"{self.text(x)} * leaf{e.index}_{a}" for a, (x, s) in enumerate(zip(indices, kinds, strict=True)) if s]
        return CudaDialect().load(f"leaf{e.index}[{' + '.join(terms) or 0}]", e.dtype)

    def emit(self) -> str:
        """Return the text."""
        (combine,) = self.functions()
        self.line("chunk = i64(cuda.blockIdx.x) * cuda.blockDim.y + cuda.threadIdx.y")
        with self.block("if chunk < batch * chunks:"):
            self.line("b, first = chunk // chunks, chunk % chunks * length")
            self.line("end = min(first + length, slices)")
            self.line("keys_at, order_at = b * keys_b, b * order_b")
            if self.columns:
                self.emit_chunk()
            else:
                self.emit_crossing()
        names = ", ".join(name for name, _ in self.parameters())
        return "\n".join([*combine, "", "", f"def kernel({names}):", *self.lines]) + "\n"

    def emit_chunk(self) -> None:
        """Emit the combination of the slices of each run in a chunk, of which several are loaded at once."""
        columns = self.columns
        self.line(f"width = {len(columns)} * cuda.blockDim.x")
        with self.block("for d0 in range(cuda.blockIdx.y * width + cuda.threadIdx.x, columns, cuda.gridDim.y * width):"):
            for u in columns:
                self.line(f"d{u} = d{u - 1} + cuda.blockDim.x" if u else "k = first")
                self.line(f"total{u}, column{u} = {self.identity}, min(d{u}, columns - 1)")
            self.line("v = i64(keys[keys_at + k * keys_step])")
            self.line("starts_before = first > 0 and keys[keys_at + (first - 1) * keys_step] == v")
            with self.block("while k < end and v < positions:  # slices that are dropped come last"):
                for j in range(LOADED_SLICES):
                    self.line(f"slice{j} = order[order_at + min(k + {j}, end - 1) * order_step]")
                    self.line(f"next{j} = i64(keys[keys_at + min(k + {j + 1}, slices - 1) * keys_step])")
                for j in range(LOADED_SLICES):
                    for u in columns:
                        self.names = dict(zip(AXES, ("b", f"slice{j}", f"column{u}"), strict=True))
                        self.define([self.value])
                        self.line(f"x{j}_{u} = {self.bare(self.value)}")
                for j in range(LOADED_SLICES):
                    with self.block("if k < end and v < positions:"):
                        self.combine_slice(j)

    def combine_slice(self, j: int) -> None:
        """Emit the combination of one of the slices that are loaded, and the end of a run after it."""
        columns = self.columns
        for u in columns:
            self.line(f"total{u} = combine(total{u}, x{j}_{u})")
        self.line("k += 1")
        self.line(f"after = next{j} if k < slices else i64(-1)")
        with self.block("if after != v or k == end:"):
            with self.block("if starts_before or after == v:"):
                self.line("part = (2 * chunk + (0 if starts_before else 1)) * columns")
                for u in columns:
                    with self.block(*[f"if d{u} < columns:"] * (u > 0)):
                        self.line(f"work[part + d{u}] = total{u}")
            with self.block("else:"):
                for u in columns:
                    with self.block(*[f"if d{u} < columns:"] * (u > 0)):
                        self.store(f"d{u}", f"total{u}")
            self.line("starts_before = False")
            self.line(", ".join(f"total{u}" for u in columns) + " = " + ", ".join([self.identity] * len(columns)))
            self.line("v = after")

    def emit_crossing(self) -> None:
        """Emit the combination of the parts of a run that starts in a chunk, and ends in another one."""
        self.line("v = i64(keys[keys_at + (end - 1) * keys_step])")
        self.line("continues = v < positions and end < slices and keys[keys_at + end * keys_step] == v")
        self.line("own, width = cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x, cuda.gridDim.y * cuda.blockDim.x")
        with self.block(
            "if continues and not (first > 0 and keys[keys_at + (first - 1) * keys_step] == v):",
            "for d in range(own, columns, width):",
        ):
            self.line("part, stop, total = chunk, end, work[(2 * chunk + 1) * columns + d]")
            with self.block("while stop < slices and keys[keys_at + stop * keys_step] == v:"):
                self.line("part, stop = part + 1, stop + length")
                self.line("total = combine(total, work[2 * part * columns + d])")
            self.store("d", "total")

    def store(self, d: str, total: str) -> None:
        """Emit the store of a result."""
        self.line(f"place = b * out_b + v * out_v + {d} * out_d")
        self.line(f"out[place] = combine(out[place], {total})" if self.is_update else f"out[place] = {total}")


@lru_cache(1024)
def make_scatter(
    operator: Operator, value: Expression, leaves: Sequence[Leaf], key: DType, is_update: bool, columns: int
) -> GpuKernel:
    """Return a kernel."""
    source = ScatterSource(operator, value, leaves, key, is_update, columns)
    text = source.emit()
    signature = tuple(kind for _, kind in source.parameters())
    return GpuKernel("sorted_scatter", (columns,), kernel_from_text(text), signature, THREADS, text=text)


class CudaSortedScatter(Executable):
    """A scatter by a sorted index, after its identity is stored everywhere; or an update, of a copy unless in place."""

    def __init__(self, device: "CudaDevice", step: Step, op: SortedScatter) -> None:
        super().__init__(step)
        self.device, self.op, self.is_update = device, op, isinstance(op, SortedUpdate)
        (self.out,), (*inputs, self.keys, self.order) = step.layouts()
        (self.dtype, *dtypes, self.key, _) = step.kernel.operand_dtypes()
        self.olds, self.leaf_layouts = inputs[: self.is_update], inputs[self.is_update :]
        kinds = [tuple(int(s != 0) for s in x.strides) for x in self.leaf_layouts]
        self.leaves = tuple(zip(dtypes[self.is_update :], kinds, strict=True))
        self.is_in_place = self.is_update and step.outputs[0] == step.inputs[0]

    @cached_property
    def first(self) -> Step:
        """The step that runs before: a fill, or a copy."""
        if self.olds:
            return Step.of_layouts(copy_kernel(self.dtype), self.out.shape, (), [self.out], self.olds)
        identity = constant(self.op.operator.identity_for(self.dtype), self.dtype)
        return Step.of_layouts(Kernel((identity,), ()), self.out.shape, (), [self.out], [])

    @cached_property
    def plan(self) -> GpuPlan:
        """The launches that combine slices, and their workspace."""
        batch, positions, columns = self.out.shape
        slices = self.op.count
        if not slices:
            return GpuPlan()
        shortest = LOADED_SLICES if columns >= WIDE else MIN_CHUNK
        length = min(max(power_of_two(isqrt(ceil_div(slices, positions))), shortest), MAX_CHUNK)
        chunks = ceil_div(slices, length)
        each = min(power_of_two(columns), MAX_COLUMNS)
        across = min(power_of_two(ceil_div(columns, each)), THREADS)
        block = across, THREADS // across, 1
        grid = ceil_div(batch * chunks, block[1]), min(ceil_div(columns, each * across), MAX_GRID_Y), 1
        operands = [OperandAddress(k) for k in (0, *range(1 + self.is_update, len(self.leaves) + 3 + self.is_update))]
        work = OperandAddress(WORKSPACE if chunks > 1 else 0)
        shared = (0,) * (self.keys.ndim == 1)  # by all batches
        strides = [*self.out.strides, *shared, *self.keys.strides, *shared, *self.order.strides]
        strides += [s for layout in self.leaf_layouts for s in layout.strides]
        numbers = chunks, length, batch, positions, slices, columns
        arguments: tuple[OperandAddress | int, ...] = (*operands, work, *numbers, *strides)
        variant = self.op.operator, self.op.value, self.leaves, self.key, self.is_update
        kernels = [make_scatter(*variant, c) for c in (each, 0)[: 1 + (chunks > 1)]]
        workspace = 2 * batch * chunks * columns * self.dtype.itemsize * (chunks > 1)
        return GpuPlan(tuple(GpuLaunch(kernel, grid, block, arguments) for kernel in kernels), workspace)

    @property
    def source(self) -> str:
        """The text of each kernel."""
        return "" if 0 in self.step.shape else "\n".join(x.kernel.text for x in self.plan.launches)

    def cost(self) -> Cost:
        """Return the number of launches, and the bytes of workspace."""
        if 0 in self.step.shape:
            return Cost(0)
        return Cost(len(self.plan.launches) + (not self.is_in_place), self.plan.workspace)

    def load(self) -> Launcher:
        """Return a launcher."""
        if 0 in self.step.shape:
            return do_nothing
        operands = range(len(self.step.inputs) + 1)
        parts = list[tuple[CudaLauncher, range]]()
        if not self.is_in_place:
            parts.append((CudaKernelLauncher(self.device, self.first), operands[: 1 + len(self.olds)]))
        if self.plan.launches:
            parts.append((PlanLauncher(self.device, self.step, self.plan, self.dtype), operands))
        return LaunchSequence(self.device, parts)
