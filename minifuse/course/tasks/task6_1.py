"""Task 6.1: the sum over all ranks, in a ring."""

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.wording import format_count
from ..cases import at_random
from ..check import check_each
from ..questions.calling import calls
from ..questions.task6_1 import ask_alone, run_slot
from ..rank_cases import has_kind, numbers_of, with_sizes
from ..ranks import SEND, Array, RankRun, count_steps
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

CHUNKS, SCATTERED, GATHERED, SUMS, COUNTED, ISOLATED = (
    "chunks cover the elements in order, and their sizes differ by at most one",
    "reduce_scatter: rank r has the sum of chunk r",
    "all_gather: each rank has the parts of all ranks",
    "all_reduce: each rank has the sum, with the same bits",
    "a rank sends one chunk in each step, to its right neighbor",
    "a rank computes from its own array and its messages alone",
)
RANKS = (2, 3, 1, 4, 5, 6)
DTYPES = ("float64", "int64", "float64", "float32", "int32")
MAX_SHOWN_ELEMENTS = 24
Arrays = list[Array]
"""One of each rank."""


def draw_array(chance: Random, shape: tuple[int, ...], dtype: str) -> Array:
    """Draw an array whose sums depend on their order, if it has floats."""
    count = int(np.prod(shape))
    numbers = [chance.randint(-99, 99) * (1 if "int" in dtype else 10.0 ** chance.randint(-3, 1)) for _ in range(count)]
    return np.array(numbers, dtype).reshape(shape)


def draw_arrays(chance: Random, ranks: int, count: int, has_dims: int = 0) -> Arrays:
    """Draw an array for each rank: of one dim, or sometimes of several."""
    dtype = chance.choice(DTYPES)
    shape: tuple[int, ...] = (count,)
    if has_dims and chance.random() < 0.6:
        shape = chance.choice([(2, 3), (3, 1, 2), (), (4, 2)])
    return [draw_array(chance, shape, dtype) for _ in range(ranks)]


def arrays(has_dims: bool = False) -> "SearchStrategy[Arrays]":
    """Draw arrays of one shape: up to six ranks, also fewer elements than ranks."""
    return with_sizes(draw_arrays, RANKS, range(12), (0, 1) if has_dims else (0,))


def large_arrays() -> "SearchStrategy[Arrays]":
    """Draw long arrays of many ranks."""

    def draw(chance: Random) -> Arrays:
        shape = (chance.randint(300, 400),)
        return [draw_array(chance, shape, "float64") for _ in range(chance.randint(8, 12))]

    return at_random(draw)


def parts() -> "SearchStrategy[Arrays]":
    """Draw arrays of different sizes."""

    def draw(chance: Random, ranks: int) -> Arrays:
        dtype = chance.choice(DTYPES)
        return [draw_array(chance, (chance.randint(0, 4),), dtype) for _ in range(ranks)]

    return with_sizes(draw, RANKS)


def pairs() -> "SearchStrategy[tuple[Arrays, Arrays, int]]":
    """Draw the arrays of two runs, and a rank."""

    def draw(chance: Random, ranks: int, count: int) -> tuple[Arrays, Arrays, int]:
        return draw_arrays(chance, ranks, count, 1), draw_arrays(chance, ranks, count), chance.randrange(ranks)

    return with_sizes(draw, (2, 3, 4), range(1, 10))


def counts() -> "SearchStrategy[tuple[int, int]]":
    """Draw (count, size)."""
    return with_sizes(lambda _, count, size: (count, size), range(31), range(1, 10))


def large_counts() -> "SearchStrategy[tuple[int, int]]":
    """Draw (count, size) with many elements and ranks."""
    return at_random(lambda chance: (chance.randint(10_000, 99_999), chance.randint(30, 99)))


def describe_arrays(case: Arrays) -> str:
    """Return the arrays of all ranks as text."""
    shapes = {x.shape for x in case}
    kind = f"arrays of shape {case[0].shape}" if len(shapes) == 1 else "arrays"
    text = f"{format_count(len(case), 'rank')}, {case[0].dtype} {kind}"
    if sum(x.size for x in case) > MAX_SHOWN_ELEMENTS:
        return text
    return f"{text}: " + ", ".join(f"rank {rank} {numbers_of(x)}" for rank, x in enumerate(case))


