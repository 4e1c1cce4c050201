"""Checks for tasks about parallel loops: races, threads, allocations, and the same results when compiled."""

import ast
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from . import oracle, parallel
from .access_facts import AccessFacts
from .check import CaseT
from .draw import rows
from .loops import Case, describe_case, operands_of, run_loop
from .questions import parallel as questions
from .questions.parallel import Arguments, LoopSource
from .strided import Array
from .student_process import StudentProcess
from .verdicts import Wrong


def call_arguments(case: Case) -> Arguments:
    """Return the arguments of a call, with an output full of NaN, and the name of the operator for the operator."""
    return case[0], parallel.empty_like(case[1]), *operands_of(case)


def small_cases(slot: str) -> list[Case]:
    """Return the typical cases of a slot with fewer than 100 elements, which can run in Python."""
    return [case for case in parallel.typical_cases(slot) if 1 < prod(case[1].shape) < 100]


def accesses_of(student: StudentProcess, slot: str, *cases: Arguments) -> list[AccessFacts]:
    """Run a slot in Python for each case, and return its accesses."""
    found: list[AccessFacts] = student.ask(partial(questions.accesses, slot), cases)
    return found


def check_no_races(student: StudentProcess, slots: Sequence[str]) -> None:
    """Raise `Wrong` if two iterations of a prange access the same element and one of them writes."""
    for slot in slots:
        cases = small_cases(slot)
        for case, facts in zip(cases, accesses_of(student, slot, *map(call_arguments, cases)), strict=True):
            check_races(slot, facts, describe_case(case))


def check_races(slot: str, record: AccessFacts, case_text: str) -> None:
    """Raise `Wrong` if two iterations of one prange access the same element and one of them writes."""
    for name, index, one, other in record.races:
        verbs = ["writes" if touch.is_write else "reads" for touch in (one, other)]
        raise Wrong(
            f"{slot}: two iterations of one prange meet at {name}[{index}]: iteration {one.iteration} {verbs[0]} it, "
            f"iteration {other.iteration} {verbs[1]} it; they may run at the same time, on two threads",
            case_text=case_text,
            lines=[one.line, other.line],
            kind="race on a buffer" if name.startswith(("a copy", "an array")) else "race",
        )


def check_all_parallel(slot: str, record: AccessFacts, case_text: str) -> None:
    """Raise `Wrong` if the output is written outside of a prange, by the calling thread."""
    if record.serial_writes:
        raise Wrong(
            f"{slot}: {len(record.serial_writes)} elements of out are written outside of any prange, by one thread alone",
            case_text=case_text,
            lines=record.serial_writes[:1],
            kind="serial",
        )


def loop_source(student: StudentProcess, slot: str, first: Arguments) -> LoopSource:
    """Compile a slot for the types of a case, and return its source, and what Numba made of it."""
    found: LoopSource = student.ask(partial(questions.source, slot), first)
    return found


def check_compiles_in_parallel(student: StudentProcess, slots: Sequence[str]) -> None:
    """Raise `Wrong` if Numba cannot compile a slot, or does not run its outermost loop on many threads."""
    for slot in slots:
        check_parallel(slot, loop_source(student, slot, call_arguments(parallel.typical_cases(slot)[0])))
        cases = small_cases(slot)
        for case, facts in zip(cases, accesses_of(student, slot, *map(call_arguments, cases)), strict=True):
            check_all_parallel(slot, facts, describe_case(case))


def check_same_when_compiled(student: StudentProcess, slots: Sequence[str]) -> None:
    """Raise `Wrong` if a compiled slot computes other values than expected."""
    for slot in slots:
        cases = parallel.typical_cases(slot)
        given = [call_arguments(case) for case in cases]
        found = student.ask(partial(questions.when_compiled, slot), (given[0], given))
        for case, got in zip(cases, found, strict=True):
            check_equal(slot, run_loop(oracle.function(slot), case), got, describe_case(case))


def check_equal(slot: str, expected: Array, got: Array, case_text: str) -> None:
    """Raise `Wrong` if compiled code did not write the expected values."""
    if np.allclose(expected, got, equal_nan=True):
        return
    is_lost = bool(np.isnan(got).all())
    message = "it writes nothing" if is_lost else "it computes other numbers than in Python"
    raise Wrong(
        f"{slot}: in Python it is right, but compiled, {message}",
        case_text=case_text,
        expected=expected,
        got=got,
        drawing=[*rows(expected, "expected"), *rows(got, "got")] if len(got) < 100 else (),
        kind="lost" if is_lost else "compiled",
    )


