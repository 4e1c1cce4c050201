"""Plan the launches of a selection for given layouts: one, or one for each level of chunks of long rows."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ....core.dtypes import DType, int64
from ....core.layout import Layout
from ....core.rounding import ceil_div, power_of_two
from ....ir.selection import INDICES, VALUES, Selection
from ....ir.steps import Step
from ...executable import Cost, Executable, Launcher, do_nothing
from ..launch_plan import WORKSPACE, Argument, GpuLaunch, GpuPlan, OperandAddress
from ..planned_launcher import AlignmentFlags, PlannedLauncher
from ..tile_shapes import GpuKernel
from .kernels import WARP, KeyFormat, SortTile
from .launches import ELEMENTS, MAX_ROW_AXES, Lines, RowLines
from .network import MAX_SIZE as MAX_NETWORK_SIZE
from .select import MAX_SELECTED, make_select_first, make_select_ranks

if TYPE_CHECKING:
    from ..device import CudaDevice

CHUNK = 1 << 13  # elements that a block selects from


class SelectionProblem:
    """A selection over operands with some layouts: the kernels and their launches."""

    def __init__(self, op: Selection, layouts: Sequence[Layout], dtype: DType, length: int = CHUNK) -> None:
        """Prepare the launches. `layouts` are those of the outputs and of the inputs, the first of which has a dtype."""
        self.op, self.form, self.rows = op, KeyFormat.of(dtype), RowLines.of(layouts, op.dim)
        self.n, self.count = layouts[len(op.names)].shape[op.dim], layouts[0].shape[op.dim]
        self.length = length  # of a chunk
        self.tile = self.choose_tile(min(self.n, length))

    @property
    def refusal(self) -> str | None:
        """Why there is no kernel."""
        if self.n <= MAX_NETWORK_SIZE:
            return f"rows of at most {MAX_NETWORK_SIZE} elements are sorted"
        if self.rows.axes > MAX_ROW_AXES:
            return f"a CUDA kernel selects from rows along at most {MAX_ROW_AXES} axes that cannot be merged"
        if self.op.count is None:
            return f"ranks are selected from rows of at most {CHUNK} elements" if self.n > CHUNK else None
        return f"a CUDA kernel selects at most {MAX_SELECTED} first elements of a row" if self.count > MAX_SELECTED else None

    def choose_tile(self, n: int) -> SortTile:
        """Return the tile of a row: a thread has 8 keys, or 16 of 64 bits, with which fewer warps fit."""
        items = min(power_of_two(ceil_div(n, WARP)), 8 if self.form.word == "i32" else 16)
        warps = power_of_two(ceil_div(n, WARP * items))
        return SortTile(warps, items, max(32 // warps, 1) if self.form.word == "i32" else 1)

    @cached_property
    def plan(self) -> GpuPlan:
        """Return the launches. The positions that one of them stores are the elements of the next one."""
        if self.op.count is None:
            return GpuPlan((self.select_ranks(),))
        launches, n, start = list[GpuLaunch](), self.n, 0
        chosen = OperandAddress(0)
        while n > self.length:
            chunks, target = ceil_div(n, self.length), OperandAddress(WORKSPACE, start)
            row = (chunks - 1) * self.count + min(self.count, n - (chunks - 1) * self.length)
            launches.append(self.select_first(target, chosen, n, chunks, self.compact(row), is_first=not launches))
            chosen, n, start = target, row, start + self.rows.total * row
        launches.append(self.select_first(None, chosen, n, 1, None, is_first=not launches))
        return GpuPlan(tuple(launches), 8 * start)

    def compact(self, n: int) -> Lines:
        """Return the strides of rows of n elements in row-major order."""
        _, n1, n2 = self.rows.sizes
        return 1, n1 * n2 * n, n2 * n, n

    def output(self, name: str) -> tuple[OperandAddress, Lines]:
        """Return an output and its strides, or any operand if it is not kept."""
        k = self.op.names.index(name) if name in self.op.names else 0
        return OperandAddress(k), self.rows.lines[k]

    @property
    def flips(self) -> int:
        """Return the bits of a key that are flipped."""
        return -1 if self.op.descending else 0

    def select_first(
        self, target: OperandAddress | None, chosen: OperandAddress, n: int, chunks: int, lines: Lines | None, is_first: bool
    ) -> GpuLaunch:
        """Return a launch of a block for each chunk. It stores positions at a target, or the outputs if there is none."""
        names = self.op.names
        (values, v_lines), (indices, i_lines) = self.output(VALUES), self.output(INDICES)
        if target is not None and lines is not None:
            indices, i_lines = target, lines
        has_values, has_indices = target is None and VALUES in names, target is not None or INDICES in names
        kernel = make_select_first(self.form, self.tile, is_first, has_values, has_indices)
        x, x_lines = OperandAddress(len(names)), self.rows.lines[len(names)]
        numbers = n, self.length, chunks, self.count, self.flips, *self.rows.sizes[1:], *v_lines, *i_lines, *x_lines
        return self.launch(kernel, self.rows.total * chunks, values, indices, x, chosen, *numbers)

    def select_ranks(self) -> GpuLaunch:
        """Return the launch of a block for each row."""
        names = self.op.names
        (values, v_lines), (indices, i_lines) = self.output(VALUES), self.output(INDICES)
        kernel = make_select_ranks(self.form, self.tile, VALUES in names, INDICES in names)
        x, ranks = OperandAddress(len(names)), OperandAddress(len(names) + 1)
        x_lines, r_lines = self.rows.lines[len(names) :]
        numbers = self.n, self.count, self.flips, *self.rows.sizes[1:], *v_lines, *i_lines, *x_lines, *r_lines
        return self.launch(kernel, self.rows.total, values, indices, x, ranks, *numbers)

    def launch(self, kernel: GpuKernel, blocks: int, *arguments: Argument) -> GpuLaunch:
        """Return the launch of a number of blocks."""
        return GpuLaunch(kernel, (blocks, 1, 1), (self.tile.threads, 1, 1), arguments)


class CudaSelection(Executable):
    """A selection along a dim."""

    def __init__(self, device: "CudaDevice", step: Step, op: Selection) -> None:
        super().__init__(step)
        self.device, self.op = device, op

    @cached_property
    def problem(self) -> SelectionProblem:
        """The launches."""
        dtypes = self.step.kernel.operand_dtypes()
        return SelectionProblem(self.op, self.operands, dtypes[len(self.op.names)])

    @property
    def operands(self) -> list[Layout]:
        """The layouts of the outputs and of the inputs."""
        return [x for group in self.step.layouts() for x in group]

    @property
    def refusal(self) -> str | None:
        """Why there is no kernel."""
        return self.problem.refusal

    @property
    def source(self) -> str:
        """The name and the constants of each kernel."""
        return "" if 0 in self.step.shape else "\n".join(x.kernel.source for x in self.problem.plan.launches)

    def cost(self) -> Cost:
        """Return the number of launches, and the bytes of workspace."""
        plan = GpuPlan() if 0 in self.step.shape else self.problem.plan
        return Cost(len(plan.launches), plan.workspace)

    def load(self) -> Launcher:
        """Return a launcher."""
        return do_nothing if 0 in self.step.shape else CudaSelectionLauncher(self.device, self.problem, self.operands)


class CudaSelectionLauncher(PlannedLauncher):
    """A launcher of a selection. The kernels see the bits of floats, as integers."""

    def __init__(self, device: "CudaDevice", problem: SelectionProblem, layouts: Sequence[Layout]) -> None:
        self.problem = problem
        element = ELEMENTS[problem.form.element]
        dtypes = [int64 if name == INDICES else element for name in problem.op.names]
        dtypes += [element, int64][: len(layouts) - len(dtypes)]
        super().__init__(device, layouts, [*dtypes, int64], [range(len(layouts))])

    def plan(self, aligned: AlignmentFlags) -> GpuPlan:
        """Return the launches, which do not depend on the alignment."""
        return self.problem.plan