def describe_pair(case: tuple[Arrays, Arrays, int]) -> str:
    """Return the arrays of the first run as text."""
    return f"rank {case[2]} of {describe_arrays(case[0])}"


def check_chunks(case: tuple[int, int], bounds: Any) -> None:
    """Raise `Wrong` if chunks leave out elements, overlap, or differ too much."""
    count, size = case
    text = f"chunk_bounds({count}, {size})"
    sizes = [stop - start for start, stop in bounds]
    if len(bounds) != size or type(bounds) is not list:
        raise Wrong(f"expected a list of {size} pairs", case_text=text, got=bounds)
    ends = [0, *(stop for _, stop in bounds)]
    if [start for start, _ in bounds] != ends[:-1] or ends[-1] != count:
        is_lost = sizes == [count // size] * size
        raise Wrong(
            "a chunk begins where the one before ends, and the last one ends at the count",
            case_text=text,
            got=bounds,
            kind="lost" if is_lost else "cover",
        )
    if min(sizes) < 0 or max(sizes) - min(sizes) > 1:
        raise Wrong(f"chunks have {sizes} elements", case_text=text, kind="uneven")


def sum_of(case: Sequence[Array]) -> Array:
    """Return the sum of the arrays of all ranks."""
    return np.asarray(np.sum(np.array(case), axis=0, dtype=case[0].dtype))


def check_sum(case: Arrays, got: Any, expected: Array, whose: str, size: Array) -> None:
    """Raise `Wrong` if an array is not the sum up to the rounding of sums in any order."""
    if not isinstance(got, np.ndarray):
        raise Wrong(f"{whose} is no NumPy array", expected=expected, got=got)
    if got.dtype != expected.dtype:
        raise Wrong(f"{whose} has dtype {got.dtype}; expected {expected.dtype}", kind="dtype")
    if got.shape != expected.shape:
        raise Wrong(f"{whose} has shape {got.shape}; expected {expected.shape}", expected=expected, got=got)
    if np.any(np.abs(got - expected) > slack_of(case, size)):
        raise Wrong(f"{whose} is wrong", expected=expected, got=got)


def slack_of(case: Arrays, size: Array) -> Array | float:
    """Return by how much sums may differ in another order, from the sum of the absolute values."""
    dtype = case[0].dtype
    return 0.0 if dtype.kind == "i" else 2 * len(case) * np.finfo(dtype).eps * size


def check_sums(case: Arrays, run: RankRun) -> None:
    """Raise `Wrong` if a rank has a wrong sum, or other bits than rank 0."""
    expected, size = sum_of(case), np.abs(np.array(case)).sum(0)
    for rank, got in enumerate(run.results):
        check_sum(case, got, expected, f"the result of rank {rank}", size)
        if got.tobytes() != run.results[0].tobytes():
            raise Wrong(
                f"ranks 0 and {rank} have different bits: expected is the result of rank 0, got that of rank {rank}",
                expected=run.results[0],
                got=got,
                kind="bits",
            )


def check_scattered(case: Arrays, run: RankRun) -> None:
    """Raise `Wrong` if rank r does not have the sum of chunk r; chunks may be cut in any of the allowed ways."""
    expected, size = sum_of(case), np.abs(np.array(case)).sum(0)
    lengths = [len(got) for got in run.results]
    check_lengths(lengths, len(expected))
    check_whose(case, run, expected, slack_of(case, size))
    start = 0
    for rank, got in enumerate(run.results):
        part = slice(start, start + len(got))
        check_sum(case, got, expected[part], f"the chunk of rank {rank}", size[part])
        start += len(got)
    check_messages(case, run, len(case) - 1, -(-len(expected) // len(case)))


def check_whose(case: Arrays, run: RankRun, expected: Array, slack: Array | float) -> None:
    """Raise `Wrong` if all ranks have sums of chunks, but each has that of a chunk some places further on."""
    if not all(isinstance(got, np.ndarray) and got.dtype == expected.dtype for got in run.results):
        return
    for shift in range(len(case)):
        got = np.concatenate([run.results[(k - shift) % len(case)] for k in range(len(case))])
        if got.shape == expected.shape and np.all(np.abs(got - expected) <= slack):
            if shift:
                right = expected[: len(run.results[-shift])]
                raise Wrong(
                    f"the result of rank 0 is the sum of chunk {shift}; expected that of chunk 0",
                    expected=right,
                    got=run.results[0],
                    kind="other chunk",
                )
            return


def check_lengths(lengths: list[int], count: int) -> None:
    """Raise `Wrong` if chunks of these lengths do not cover the elements, or differ too much."""
    if sum(lengths) != count or max(lengths) - min(lengths) > 1:
        raise Wrong(f"the chunks of the ranks have {lengths} of {count} elements", kind="lengths")


def check_gathered(case: Arrays, run: RankRun) -> None:
    """Raise `Wrong` if a rank does not have the parts of all, or sends more than one of them in a step."""
    for rank, got in enumerate(run.results):
        is_list = type(got) is list and len(got) == len(case)
        if not is_list or not all(
            isinstance(x, np.ndarray) and x.dtype == part.dtype and np.array_equal(x, part)
            for x, part in zip(got, case, strict=True)
        ):
            raise Wrong(
                f"rank {rank} does not have the list of all parts",
                case=case,
                expected=[numbers_of(x) for x in case],
                got=[numbers_of(x) if isinstance(x, np.ndarray) else x for x in got] if is_list else got,
                kind="own part" if is_list and is_own_part_passed(case, run) else "",
            )
    check_messages(case, run, len(case) - 1, max(map(len, case)))
    total = sum(map(len, case))
    for rank, events in enumerate(run.events):
        sent = sum(event.array.size for event in events if event.name == SEND)
        if sent > total - len(case[(rank + 1) % len(case)]) and len(case) > 1:
            raise Wrong(f"rank {rank} sends {sent} elements: all parts are {total}", kind="bytes")


def is_own_part_passed(case: Arrays, run: RankRun) -> bool:
    """Return whether each rank sends its own part in each step."""
    sent = [[event.array for event in events if event.name == SEND] for events in run.events]
    return all(np.array_equal(x, case[rank]) for rank, arrays in enumerate(sent) for x in arrays)


def check_counts(case: Arrays, run: RankRun) -> None:
    """Raise `Wrong` if `all_reduce` sends more, or more often, than it has to."""
    check_messages(case, run, 2 * (len(case) - 1), -(-case[0].size // len(case)))


def check_messages(case: Arrays, run: RankRun, steps: int, most: int) -> None:
    """Raise `Wrong` for a message to another rank than the right neighbor, one of too many elements, or too many steps."""
    for rank, events in enumerate(run.events):
        sent = [event for event in events if event.name == SEND]
        right = (rank + 1) % len(case)
        for number, event in enumerate(sent):
            what = f"message {number} of rank {rank}"
            if event.other != right:
                is_left = event.other == (rank - 1) % len(case)
                raise Wrong(
                    f"{what} goes to rank {event.other}; its right neighbor is rank {right}",
                    kind="left" if is_left else "neighbor",
                )
            if event.array.nbytes > most * case[0].itemsize:
                raise Wrong(
                    f"{what} has {event.array.nbytes} bytes; a chunk has at most {most * case[0].itemsize}", kind="bytes"
                )
        if len(sent) > steps:
            raise Wrong(f"rank {rank} sends {len(sent)} messages; {steps} steps need one each", kind="messages")
    if count_steps(run.events) > steps:
        raise Wrong(
            f"{count_steps(run.events)} messages follow each other; {steps} are enough if all ranks send at the same time",
            kind="steps",
        )


def check_alone(case: tuple[Arrays, Arrays, int], answer: Any) -> None:
    """Raise `Wrong` if a rank alone, with the messages of another run, has another result or sends something else."""
    together, alone = answer
    for what, a, b in (("returns", together.results, alone.results), ("sends", sent_of(together), sent_of(alone))):
        if [(x.dtype, x.tobytes()) for x in a] != [(x.dtype, x.tobytes()) for x in b]:
            raise Wrong(
                f"with the same array and the same messages, the rank {what} something else after another run; a rank "
                "has nothing but its array and its messages, also no global variable of the others",
                expected=a,
                got=b,
                kind="alone",
            )


def sent_of(run: RankRun) -> Arrays:
    """Return the arrays that the first rank of a run sent."""
    return [event.array for event in run.events[0] if event.name == SEND]


TASK = Task(
    id="6.1",
    title="All-reduce in a ring",
    file="ring.py",
    slots=("chunk_bounds", "reduce_scatter", "all_gather", "all_reduce"),
    points=6,
    text=(
        "Each rank has an array, and all need the sum. Write the program of one rank: chunks travel around a ring, grow on "
        "the first round and are handed on complete on the second. However many ranks there are, each sends its array "
        "twice at most."
    ),
    hints=(
        "All ranks run one program, each with its own rank. Think of one chunk: where does its sum begin, if it has to end "
        "on the rank of its number after size - 1 steps? And which chunk does a rank send first, then?",
        "reduce_scatter: rank r first sends chunk r - 1. What it receives is the sum so far of the chunk before that; it "
        "adds its own, and sends the result in the next step. all_gather: send the own part first, then always what was "
        "received last. In both, send before you receive.",
        "docs/course/6.1-all-reduce.md; docs/guide/distributed.md on the ring.",
    ),
    reads=("docs/course/6.1-all-reduce.md", "docs/guide/distributed.md"),
    checks=(
        check_each(CHUNKS, counts, calls("chunk_bounds"), check_chunks, large=large_counts),
        check_each(
            SCATTERED,
            arrays,
            partial(run_slot, "reduce_scatter"),
            check_scattered,
            large=large_arrays,
            describe=describe_arrays,
        ),
        check_each(GATHERED, parts, partial(run_slot, "all_gather"), check_gathered, describe=describe_arrays),
        check_each(
            SUMS,
            partial(arrays, True),
            partial(run_slot, "all_reduce"),
            check_sums,
            large=large_arrays,
            describe=describe_arrays,
        ),
        check_each(
            COUNTED,
            partial(arrays, True),
            partial(run_slot, "all_reduce"),
            check_counts,
            large=large_arrays,
            describe=describe_arrays,
            share=0.5,
        ),
        check_each(ISOLATED, pairs, ask_alone, check_alone, describe=describe_pair, share=0.3),
    ),
    mistakes=(
        Mistake(
            "the rest of the division is lost",
            "10 elements in 4 chunks are 2, 3, 2 and 3, not four times 2.",
            when=has_kind("lost"),
            check=CHUNKS,
        ),
        Mistake(
            "all ranks receive first",
            "Each waits for a message that its neighbor would send later: a deadlock. Send first, then receive.",
            when=has_kind("deadlock"),
        ),
        Mistake(
            "a message is sent that nobody receives",
            "Each send needs a receive by the rank that it names: are there as many?",
            when=has_kind("left over"),
        ),
        Mistake(
            "a single rank returns x, or a slice of it, itself",
            "Without neighbors nothing is added, so nothing makes a new array: copy.",
            when=has_kind("view of one"),
        ),
        Mistake(
            "sums are written into x",
            "x belongs to the caller, and chunks of it are views. `a + b` makes a new array, `a += b` does not.",
            when=has_kind("changed", "view", "view of one"),
        ),
        Mistake(
            "each rank ends with the sum of another chunk",
            "Each sum goes a step too far, or too short. That of chunk r ends on rank r after size - 1 steps. So it begins "
            "on rank r + 1, and rank r sends chunk r - 1 first.",
            when=has_kind("other chunk"),
            check=SCATTERED,
        ),
        Mistake(
            "messages go to the left",
            "The right neighbor of rank r is (r + 1) % size.",
            when=has_kind("left"),
        ),
        Mistake(
            "a message has more than one chunk",
            "Send one chunk in each step, in the dtype of x: then a rank sends 2 (size - 1) / size of its array.",
            when=has_kind("bytes"),
        ),
        Mistake(
            "the own part is sent in each step",
            "Its right neighbor has it after the first one. Pass on what was received last.",
            when=has_kind("own part"),
            check=GATHERED,
        ),
        Mistake(
            "the sum has another dtype than x",
            "It has the dtype of x. np.zeros makes float64 unless it is told otherwise.",
            when=has_kind("dtype"),
        ),
    ),
    allows=frozenset({"numpy"}),
)