def check_no_allocation(student: StudentProcess, slots: Sequence[str]) -> None:
    """Raise `Wrong` if a loop allocates memory more often for more elements."""
    for slot in slots:
        first = call_arguments(parallel.typical_cases(slot)[0])
        for is_turned in (False, True):
            tensors = [
                parallel.row_major((n // 5, 5)) if not is_turned else parallel.reverse_dims(parallel.row_major((5, n // 5)))
                for n in SIZES
            ]
            cases = [call_arguments(parallel.case_of(slot, a)) for a in tensors]
            check_allocations(student, slot, first, cases)


SIZES = (20, 2000)  # elements of the cases between which the number of allocations must not grow


def check_allocations(student: StudentProcess, slot: str, first: Arguments, cases: Sequence[Arguments]) -> None:
    """Raise `Wrong` if a compiled loop allocates memory more often for SIZES[1] elements than for SIZES[0]."""
    few, many = student.ask(partial(questions.allocations, slot), (first, cases))
    if many > few:
        raise Wrong(
            f"{slot} allocates memory in its loop: {few} times for {SIZES[0]} elements, {many} times for {SIZES[1]}; each "
            "iteration calls the allocator, and threads wait for each other there",
            kind="allocation",
        )


def check_fast_path(student: StudentProcess, slots: Sequence[str]) -> None:
    """Raise `Wrong` if positions are computed for each element of contiguous operands; a reduction may, for each output."""
    for slot in slots:
        small, large = ((4, 5), (4, 50)) if slot == "parallel_reduce" else ((4, 5), (8, 25))
        cases = [call_arguments(parallel.case_of(slot, parallel.row_major(shape))) for shape in (small, large)]
        few, many = [layout_reads(facts) for facts in accesses_of(student, slot, *cases)]
        if many > few:
            what = "reduced elements of each output" if slot == "parallel_reduce" else "elements"
            n, m = (small[1], large[1]) if slot == "parallel_reduce" else (prod(small), prod(large))
            raise Wrong(
                f"{slot}: all elements are contiguous, and yet sizes and strides are read {few} times for {n} {what} and "
                f"{many} times for {m}",
                kind="slow path",
            )


def layout_reads(facts: AccessFacts) -> int:
    """Return the number of reads of shapes and strides."""
    return facts.reads.get("shape", 0) + facts.reads.get("strides", 0)


def check_writes_once(slot: str, facts: AccessFacts, size: int, case_text: str) -> None:
    """Raise `Wrong` unless each of `size` elements of the output is written once and never read."""
    writes, reads = facts.writes.get("out.storage", 0), facts.reads.get("out.storage", 0)
    if writes != size or reads:
        raise Wrong(
            f"{slot}: {size} elements of out are written {writes} times and read {reads} times; a running value belongs in "
            "a local variable, which is a register, and is stored once",
            case_text=case_text,
            kind="memory",
        )


def check_parallel(slot: str, source: LoopSource) -> None:
    """Raise `Wrong` if the outermost loops over elements are not prange."""
    tree = ast.parse(textwrap.dedent(source.text))
    parallel_lines, body = set(source.parallel), tree.body[0]
    if not parallel_lines:
        loops = [node.lineno + source.first - 1 for node in outermost_loops(body)]
        raise Wrong(
            f"{slot}: Numba found no loop to run in parallel; the outermost one over the elements must be a prange",
            lines=[(source.file, line) for line in loops[:1]],
            kind="serial",
        )
    for node in outermost_loops(body):
        line = node.lineno + source.first - 1
        inner = [
            at.lineno + source.first - 1 for at in ast.walk(node) if isinstance(at, ast.For | ast.While) and at is not node
        ]
        within = [at for at in inner if at in parallel_lines]
        if line not in parallel_lines and within:
            raise Wrong(
                f"{slot}: the loop in line {line} runs on one thread, and starts the prange in line {within[0]} anew each "
                "time; starting threads costs more than a few elements: make the outermost loop the prange",
                lines=[(source.file, line), (source.file, within[0])],
                kind="inner loop",
            )


def outermost_loops(body: ast.AST) -> list[ast.For | ast.While]:
    """Return the loops that are not inside another loop."""
    loops: list[ast.For | ast.While] = []
    for node in ast.iter_child_nodes(body):
        loops += [node] if isinstance(node, ast.For | ast.While) else outermost_loops(node)
    return loops


def or_out_of_bounds(wrong_answer: Callable[[CaseT], object]) -> Callable[[Wrong], bool]:
    """Return a `when` for a mistake: the failure is an IndexError, and the mistake's answer raises one too."""

    def when(wrong: Wrong) -> bool:
        if wrong.kind != "IndexError" or wrong.case is None:
            return False
        try:
            wrong_answer(wrong.case)
        except IndexError:
            return True
        return False

    return when
