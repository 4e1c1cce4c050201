"""The loops of an engine that run on many threads: those of tasks 3.1 and 3.2, compiled by Numba, or the oracle's.

An operator is compiled too. One that Numba cannot take, since it catches an exception or calls what Numba does not know,
runs in the loops of task 2.3.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from . import oracle
from .compiled import compiled, names_in, pointer
from .oracle.ufuncs import ON_ARRAYS
from .overlay import is_open
from .strided import Strided
from .student import Student

FIRST = {"parallel_map": 2, "parallel_zip": 3, "parallel_reduce": 2, "parallel_matmul": 3}
"""How many tensors each loop is given."""


class Parallel:
    """Map, zip, reduce and matmul of a student's as compiled code."""

    def __init__(self, student: Student, is_theirs: Callable[[str], bool]) -> None:
        self.student, self.is_theirs = student, is_theirs
        self.loops: dict[str, Callable[..., None]] = {}
        self.operators: dict[str, Any] = {}
        """Operators as loops get them; None for one that cannot be compiled."""

    def takes(self, name: str) -> bool:
        """Whether loops can be compiled with an operator."""
        if name not in self.operators:
            self.operators[name] = compilable(self.student.raw(name)) if self.is_theirs(name) else ON_ARRAYS[name]
        return self.operators[name] is not None

    def run(self, kind: str, name: str, out: Strided, *operands: Any) -> None:
        """Map, zip or reduce with an operator."""
        slot = f"parallel_{kind}"
        self.student.count(slot)
        self.student.count(name)
        if self.is_theirs(slot):
            self.loop(slot)(self.operators[name], out, *operands)
        else:
            operator = self.student.raw(name) if self.is_theirs(name) else oracle.function(name)
            oracle.function(f"tensor_{kind}")(operator, out, *operands)

    def matmul(self, out: Strided, a: Strided, b: Strided) -> None:
        """The product of matrices."""
        slot = "parallel_matmul"
        self.student.count(slot)
        (self.loop(slot) if self.is_theirs(slot) else oracle.function(slot))(out, a, b)

    def loop(self, slot: str) -> Callable[..., None]:
        """A loop of theirs, compiled."""
        if slot not in self.loops:
            some = [Strided(np.ones(1), (1, 1), (1, 1), 0) for _ in range(FIRST[slot])]
            first = [] if slot == "parallel_matmul" else [ON_ARRAYS["identity" if slot == "parallel_map" else "add"]]
            rest = [0, 0.0] if slot == "parallel_reduce" else []
            if is_open(self.student.raw(slot)):
                self.student.raw(slot)(*first, *some, *rest)  # says what is still to be written
            self.loops[slot] = compiled(self.student, slot, *first, *some, *rest).call
        return self.loops[slot]


def compilable(function: Any) -> Any:
    """A function that Numba compiles; None if it cannot."""
    from numba.core.errors import NumbaError

    made = bare(function)
    try:
        pointer(made)
    except NumbaError:
        return None
    return made


def bare(function: Any) -> Any:
    """A function whose helpers are compiled, and not counted."""
    import numba

    around = dict(function.__globals__)
    for name in names_in(function.__code__):
        value = around.get(name)
        original = getattr(value, "__wrapped__", value)
        if isinstance(original, FunctionType) and original is not function:
            around[name] = numba.njit(bare(original))
    return FunctionType(function.__code__, around, function.__name__, function.__defaults__, function.__closure__)
