"""Questions of task 3.5: run a student's compiled loop, which the judge times."""

from collections.abc import Callable

from .. import compiled
from ..speed_inputs import inputs
from ..strided import Array
from ..student import Student

_compiled: dict[str, Callable[..., None]] = {}


def run_compiled(slot: str, student: Student, case: tuple[tuple[Array, ...], int]) -> None:
    """Compile a loop for the types of a case, once, and run it so many times on large inputs."""
    first, times = case
    if slot not in _compiled:
        _compiled[slot] = compiled.compile_slot(student, slot, *first).call
    student.count(slot)
    for _ in range(times):
        _compiled[slot](*inputs(slot))
