"""The loops of an engine that run on many threads: those of tasks 3.1 and 3.2, compiled by Numba, or the oracle's.

Of many elements, that is: to wake a second thread takes longer than a few thousand of them, which one thread does alone.
An operator is compiled too. One that Numba cannot take, since it catches an exception or calls what Numba does not know,
runs in the loops of task 2.3.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType

import numpy as np

from . import oracle
from .compiled import compiled, names_in, pointer
from .oracle.ufuncs import ON_ARRAYS
from .overlay import is_open
from .strided import Array, Strided
from .student import Student
from .values import Operand

MAX_SERIAL_STEPS = 20_000  # steps; one thread is through with them before another has woken up
FIRST = {"parallel_map": 2, "parallel_zip": 3, "parallel_reduce": 2, "parallel_matmul": 3}
"""How many tensors each loop is given."""


Operator = Callable[..., float] | Callable[..., Array]
"""Of numbers; or of arrays, which compiled code calls with numbers too."""


class Parallel:
    """Map, zip, reduce and matmul of a student's as compiled code."""

    def __init__(self, student: Student, is_theirs: Callable[[str], bool]) -> None:
        self.student, self.is_theirs = student, is_theirs
        self.loops: dict[str, Callable[..., None]] = {}
        self.operators: dict[str, Operator | None] = {}
        """Operators as loops get them; None for one that cannot be compiled."""
        self.within: dict[str, set[str]] = {}
        """Slots that an operator of theirs calls."""

    def takes(self, name: str) -> bool:
        """Return whether loops can be compiled with an operator, all of which is counted as the student's."""
        if name not in self.operators:
            self.operators[name] = self.operator(name) if self.is_theirs(name) else ON_ARRAYS[name]
        return self.operators[name] is not None

    def operator(self, name: str) -> Operator | None:
        """An operator of theirs, compiled; None if it cannot be, or calls one that is lent."""
        function = self.student.raw(name)
        self.within[name] = slots_in(function, self.student)
        return compilable(function) if all(self.is_theirs(slot) for slot in self.within[name]) else None

    def run(self, kind: str, name: str, out: Strided, a: Strided, *operands: Operand) -> None:
        """Map, zip or reduce with an operator."""
        slot = f"parallel_{kind}"
        for counted in (slot, name, *self.within.get(name, ())):
            self.student.count(counted)
        if self.is_theirs(slot):
            with threads_for(max(len(out.storage), len(a.storage))):
                self.loop(slot)(self.operators[name], out, a, *operands)
        else:
            operator = self.student.raw(name) if self.is_theirs(name) else oracle.function(name)
            oracle.function(f"tensor_{kind}")(operator, out, a, *operands)

    def matmul(self, out: Strided, a: Strided, b: Strided) -> None:
        """Multiply matrices."""
        slot = "parallel_matmul"
        self.student.count(slot)
        with threads_for(len(out.storage) * a.shape[-1]):
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


@contextmanager
def threads_for(steps: int) -> Iterator[None]:
    """One thread for what takes few steps."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1 if steps < MAX_SERIAL_STEPS else before)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def compilable(function: FunctionType) -> FunctionType | None:
    """A function that Numba compiles; None if it cannot."""
    try:
        made = bare(function)
        pointer(made)
    except Exception:  # of Numba's, or of Python's where Numba did not expect such a text
        return None
    return made


def slots_in(function: FunctionType, student: Student, seen: frozenset[FunctionType] = frozenset()) -> set[str]:
    """The slots that a function calls, and those that they call."""
    found: set[str] = set()
    for name in names_in(function.__code__):
        inner = getattr(function.__globals__.get(name), "__wrapped__", function.__globals__.get(name))
        if isinstance(inner, FunctionType) and inner not in seen and inner is not function:
            found |= {inner.__name__} & set(student.home) | slots_in(inner, student, seen | {function})
    return found


def bare(function: FunctionType) -> FunctionType:
    """A function whose helpers are compiled, and not counted."""
    import numba

    around = dict(function.__globals__)
    for name in names_in(function.__code__):
        value = around.get(name)
        original = getattr(value, "__wrapped__", value)
        if isinstance(original, FunctionType) and original is not function:
            around[name] = numba.njit(bare(original))
    made = FunctionType(function.__code__, around, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made
