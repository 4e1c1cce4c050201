"""Checks for tasks about parallel loops: races, threads, allocations, and the same results when compiled."""

import ast
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from . import oracle, parallel
from .access_facts import AccessFacts
from .asked_once import once
from .check import CaseT, is_near
from .draw import rows
from .loops import Case, describe_case, operands_of, run_loop
from .questions import parallel as questions
from .questions.parallel import Arguments, CompiledRun, LoopSource
from .strided import Array, Strided
from .student_process import StudentProcess
from .verdicts import Wrong

SAMPLE = 6  # iterations of a large prange that run in Python
MIN_SHARED, MIN_OUTPUTS, MAX_SHARE = 1000, 8, 0.25
"""With so many elements and outputs, no iteration of a prange may write a larger share of the output."""


def call_arguments(case: Case) -> Arguments:
    """Return the arguments of a call, with an output full of NaN, and the name of the operator for the operator."""
    return case[0], parallel.empty_like(case[1]), *operands_of(case)


def small_cases(slot: str) -> list[Case]:
    """Return the typical cases of a slot with fewer than 100 elements, which can run in Python."""
    return [case for case in parallel.typical_cases(slot) if 1 < size_of(case) < 100]


def size_of(case: Case) -> int:
    """Return the number of elements of the largest tensor of a case."""
    return max(prod(x.shape) for x in (case[1], *operands_of(case)) if isinstance(x, Strided))


def accesses_of(student: StudentProcess, slot: str, *cases: Arguments, sample: int | None = None) -> list[AccessFacts]:
    """Run a slot in Python for each case, and return its accesses. `sample` limits the iterations of each prange."""
    found: list[AccessFacts] = student.ask(partial(questions.accesses, slot), (cases, sample))
    return found


def recorded(student: StudentProcess, slot: str) -> list[tuple[Case, AccessFacts]]:
    """Return the accesses of a slot for small cases, and those of a few iterations for large cases."""

    def ask() -> list[tuple[Case, AccessFacts]]:
        found = []
        for cases, sample in ((small_cases(slot), None), (parallel.large_cases(slot), SAMPLE)):
            facts = accesses_of(student, slot, *map(call_arguments, cases), sample=sample)
            found += list(zip(cases, facts, strict=True))
        return found

    return once(student, ("recorded", slot), ask)


def check_no_races(student: StudentProcess, slots: Sequence[str]) -> None:
    """Raise `Wrong` if two iterations of a prange access the same element and one of them writes."""
    for slot in slots:
        records = recorded(student, slot)
        check_any_written(slot, [facts for _, facts in records])
        for case, facts in records:
            check_races(slot, facts, describe_case(case))


def check_any_written(slot: str, records: Sequence[AccessFacts]) -> None:
    """Raise `Wrong` if no element of any output is written: there is nothing to judge then."""
    if not any(facts.written for facts in records):
        raise Wrong(f"{slot}: no element of out is written", kind="nothing written")


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
        typical = parallel.typical_cases(slot)
        check_parallel(slot, loop_source(student, slot, call_arguments(typical[0])))
        for case, facts in recorded(student, slot):
            check_all_parallel(slot, facts, describe_case(case))
        large = [case for case in typical if size_of(case) >= MIN_SHARED]
        check_shares(student, slot, call_arguments(typical[0]), large, call_arguments, describe_case)
        shared = parallel.case_of(slot, parallel.row_major((64, 32)))
        (facts,) = accesses_of(student, slot, call_arguments(shared))
        check_read_share(slot, facts, describe_case(shared))


def check_shares(
    student: StudentProcess,
    slot: str,
    first: Arguments,
    cases: Sequence[CaseT],
    arguments_of: Callable[[CaseT], Arguments],
    describe: Callable[[CaseT], str],
    most_runs: int = 1,
) -> list[tuple[CaseT, CompiledRun]]:
    """Raise `Wrong` if the compiled loop leaves most of the work to one iteration of a prange, or to none.

    Return the cases, and the record of each.

    Parameters
    ----------
    student, slot
    first : arguments
        For whose types the slot is compiled.
    cases, arguments_of, describe
        Large cases, and how to make arguments and a text of one.
    most_runs : int
        How many pranges may write to the output.
    """
    found = student.ask(partial(questions.pranges, slot), (first, [arguments_of(case) for case in cases]))
    for case, run in zip(cases, found, strict=True):
        check_share(slot, run, describe(case), most_runs)
    return list(zip(cases, found, strict=True))


