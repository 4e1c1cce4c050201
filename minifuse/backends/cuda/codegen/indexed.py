"""Template for kernels with indexed loads and stores: a thread computes one point, in the user's order of operations.

A point may read and write any element, so there are no vector loads or stores, and no device functions of points.
"""

from collections.abc import Sequence

from ....ir.kernel_ir import Expression, Kernel, ReduceExpr
from .base import CudaSource


class RawSource(CudaSource):
    """The text of a kernel with indexed operands; `raws` are the kinds of their strides."""

    def __init__(self, kernel: Kernel, rows: int, classes: Sequence[str], raws: Sequence[str]) -> None:
        super().__init__(kernel, rows, classes, raws)
        self.is_wide, self.groups = False, 0

    def emit_pass(
        self, folds: Sequence[ReduceExpr], elements: Sequence[tuple[int, Expression]], parked: dict[int, Expression]
    ) -> None:
        """Emit one point: its indexed stores, then its outputs."""
        ((lines, _),) = self.passes()
        with self.block(*lines):
            self.emit_stores()
            self.define([e for _, e in elements])
            for k, e in elements:
                self.store(k, e)
