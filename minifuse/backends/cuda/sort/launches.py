"""Plan the launches of a sort for given layouts: one if a row fits in a warp or a tile, else three for each digit."""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from ....core.dtypes import DType, int8, int16, int32, int64, uint8
from ....core.layout import Layout
from ....core.rounding import ceil_div, power_of_two
from ....ir.kernel_ir import LoopNest
from ....ir.sort import INDICES, VALUES, Sort
from ....ir.steps import Step
from ...codegen.scan_nest import without_dim
from ...executable import Cost, Executable, Launcher, do_nothing
from ..launch_plan import WORKSPACE, GpuLaunch, GpuPlan, OperandAddress
from ..planned_launcher import AlignmentFlags, PlannedLauncher
from .kernels import (
    DIGITS,
    WARP,
    KeyFormat,
    SortTile,
    make_count_digits,
    make_move_keys,
    make_scan_counts,
    make_sort_rows,
)
from .network import MAX_SIZE as MAX_NETWORK_SIZE
from .network import NetworkTile, make_sort_short_rows

if TYPE_CHECKING:
    from ..device import CudaDevice

MAX_ROW_AXES = 3  # of rows whose positions a kernel computes
MAX_SIZE = 1 << 31  # of a row: an index within a row has 32 bits in kernels
WAVES = 4  # chunks for each multiprocessor
ELEMENTS: dict[str, DType] = {"i8": int8, "i16": int16, "i32": int32, "i64": int64, "u8": uint8}
Lines = tuple[int, ...]  # the strides of an operand: along a row, and along three axes of rows


class RowLines(NamedTuple):
    """The rows of operands along a dim: along how many axes they lie, the sizes of three axes, and strides of operands."""

    axes: int
    sizes: tuple[int, ...]
    lines: list[Lines]

    @classmethod
    def of(cls, layouts: Sequence[Layout], dim: int) -> "RowLines":
        """Return the rows of some layouts, whose shapes without the dim are equal."""
        rows = [without_dim(x, dim) for x in layouts]
        nest = LoopNest(rows[0].shape, (), rows)
        missing = (0,) * (MAX_ROW_AXES - len(nest.sizes))
        lines = [(x.strides[dim], *missing, *strides) for x, strides in zip(layouts, nest.strides, strict=True)]
        return cls(len(nest.sizes), (*[1 for _ in missing], *nest.sizes), lines)

    @property
    def total(self) -> int:
        """Return the number of rows."""
        return prod(self.sizes)


