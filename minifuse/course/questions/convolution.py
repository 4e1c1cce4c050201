"""Questions of tasks 4.1 to 4.3: convolution and pooling."""

from collections.abc import Callable
from typing import NamedTuple, NoReturn

import numpy as np

from ..networks import Setting
from ..strided import Array, Strided
from ..student import Student
from ..verdicts import Wrong


class Case(NamedTuple):
    """The arguments of a slot: `out`, one or two operands, and two settings, each a number or a pair."""

    out: Strided
    operands: tuple[Strided, ...]
    first: Setting
    """The stride of a convolution; the window of pooling."""
    second: Setting
    """The padding of a convolution; the stride of pooling."""

    def copy(self) -> "Case":
        """Return the case with a copy of the output."""
        return self._replace(out=self.out._replace(storage=self.out.storage.copy()))

    def arrays(self) -> list[Array]:
        """Return the operands as NumPy arrays."""
        return [x.array() for x in self.operands]

    def changed(self) -> "Case":
        """Return the case with -2.0 in place of each -1.0 in the operands: another case of the same hash in Python."""
        operands = [x._replace(storage=np.where(x.storage == -1.0, -2.0, x.storage)) for x in self.operands]
        return self._replace(operands=tuple(operands))

    def halved(self) -> "Case":
        """Return the case with other elements in the operands, which no drawn case has."""
        operands = [x._replace(storage=x.storage * 0.5 + 0.125) for x in self.operands]
        return self._replace(operands=tuple(operands))


class Elements(tuple[float, ...]):
    """The storage of an operand: elements can be read one by one, and nothing else."""

    __slots__ = ()

    def __setitem__(self, place: object, value: object) -> NoReturn:
        raise Wrong("your function writes into an operand, which the caller still needs", kind="changed")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a storage has no {name}: read its elements one by one, since the loops are the task")


def run_slot(call: Callable[..., None], case: Case) -> Array:
    """Run a slot, and return the whole storage of its output, so that writes outside of the elements are found too."""
    case = case.copy()
    call(case.out, *case.operands, case.first, case.second)
    return case.out.storage


def ask(slot: str, student: Student, case: Case) -> Array:
    """Return the storage of the output that a slot of the student's has written.

    Its storage is a list, and those of the operands are tuples: NumPy has no part in the loops.
    """
    out, *operands = [x._asdict() | {"storage": x.storage.tolist()} for x in (case.out, *case.operands)]
    tensors = [Strided(**x | {"storage": Elements(x["storage"])}) for x in operands]
    getattr(student, slot)(Strided(**out), *tensors, case.first, case.second)
    return np.array(out["storage"], np.float64)


def ask_twice(slot: str, student: Student, case: Case) -> list[Array]:
    """Return what a slot writes for a case, and then for a changed one: a result must not be kept for the next call."""
    return [ask(slot, student, case), ask(slot, student, case.changed())]