def check_share(slot: str, run: CompiledRun, case_text: str, most_runs: int) -> None:
    """Raise `Wrong` if one iteration of a prange writes more than MAX_SHARE of the output, or the caller's thread does."""
    by_loops = [loop.writer for loop in run.pranges if (loop.writer >= 0).any()]
    out = run.out.reshape(-1)
    is_shared = np.any([writer >= 0 for writer in by_loops], axis=0) if by_loops else np.zeros(len(out), bool)
    written = int((is_shared | ~np.isnan(out)).sum())
    if serial := written - int(is_shared.sum()):
        raise Wrong(
            f"{slot}: compiled, {serial} of {written} elements of out are written outside of any prange, by one thread",
            case_text=case_text,
            kind="serial",
        )
    if len(by_loops) > most_runs:
        raise Wrong(
            f"{slot}: compiled, {len(by_loops)} runs of a prange write to out. Threads start in each of them, which costs "
            "more than a few elements: make the outermost loop the prange",
            case_text=case_text,
            kind="inner loop",
        )
    most = max((int(np.bincount(writer[writer >= 0]).max()) for writer in by_loops), default=0)
    if written >= MIN_OUTPUTS and most > MAX_SHARE * written:
        count = max(loop.iterations for loop in run.pranges)
        raise Wrong(
            f"{slot}: compiled, one of {count} iterations of the prange writes {most} of {written} elements of out. "
            f"An iteration runs on one thread, so most cores wait; give each at most {MAX_SHARE:.0%} of a large output",
            case_text=case_text,
            kind="one thread",
        )


def check_read_share(slot: str, facts: AccessFacts, case_text: str) -> None:
    """Raise `Wrong` if one iteration of a prange reads more than MAX_SHARE of all that is read."""
    reads = sum(facts.reads.get(f"{name}{end}", 0) for name in ("out", "a", "b") for end in ("", ".storage"))
    if facts.most_read > MAX_SHARE * reads:
        raise Wrong(
            f"{slot}: one iteration of a prange, or the code outside of it, reads {facts.most_read} of the {reads} elements "
            f"that are read. It runs on one thread, so most cores wait; give each iteration at most {MAX_SHARE:.0%}",
            case_text=case_text,
            kind="one thread",
        )


def check_same_when_compiled(student: StudentProcess, slots: Sequence[str]) -> None:
    """Raise `Wrong` if a compiled slot computes other values than expected."""
    for slot in slots:
        cases = parallel.typical_cases(slot)
        given = [call_arguments(case) for case in cases]
        found = student.ask(partial(questions.when_compiled, slot), (given[0], given))
        for case, got in zip(cases, found, strict=True):
            check_equal(slot, run_loop(oracle.function(slot), case), got, describe_case(case), is_exact)


def is_exact(got: object, expected: Array) -> bool:
    """Return whether arrays are equal to the last bit; -0.0 is not 0.0. NaN equals NaN."""
    if not isinstance(got, np.ndarray) or got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    is_nan = np.isnan(expected)
    return bool(np.array_equal(got, expected, equal_nan=True) and (np.signbit(got) == np.signbit(expected))[~is_nan].all())


def check_equal(
    slot: str, expected: Array, got: Array, case_text: str, agree: Callable[[object, Array], bool] = is_near
) -> None:
    """Raise `Wrong` if compiled code did not write the expected values."""
    if agree(got, expected):
        return
    is_lost = bool(np.isnan(got).all())
    message = "it writes nothing" if is_lost else "it computes other numbers in this case"
    raise Wrong(
        f"{slot}: in Python it is right for small cases, but compiled, {message}",
        case_text=case_text,
        expected=expected,
        got=got,
        drawing=[*rows(expected, "expected"), *rows(got, "got")] if len(got) < 100 else (),
        kind="lost" if is_lost else "compiled",
    )


