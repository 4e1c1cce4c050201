"""Tensors without history for the classes of tasks 2.4 and 4.4: their loops are those of the backend "yours"."""

from typing import Any

import numpy as np

from ...backends.operand import Operand
from ...core.layout import Layout
from ..overlay import count_slots_once
from ..strided import Strided
from ..values import Numbers, ValueEngine, Values
from ..values import Operand as Argument
from .backend import Explaining, StudentBackend, strided
from .serial_loops import Serial


class StudentValueEngine(ValueEngine):
    """The engine of `Values` on which `forward` and `backward` of a student's classes compute.

    Parameters
    ----------
    backend : StudentBackend
        Runs map, zip, reduce and matmul.
    """

    def __init__(self, backend: StudentBackend) -> None:
        self.backend, self.engine = backend, backend.engine
        self.serial = Serial(self.engine.student)

    def slot(self, name: str) -> Any:
        """Return a student's function or class, or the one that the course lends."""
        return getattr(self.engine.student, name)

    def values(self, x: Numbers | Values) -> Values:
        """Convert numbers, nested lists, an array or a `Strided` to `Values`; an array of float64 is not copied."""
        if isinstance(x, np.ndarray) and x.dtype == np.float64:
            return Values(self, strided(Operand.from_array(x)))
        return super().values(x)

    def loop(self, kind: str, name: str, out: Strided, a: Strided, *operands: Argument) -> None:
        """Run map, zip or reduce with an operator of task 0.1."""
        self.backend.run(kind, name, as_operand(out), as_operand(a), *[as_operand(x) for x in operands])

    def write(self, slot: str, out: Strided, *operands: Argument) -> None:
        """Let a convolution or a pooling write a tensor: the student's, compiled if Numba can, or the one that is lent."""
        with Explaining(self.engine, slot):
            if self.engine.has(slot):
                self.serial.run(slot, out, *operands)
                return
            with count_slots_once(self.engine.student.calls, self.engine.lent):
                self.slot(slot)(out, *operands)

    def matmul(self, a: Values, b: Values) -> Values:
        """Multiply matrices."""
        out = self.fresh((*self.slot("broadcast_shape")(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]))
        self.backend.matmul(as_operand(a.data), as_operand(b.data), as_operand(out))
        return Values(self, out)


def as_operand(x: Any) -> Any:
    """Return a tensor of the course as an operand of a backend, over the same memory; any other argument unchanged."""
    return Operand(x.storage, Layout(tuple(x.shape), tuple(x.strides), x.offset)) if isinstance(x, Strided) else x
