"""Task 3.5: speed on this machine."""

from collections.abc import Callable
from functools import partial

import numpy as np

from .. import launches, oracle, parallel, parallel_checks, speed
from ..access_facts import AccessFacts
from ..check import failure_of_error, is_near
from ..questions.parallel import in_python, when_compiled
from ..questions.task3_5 import run_compiled
from ..strided import Array
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import StudentError, Wrong

Arrays = tuple[Array, ...]
CHAIN, SUMS, PRODUCT = SLOTS = ("fast_chain", "fast_column_sums", "fast_matmul")
NEEDED = 2.0
"""Required speedup over the naive loop."""
SHARE_OF_SLOW = 0.5
"""The fraction of the points that does not depend on NumPy's speed."""
FULL = {CHAIN: 1.5, SUMS: 0.25, PRODUCT: 0.1}
"""Speed relative to NumPy that earns the rest, by slot."""
MAX_WRITING_PRANGES = 2
"""How many pranges may write to the output: one may clear it."""
LINE, CACHED_LINES = 64, 32  # bytes of a cache line; lines in the simulated cache, which is small like the arrays


def case(slot: str, size: int) -> Arrays:
    """Return the arguments of a slot with different sizes; the output comes first, full of NaN."""
    return arguments(slot, size // 3 + 1, size // 2 + 1, size)


def arguments(slot: str, rows: int, inner: int, columns: int, kind: str = "whole numbers") -> Arrays:
    """Return arguments of these sizes. The chain uses `columns`, column sums use `inner` rows."""
    if slot == CHAIN:
        first, second = np.arange(1.0, columns + 1), np.arange(-7.0, columns - 7)
        return np.full(columns, np.nan), *[parallel.values_like(x, kind, parallel.SUM_EDGES) for x in (first, second)]
    a = np.arange(1.0, rows * inner + 1).reshape(rows, inner)
    b = np.arange(-7.0, inner * columns - 7).reshape(inner, columns)
    a, b = [parallel.values_like(x, kind, parallel.SUM_EDGES) for x in (a, b)]
    return (np.full(columns, np.nan), b) if slot == SUMS else (np.full((rows, columns), np.nan), a, b)


def fresh(arguments: Arrays) -> Arrays:
    """Return the arguments with an output full of NaN."""
    return np.full_like(arguments[0], np.nan), *arguments[1:]


def describe_case(arguments: Arrays) -> str:
    """Return the shapes of the arguments as text."""
    return "; ".join(f"{name} of shape {x.shape}" for name, x in zip(("out", "a", "b"), arguments, strict=False))


def expected_of(slot: str, given: Arrays) -> Array:
    """Return the right output."""
    expected = fresh(given)
    with np.errstate(all="ignore"):
        oracle.function(slot)(*expected)
    return expected[0]


def is_right(slot: str) -> Callable[[StudentProcess, Effort], None]:
    """Return a check that a slot computes in Python what NumPy does."""

    def run(student: StudentProcess, effort: Effort) -> None:
        some = [case(slot, size) for size in ((1, 2, 5, 40, 129) if slot == CHAIN else (1, 2, 5, 33))]
        some += [arguments(slot, 4, 6, 35, kind) for kind in parallel.KINDS[1:]]
        some += [arguments(slot, 2, 0, 3), arguments(slot, 0, 2, 0)]
        for given in some:
            expected = expected_of(slot, given)
            try:
                got = student.ask(partial(in_python, slot), given)
            except StudentError as error:
                if error.kind not in ("AttributeError", "IndexError", "TypeError", "ValueError", "ZeroDivisionError"):
                    raise
                raise failure_of_error(error, None, describe_case(given), expected) from error
            if not is_near(got, expected):
                message = launches.differs(slot, expected.reshape(-1), got.reshape(-1))
                raise Wrong(message, case_text=describe_case(given), expected=expected, got=got)

    return run


def check_no_races(student: StudentProcess) -> None:
    """Raise `Wrong` if two iterations of a prange access the same element and one of them writes."""
    for slot in SLOTS:
        given = fresh(case(slot, 20))
        (facts,) = parallel_checks.accesses_of(student, slot, given)
        parallel_checks.check_races(slot, facts, describe_case(given))


def first(slot: str) -> Arrays:
    """Return the arguments for whose types a slot is compiled."""
    return fresh(case(slot, 5))


SHARED = {CHAIN: (1, 1, 8192), SUMS: (1, 5, 2048), PRODUCT: (40, 8, 9)}
"""Sizes of cases whose work is to be shared out, by slot."""
LARGE = {
    CHAIN: [(1, 1, 100_003)],
    SUMS: [(1, 3000, 40), (1, 3, 20_000)],
    PRODUCT: [(70, 90, 110), (500, 5, 7), (9, 2000, 8), (8, 3, 3000)],
}
"""Sizes of large cases, by slot."""


def compiles_in_parallel(student: StudentProcess) -> None:
    """Raise `Wrong` if Numba cannot compile a loop, or does not parallelize it, or it writes other values."""
    for slot in SLOTS:
        parallel_checks.check_parallel(slot, parallel_checks.loop_source(student, slot, first(slot)))
        small, shared = fresh(case(slot, 20)), arguments(slot, *SHARED[slot])
        for given, facts in zip((small, shared), parallel_checks.accesses_of(student, slot, small, shared), strict=True):
            parallel_checks.check_all_parallel(slot, facts, describe_case(given))
        parallel_checks.check_read_share(slot, facts, describe_case(shared))
        parallel_checks.check_shares(student, slot, first(slot), [shared], fresh, describe_case, MAX_WRITING_PRANGES)
        cases = [case(slot, 129), *[arguments(slot, *sizes, kind) for sizes in LARGE[slot] for kind in parallel.KINDS[1:3]]]
        found = student.ask(partial(when_compiled, slot), (first(slot), [fresh(given) for given in cases]))
        for given, got in zip(cases, found, strict=True):
            if not is_near(got, expected_of(slot, given)):
                raise Wrong(
                    f"{slot}: in Python it is right, but compiled it is not", case_text=describe_case(given), kind="compiled"
                )


def in_order(student: StudentProcess) -> None:
    """Raise `Wrong` if most reads are not of a recently read cache line, or the chain stores intermediates."""
    for slot in SLOTS:
        given = arguments(slot, 2, 2 * CACHED_LINES, 24)
        (facts,) = parallel_checks.accesses_of(student, slot, given)
        if slot == CHAIN:
            in_one_pass(facts, len(given[0]), describe_case(given))
        for name in ("a", "b"):
            at_hand(slot, name, facts, describe_case(given))


def in_one_pass(record: AccessFacts, size: int, case_text: str) -> None:
    """Raise `Wrong` if the chain stores an intermediate."""
    if made := [n for n in record.made if n >= size]:
        raise Wrong(
            f"{CHAIN} makes {len(made)} {'array' if len(made) == 1 else 'arrays'} of {made[0]} elements on the way: each is "
            "written to memory, and read again",
            case_text=case_text,
            kind="passes",
        )
    if reads := record.reads.get("out", 0):
        raise Wrong(
            f"{CHAIN} reads {reads} elements of out: one loop wrote them to memory, another fetches them",
            case_text=case_text,
            lines=[record.places["out"][0][1]],
            kind="passes",
        )


def at_hand(slot: str, name: str, record: AccessFacts, case_text: str) -> None:
    """Raise `Wrong` if most reads of an array are of a cache line that was not read recently."""
    read, waits, cached_lines = record.places.get(name, []), [], dict[int, None]()
    for address, line in read:
        number = address // LINE
        if number not in cached_lines:
            waits.append(line)
        cached_lines.pop(number, None)
        cached_lines[number] = None  # the most recently used line is last
        if len(cached_lines) > CACHED_LINES:
            del cached_lines[next(iter(cached_lines))]
    if len(waits) * 2 > len(read):
        raise Wrong(
            f"{slot}: {len(waits)} of {len(read)} reads of {name} wait for memory, with {CACHED_LINES} cached lines. "
            f"It comes in lines of {LINE} bytes, 8 elements: all of them are fetched, and one is used",
            case_text=case_text,
            lines=waits[-1:],
            kind=f"order in {slot}",
        )


def in_vectors(student: StudentProcess) -> None:
    """Raise `Wrong` if a loop has no SIMD instructions."""
    for slot in SLOTS:
        if parallel_checks.loop_source(student, slot, first(slot)).packed == 0:
            raise Wrong(
                f"{slot}: every instruction of its compiled loop computes one element. A core has registers for 2 to 8 "
                "float64s, and LLVM uses them where each iteration does the same few operations on neighbours",
                kind=f"scalar {slot}",
            )


def is_enough(slot: str, ratio: speed.Ratio) -> bool:
    """Return whether a ratio earns all points of a loop."""
    return ratio.to_naive >= NEEDED and ratio.to_numpy >= FULL[slot]


def run_loop(student: StudentProcess, slot: str, times: int) -> None:
    """Run a compiled loop so many times."""
    student.ask(partial(run_compiled, slot), (first(slot), times))


def is_fast(student: StudentProcess) -> None:
    """Raise `Wrong` if a loop is not faster than the naive one. The other half of the points depends on NumPy's speed."""
    ratios, student.share = {}, SHARE_OF_SLOW
    for slot in SLOTS:
        run = partial(run_loop, student, slot)
        ratios[slot] = one = speed.best_ratio(slot, run, oracle.function(slot), partial(is_enough, slot))
        if one.to_naive < NEEDED:
            raise Wrong(
                f"{slot} is {one.to_naive:.1f} times as fast as a naive loop on one core, each by the best of "
                f"{speed.MAX_ROUNDS} rounds; {NEEDED:.0f} is asked for. Is the machine busy with something else?",
                kind="slow",
            )
    parts = [SHARE_OF_SLOW + (1 - SHARE_OF_SLOW) * min(1.0, r.to_numpy / FULL[slot]) for slot, r in ratios.items()]
    student.share = sum(parts) / len(parts)
    points = f"{round(TASK.points * student.share)} of {TASK.points} points"
    student.notes += [speed.table(ratios), f"That is worth {student.share:.0%} of the points, rounded: {points}."]


TASK = Task(
    id="3.5",
    title="Speed on this machine",
    file="speed.py",
    slots=SLOTS,
    points=6,
    text=(
        "Make three loops fast: a chain of operators in one pass, the sums of columns, a matmul. They are "
        "measured beside naive loops and NumPy, in the same minute on the same machine; the ratios decide on the points."
    ),
    hints=(
        "Most time goes by waiting for memory. Fetch each element once, and fetch neighbours together.",
        "Chain: one loop, all operators of an element at once. Sums: share out pieces of columns; in each, take a slice of "
        "out, and go along the same slice of every row. Product: for each row, for each k, add a[row, k] times row k of b "
        "to the row of out.",
        "docs/course/3.5-speed.md; docs/guide/speed.md has what the library reaches, and why.",
    ),
    reads=("docs/course/3.5-speed.md", "docs/guide/speed.md"),
    checks=(
        Check("the chain gives what NumPy gives", is_right(CHAIN)),
        Check("so do the sums of columns", is_right(SUMS)),
        Check("so does the product", is_right(PRODUCT)),
        Check("no two iterations of a prange meet at one cell", lambda s, e: check_no_races(s)),
        Check("Numba compiles them, and shares out the outermost loop", lambda s, e: compiles_in_parallel(s)),
        Check("memory is read in its order, and nothing is stored in between", lambda s, e: in_order(s)),
        Check("one instruction of each computes several elements", lambda s, e: in_vectors(s)),
        Check(f"each is at least {NEEDED:.0f} times as fast as a naive loop", lambda s, e: is_fast(s)),
    ),
    mistakes=(
        Mistake(
            "each step of the chain is a pass of its own",
            "What one pass writes, the next one reads again: that costs more than all the operators. One loop, one store.",
            when=lambda w: w.kind == "passes",
        ),
        Mistake(
            "the sums go down the columns, from row to row",
            "Neighbours of a row lie side by side. Go along the rows, and add to many columns' sums in turn.",
            when=lambda w: w.kind == f"order in {SUMS}",
        ),
        Mistake(
            "the product walks down the columns of b",
            "Exchange the two inner loops: with k outside, the innermost one goes along a row of b and a row of out.",
            when=lambda w: w.kind == f"order in {PRODUCT}",
        ),
        Mistake(
            "the rows are shared out, though all rows add to the same sums",
            "Two threads would add to one number, and one addition would be lost. Share out the columns.",
            when=lambda w: w.kind == "race" and w.message.startswith(SUMS),
        ),
        Mistake(
            "the loop over k is shared out, though all k add to the same products",
            "Each output is a sum over k, so two threads would add to one number. Share out the rows of out.",
            when=lambda w: w.kind == "race" and w.message.startswith(PRODUCT),
        ),
        Mistake(
            "a call inside the chain computes one element at a time",
            "hypot and its like are functions of a library, called once for each element. Operators, sqrt and conversions "
            "become instructions that take a whole register.",
            when=lambda w: w.kind == f"scalar {CHAIN}",
        ),
        Mistake(
            "an index might be below 0, for all that Numba knows",
            "Index -1 means the last element, in compiled code too. In range(first, last), first was computed, so Numba "
            "asks for each element whether its index is below 0. Take a slice, whose own indices begin at 0.",
            when=lambda w: w.kind.startswith("scalar"),
        ),
        Mistake(
            "one of the loops runs on one core",
            "prange says which loop to share out. Numba shares out its iterations, so there must be many, each with a small "
            "part of the work.",
            when=lambda w: w.kind in ("serial", "one thread"),
        ),
    ),
    allows=frozenset({"numba", "numpy"}),
)
