"""Task 3.2: matmul on all cores."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .. import oracle, parallel, parallel_checks
from ..access_facts import AccessFacts
from ..asked_once import once
from ..cases import fresh, strided_like
from ..check import agreement, in_turn, is_near
from ..draw import rows
from ..loops import describe_layout
from ..questions.parallel import Arguments, CompiledRun, product_in_python, when_compiled
from ..strided import Array, Strided
from ..student_process import StudentProcess
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SLOT = "parallel_matmul"
PRODUCT = "every product is summed, for operands of any layout, batched and broadcast"
BATCHES = [
    ((), (), ()),
    ((2,), (2,), (2,)),
    ((3,), (1,), (3,)),
    ((3,), (3,), (1,)),
    ((2,), (2,), ()),
    ((2, 3), (2, 1), (3,)),
    ((3, 2), (3, 2), (3, 1)),
    ((2, 1, 3), (2, 1, 3), (3,)),
    ((2, 2, 1, 2), (2, 1, 1, 2), (2, 1, 1)),
]
Case = tuple[Strided, Strided, Strided]


def products() -> "SearchStrategy[Case]":
    """Draw (out, a, b): equal or broadcast batches, any layouts, and an inner size of 0 too."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        batch, of_a, of_b = draw(st.sampled_from(BATCHES))
        m, n, k = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(0, 4))
        kind = draw(st.sampled_from(parallel.KINDS))
        layouts = strided_like(draw, (*of_a, m, k)), strided_like(draw, (*of_b, k, n), start=-7)
        a, b = [parallel.with_values(x, kind, parallel.SUM_EDGES) for x in layouts]
        out = draw(st.booleans()) and strided_like(draw, (*batch, m, n))
        return parallel.empty_like(out or fresh((*batch, m, n))), a, b

    return case()


def each_batch() -> "SearchStrategy[Case]":
    """Draw one case for each kind of broadcast batches, with different sizes, strides and offsets."""
    from hypothesis import strategies as st

    found = []
    for batch, of_a, of_b in BATCHES:
        a, b = parallel.gapped((*of_a, 2, 3)), parallel.row_major((*of_b, 3, 4), -7, 2)
        found.append((fresh((*batch, 2, 4)), a, b))
    return st.sampled_from(found)


def answer(function: Callable[..., object], case: Case) -> Array:
    """Run a product on a copy of the case, and return the storage of the output."""
    out = parallel.empty_like(case[0])
    function(out, *case[1:])
    return out.storage


def describe_case(case: Case) -> str:
    """Return a case as text."""
    return "; ".join(f"{name} {describe_layout(x)}" for name, x in zip(("out", "a", "b"), case, strict=True))


def drawing(case: Case, got: object, expected: object) -> list[str]:
    """Draw both operands, and the expected and actual storage of the output."""
    _, a, b = case
    return [*rows(a.array(), "a"), *rows(b.array(), "b"), *rows(expected, "expected"), *rows(got, "got")]


def agrees(cases: Callable[[], "SearchStrategy[Case]"]) -> Check:
    """Return a check that products are right in Python."""
    return agreement(
        PRODUCT,
        cases,
        product_in_python,
        lambda c: answer(oracle.function(SLOT), c),
        agree=is_near,
        describe=describe_case,
        draw=drawing,
        link=lambda c: "matmul",
    )


def of_sizes(m: int, k: int, n: int, batch: tuple[int, ...] = ()) -> Case:
    """Return a case of row-major operands; b is broadcast over the batch."""
    a, b = [parallel.with_values(parallel.row_major(shape), "fractions") for shape in ((*batch, m, k), (k, n))]
    return fresh((*batch, m, n)), a, b


def given(case: Case) -> Arguments:
    """Return the arguments of a call, with an output full of NaN."""
    return parallel.empty_like(case[0]), *case[1:]


def accesses_of(student: StudentProcess, *cases: Case, sample: int | None = None) -> list[AccessFacts]:
    """Run the student's product in Python, and return its accesses for each case."""
    return parallel_checks.accesses_of(student, SLOT, *map(given, cases), sample=sample)


