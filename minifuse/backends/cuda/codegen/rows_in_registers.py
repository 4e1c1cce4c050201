"""Template for reductions along rows of moderate length: each thread keeps its part of a row in registers.

Operands that several passes need are loaded once, all at the same time, into local arrays. The loops over these have a fixed
length, so the compiler unrolls them and keeps the arrays in registers. A row is distributed in groups of adjacent elements:
group k of thread t is `threads` groups after its group k - 1. Only the last group tests for the end of the row. The text
contains the number of threads per row and of groups per thread: a `RowPartition`.

`rows_in_shared` contains the template for longer rows, which are cached in shared memory or loaded again.
"""

from collections.abc import Sequence

from ....core.interning import toposort
from ....ir.kernel_ir import Expression, Kernel, Load, ReduceExpr
from ..geometry import RowPartition
from .base import CudaSource, storage_of
from .reciprocals import with_reciprocals
from .rows_in_shared import RowSource


class RegisterSource(RowSource):
    """The text of a kernel that keeps rows in registers; `share` is the partition of a row."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str], share: RowPartition) -> None:
        super().__init__(kernel, rows, classes)
        super().__init__(with_reciprocals(kernel, self.varies), rows, classes)
        self.row_partition, self.is_wide = share, share.width > 1
        self.needs_index = True  # True if a pass needs the index of an element in the row

    def integers(self) -> list[str]:
        """Return the names of sizes and strides; the last, `is_wide`, is 1 if addresses allow loads of four elements."""
        found = CudaSource.integers(self)
        return [*found[:-1], "is_wide"] if self.is_wide else found

    def hold(self) -> None:
        """Emit the loads that several passes need."""
        self.fetch(self.held)

    def fetch(self, leaves: dict[Expression, str]) -> None:
        """Emit loads into local arrays of the thread."""
        if not leaves:
            return
        self.needs_index = True
        count = self.row_partition.groups * self.row_partition.width
        for e, row in leaves.items():
            self.line(f"{row} = cuda.local.array({count}, {storage_of(e.dtype)})")
        with self.block("if is_row:"):
            for lines, _ in self.passes():
                with self.block(*lines):
                    for e, row in leaves.items():
                        place = self.element_read(e)
                        self.line(f"put4({row}, 4 * k, {self.loaded(place)})" if self.is_wide else f"{row}[k] = {place}")

    def passes(self) -> list[tuple[list[str], str]]:
        """Return the loop over all groups but the last, then the last group, which tests for the end of the row."""
        threads, groups, width = self.row_partition
        last, step, letters = self.axes - 1, threads * width, "i" * self.is_wide
        first = "4 * cuda.threadIdx.x" if self.is_wide else "cuda.threadIdx.x"
        found = [
            (
                [
                    f"k, i{last} = {groups - 1}, {f'{step * (groups - 1)} + ' * (groups > 1)}{first}",
                    f"if i{last} < n{last}:",
                ],
                letters,
            )
        ]
        if groups > 1:
            index = [f"i{last} = {step} * k + {first}"] * self.needs_index
            found.insert(0, ([f"for k in range({groups - 1}):", *index], letters))
        return found

    def walk(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Emit one pass along the row. If it processes single elements, all loads precede the first store."""
        inside = toposort([e.inputs[0] for e in folds] + [e for _, e in elements], self.inputs_of)
        new = [e for e in inside if isinstance(e, Load) and e not in self.held | self.names]
        if elements and not self.is_wide:
            beside = [e for e in new if self.is_leaf(e) and self.last_axis_stride_kind(e) == "1"]
            more: dict[Expression, str] = {e: f"row{len(self.held) + k}" for k, e in enumerate(beside)}
            self.fetch(more)
            self.held |= more
        self.needs_index = bool(elements or new)
        CudaSource.emit_pass(self, folds, elements, parked)
        self.kept |= {e: self.places[e] for e in parked.values()}

    def keep(self, e: Expression, texts: Sequence[str], letter: str) -> Sequence[str]:
        """Emit stores of one value, or of four, in a local array for later passes, and return their names."""
        names = [f"{self.kept_name(e)}_{k}" for k in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            self.line(f"{name} = {text}")
        row = self.places[e]
        self.line(f"put4({row}, 4 * k, ({', '.join(names)}))" if letter else f"{row}[k] = {names[0]}")
        return names

    def kept_name(self, e: Expression) -> str:
        """Return the name of a value that is kept in registers."""
        return f"k{list(self.places).index(e)}"

    # Expressions.

    def parameter(self, e: Expression) -> str:
        """Return the name of a value as a parameter of a point's function."""
        return self.kept_name(e) if e in self.kept else super().parameter(e)

    def load_beside(self, e: Expression, letter: str) -> list[str]:
        """Return four adjacent elements of a row, from the local array if they are in it."""
        row = self.kept.get(e) or self.held.get(e)
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
        row = self.kept.get(e) or self.held.get(e)
        if row is None or e in self.names:
            return CudaSource.text(self, e)
        return self.dialect.load(f"{row}[k]", e.dtype)
