"""The multithreaded loops of an engine: those of tasks 3.1 and 3.2, compiled by Numba, or the oracle's.

Small loops run on one thread, since waking another one takes longer than a few thousand elements. Operators are compiled
too. An operator that Numba cannot compile, for example because it catches an exception, runs in the loops of task 2.3.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType

import numpy as np

from . import oracle
from .compiled import compile_slot, function_pointer, global_names
from .oracle.ufuncs import ON_ARRAYS
from .overlay import is_unwritten
from .strided import Array, Strided
from .student import Student
from .values import Operand

MAX_SERIAL_STEPS = 20_000  # one thread finishes them before another one has woken up
FIRST = {"parallel_map": 2, "parallel_zip": 3, "parallel_reduce": 2, "parallel_matmul": 3}
"""Number of tensor arguments of each loop."""


Operator = Callable[..., float] | Callable[..., Array]
"""A function of numbers, or of arrays, which compiled code calls with numbers too."""


class Parallel:
    """A student's map, zip, reduce and matmul as compiled code."""

    def __init__(self, student: Student, is_from_student: Callable[[str], bool]) -> None:
        self.student, self.is_from_student = student, is_from_student
        self.loops: dict[str, Callable[..., None]] = {}
        self.operators: dict[str, Operator | None] = {}
        """Compilable operators by name; None for one that cannot be compiled."""
        self.within: dict[str, set[str]] = {}
        """The slots that each operator of the student's calls."""

    def takes(self, name: str) -> bool:
        """Return whether loops can be compiled with an operator."""
        if name not in self.operators:
            self.operators[name] = self.operator(name) if self.is_from_student(name) else ON_ARRAYS[name]
        return self.operators[name] is not None

    def operator(self, name: str) -> Operator | None:
        """Return a compilable operator of the student's; None if Numba cannot compile it, or if it calls a lent function."""
        function = self.student.raw(name)
        self.within[name] = slots_in(function, self.student)
        return compile_operator(function) if all(self.is_from_student(slot) for slot in self.within[name]) else None

    def run(self, kind: str, name: str, out: Strided, a: Strided, *operands: Operand) -> None:
        """Run map, zip or reduce with an operator."""
        slot = f"parallel_{kind}"
        for counted in (slot, name, *self.within.get(name, ())):
            self.student.count(counted)
        if self.is_from_student(slot):
            with threads_for(max(len(out.storage), len(a.storage))):
                self.loop(slot)(self.operators[name], out, a, *operands)
        else:
            operator = self.student.raw(name) if self.is_from_student(name) else oracle.function(name)
            oracle.function(f"tensor_{kind}")(operator, out, a, *operands)

    def matmul(self, out: Strided, a: Strided, b: Strided) -> None:
        """Multiply matrices."""
        slot = "parallel_matmul"
        self.student.count(slot)
        with threads_for(len(out.storage) * a.shape[-1]):
            (self.loop(slot) if self.is_from_student(slot) else oracle.function(slot))(out, a, b)

    def loop(self, slot: str) -> Callable[..., None]:
        """Return a compiled loop of the student's."""
        if slot not in self.loops:
            self.loops[slot] = compile_loop(self.student, slot)
        return self.loops[slot]


def compile_loop(student: Student, slot: str) -> Callable[..., None]:
    """Compile a student's map, zip, reduce or matmul with a trial run; one that is not written raises NotDoneYet."""
    some = [Strided(np.ones(1), (1, 1), (1, 1), 0) for _ in range(FIRST[slot])]
    first = [] if slot == "parallel_matmul" else [ON_ARRAYS["identity" if slot == "parallel_map" else "add"]]
    rest = [0, 0.0] if slot == "parallel_reduce" else []
    if is_unwritten(student.raw(slot)):
        student.raw(slot)(*first, *some, *rest)
    return compile_slot(student, slot, *first, *some, *rest).call


@contextmanager
def threads_for(steps: int) -> Iterator[None]:
    """Use one thread in this block if there are few steps."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1 if steps < MAX_SERIAL_STEPS else before)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def compile_operator(function: FunctionType) -> FunctionType | None:
    """Return a function without counters if Numba can compile it; else None."""
    try:
        bare_function = without_counters(function)
        function_pointer(bare_function)
    except Exception:  # of Numba, or of Python inside Numba for unexpected code
        return None
    return bare_function


def slots_in(function: FunctionType, student: Student, seen: frozenset[FunctionType] = frozenset()) -> set[str]:
    """Return the slots that a function calls, directly or through other functions."""
    slots: set[str] = set()
    for name in global_names(function.__code__):
        inner = getattr(function.__globals__.get(name), "__wrapped__", function.__globals__.get(name))
        if isinstance(inner, FunctionType) and inner not in seen and inner is not function:
            slots |= {inner.__name__} & set(student.home) | slots_in(inner, student, seen | {function})
    return slots


def without_counters(function: FunctionType) -> FunctionType:
    """Return a copy of a function that calls compiled helpers without counters."""
    import numba

    namespace = dict(function.__globals__)
    for name in global_names(function.__code__):
        value = namespace.get(name)
        original = getattr(value, "__wrapped__", value)
        if isinstance(original, FunctionType) and original is not function:
            namespace[name] = numba.njit(without_counters(original))
    copy = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
