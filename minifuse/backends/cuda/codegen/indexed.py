"""Template for kernels with indexed loads and stores: a thread computes one point, in the user's order of operations.

A point may read and write any element, so nothing is vectorized, and nothing becomes a device function.
"""

from collections.abc import Sequence

from ....ir.kernel_ir import Expression, Kernel, ReduceExpr
from .base import CudaSource


class RawSource(CudaSource):
    """The text of one kernel; `raws` are the classes of the strides of raw operands."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str], raws: Sequence[str]) -> None:
        super().__init__(kernel, rows, classes, raws)
        self.is_wide, self.groups = False, 0

    def emit_pass(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """One point."""
        ((lines, _),) = self.passes()
        with self.block(*lines):
            self.emit_stores()
            self.define([e for _, e in elements])
            for k, e in elements:
                self.store(k, e)
