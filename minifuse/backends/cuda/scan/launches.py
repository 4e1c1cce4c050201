"""Plan the launches of a scan for given layouts: one, or two if there are too few lines for all multiprocessors.

With two, each line is cut into chunks. If its elements are neighbors, a chunk is one tile, whose block looks back for the
totals before it (`look_back`); the first launch resets the flags. If lines lie side by side, the first launch stores the
total of each chunk, and the second scans the chunks, each from the total of those before it.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING

from ....core.dtypes import int32
from ....core.layout import Layout
from ....core.rounding import ceil_div, power_of_two
from ....ir.kernel_ir import IndexValue, KernelParameter
from ....ir.step_kernels import ScanKernel
from ....ir.steps import Step
from ...codegen.scan_nest import LOOK_BACK, RESUME, SCAN, TOTALS, ScanNest
from ...executable import Cost, Executable, Launcher, do_nothing
from ..compiler import kernel_from_text
from ..launch_plan import WORKSPACE, Argument, GpuLaunch, GpuPlan, NumberArgument, OperandAddress
from ..planned_launcher import AlignmentFlags, PlannedLauncher
from ..tile_shapes import GpuKernel
from .column_scan import ColumnScanSource
from .look_back import CLEAR_THREADS, LookBackScanSource, make_clear
from .row_scan import RowScanSource
from .source import WARP, CudaScanForm, CudaScanSource, ScanTile
from .staged_scan import MAX_STAGED_LINE, TILE, SharedScanTile, StagedScanSource

if TYPE_CHECKING:
    from ..device import CudaDevice

MAX_WARPS, MAX_COLUMN_WARPS = 4, 8  # of a block
LOOK_BACK_WARPS, MAX_LINES_PER_PROCESSOR = 4, 4  # with fewer long lines, each is scanned by several blocks
MIN_LOOK_BACK_TILES = 4
MAX_COLUMN_CHUNKS = 64  # chunks of a line: each block combines the totals of those before its own


@lru_cache(1024)
def make_scan(scan: ScanKernel, form: CudaScanForm, staged: SharedScanTile | None) -> GpuKernel:
    """Return the kernel of a scan with its prologue and epilogue."""
    rows = LookBackScanSource if form.mode == LOOK_BACK else RowScanSource
    source: CudaScanSource = (ColumnScanSource if form.is_columns else rows)(scan, form)
    text = (source if staged is None else StagedScanSource(scan, form, staged)).emit()
    constants = form.mode, *form.tile
    signature = tuple(kind for _, kind in source.parameters())
    threads, blocks = form.tile.threads, 1 if form.mode == TOTALS else form.tile.blocks  # that of totals runs alone
    return GpuKernel("scan", constants, kernel_from_text(text), signature, threads, blocks, 0, text)


class ScanProblem:
    """A scan over operands with some layouts: the forms of its kernels, and its launches."""

    def __init__(
        self,
        kernel: ScanKernel,
        layouts: Sequence[Layout],
        processors: int,
        tile: ScanTile | None = None,
        chunks: int | None = None,
    ) -> None:
        """Prepare the launches. By default, the tile and the number of chunks depend on the sizes."""
        self.kernel, self.dtypes, self.processors = kernel, kernel.operand_dtypes(), processors
        self.states = [e.dtype for e in kernel.states]
        first_input = len(kernel.outputs)
        self.index_values = frozenset(first_input + e.index for e in kernel.find_all(IndexValue))
        self.nest = ScanNest.of_layouts(kernel.op, layouts)
        self.staged = SharedScanTile.for_lines(self.nest.n, self.state_nbytes) if tile is None and self.is_short else None
        self.tile = tile or (TILE if self.staged else self.choose_tile())
        self.chunks = self.choose_chunks() if chunks is None else chunks
        length = ceil_div(ceil_div(self.nest.n, self.chunks), self.tile_length) * self.tile_length
        length = self.tile_length if self.looks_back else length
        self.length = length if self.chunks > 1 else max(self.nest.n, 1)
        self.chunks = ceil_div(self.nest.n, self.length)
        self.lines = prod(self.nest.sizes)

    @cached_property
    def is_columns(self) -> bool:
        """Return whether lanes have different lines, because the elements of a line are no neighbors."""
        return abs(self.nest.steps[0]) != 1 and not self.kernel.row_outputs

    @cached_property
    def is_short(self) -> bool:
        """Return whether lines are so short that they are scanned in shared memory."""
        if self.kernel.row_outputs:
            return True
        return not self.is_columns and 0 < self.nest.n <= MAX_STAGED_LINE

    @property
    def state_nbytes(self) -> int:
        """Return the bytes of all states of an element."""
        return sum(x.itemsize for x in self.states)

    @property
    def looks_back(self) -> bool:
        """Return whether blocks look back for the totals of the tiles before their own."""
        return self.chunks > 1 and not self.is_columns

    @property
    def tile_length(self) -> int:
        """Return the number of elements of a line in a tile."""
        return self.tile.warps * self.tile.items * (1 if self.is_columns else WARP)

    def choose_tile(self) -> ScanTile:
        """Return the tile: as many elements of a line as a block's registers have, or all, and then several lines."""
        nbytes, n = self.state_nbytes, self.nest.n
        items = 16 if nbytes <= 4 else 8
        if self.is_columns:
            items = min(power_of_two(n), items if nbytes <= 8 else 4)
            warps = min(power_of_two(ceil_div(n, items)), MAX_COLUMN_WARPS)
            lines = 2 * MAX_COLUMN_WARPS // warps
            groups = prod(self.nest.sizes[:-1]) * ceil_div(self.nest.sizes[-1], WARP * lines)
            is_few = warps == MAX_COLUMN_WARPS and groups < self.processors  # one group a block, so that lines can be cut
            return ScanTile(warps, items, 1 if is_few else lines)
        if prod(self.nest.sizes) <= MAX_LINES_PER_PROCESSOR * self.processors and n > LOOK_BACK_WARPS * 2 * items * WARP:
            return ScanTile(LOOK_BACK_WARPS, 2 * items, 1, 4)
        items = min(items, 4 * power_of_two(ceil_div(n, 4 * WARP)))
        warps = min(power_of_two(ceil_div(n, WARP * items)), MAX_WARPS)
        return ScanTile(warps, items, MAX_WARPS // warps, 8)

    def block_count(self) -> int:
        """Return the number of blocks for each chunk."""
        *outer, last = self.nest.sizes
        if self.is_columns:
            return prod(outer) * ceil_div(last, WARP * self.tile.lines)
        return ceil_div(prod(self.nest.sizes), self.staged.lines if self.staged else self.tile.lines)

    def choose_chunks(self) -> int:
        """Return the number of chunks of a line, so that all multiprocessors have work."""
        if self.staged:
            return 1
        blocks = self.block_count()
        tiles = ceil_div(self.nest.n, self.tile_length)
        if self.tile.lines > 1 or blocks > (
            self.processors // 2 if self.is_columns else MAX_LINES_PER_PROCESSOR * self.processors
        ):
            return 1
        if self.is_columns:
            return min(MAX_COLUMN_CHUNKS, ceil_div(2 * self.processors, blocks), tiles)
        return tiles if tiles >= MIN_LOOK_BACK_TILES else 1

    @property
    def workspace(self) -> int:
        """Return the bytes of the totals of all chunks, and of their flags."""
        count = self.lines * self.chunks
        if self.chunks == 1:
            return 0
        totals = count * sum(x.itemsize for x in self.states)
        nbytes = 2 * totals + 4 * (count + 2) if self.looks_back else totals
        return ceil_div(nbytes, 16) * 16

    def workspace_addresses(self) -> list[OperandAddress]:
        """Return the addresses of the totals of chunks, the largest first; if blocks look back, two for each, and flags."""
        count, start, found = self.lines * self.chunks, 0, dict[int, OperandAddress]()
        states = [*self.states] * (1 + self.looks_back)
        for k in sorted(range(len(states)), key=lambda k: -states[k].itemsize):
            found[k] = OperandAddress(WORKSPACE, start // states[k].itemsize, states[k])
            start += count * states[k].itemsize
        flags = [OperandAddress(WORKSPACE, ceil_div(start, 4), int32)] * self.looks_back
        return [*flags, *[found[k] for k in range(len(states))]]

    def plan(self, is_aligned: bool) -> GpuPlan:
        """Return the launches. If `is_aligned`, all addresses are multiples of 16 bytes."""
        modes = [SCAN] if self.chunks == 1 else [LOOK_BACK] if self.looks_back else [TOTALS, RESUME]
        launches = [self.launch(mode, is_aligned) for mode in modes]
        if self.looks_back:
            flags, count = self.workspace_addresses()[0], self.lines * self.chunks + 1
            grid = ceil_div(count, CLEAR_THREADS), 1, 1
            launches.insert(0, GpuLaunch(make_clear(), grid, (CLEAR_THREADS, 1, 1), (flags, count)))
        return GpuPlan(tuple(launches), self.workspace)

    def launch(self, mode: str, is_aligned: bool) -> GpuLaunch:
        """Return one launch."""
        nest, tile, axis = self.nest, self.tile, len(self.nest.sizes) - 1
        inner = [strides[axis] for strides in nest.strides] if self.is_columns else list(nest.steps)
        kinds = tuple(str(x) if x in (0, 1) or (x == -1 and not self.is_columns) else "s" for x in inner)
        form = CudaScanForm(mode, len(nest.sizes), kinds, self.is_columns, self.wide_operands(is_aligned), tile)
        kernel = make_scan(self.kernel, form, self.staged)
        arguments: list[Argument] = [OperandAddress(k, start) for k, start in enumerate(nest.starts)]
        arguments += [] if mode == SCAN else self.workspace_addresses()
        arguments += [nest.n, self.chunks, self.length, *nest.sizes, *nest.steps]
        arguments += [s for strides in nest.strides for s in strides]
        arguments += [NumberArgument(k) for k, _ in enumerate(self.kernel.find_all(KernelParameter))]
        block = (WARP, tile.warps, tile.lines) if self.is_columns else (WARP * tile.warps, tile.lines, 1)
        blocks = self.block_count() * self.chunks
        if not self.is_columns and not self.staged:
            blocks = ceil_div(self.lines * self.chunks, tile.lines)
        return GpuLaunch(kernel, (blocks, 1, 1), block, tuple(arguments))

    def wide_operands(self, is_aligned: bool) -> tuple[bool, ...]:
        """Return for each operand whether each of its lines consists of aligned groups of four."""
        has_groups = is_aligned and not self.is_columns and self.nest.n % 4 == 0
        operands = enumerate(zip(self.nest.steps, self.nest.strides, self.dtypes, strict=True))
        return tuple(
            has_groups
            and k not in self.index_values
            and dtype.itemsize >= 4
            and abs(step) == 1
            and all(s % 4 == 0 for s in strides)
            for k, (step, strides, dtype) in operands
        )


class CudaScan(Executable):
    """A scan along a dim, with its prologue and epilogue."""

    def __init__(self, device: "CudaDevice", step: Step, kernel: ScanKernel) -> None:
        super().__init__(step)
        self.device, self.kernel = device, kernel

    @cached_property
    def problem(self) -> ScanProblem:
        """The launches."""
        layouts = [x for group in self.step.layouts() for x in group]
        return ScanProblem(self.kernel, layouts, self.device.multiprocessors)

    @property
    def source(self) -> str:
        """The text of each kernel."""
        if 0 in self.step.shape:
            return ""
        return "\n\n".join(launch.kernel.text for launch in self.problem.plan(is_aligned=True).launches)

    def cost(self) -> Cost:
        """Return 1 launch, or 2 with the bytes of the totals of chunks."""
        return Cost(0) if 0 in self.step.shape else Cost(min(self.problem.chunks, 2), self.problem.workspace)

    def load(self) -> Launcher:
        """Return a launcher."""
        if 0 in self.step.shape:
            return do_nothing
        return CudaScanLauncher(self.device, self.problem, [x for group in self.step.layouts() for x in group])


class CudaScanLauncher(PlannedLauncher):
    """A launcher of a scan. Its plan depends on whether all addresses are aligned."""

    def __init__(self, device: "CudaDevice", problem: ScanProblem, layouts: Sequence[Layout]) -> None:
        self.problem, self.index_values = problem, problem.index_values
        self.number_dtypes = [p.dtype for p in problem.kernel.find_all(KernelParameter)]
        arrays = [k for k in range(len(layouts)) if k not in self.index_values]
        super().__init__(device, layouts, [*problem.dtypes, problem.states[0]], [arrays])

    def plan(self, aligned: AlignmentFlags) -> GpuPlan:
        """Return the launches for addresses of this alignment."""
        return self.problem.plan(all(aligned))