FIRST = given(of_sizes(2, 3, 4, (2,)))  # for whose types the product is compiled
SMALL = of_sizes(3, 4, 5, (2,))
SHARED = of_sizes(32, 4, 8)
LONG, WIDE = of_sizes(40, 300, 2), of_sizes(40, 2, 200)
"""Cases with long sums, and with many columns, of which a few iterations run in Python."""
LARGE = (of_sizes(24, 20, 40), of_sizes(40, 20, 24), of_sizes(300, 3, 20), of_sizes(12, 4, 9, (2, 3)), of_sizes(24, 300, 4))
"""Cases whose rows are to be shared out."""


def recorded(student: StudentProcess) -> list[tuple[Case, AccessFacts]]:
    """Return the accesses for small sizes, and those of a few iterations for long sums and for many columns."""

    def ask() -> list[tuple[Case, AccessFacts]]:
        (small,) = accesses_of(student, SMALL)
        large = accesses_of(student, LONG, WIDE, sample=parallel_checks.SAMPLE)
        return list(zip((SMALL, LONG, WIDE), (small, *large), strict=True))

    return once(student, "recorded", ask)


def check_no_races(student: StudentProcess) -> None:
    """Raise `Wrong` if two iterations of a prange access the same element and one of them writes."""
    parallel_checks.check_any_written(SLOT, [facts for _, facts in recorded(student)])
    for case, facts in recorded(student):
        parallel_checks.check_races(SLOT, facts, describe_case(case))


def compiles_in_parallel(student: StudentProcess) -> None:
    """Raise `Wrong` if Numba cannot compile the product, or a thread makes most of it, or it makes columns."""
    parallel_checks.check_parallel(SLOT, parallel_checks.loop_source(student, SLOT, FIRST))
    for case, facts in zip((SMALL, SHARED), accesses_of(student, SMALL, SHARED), strict=True):
        parallel_checks.check_all_parallel(SLOT, facts, describe_case(case))
    for case, run in parallel_checks.check_shares(student, SLOT, FIRST, LARGE, given, describe_case):
        along_rows(case, run)
    parallel_checks.check_read_share(SLOT, facts, describe_case(SHARED))


def along_rows(case: Case, run: CompiledRun) -> None:
    """Raise `Wrong` if an iteration of a prange writes down a column."""
    columns = case[0].shape[-1]
    for loop in run.pranges:
        for number in range(loop.groups):
            row, column = np.divmod(np.flatnonzero(loop.writer == number), columns)
            tall, wide = len(np.unique(row)), len(np.unique(column))
            if tall > wide and wide < columns:
                raise Wrong(
                    f"{SLOT}: compiled, an iteration of the prange writes {tall} rows of {wide} "
                    f"{'column' if wide == 1 else 'columns'}, so it reads and writes down columns; give a thread rows",
                    case_text=describe_case(case),
                    kind="columns",
                )


def same_compiled(student: StudentProcess) -> None:
    """Raise `Wrong` if the compiled product writes other values."""
    turned = parallel.reverse_dims(parallel.row_major((40, 33)))
    out, *operands = of_sizes(3, 4, 5)
    a, b = [x._replace(storage=x.storage * 2.0**-333) for x in operands]
    cases: list[Case] = [
        (out, a, b),
        of_sizes(3, 4, 5),
        of_sizes(33, 65, 129),
        of_sizes(7, 8, 9, (2, 3)),
        of_sizes(2, 3000, 3),
        of_sizes(1500, 3, 2),
        of_sizes(2, 3, 1500),
        of_sizes(2, 2, 3, (2, 1, 5, 30)),
        (fresh((33, 5)), turned, of_sizes(1, 40, 5)[2]),
    ]
    found = student.ask(partial(when_compiled, SLOT), (FIRST, [given(case) for case in cases]))
    for case, got in zip(cases, found, strict=True):
        parallel_checks.check_equal(SLOT, answer(oracle.function(SLOT), case), got, describe_case(case))


