"""Template for reductions along columns whose rows are whole groups of four: a thread reduces four adjacent columns.

A warp reads 512 bytes of a row at once. The threads along y share the elements of a column, and each has several loads in
flight. At the end they combine their sums in shared memory, and four of the threads along y continue with one column each.
Only kernels that store nothing before the reduction ends use this template; `base` contains that for all others.
"""

from collections.abc import Sequence

from ....core.dtypes import bool_
from ....ir.kernel_ir import Expression, IndexValue, Kernel, Load, LoopNest, ReadOutput, ReduceExpr
from ...codegen.loop_emitter import replace_index
from ..geometry import VECTOR_WIDTH
from .base import MAX_COLUMN_THREADS, MAX_REPEATED_COST, CudaSource
from .point_function import Point

IN_FLIGHT = 4  # loads of four elements that a thread issues before it waits
SHARED = 40 * 1024  # bytes of shared memory for partial results
MIN_COLUMN_LENGTH = 32  # elements of a column


class ColumnSource(CudaSource):
    """The text of a kernel in which each thread reduces four columns."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str]) -> None:
        super().__init__(kernel, rows, classes)
        self.is_wide = True

    @staticmethod
    def fits(kernel: Kernel, nest: LoopNest) -> bool:
        """Return whether this template fits a kernel over a nest; loads after the barrier may have any layout."""
        column, last = nest.row_axes - 1, len(nest.sizes) - 1
        if kernel.pointwise_outputs or kernel.indexed_dtypes() or last != nest.row_axes:
            return False
        source = CudaSource(kernel, nest.row_axes, nest.stride_kinds)
        if source.form != "columns":
            return False
        if any(isinstance(e, IndexValue | ReadOutput) for e in kernel.expressions()) or any(
            e.dtype is bool_ for e in source.reductions
        ):
            return False
        loads = [
            len(kernel.outputs) + e.index for e in Kernel(tuple(e.inputs[0] for e in source.reductions), ()).find_all(Load)
        ]
        found = [(nest.stride_kinds[k], nest.strides[k]) for k in loads]
        is_beside = all(c[column] != "s" and (c[column] == "0" or c[last] != "0") for c, _ in found)
        steps = [x for c, strides in found if c[column] == "1" for a, x in enumerate(strides) if a != column]
        is_whole = all(x % VECTOR_WIDTH == 0 for x in [*steps, nest.sizes[column]]) and nest.sizes[last] >= MIN_COLUMN_LENGTH
        is_one_sweep = max(source.pass_index[e.inputs[0]] for e in source.reductions) == 0
        has_room = sum(e.dtype.itemsize for e in source.reductions) * VECTOR_WIDTH * MAX_COLUMN_THREADS <= SHARED
        return is_beside and is_whole and is_one_sweep and has_room

    def integers(self) -> list[str]:
        """Return the names of sizes and strides; the last, `is_wide`, is 1 if addresses allow loads of four elements."""
        return [*super().integers()[:-1], "is_wide"]

    def room(self) -> int:
        """Return the elements of shared memory that a block needs for the partial results of a reduction."""
        return VECTOR_WIDTH * MAX_COLUMN_THREADS

    def head(self) -> list[str]:
        """Return the lines that compute the first of a thread's four columns."""
        i, n = f"i{self.rows - 1}", f"n{self.rows - 1}"
        _, is_row, _, *rest = super().head()
        return [
            f"{i} = 4 * (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)",
            is_row,
            f"{i} = min({i}, {n} - 4)  # past the last columns it stores nothing, but meets barriers",
            *rest,
        ]

    def emit_pass(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Emit the pass along the columns, after which each thread continues with one column."""
        point, last, column = self.point([e.inputs[0] for e in folds]), self.axes - 1, f"i{self.rows - 1}"
        for e in folds:
            names = [f"fold{self.reductions.index(e)}_{c}" for c in range(4)]
            self.line(f"{' = '.join(names)} = {self.start_of(e)}")
        leaves = sum(not isinstance(e, IndexValue) for e in point.leaves)
        count = 1 if self.kernel.cost() > MAX_REPEATED_COST else min(max(IN_FLIGHT // max(leaves, 1), 1), 4)
        with self.block("if is_row:"):
            self.line(f"i{last} = cuda.threadIdx.y")
            if count > 1:
                with self.block(
                    f"while i{last} + {count - 1} * cuda.blockDim.y < n{last}:  # {count} rows are on their way at once"
                ):
                    self.rows_at_once(point, folds, count)
            with self.block(f"while i{last} < n{last}:"):
                if count > 1:
                    self.line("no_unroll()")
                self.rows_at_once(point, folds, 1)
        for e in folds:
            k = self.reductions.index(e)
            four = ", ".join(f"fold{k}_{c}" for c in range(4))
            self.line(f"fold{k} = fold_of_column({self.operator_name(e)}, {four}, parts{k})")
            self.names[e] = f"fold{k}"
        self.line(f"{column} += cuda.threadIdx.y & 3  # from here on the thread has one column")

    def rows_at_once(self, point: Point, folds: Sequence[ReduceExpr], count: int) -> None:
        """Emit all loads of `count` rows, then the arithmetic that depends on them."""
        last = self.axes - 1
        loaded = [[(e, self.load_row(e, r)) for e in point.leaves] for r in range(count)]
        for r, loads in enumerate(loaded):
            for c in range(4):
                found = self.results(point, [self.dialect.load(x[c], e.dtype) for e, x in loads], f"_{r}_{c}")
                for e, text in zip(folds, found, strict=True):
                    self.accumulate(e, text, f"_{c}")
        self.line(f"i{last} += {f'{count} * ' * (count > 1)}cuda.blockDim.y")

    def load_row(self, e: Expression, r: int) -> list[str]:
        """Return four adjacent elements of the row that is r steps ahead, or the value that they share."""
        assert isinstance(e, Load)
        place, last = self.element_read(e), self.axes - 1
        name = self.leaf_name(e) + f"_{r}" * (r > 0)
        if r:
            place = replace_index(place, f"i{last}", f"(i{last} + {f'{r} * ' * (r > 1)}cuda.blockDim.y)")
        if self.stride_kinds[self.operand(e)][self.rows - 1] == "0":
            self.line(f"{name} = {place}")
            return [name] * 4
        operand, _, at = place[:-1].partition("[")
        self.line(f"{name} = load4_if(is_wide, {operand}, {at})")
        return [f"{name}[{c}]" for c in range(4)]

    def store_rows(self) -> list[str]:
        """Return the condition for storing: four of the threads that share columns store one column each."""
        return ["if is_row and cuda.threadIdx.y < 4:"]