def check_no_allocation(student: StudentProcess, slots: Sequence[str]) -> None:
    """Raise `Wrong` if a loop allocates memory more often for more elements."""
    for slot in slots:
        for case, facts in recorded(student, slot):
            check_none_made(slot, facts, describe_case(case))
        first = call_arguments(parallel.typical_cases(slot)[0])
        for few, many in ((20, 2000), (70, parallel.HUGE // 5 * 5)):
            for is_turned in (False, True):
                tensors = [
                    parallel.reverse_dims(parallel.row_major((5, n // 5))) if is_turned else parallel.row_major((n // 5, 5))
                    for n in (few, many)
                ]
                cases = [call_arguments(parallel.case_of(slot, a)) for a in tensors]
                check_allocations(student, slot, first, cases, (few, many))


def check_none_made(slot: str, facts: AccessFacts, case_text: str) -> None:
    """Raise `Wrong` if an iteration of a prange creates an array, even if Numba moves its allocation out of the loop."""
    if facts.made_inside:
        raise Wrong(
            f"{slot}: iterations of the prange create arrays, {facts.made_inside} in this case; nothing is to be allocated "
            "in the loop",
            case_text=case_text,
            kind="allocation",
        )


def check_allocations(
    student: StudentProcess, slot: str, first: Arguments, cases: Sequence[Arguments], sizes: tuple[int, int]
) -> None:
    """Raise `Wrong` if a compiled loop allocates memory more often for sizes[1] elements than for sizes[0]."""
    few, many = student.ask(partial(questions.allocations, slot), (first, cases))
    if many > few:
        raise Wrong(
            f"{slot} allocates memory in its loop: {few} times for {sizes[0]:,} elements, {many} times for {sizes[1]:,}; "
            "each iteration calls the allocator, and threads wait for each other there",
            kind="allocation",
        )


def check_fast_path(student: StudentProcess, slots: Sequence[str]) -> None:
    """Raise `Wrong` if positions are computed for each element of contiguous operands; a reduction may, for each output."""
    for slot in slots:
        pairs = [((4, 5), (8, 25), None, 0), ((4, 5), (7, 3001), SAMPLE, 0), ((2, 5, 2), (2, 50, 2), None, 3)]
        if slot == "parallel_reduce":
            pairs = [((4, 5), (4, 50), None, 0), ((4, 5), (4, 1200), SAMPLE, 0), ((2, 5, 2), (2, 50, 2), None, 3)]
        for small, large, sample, offset in pairs:
            tensors = [parallel.row_major(shape, 1, offset) for shape in (small, large)]
            cases = [call_arguments(parallel.case_of(slot, a)) for a in tensors]
            few, many = accesses_of(student, slot, *cases, sample=sample)
            what = "elements" if sample is None else f"elements, of which {many.reads.get('a.storage', 0):,} were computed"
            check_positions(slot, few, many, f"all elements are contiguous, and yet, for {prod(large):,} {what}")


def check_positions(slot: str, few: AccessFacts, many: AccessFacts, when: str) -> None:
    """Raise `Wrong` if a loop reads sizes and strides, or divides, for each element of a large case."""
    if layout_reads(many) > layout_reads(few):
        raise Wrong(
            f"{slot}: {when}, sizes and strides are read {layout_reads(many)} times instead of {layout_reads(few)}",
            kind="slow path",
        )
    if (many.divisions - few.divisions) * 8 > many.reads.get("a.storage", 0):
        raise Wrong(
            f"{slot}: {when}, there are {many.divisions} divisions of integers instead of {few.divisions}",
            kind="slow path",
        )


def layout_reads(facts: AccessFacts) -> int:
    """Return the number of reads of shapes and strides."""
    return facts.reads.get("shape", 0) + facts.reads.get("strides", 0)


def check_each_once(slot: str, facts: AccessFacts, length: int, case_text: str) -> None:
    """Raise `Wrong` unless each output is written once and never read, from `length` elements of each operand, read once."""
    writes, reads = facts.writes.get("out.storage", 0), facts.reads.get("out.storage", 0)
    if writes != facts.written or reads:
        raise Wrong(
            f"{slot}: {facts.written} elements of out are written {writes} times and read {reads} times; a running value "
            "belongs in a local variable, which is a register, and is stored once",
            case_text=case_text,
            kind="memory",
        )
    needed = facts.written * length
    for name in ("a", "b"):
        if (found := facts.reads.get(f"{name}.storage", 0)) > needed:
            raise Wrong(
                f"{slot}: elements of {name} are read {found} times, where {needed} reads are enough; keep what you have "
                "read in a local variable",
                case_text=case_text,
                kind="reads",
            )
    if facts.calls > needed:
        raise Wrong(
            f"{slot}: fn is called {facts.calls} times, where {needed} calls are enough",
            case_text=case_text,
            kind="reads",
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
