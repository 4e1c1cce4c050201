"""Template for reductions along long rows that compute a maximum and sums of exponentials in one pass (`online_exp_sum`).

Without this template, a row that does not fit in registers would occupy the shared memory of a multiprocessor, or be read
twice. Here it is read once for both reductions, in chunks: each thread loads several elements, computes their maximum,
corrects its sums once for all of them, and adds their exponentials. At the end the threads reduce their maxima to one, and
correct their sums for it. Outputs that need both reductions, such as those of a softmax, are computed in a second pass.
"""

from collections.abc import Sequence

from ....core.dtypes import bool_
from ....ir.kernel_ir import Expression, IndexValue, Kernel, ReduceExpr
from ..geometry import RowPartition
from .base import CudaSource
from .dialect import storage_of
from .online_exp_sum import sums_of_exponentials
from .point_function import Point
from .reciprocals import with_reciprocals
from .rows_in_shared import RowSource


class OnlineSource(RowSource):
    """The text of a kernel with online sums; `share` contains the threads of a row, and the groups of a chunk."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str], share: RowPartition) -> None:
        super().__init__(kernel, rows, classes)
        super().__init__(with_reciprocals(kernel, self.varies), rows, classes)
        self.row_partition, self.is_wide = share, share.width > 1
        self.needs_index = True  # True if a pass needs the index of an element in the row
        self.sums = sums_of_exponentials(self.kernel)
        self.set_levels({e: found.top for e, found in self.sums.items()})
        self.held = {}
        self.chunks = [share.groups, 1] if share.groups > 1 else [1]
        self.rows_of: dict[Expression, str] = {}  # leaves that a pass has loaded -> their array

    def steps(self, groups: int) -> list[str]:
        """Return the lines that open a loop over the groups of a chunk; a single group needs none."""
        index = f"i{self.axes - 1} = first + k * {self.span()}"
        return [f"for k in range({groups}):", *[index] * self.needs_index] if groups > 1 else []

    def span(self, groups: int = 1) -> str:
        """Return the number of elements of a row that its threads process together in `groups` groups."""
        return f"{groups * self.row_partition.width * self.row_partition.threads}"

    def walk(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Emit one pass along the row, chunk by chunk."""
        found = [self.sums[e] for e in folds if e in self.sums]
        tops = [e for e in folds if e in {x.top for x in found}]
        rest = [e for e in folds if e not in tops]
        before = self.point([e.inputs[0] for e in tops]) if tops else None
        for top, base in found:
            self.names[base] = f"top{self.reductions.index(top)}"
        after = self.point([*[e.inputs[0] for e in rest], *[e for _, e in elements]])
        self.declare(folds, [e for point in (before, after) if point for e in point.leaves])
        with self.block("if is_row:"):
            self.line(f"first = {'4 * ' * self.is_wide}cuda.threadIdx.x")
            for groups in self.chunks:
                room = f"first + {self.span(groups - 1)} < n{self.axes - 1}" if groups > 1 else f"first < n{self.axes - 1}"
                with self.block(f"while {room}:"):
                    self.load(groups)
                    if before:
                        self.raise_tops(before, tops, rest, groups)
                    self.needs_index = bool(elements) or any(isinstance(e, IndexValue) for e in after.leaves)
                    self.each(after, rest, elements, groups)
                    self.line(f"first += {self.span(groups)}")
        for _, base in set(found):
            self.names.pop(base)
        self.meet(tops, rest)
        self.held = {}

    def declare(self, folds: Sequence[ReduceExpr], leaves: Sequence[Expression]) -> None:
        """Emit the initial value of each reduction, and a local array for each leaf of a chunk."""
        for fold in folds:
            self.line(f"fold{self.reductions.index(fold)} = {self.start_of(fold)}")
        beside = [e for e in dict.fromkeys(leaves) if self.is_leaf(e) and self.varies[e]]
        for e in beside:
            if e not in self.rows_of:
                self.rows_of[e] = row = f"row{len(self.rows_of)}"
                self.line(
                    f"{row} = cuda.local.array({self.row_partition.groups * self.row_partition.width}, "
                    f"{storage_of(e.dtype)})"
                )
        self.held = {e: self.rows_of[e] for e in beside}

    def load(self, groups: int) -> None:
        """Emit all loads of a chunk, before any of their results is used."""
        self.needs_index = True
        if groups == 1:
            self.line(f"k, i{self.axes - 1} = 0, first")
        with self.block(*self.steps(groups)):
            for e, row in self.held.items():
                place = self.element_read(e)
                self.line(f"put4({row}, 4 * k, {self.loaded(place)})" if self.is_wide else f"{row}[k] = {place}")

    def raise_tops(self, before: Point, tops: Sequence[ReduceExpr], rest: Sequence[ReduceExpr], groups: int) -> None:
        """Emit the update of the maxima with a chunk, and the correction of the sums for the new maxima."""
        self.needs_index = any(isinstance(e, IndexValue) for e in before.leaves)
        for e in tops:
            k = self.reductions.index(e)
            self.line(f"old{k} = fold{k}")
        self.each(before, tops, [], groups)
        for total in rest:
            if total in self.sums:
                k, top = self.reductions.index(total), self.reductions.index(self.sums[total].top)
                self.line(f"fold{k} = moved_sum(fold{k}, old{top}, fold{top})")
        for e in tops:
            k = self.reductions.index(e)
            self.line(f"top{k} = finite(fold{k})")

    def each(
        self, point: Point, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], groups: int
    ) -> None:
        """Emit the arithmetic, reductions and stores of the points of a chunk."""
        with self.block(*self.steps(groups)):
            if self.is_wide:
                self.fours(point, folds, elements, "i", {})
            else:
                self.one(point, folds, elements, {})

    def meet(self, tops: Sequence[ReduceExpr], rest: Sequence[ReduceExpr]) -> None:
        """Emit the reductions over the threads of a row, the maxima first.

        If -inf - -inf makes a result NaN here, it is NaN with two passes, too.
        """
        for e in tops:
            k = self.reductions.index(e)
            self.line(f"own{k} = fold{k}")
        for e in [*tops, *rest]:
            k, x = self.reductions.index(e), f"fold{self.reductions.index(e)}"
            if e in self.sums:
                top, base = self.sums[e]
                if base not in self.names:
                    self.name(base)
                x = f"{x} * exp(own{self.reductions.index(top)} - {self.names[base]})"
            self.line(f"fold{k} = fold_along_x({self.operator_name(e)}, {x}, parts{k})")
            self.names[e] = f"(fold{k} != 0)" if e.dtype is bool_ else f"fold{k}"

    def integers(self) -> list[str]:
        """Return the names of sizes and strides; the last, `is_wide`, is 1 if addresses allow loads of four elements."""
        found = CudaSource.integers(self)
        return [*found[:-1], "is_wide"] if self.is_wide else found

    def load_beside(self, e: Expression, letter: str) -> list[str]:
        """Return four adjacent elements of a row, from the local array if they are in it."""
        row = self.held.get(e)
        if row is None:
            return CudaSource.load_beside(self, e, letter)
        name = self.parameter(e)
        self.line(f"{name} = beside4({row}, 4 * k)")
        return [f"{name}[{k}]" for k in range(4)]

    def loaded(self, place: str, letter: str = "i") -> str:
        """Return the load of four adjacent elements that start at a place in memory."""
        return f"load4_if(is_wide, {self.address(place, letter)})"

    def stored(self, place: str, letter: str) -> str:
        """Return the beginning of the store of four adjacent elements."""
        return f"store4_if(is_wide, {self.address(place, letter)}"

    def text(self, e: Expression) -> str:
        """Return the text of an expression."""
        row = self.held.get(e)
        if row is None or e in self.names:
            return CudaSource.text(self, e)
        return self.dialect.load(f"{row}[k]", e.dtype)
