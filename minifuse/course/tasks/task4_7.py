"""Task 4.7: a data loader."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ...core.wording import format_count
from .. import oracle
from ..check import agreement, check_each, in_turn, same
from ..loader_cases import batches_of, columns, large_loadings, loadings, rows, splits
from ..orders import LONG_ORDER, SHORT_ORDER, check_mixed, check_uniform
from ..questions.task4_7 import (
    FIRST,
    Columns,
    Loading,
    Rows,
    ask_collated,
    ask_ends,
    ask_epochs,
    ask_examples,
    ask_given_up,
    ask_orders,
    ask_prepared,
    ask_reads,
    ask_resumed,
    ask_statistics,
)
from ..strided import Array, Strided
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong
from ..view_cases import same_places

EXAMPLES, COLLATED, EPOCHS, SHUFFLED, READS, AGAIN, RESUMED, STATISTICS, PREPARED = (
    "an example is a row without a copy, and its label",
    "a batch is a tensor of its own",
    "an epoch has each example once, in batches of one size and a rest",
    "each epoch has an order of its own, which follows from the seed",
    "an example is read when its batch is due, and once",
    "a new iteration is a new epoch, also after one that was given up",
    "a loader with a loaded state continues where the other one was",
    "statistics are those of each column, also far from 0",
    "test data are scaled by the statistics of the training data",
)
MAX_STATE_LENGTH = 200  # characters


def describe_loading(case: Loading) -> str:
    """Return a loader as text."""
    given_up = f"; {format_count(case.batches, 'batch', 'batches')} of epoch {case.epochs - 1}" if case.batches else ""
    arguments = f"batch_size={case.size}, seed={case.seed}, drop_last={case.drops_last}"
    return f"DataLoader({format_count(case.examples, 'example')}, {arguments}){given_up}"


def describe_reads(case: Loading) -> str:
    """Return a loader as text, and when its reads are counted."""
    return f"{describe_loading(case)}; examples read after DataLoader and len, after iter, after each batch, in the end"


def check_epoch(case: Loading, batches: list[list[int]]) -> None:
    """Raise `Wrong` if an epoch does not have each example once, in batches of the right sizes."""
    sizes = [len(batch) for batch in batches]
    expected = [min(case.size, case.examples - k * case.size) for k in range(batches_of(case))]
    text = describe_loading(case)
    if sizes != expected:
        kind = "sizes"
        if case.drops_last and sizes == [*expected, case.examples % case.size]:
            kind = "kept"
        elif not case.drops_last and expected and sizes == expected[:-1] and expected[-1] < case.size:
            kind = "lost"
        elif not sizes:
            kind = "empty"
        raise Wrong(
            f"batches have the sizes {sizes}, expected {expected}", case_text=text, expected=expected, got=sizes, kind=kind
        )
    seen = [k for batch in batches for k in batch]
    known = range(FIRST, FIRST + case.examples)
    if len(set(seen)) < len(seen) or not set(seen) <= set(known):
        raise Wrong("an example occurs twice, or none of the data set does", case_text=text, got=seen, kind="twice")
    if case.seed is None and seen != list(known)[: len(seen)]:
        raise Wrong(
            "without a seed the order changes", case_text=text, expected=list(known)[: len(seen)], got=seen, kind="order"
        )


def check_epochs(case: Loading, answer: Any) -> None:
    """Raise `Wrong` for a wrong length or epoch."""
    length, epochs = answer
    expected, text = batches_of(case), describe_loading(case)
    if length != expected or isinstance(length, bool):
        kind = "lost" if length == case.examples // case.size and not case.drops_last else ""
        raise Wrong("len(loader) is wrong", case_text=text, expected=expected, got=length, kind=kind)
    for batches in epochs:
        check_epoch(case, batches)


def check_given_up(case: Loading, answer: Any) -> None:
    """Raise `Wrong` if an epoch after one that was given up, or one of two in turns, is not complete."""
    for batches in answer:
        check_epoch(case, batches)


def reads_of(case: Loading) -> list[int]:
    """Return how many examples have been read before, after each batch, and in the end."""
    counts = [min(case.size * (k + 1), case.examples) for k in range(batches_of(case))]
    return [0, 0, *counts, max(counts, default=0)]


def check_resumed(case: Loading, answer: Any) -> None:
    """Raise `Wrong` if a new loader does not continue from a state, reads more, or has a large state."""
    length, rest, found, asked, following, given_up = answer
    text = describe_loading(case)
    if length > MAX_STATE_LENGTH:
        raise Wrong(
            f"the state has {length} characters as JSON; at most {MAX_STATE_LENGTH} may it have", case_text=text, kind="size"
        )
    if found != rest:
        is_anew = case.batches > 0 and len(found) == batches_of(case)
        is_complete = case.batches > 0 and case.batches == batches_of(case)
        is_behind = len(found) == 1 if is_complete else case.batches > 0 and found[1:] == rest
        theirs, ours = [[[k - FIRST for k in batch] for batch in batches] for batches in (found, rest)]
        raise Wrong(
            f"the examples of the batches after loading are {theirs}; those without saving are below",
            case_text=text,
            expected=ours,
            kind=f"{'anew ' * is_anew}{'behind ' * is_behind}other",
        )
    if asked != sum(map(len, found)):
        raise Wrong(f"{asked} examples are read for batches of {sum(map(len, found))}", case_text=text, kind="reads")
    if given_up != following:
        raise Wrong(
            "after loading, one iteration was given up; the next one is no new epoch",
            case_text=text,
            expected=following,
            got=given_up,
            kind="late",
        )


def are_shuffled(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if orders repeat, do not follow from the seed, or some are more likely than others."""
    seed = effort.seed or 0
    text = "DataLoader({} examples, batch_size={}, seed={}), {} epochs"
    one, same, other = np.array(student.ask(ask_orders, (LONG_ORDER, [seed, seed, seed + 1], 3)))
    case_text = text.format(LONG_ORDER, LONG_ORDER, f"{seed}, then again, then {seed + 1}", 3)
    if any(sorted(order) != list(range(LONG_ORDER)) for order in (*one, *same, *other)):
        raise Wrong("an epoch does not have each example once", case_text=case_text, kind="twice")
    if not np.array_equal(one, same):
        raise Wrong("two loaders with one seed have different orders", case_text=case_text, kind="seed")
    if np.array_equal(one, other):
        raise Wrong("two loaders with different seeds have the same orders", case_text=case_text, kind="no seed")
    distinct = len({tuple(order) for order in one.tolist()})
    if distinct < len(one):
        raise Wrong("two epochs have the same order", case_text=case_text, kind="repeated" if distinct == 1 else "")
    for (a, first), (b, second) in product(enumerate(one), enumerate(other)):
        if np.array_equal(first, second):
            raise Wrong(
                f"epoch {a} of seed {seed} has the order of epoch {b} of seed {seed + 1}",
                case_text=case_text,
                kind="added" if np.array_equal(one[1:], other[:-1]) else "",
            )
    for order in (*one, *other):
        check_mixed(order, case_text)
    (many,) = np.array(student.ask(ask_orders, (SHORT_ORDER, [seed], 600)))
    check_uniform(many, text.format(SHORT_ORDER, SHORT_ORDER, seed, len(many)))


