"""Questions of tasks 4.1 to 4.3: convolution and pooling."""

from collections.abc import Callable
from typing import NamedTuple

from ..networks import Setting
from ..strided import Array, Strided
from ..student import Student


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


def run_slot(call: Callable[..., None], case: Case) -> Array:
    """Run a slot, and return the whole storage of its output, so that writes outside of the elements are found too."""
    case = case.copy()
    call(case.out, *case.operands, case.first, case.second)
    return case.out.storage


def ask(slot: str, student: Student, case: Case) -> Array:
    """Return the storage of the output that a slot of the student's has written."""
    return run_slot(getattr(student, slot), case)
