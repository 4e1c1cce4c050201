"""Questions of task 3.5: run a student's compiled loop, which the judge times."""

from ..speed_inputs import inputs
from ..strided import Array
from ..student import Student
from .parallel import compile_once


def run_compiled(slot: str, student: Student, case: tuple[tuple[Array, ...], int]) -> None:
    """Compile a loop for the types of a case, once, and run it so many times on large inputs."""
    first, times = case
    call = compile_once(slot, student, first).call
    for _ in range(times):
        call(*inputs(slot))