def statistics_of(x: Strided, ddof: int = 0, has_zero: bool = False) -> tuple[list[float], list[float]]:
    """Return the mean and the scale of each column, in twice the precision."""
    wide = x.array().astype(np.longdouble)
    means = wide.mean(0)
    with np.errstate(all="ignore"):
        scales = np.sqrt(np.square(wide - means).sum(0) / (len(wide) - ddof))
    is_constant = wide.min(0) == wide.max(0)
    scales = np.where(is_constant, 0.0 if has_zero else 1.0, scales)
    return [float(m) for m in means], [float(s) for s in scales]


def scaled(x: Strided, statistics: tuple[list[float], list[float]]) -> Array:
    """Return the scaled rows."""
    with np.errstate(all="ignore"):
        return np.asarray((x.array() - np.array(statistics[0])) / np.array(statistics[1]))


def prepared(case: Columns, by: Callable[[Columns, int], Strided] = lambda case, k: case[0]) -> tuple[Array, ...]:
    """Return both parts, scaled by the statistics of a part."""
    return tuple(scaled(x, statistics_of(by(case, k))) for k, x in enumerate(case))


def near(got: Any, expected: Any) -> bool:
    """Return whether scaled rows agree; those far from 0 lose digits by the subtraction."""
    return len(got) == len(expected) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-7, atol=1e-7, equal_nan=True)
        for a, b in zip(got, expected, strict=True)
    )


