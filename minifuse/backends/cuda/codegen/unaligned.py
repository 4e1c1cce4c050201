"""Pointwise template for unaligned rows: each thread handles elements blockDim.x apart.

Vector loads are not possible there. Adjacent threads take adjacent points, and each thread loads all of its points before it
stores the first one: a store could change what a later load reads, so the compiler may not reorder them.
"""

from collections.abc import Sequence

from ....ir.kernel_ir import Expression, IndexValue, Kernel, Load
from .base import CudaSource, storage_of

MAX_LOADS_IN_FLIGHT = 16  # loads of a thread that are on their way at once


class ApartSource(CudaSource):
    """The text of one kernel of points."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str]) -> None:
        super().__init__(kernel, rows, classes)
        self.is_wide, self.groups = False, 0
        loads = [e for e in kernel.find_all(Load) if not isinstance(e, IndexValue) and self.varies[e]]
        self.held = {e: f"row{k}" for k, e in enumerate(loads)}
        self.points_apart = max(min(MAX_LOADS_IN_FLIGHT // max(len(loads), 1), 8), 1)

    def head(self) -> list[str]:
        """Which row the thread has, and where its first point is."""
        *_, is_row = lines = super().head()
        first = f"first = {self.points_apart} * cuda.blockDim.x * cuda.blockIdx.x + cuda.threadIdx.x"
        return [first, *[line for line in lines if line != is_row and "threadIdx.x" not in line], is_row]

    def hold(self) -> None:
        """Load all points."""
        for e, row in self.held.items():
            self.line(f"{row} = cuda.local.array({self.points_apart}, {storage_of(e.dtype)})")
        ((lines, _),) = self.passes()
        with self.block(*lines if self.held else ()):
            for e, row in self.held.items():
                self.line(f"{row}[k] = {self.element_read(e)}")

    def passes(self) -> list[tuple[list[str], str]]:
        """Point by point."""
        i, n = f"i{self.axes - 1}", f"n{self.axes - 1}"
        return [([f"for k in range({self.points_apart}):", f"{i} = first + k * cuda.blockDim.x", f"if {i} < {n}:"], "")]

    def text(self, e: Expression) -> str:
        """An expression in the words of the kernel."""
        if e in self.held and e not in self.names:
            return self.dialect.load(f"{self.held[e]}[k]", e.dtype)
        return super().text(e)
