"""Pointwise template for unaligned rows: each thread handles elements blockDim.x apart.

Vector loads are not possible there. Adjacent threads compute adjacent points. Each thread loads all of its points before it
stores the first one: a store might change an element that is loaded later, so the compiler may not move loads before stores.
"""

from collections.abc import Sequence

from ....ir.kernel_ir import Expression, IndexValue, Kernel, Load
from .base import CudaSource, storage_of

MAX_LOADS_IN_FLIGHT = 16  # loads that a thread issues before it waits


class ApartSource(CudaSource):
    """The text of a pointwise kernel for unaligned rows."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str]) -> None:
        super().__init__(kernel, rows, classes)
        self.is_wide, self.groups = False, 0
        loads = [e for e in kernel.find_all(Load) if not isinstance(e, IndexValue) and self.varies[e]]
        self.held = {e: f"row{k}" for k, e in enumerate(loads)}
        self.points_apart = max(min(MAX_LOADS_IN_FLIGHT // max(len(loads), 1), 8), 1)

    def head(self) -> list[str]:
        """Return the lines that compute a thread's row and its first point."""
        *_, is_row = lines = super().head()
        first = f"first = {self.points_apart} * cuda.blockDim.x * cuda.blockIdx.x + cuda.threadIdx.x"
        return [first, *[line for line in lines if line != is_row and "threadIdx.x" not in line], is_row]

    def hold(self) -> None:
        """Emit the loads of all points of a thread."""
        for e, row in self.held.items():
            self.line(f"{row} = cuda.local.array({self.points_apart}, {storage_of(e.dtype)})")
        ((lines, _),) = self.passes()
        with self.block(*lines if self.held else ()):
            for e, row in self.held.items():
                self.line(f"{row}[k] = {self.element_read(e)}")

    def passes(self) -> list[tuple[list[str], str]]:
        """Return the loop over the points of a thread."""
        i, n = f"i{self.axes - 1}", f"n{self.axes - 1}"
        return [([f"for k in range({self.points_apart}):", f"{i} = first + k * cuda.blockDim.x", f"if {i} < {n}:"], "")]

    def text(self, e: Expression) -> str:
        """Return the text of an expression."""
        if e in self.held and e not in self.names:
            return self.dialect.load(f"{self.held[e]}[k]", e.dtype)
        return super().text(e)