def examples_of(case: Rows) -> object:
    """Return the number of examples, and each of them, from both ends."""
    x, labels = case
    array, places = x.array(), [*range(len(labels)), -1, -len(labels)]
    return len(labels), [(x.shape[1:], np.asarray(array[k]), labels[k]) for k in places]


def batch_of(case: Rows) -> object:
    """Return the layout, the elements and the labels of a batch of all examples."""
    shape = case[0].shape
    return same_places((shape, oracle.function("row_major_strides")(shape), 0)), np.array(case[0].array()), case[1]


def read_batch(case: Rows, answer: Any) -> object:
    """Return a batch with a layout that can be compared."""
    view, array, labels = answer
    return same_places(view), array, labels


def describe_rows(case: Rows) -> str:
    """Return a data set as text."""
    return f"x of shape {case[0].shape}, strides {case[0].strides}; labels {case[1]}"


def describe_columns(case: Strided | Columns) -> str:
    """Return rows as text."""
    parts = (case,) if isinstance(case, Strided) else case
    return " and ".join(str(part.array().tolist()) for part in parts)


def takes_small_for_constant(wrong: Wrong) -> bool:
    """Return whether only scales below 1e-5 are wrong, and are 1."""
    (means, scales), (right_means, right_scales) = wrong.got, wrong.expected
    small = [1.0 if s < 1e-5 else s for s in right_scales]
    partly = [s if a == s else one for a, s, one in zip(scales, right_scales, small, strict=True)]
    return not wrong.kind and same(means, right_means) and same(scales, partly)


def has_kind(*kinds: str) -> Callable[[Wrong], bool]:
    """Return a function that says whether a failure is of one of these kinds."""
    return lambda wrong: wrong.kind in kinds


