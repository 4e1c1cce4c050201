"""Compile the loops of module 4 for training: a student's convolutions and pooling, unchanged, by Numba.

A loop that Numba cannot compile, or whose compiled code writes other values than Python does, runs in Python.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import compiled
from ..overlay import count_slots_once
from ..strided import Strided
from ..student import Student
from ..values import Operand
from .compiled_loops import without_counters


class Loop(NamedTuple):
    """A compiled slot."""

    call: Callable[..., None]
    inner: tuple[str, ...]
    """The student's slots that it calls, itself included."""


class Serial:
    """Slots that write a tensor, on one thread.

    Notes
    -----
    The first call of a slot runs in Python and compiled. Later calls run compiled only if both wrote the same values; they
    count the same slots as the first one.
    """

    def __init__(self, student: Student) -> None:
        self.student = student
        self.loops: dict[str, Loop | None] = {}
        """Compiled slots by name; None for one that runs in Python."""

    def run(self, slot: str, out: Strided, *operands: Operand) -> None:
        """Write `out` with a slot of the student's."""
        if slot not in self.loops:
            self.loops[slot] = self.compile_if_equal(slot, out, operands)
            return
        loop = self.loops[slot]
        if loop is not None:
            try:
                loop.call(out, *operands)
            except Exception:  # repeated in Python, the error has a line
                self.loops[slot] = None
            else:
                self.student.calls.update(loop.inner)
                return
        self.in_python(slot, out, operands)

    def compile_if_equal(self, slot: str, out: Strided, operands: tuple[Operand, ...]) -> Loop | None:
        """Write `out` in Python, and return compiled code if it writes the same values; else None."""
        before, lent = Counter(self.student.calls), self.student.lent.total()
        self.in_python(slot, out, operands)
        if self.student.lent.total() > lent:  # calls of the oracle's functions could not be counted in compiled code
            return None
        fresh = out._replace(storage=np.full_like(out.storage, np.nan))
        try:
            call = compiled.cached_jit(without_counters(self.student.raw(slot)), boundscheck=True)
            call(fresh, *operands)
        except Exception:  # of Numba, or of Python inside Numba for unexpected code
            return None
        is_same = np.allclose(out.storage, fresh.storage, rtol=1e-9, atol=1e-12, equal_nan=True)
        return Loop(call, tuple(self.student.calls - before)) if is_same else None

    def summary(self) -> str:
        """Return a sentence about the loops that ran compiled and in Python; "" if no loop of the student's ran."""
        compiled_slots = sorted(slot for slot, loop in self.loops.items() if loop)
        python_slots = sorted(slot for slot, loop in self.loops.items() if not loop)
        message = [f"{', '.join(compiled_slots)} ran compiled by Numba"] if compiled_slots else []
        message += (
            [f"{', '.join(python_slots)} ran in Python, since Numba cannot compile the code unchanged"]
            if python_slots
            else []
        )
        return "; ".join(message)

    def in_python(self, slot: str, out: Strided, operands: tuple[Operand, ...]) -> None:
        """Write `out` in Python. A slot that is called for each element counts once."""
        with count_slots_once(self.student.calls, self.student.lent):
            getattr(self.student, slot)(out, *operands)
