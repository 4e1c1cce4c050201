"""Compile a student's loops of tasks 3.1 and 3.2, and the operators that they apply, by Numba.

Small loops run on one thread, since waking another one takes longer than a few thousand elements. Numba cannot compile
some operators, for example one that catches an exception.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType

import numpy as np

from ..compiled import compile_slot, function_pointer, global_names
from ..oracle.ufuncs import ON_ARRAYS
from ..overlay import is_unwritten
from ..strided import Strided
from ..student import Student

MAX_SERIAL_STEPS = 20_000  # one thread finishes them before another one has woken up
FIRST = {"parallel_map": 2, "parallel_zip": 3, "parallel_reduce": 2, "parallel_matmul": 3}
"""Number of tensor arguments of each loop."""


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