class SortProblem:
    """A sort over operands with some layouts: the kernels and their launches."""

    def __init__(
        self, op: Sort, layouts: Sequence[Layout], dtype: DType, processors: int, tile: SortTile | None = None
    ) -> None:
        """Prepare the launches. `layouts` are those of the outputs and of the input, which has a dtype."""
        self.op, self.dtype, self.form = op, dtype, KeyFormat.of(dtype, op.digits)
        self.n, rows = layouts[0].shape[op.dim], RowLines.of(layouts, op.dim)
        self.axes, self.rows, self.sizes, self.lines = rows.axes, rows.total, rows.sizes, rows.lines
        self.network = NetworkTile.of(self.n) if tile is None and self.n <= MAX_NETWORK_SIZE else None
        self.tile = tile or self.choose_tile()
        tiles = ceil_div(self.n, self.tile.size)
        wanted = max(ceil_div(WAVES * processors, max(self.rows, 1)), 1)
        self.length = ceil_div(tiles, min(tiles, wanted) or 1) * self.tile.size
        self.chunks = ceil_div(self.n, self.length) if self.n else 0

    def choose_tile(self) -> SortTile:
        """Return the tile of a row, or of the chunks of a row that is too long for shared memory.

        As many warps run on a multiprocessor as have registers for their keys, and for indices without delays.
        """
        is_narrow, has_indices = self.form.word == "i32", INDICES in self.op.names
        most = 16 if is_narrow else 8
        if self.n > WARP * 16 * most:
            return SortTile(16, 8, 2) if is_narrow else SortTile(8, 8, 2 if has_indices else 3)
        items = min(power_of_two(ceil_div(self.n, WARP)), 8 if self.n <= WARP * 128 else 16)
        warps = min(power_of_two(ceil_div(self.n, WARP * items)), 16)
        running = 16 if has_indices or items > 8 else 32 if is_narrow else 24
        return SortTile(warps, items, running // warps)

    @property
    def has_short_rows(self) -> bool:
        """Return whether a row fits in a tile."""
        return self.n <= self.tile.size

    @property
    def workspace(self) -> int:
        """Return the number of words of workspace: two buffers of keys, two of indices, the counts and their totals."""
        if self.has_short_rows:
            return 0
        buffers = min(self.form.digits - 1, 2) * (1 + (INDICES in self.op.names))
        return buffers * self.rows * self.n + self.rows * DIGITS * (self.chunks + 1)

    def plan(self) -> GpuPlan:
        """Return the launches."""
        itemsize = ELEMENTS[self.form.word].itemsize
        if self.network is not None:
            return GpuPlan((self.sort_short_rows(self.network),))
        if self.has_short_rows:
            return GpuPlan((self.sort_rows(),))
        launches = [x for k in range(self.form.digits) for x in self.sort_by(k)]
        return GpuPlan(tuple(launches), self.workspace * itemsize)

    @property
    def mask(self) -> int:
        """Return the bits of a digit that are flipped."""
        return DIGITS - 1 if self.op.descending else 0

    def output(self, name: str) -> tuple[OperandAddress, Lines]:
        """Return an output and its strides, or any operand if it is not kept."""
        k = self.op.names.index(name) if name in self.op.names else 0
        return OperandAddress(k), self.lines[k]

    def sort_short_rows(self, tile: NetworkTile) -> GpuLaunch:
        """Return the launch of some lanes of a warp for each row."""
        (values, v_lines), (indices, i_lines) = self.output(VALUES), self.output(INDICES)
        kernel = make_sort_short_rows(self.form, tile, VALUES in self.op.names, INDICES in self.op.names)
        numbers = self.n, self.rows, -int(self.op.descending), *self.sizes[1:], *v_lines, *i_lines, *self.lines[-1]
        grid = ceil_div(self.rows, tile.rows), 1, 1
        return GpuLaunch(
            kernel, grid, (kernel.threads, 1, 1), (values, indices, OperandAddress(len(self.op.names)), *numbers)
        )

    def sort_rows(self) -> GpuLaunch:
        """Return the launch of a block for each row."""
        (values, v_lines), (indices, i_lines) = self.output(VALUES), self.output(INDICES)
        kernel = make_sort_rows(self.form, self.tile, VALUES in self.op.names, INDICES in self.op.names)
        x = OperandAddress(len(self.op.names))
        numbers = self.n, self.mask, *self.sizes[1:], *v_lines, *i_lines, *self.lines[-1]
        return GpuLaunch(kernel, (self.rows, 1, 1), (self.tile.threads, 1, 1), (values, indices, x, *numbers))

    def sort_by(self, place: int) -> list[GpuLaunch]:
        """Return the launches that sort by a digit: from the input or one of two buffers to the other, or to the outputs."""
        n, rows, form, tile, names = self.n, self.rows, self.form, self.tile, self.op.names
        is_first, is_last, has_indices = place == 0, place == form.digits - 1, INDICES in names
        size = rows * n
        compact = (1, self.sizes[1] * self.sizes[2] * n, self.sizes[2] * n, n)

        def buffer(k: int) -> OperandAddress:
            return OperandAddress(WORKSPACE, k * size)

        buffers = min(form.digits - 1, 2)  # of keys; then as many of indices
        counts = OperandAddress(WORKSPACE, buffers * (1 + has_indices) * size)
        totals = OperandAddress(WORKSPACE, counts.offset + rows * DIGITS * self.chunks)
        before, after = (place - 1) % 2, place % 2
        source, source_lines = (OperandAddress(len(names)), self.lines[-1]) if is_first else (buffer(before), compact)
        order = counts if is_first or not has_indices else buffer(buffers + before)
        values, v_lines = self.output(VALUES) if is_last else (buffer(after), compact)
        indices, i_lines = self.output(INDICES) if is_last else (buffer(buffers + after), compact)
        has_values = VALUES in names or not is_last
        block, blocks = (tile.threads, 1, 1), (rows * self.chunks, 1, 1)
        pass_of = n, self.length, self.chunks, place, self.mask, *self.sizes[1:]
        is_dense = v_lines[0] == i_lines[0] == source_lines[0] == 1
        move = make_move_keys(form, tile, is_first, is_last, has_values, has_indices, is_dense)
        return [
            GpuLaunch(make_count_digits(form, tile, is_first), blocks, block, (counts, source, *pass_of, *source_lines)),
            GpuLaunch(make_scan_counts(form.word), (rows * DIGITS, 1, 1), (WARP, 1, 1), (counts, totals, self.chunks)),
            GpuLaunch(
                move,
                blocks,
                block,
                (values, indices, source, order, counts, totals, *pass_of, *v_lines, *i_lines, *source_lines),
            ),
        ]


class CudaSort(Executable):
    """A sort along a dim."""

    def __init__(self, device: "CudaDevice", step: Step, op: Sort) -> None:
        super().__init__(step)
        self.device, self.op = device, op

    @cached_property
    def problem(self) -> SortProblem:
        """The launches."""
        layouts = [x for group in self.step.layouts() for x in group]
        return SortProblem(self.op, layouts, self.step.kernel.operand_dtypes()[-1], self.device.multiprocessors)

    @property
    def refusal(self) -> str | None:
        """Why there is no kernel: the rows lie along too many axes, or are too long."""
        if self.problem.axes > MAX_ROW_AXES:
            return f"a CUDA kernel sorts rows along at most {MAX_ROW_AXES} axes that cannot be merged"
        return f"a CUDA kernel sorts rows of less than {MAX_SIZE} elements" if self.problem.n >= MAX_SIZE else None

    @property
    def source(self) -> str:
        """The name and the constants of each kernel."""
        return "" if 0 in self.step.shape else "\n".join(x.kernel.source for x in self.problem.plan().launches)

    def cost(self) -> Cost:
        """Return the number of launches, and the bytes of workspace."""
        plan = GpuPlan() if 0 in self.step.shape else self.problem.plan()
        return Cost(len(plan.launches), plan.workspace)

    def load(self) -> Launcher:
        """Return a launcher."""
        if 0 in self.step.shape:
            return do_nothing
        return CudaSortLauncher(self.device, self.problem, [x for group in self.step.layouts() for x in group])


class CudaSortLauncher(PlannedLauncher):
    """A launcher of a sort. The kernels see the bits of floats, as integers."""

    def __init__(self, device: "CudaDevice", problem: SortProblem, layouts: Sequence[Layout]) -> None:
        self.problem = problem
        element, word = ELEMENTS[problem.form.element], ELEMENTS[problem.form.word]
        outputs = [int64 if name == INDICES else element for name in problem.op.names]
        super().__init__(device, layouts, [*outputs, element, word], [range(len(layouts))])

    def plan(self, aligned: AlignmentFlags) -> GpuPlan:
        """Return the launches, which do not depend on the alignment."""
        return self.problem.plan()