def no_memory(student: StudentProcess) -> None:
    """Raise `Wrong` if allocated arrays grow with the sizes, or the compiled loops allocate."""
    found = accesses_of(student, of_sizes(3, 4, 5), of_sizes(6, 8, 10))
    few, many = [max(facts.made, default=0) for facts in found]
    if many > few:
        raise Wrong(
            f"{SLOT} makes an array of {few} elements for sizes 3, 4, 5, and of {many} for 6, 8, 10; a product needs no "
            "more memory than its operands and its output",
            kind="intermediate",
        )
    for case, facts in recorded(student):
        parallel_checks.check_none_made(SLOT, facts, describe_case(case))
    for k, n in ((10, 10), (300, 10), (10, 300)):
        cases = [given(of_sizes(m, k, n)) for m in (2, 200)]
        parallel_checks.check_allocations(student, SLOT, FIRST, cases, (2 * n, 200 * n))


def each_once(student: StudentProcess) -> None:
    """Raise `Wrong` if an output is written twice, or an operand is read more than once per product."""
    parallel_checks.check_any_written(SLOT, [facts for _, facts in recorded(student)])
    for case, facts in recorded(student):
        parallel_checks.check_each_once(SLOT, facts, case[1].shape[-1], describe_case(case))


def steps_along(student: StudentProcess) -> None:
    """Raise `Wrong` if a longer inner dim leads to more reads of sizes and strides, or to more divisions."""
    pairs = [(of_sizes(3, 4, 5), of_sizes(3, 40, 5), None), (of_sizes(40, 4, 2), LONG, parallel_checks.SAMPLE)]
    for short, long, sample in pairs:
        few, many = accesses_of(student, short, long, sample=sample)
        sums = many.written
        parallel_checks.check_positions(SLOT, few, many, f"for {sums} sums of {long[1].shape[-1]} products instead of 4")


def with_batches_as_they_are(case: Case) -> Array:
    """Multiply with the operands' own batch strides, without broadcasting."""
    out, a, b = case
    found = parallel.empty_like(out)
    for index in np.ndindex(out.shape):
        total = 0.0
        for k in range(a.shape[-1]):
            cells = [at(a, (*index[:-2], index[-2], k)), at(b, (*index[:-2], k, index[-1]))]
            total += cells[0] * cells[1]
        found.array()[index] = total
    return found.storage


def at(x: Strided, index: tuple[int, ...]) -> float:
    """Return the element at the last dims of an index, without broadcasting."""
    place = x.offset + sum(i * s for i, s in zip(index[len(index) - len(x.shape) :], x.strides, strict=True))
    if not 0 <= place < len(x.storage):
        raise IndexError(place)
    return float(x.storage[place])


def with_first_matrices(case: Case) -> Array:
    """Multiply the first matrix of a and the first one of b for each matrix of the output."""
    out, a, b = case
    if not out.shape[:-2]:
        raise IndexError(out.shape)
    a, b = [x._replace(shape=x.shape[-2:], strides=x.strides[-2:]) for x in (a, b)]
    return answer(oracle.function(SLOT), (out, a, b))


def lacks_matrices(wrong: Wrong) -> bool:
    """Return whether an answer has no element of some matrices, and all elements of the others."""
    if wrong.case is None or not isinstance(wrong.got, np.ndarray) or np.isnan(wrong.expected).all():
        return False
    out: Strided = wrong.case[0]
    got, right = [out._replace(storage=x).array().reshape(-1, *out.shape[-2:]) for x in (wrong.got, wrong.expected)]
    is_missing = np.isnan(got).all((1, 2))
    return bool(is_missing.any()) and is_near(got[~is_missing], right[~is_missing])


def with_b_turned(case: Case) -> Array:
    """Multiply with b transposed."""
    out, a, b = case
    return within(out, a, b._replace(strides=(*b.strides[:-2], b.strides[-1], b.strides[-2])))


def without_offsets(case: Case) -> Array:
    """Multiply without the operands' offsets."""
    out, a, b = case
    return within(out, a._replace(offset=0), b._replace(offset=0))


def within(out: Strided, a: Strided, b: Strided) -> Array:
    """Multiply if every element of the operands is inside its storage; else raise IndexError."""
    for x in (a, b):
        reach = [(n - 1) * s for n, s in zip(x.shape, x.strides, strict=True)]
        first, last = [x.offset + sum(pick(r, 0) for r in reach) for pick in (min, max)]
        if 0 not in x.shape and not 0 <= first <= last < len(x.storage):
            raise IndexError(first, last)
    return answer(oracle.function(SLOT), (out, a, b))


