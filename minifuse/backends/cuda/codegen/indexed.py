"""The form of kernels with effects: a thread has one point, whose loads, effects and stores follow each other.

Where a point reads and writes is its own business, so nothing is taken four at a time, and nothing becomes a function of its
own: the lines stand in the order of what the user wrote.
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
