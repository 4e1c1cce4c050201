"""The loops of module 4 in an engine that trains: a student's convolutions and pooling, compiled by Numba as they stand.

Nothing of a student's is demanded for it. A loop that Numba does not take, or that does not give in compiled code what it
gives in Python, goes on in Python.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from . import compiled
from .engine_parallel import bare
from .overlay import once_each
from .strided import Strided
from .student import Student
from .values import Operand


class Loop(NamedTuple):
    """A slot, compiled."""

    call: Callable[..., None]
    inner: tuple[str, ...]
    """Slots of the student's that run within it, itself included."""


class Serial:
    """Slots that write a tensor from others, on one thread.

    Notes
    -----
    The first call of a slot runs in Python, and compiled beside it: only if both write the same do later calls run compiled.
    Those are counted as the first was.
    """

    def __init__(self, student: Student, lent: Counter[str]) -> None:
        self.student, self.lent = student, lent
        self.loops: dict[str, Loop | None] = {}
        """None for one that stays in Python."""

    def run(self, slot: str, out: Strided, *operands: Operand) -> None:
        """Write `out` by a slot of the student's."""
        if slot not in self.loops:
            self.loops[slot] = self.tried(slot, out, operands)
            return
        loop = self.loops[slot]
        if loop is not None:
            try:
                loop.call(out, *operands)
            except Exception:  # Python says it better, with the line
                self.loops[slot] = None
            else:
                self.student.calls.update(loop.inner)
                return
        self.in_python(slot, out, operands)

    def tried(self, slot: str, out: Strided, operands: tuple[Operand, ...]) -> Loop | None:
        """Write `out` in Python, and see whether compiled code writes the same."""
        before, lent = Counter(self.student.calls), self.lent.total()
        self.in_python(slot, out, operands)
        if self.lent.total() > lent:  # compiled, nobody would count it
            return None
        fresh = out._replace(storage=np.full_like(out.storage, np.nan))
        try:
            call = compiled.cached_jit(bare(self.student.raw(slot)), boundscheck=True)
            call(fresh, *operands)
        except Exception:  # of Numba's, or of its own where it did not expect such a text
            return None
        is_same = np.allclose(out.storage, fresh.storage, rtol=1e-9, atol=1e-12, equal_nan=True)
        return Loop(call, tuple(self.student.calls - before)) if is_same else None

    def told(self) -> str:
        """Which loops ran compiled, and which in Python; "" if none of a student's ran."""
        fast = sorted(slot for slot, loop in self.loops.items() if loop)
        slow = sorted(slot for slot, loop in self.loops.items() if not loop)
        said = [f"{', '.join(fast)} ran as Numba compiled {'them' if len(fast) > 1 else 'it'}"] if fast else []
        said += [f"{', '.join(slow)} ran in Python, since Numba does not take such a text as it stands"] if slow else []
        return "; ".join(said)

    def in_python(self, slot: str, out: Strided, operands: tuple[Operand, ...]) -> None:
        """Write `out` as the text says; what is called for each element counts once."""
        with once_each(self.student.calls, self.lent):
            getattr(self.student, slot)(out, *operands)