TASK = Task(
    id="4.7",
    title="A data loader",
    file="data_loader.py",
    slots=("TensorDataset", "collate", "DataLoader", "column_statistics", "prepare"),
    points=6,
    text=(
        "Training reads the same data again and again, in another order each time. Write a data set whose examples are "
        "views, a loader that makes batches of them and can continue after a stop, and the scaling of columns by statistics "
        "of the training data alone."
    ),
    hints=(
        "The order of an epoch is a list of indices; examples are read when their batch is due. If the order follows from "
        "the seed and the number of the epoch alone, two numbers are the whole state: the epoch, and how many batches are "
        "done.",
        "__iter__ decides which epoch it is, and returns a generator. The generator shuffles range(len(dataset)) with "
        "Random(f'{seed} {epoch}'), and for each batch stores the count of batches before it yields. load_state_dict marks "
        "the loader, so that the next __iter__ continues the epoch, unless it is complete.",
        "docs/course/4.7-data-loader.md; minifuse/data has the loader of the library.",
    ),
    reads=("docs/course/4.7-data-loader.md", "docs/guide/training.md"),
    checks=(
        in_turn(
            EXAMPLES,
            (
                agreement(EXAMPLES, rows, ask_examples, examples_of, describe=describe_rows, share=0.5),
                agreement(EXAMPLES, rows, ask_ends, lambda case: ["IndexError"] * 3, describe=describe_rows, share=0.2),
            ),
        ),
        agreement(COLLATED, rows, ask_collated, batch_of, read=read_batch, describe=describe_rows, share=0.5),
        check_each(EPOCHS, loadings, ask_epochs, check_epochs, large=large_loadings, describe=describe_loading),
        Check(SHUFFLED, are_shuffled),
        agreement(READS, loadings, ask_reads, reads_of, large=large_loadings, describe=describe_reads, share=0.5),
        check_each(
            AGAIN,
            partial(loadings, 9, 1, None, True),
            ask_given_up,
            check_given_up,
            describe=describe_loading,
            share=0.5,
        ),
        check_each(
            RESUMED,
            partial(loadings, 9, 3, None, True),
            ask_resumed,
            check_resumed,
            large=large_loadings,
            describe=describe_loading,
        ),
        agreement(STATISTICS, columns, ask_statistics, statistics_of, describe=describe_columns),
        agreement(PREPARED, splits, ask_prepared, prepared, describe=describe_columns, agree=near, share=0.7),
    ),
    mistakes=(
        Mistake(
            "rows are copied",
            "sliced(x, k) of task 2.6 is a row without a copy.",
            when=has_kind("storage"),
            check=EXAMPLES,
        ),
        Mistake(
            "the last batch is lost",
            "If 10 examples are read in fours, the third batch has two. Only drop_last leaves it out.",
            when=has_kind("lost"),
            check=EPOCHS,
        ),
        Mistake(
            "each epoch has the same order",
            "The number of the epoch is to change the order too, for example by Random(f'{seed} {epoch}').",
            when=has_kind("repeated"),
            check=SHUFFLED,
        ),
        Mistake(
            "the order does not follow from the seed",
            "Shuffle with a Random of your own, made from the seed; the functions of the module random share one.",
            when=has_kind("seed", "no seed"),
            check=SHUFFLED,
        ),
        Mistake(
            "the seed and the epoch are added",
            "seed + epoch is one number for seed 0, epoch 1 and for seed 1, epoch 0. A text with both, such as "
            "f'{seed} {epoch}', is different for each pair.",
            when=has_kind("added"),
            check=SHUFFLED,
        ),
        Mistake(
            "not all orders are equally likely",
            "random.shuffle exchanges each place with one of those that are left. A rotation, or exchanges of neighbors, "
            "mix less.",
            when=has_kind("mixed", "uniform"),
            check=SHUFFLED,
        ),
        Mistake(
            "the whole data set is read before the first batch",
            "Keep indices, and ask dataset[k] when the batch is due: a data set may be larger than memory.",
            when=lambda w: set(w.got[2:]) == {w.case.examples},
            check=READS,
        ),
        Mistake(
            "an iteration continues one that was given up",
            "Whoever leaves a loop early begins a new epoch with the next loop. Each iteration has its own place.",
            when=has_kind("empty", "sizes", "lost", "twice"),
            check=AGAIN,
        ),
        Mistake(
            "an example is read more than once",
            "Ask dataset[k] once, when the batch of k is due.",
            when=lambda w: w.got[-1] > w.case.examples,
            check=READS,
        ),
        Mistake(
            "a batch is counted after the yield",
            "The state is asked for while the caller has the batch. Count it first, then yield it.",
            when=lambda w: "behind" in w.kind.split(),
            check=RESUMED,
        ),
        Mistake(
            "a loaded loader begins the epoch anew",
            "The state has two numbers: the epoch, and how many batches of it are done.",
            when=lambda w: "anew" in w.kind.split(),
            check=RESUMED,
        ),
        Mistake(
            "a small column is taken for a constant one",
            "Its deviation is small, and not 0. A column is constant if its least element equals its largest.",
            when=takes_small_for_constant,
            check=STATISTICS,
        ),
        Mistake(
            "a constant column is divided by 0",
            "Its standard deviation is 0, or 1e-17 by rounding. Where the least element equals the largest, the scale is 1.",
            wrong_answer=lambda c: statistics_of(c, has_zero=True),
            check=STATISTICS,
        ),
        Mistake(
            "test data are scaled by their own statistics",
            "Then a test example has another value when others are tested with it. Use the means and scales of train.",
            wrong_answer=lambda c: prepared(c, lambda case, k: case[k]),
            check=PREPARED,
        ),
    ),
    allows=frozenset({"numpy"}),
)