TASK = Task(
    id="3.2",
    title="Parallel matmul",
    file="parallel.py",
    slots=(SLOT,),
    points=6,
    text=(
        "Write a matmul over strides: dims before the last two are a batch, and are broadcast. Without a "
        "tensor of all products in between, without an allocation in a loop; the outermost loop is shared out over the "
        "cores, and a sum is accumulated in a local variable until it is complete."
    ),
    hints=(
        "One iteration of prange is one row of one matrix of the batch: enough for a thread, and nobody else writes it.",
        "prange over batches x rows; which batch, which row; the places where the row of a, the matrix of b and the row of "
        "out begin. Then for each column, and for each k: total += a's element * b's element, each a step further on.",
        "docs/course/3.2-parallel-matmul.md; minifuse/backends/parallel/fused_gemm.py is what the library does.",
    ),
    reads=("docs/course/3.2-parallel-matmul.md", "minifuse/backends/python.py"),
    checks=(
        in_turn(PRODUCT, [agrees(products), agrees(each_batch)]),
        Check("no two iterations of a prange meet at one cell", lambda s, e: check_no_races(s)),
        Check("Numba compiles it, and shares out the outermost loop", lambda s, e: compiles_in_parallel(s)),
        Check("compiled, it gives the same", lambda s, e: same_compiled(s)),
        Check("no tensor in between, no memory taken in the loops", lambda s, e: no_memory(s)),
        Check("each output is written once, when its sum is complete", lambda s, e: each_once(s)),
        Check("the innermost loop works out no index", lambda s, e: steps_along(s)),
    ),
    mistakes=(
        Mistake(
            "the batch of an operand is read with its own strides, though it is broadcast",
            "A batch of size 1, or none at all, stands still: broadcast_strides gives it stride 0.",
            wrong_answer=with_batches_as_they_are,
            when=parallel_checks.or_out_of_bounds(with_batches_as_they_are),
            check=PRODUCT,
        ),
        Mistake(
            "the last two strides of b are swapped",
            "b[k, n] is stored at k * strides[-2] + n * strides[-1]: a column of b goes down in steps of strides[-2].",
            wrong_answer=with_b_turned,
            when=parallel_checks.or_out_of_bounds(with_b_turned),
            check=PRODUCT,
        ),
        Mistake(
            "only the first matrix of a batch is used",
            "out, a and b each have a batch. Which matrix an iteration makes follows from its number; place_of finds it in "
            "each of the three, with the shape of the batch of out.",
            wrong_answer=with_first_matrices,
            check=PRODUCT,
        ),
        Mistake(
            "some matrices of the batch are not made",
            "The batch of the product is that of out: each of its matrices is made, also where a or b has fewer dims, or a "
            "size of 1.",
            when=lacks_matrices,
            check=PRODUCT,
        ),
        Mistake(
            "the offsets of the operands are left out",
            "A view may begin anywhere in its storage; place_of takes an offset.",
            wrong_answer=without_offsets,
            when=parallel_checks.or_out_of_bounds(without_offsets),
            check=PRODUCT,
        ),
        Mistake(
            "the sum is accumulated in the output",
            "out[...] += is a load and a store for each product; a local variable is a register.",
            when=lambda w: w.kind == "memory",
        ),
        Mistake(
            "all products are stored before they are summed",
            "M * N * K numbers are never needed at once. Sum as you go.",
            when=lambda w: w.kind == "intermediate",
        ),
        Mistake(
            "one iteration of the prange does most of the work",
            "Numba shares out iterations, and each of them runs on one thread: an iteration for each row, of each matrix.",
            when=lambda w: w.kind == "one thread",
        ),
        Mistake(
            "an array is made in each iteration",
            "Places are numbers; local variables hold them.",
            when=lambda w: w.kind == "allocation",
        ),
        Mistake(
            "the sum over k is what is shared out",
            "Two threads would add to one number, and threads would start anew for each output. prange over rows.",
            when=lambda w: w.kind in ("inner loop", "race"),
        ),
        Mistake(
            "each product works out its places anew",
            "Only k changes in the innermost loop: the place in a grows by strides[-1], that in b by strides[-2].",
            when=lambda w: w.kind == "slow path",
        ),
    ),
    allows=frozenset({"numba", "numpy"}),
)
