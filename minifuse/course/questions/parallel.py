"""Questions of tasks 3.1, 3.2 and 3.5: what a loop computes, accesses and allocates, in Python and compiled by Numba.

A case has the arguments of a slot; the name of an operator stands for the operator.
"""

import inspect
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import access_counting, compiled, compiled_launches
from ..access_counting import Argument
from ..access_facts import AccessFacts
from ..compiled import Compiled
from ..compiled_launches import PrangeRun
from ..loops import FUNCTIONS, Case, run_loop
from ..parallel import empty_like
from ..strided import Array, Strided
from ..student import Student

Arguments = Sequence[Strided | Array | float | str]


class LoopSource(NamedTuple):
    """The source of a loop, and what Numba made of it."""

    file: str
    first: int
    """The number of its first line."""
    text: str
    parallel: list[int]
    """The lines of the pranges that Numba runs on several threads."""
    packed: int | None
    """Number of SIMD instructions for float64; None if the processor is not x86."""


class CompiledRun(NamedTuple):
    """A call of a compiled loop."""

    out: Array
    """The storage of the output."""
    pranges: list[PrangeRun]


def with_operator(arguments: Arguments) -> list[Argument]:
    """Return arguments of a call, with the operator in place of its name."""
    return [FUNCTIONS[x] if isinstance(x, str) else x for x in arguments]


def output_of(arguments: Sequence[Argument]) -> Array:
    """Return the storage of the output: the first tensor or array."""
    out = next(x for x in arguments if isinstance(x, Strided | np.ndarray))
    return out.storage if isinstance(out, Strided) else out


def in_python(slot: str, student: Student, arguments: Arguments) -> Array:
    """Run a loop in Python, with bounds checks, and return the storage of its output."""
    given = with_operator(arguments)
    access_counting.run(student, slot, *given)
    return output_of(given)


def loop_in_python(slot: str, student: Student, case: Case) -> Array:
    """Run a map, zip or reduce in Python over a copy of the case, and return the storage of its output."""
    return run_loop(lambda *given: access_counting.run(student, slot, *given), case)


def product_in_python(student: Student, case: tuple[Strided, Strided, Strided]) -> Array:
    """Run a product in Python on a copy of the output, and return its storage."""
    out = empty_like(case[0])
    access_counting.run(student, "parallel_matmul", out, *case[1:])
    return out.storage


def accesses(slot: str, student: Student, case: tuple[Sequence[Arguments], int | None]) -> list[AccessFacts]:
    """Run a loop in Python for each case, with so many iterations of each prange, and return its accesses."""
    cases, sample = case
    return [access_counting.run(student, slot, *with_operator(given), sample=sample).facts() for given in cases]


_compiled: dict[str, Compiled] = {}


def compile_once(slot: str, student: Student, first: Arguments) -> Compiled:
    """Compile a loop for the types of a case, so that its pranges can be recorded."""
    compiled_launches.launcher()
    if slot not in _compiled:
        _compiled[slot] = compiled.compile_slot(student, slot, *with_operator(first))
    student.count(slot)
    return _compiled[slot]


def source(slot: str, student: Student, first: Arguments) -> LoopSource:
    """Compile a loop for the types of a case, and return its source, and what Numba made of it."""
    found = compile_once(slot, student, first)
    function = student.raw(slot)
    lines, start = inspect.getsourcelines(function)
    file = Path(function.__code__.co_filename).name
    return LoopSource(file, start, "".join(lines), found.loops, found.packed)


def when_compiled(slot: str, student: Student, case: tuple[Arguments, Sequence[Arguments]]) -> list[Array]:
    """Compile a loop for the types of the first case, and return its output for each of the others."""
    first, cases = case
    found, outputs = compile_once(slot, student, first), []
    for arguments in cases:
        given = with_operator(arguments)
        found.call(*given)
        outputs.append(output_of(given))
    return outputs


def pranges(slot: str, student: Student, case: tuple[Arguments, Sequence[Arguments]]) -> list[CompiledRun]:
    """Compile a loop for the types of the first case, and record its pranges for each of the others."""
    first, cases = case
    found, runs = compile_once(slot, student, first), []
    for arguments in cases:
        given = with_operator(arguments)
        out = output_of(given)
        recorded = compiled_launches.record(partial(found.call, *given), out.reshape(-1))
        runs.append(CompiledRun(out, recorded))
    return runs


def allocations(slot: str, student: Student, case: tuple[Arguments, Sequence[Arguments]]) -> list[int]:
    """Compile a loop for the types of the first case, and count its allocations for each of the others."""
    first, cases = case
    found = compile_once(slot, student, first)
    found.call(*with_operator(cases[0]))
    return [compiled.allocations(lambda: found.call(*given)) for given in map(with_operator, cases)]  # noqa: B023
