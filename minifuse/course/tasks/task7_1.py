"""Task 7.1: embeddings, positions, and the output layer with the same table."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import at_random
from ..check import in_turn
from ..library_checks import elements_of, error_check, expected_answer, library_check, only_own_derivatives, saves_at_most
from ..library_facts import LibraryRun, TensorCall
from ..questions.library import incoming_gradient
from ..questions.task7_1 import tied
from ..strided import Array
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from random import Random

    from hypothesis.strategies import SearchStrategy

EMBED, IDS, POSITIONS, UNEMBED, TIED = (
    "embed selects rows, and a row that is used twice gets both gradients",
    "an id below 0 or beyond the table raises IndexError",
    "place t gets row t of the positions, and too many places raise ValueError",
    "the output layer multiplies with the table, without a copy of it",
    "a table that is used at both ends gets both gradients",
)
Sizes = tuple[int, int, tuple[int, ...]]
"""(rows of the table, width, shape of ids)."""
SMALL: tuple[Sizes, ...] = (
    (1, 1, (1,)),
    (3, 2, (2,)),
    (4, 3, (5,)),
    (7, 1, (2, 3)),
    (40, 2, (3,)),
    (5, 4, (2, 1, 2)),
    (6, 2, ()),
)
LARGE: tuple[Sizes, ...] = ((300, 4, (20,)), (30, 16, (2, 12)), (80, 3, (2, 3, 5)))
SLACK = 256
"""Bytes for settings, such as a mask of a few ids."""


def halves(random: "Random", *shape: int) -> Array:
    """Draw an array of halves: sums of them have no rounding."""
    return np.asarray(np.random.default_rng(random.getrandbits(32)).integers(-9, 10, shape) / 2.0)


def draw_ids(random: "Random", count: int, shape: tuple[int, ...]) -> Array:
    """Draw ids, some of which occur several times."""
    few = [random.randrange(count) for _ in range(random.choice((1, 2, 4, 1000)))]
    return np.reshape([random.choice(few) for _ in range(int(np.prod(shape)))], shape).astype(np.int64)


def embed_call(sizes: tuple[Sizes, ...], random: "Random") -> TensorCall:
    """Draw a call of embed. Rows that are not used may be infinite, and the table may be of float32."""
    count, width, shape = random.choice(sizes)
    table, ids = halves(random, count, width), draw_ids(random, count, shape)
    if random.random() < 0.2:
        table[np.setdiff1d(np.arange(count), ids)] = random.choice((np.inf, np.nan))
    return TensorCall("embed", (table.astype(random.choice(("f8", "f8", "f8", "f4"))), ids), random.randrange(99))


def id_call(random: "Random") -> TensorCall:
    """Draw a call of embed with one wrong id."""
    count, width, shape = random.choice(SMALL + LARGE[2:])
    ids = draw_ids(random, count, shape)
    ids.flat[random.randrange(ids.size)] = random.choice(
        (-1, -1, -count, -count - 1, count, count, count + 1, 2 * count, 10**6)
    )
    return TensorCall("embed", (halves(random, count, width), ids))


def position_call(random: "Random") -> TensorCall:
    """Draw a call of add_positions."""
    shape = random.choice(((3, 2), (1, 4), (2, 3, 2), (3, 3, 2), (2, 2, 4, 3), (1, 5, 1)))
    extra = random.choice((0, 0, 1, 3))
    return TensorCall(
        "add_positions", (halves(random, *shape), halves(random, shape[-2] + extra, shape[-1])), random.randrange(99)
    )


def long_call(random: "Random") -> TensorCall:
    """Draw a call of add_positions with too few positions; a single row would fit by broadcasting."""
    length = random.randint(2, 5)
    rows = random.choice((1, 1, length - 1))
    return TensorCall("add_positions", (halves(random, random.randint(1, 2), length, 3), halves(random, rows, 3)))


def unembed_call(sizes: tuple[tuple[tuple[int, ...], int], ...], random: "Random") -> TensorCall:
    """Draw a call of unembed."""
    shape, count = random.choice(sizes)
    return TensorCall("unembed", (halves(random, *shape), halves(random, count, shape[-1])), random.randrange(99))


SMALL_SCORES = (((1, 1), 1), ((3, 2), 5), ((2, 3, 2), 4), ((4, 3), 3), ((2, 2, 1, 4), 7), ((3,), 6))
LARGE_SCORES = (((2, 30, 16), 500), ((64, 8), 64))


def tied_call(random: "Random") -> TensorCall:
    """Draw a call that uses a table twice."""
    count, width, shape = random.choice(((3, 2, (2,)), (4, 3, (2, 5)), (20, 2, (1, 3))))
    arguments = halves(random, count, width), draw_ids(random, count, shape), halves(random, shape[-1] + 1, width)
    return TensorCall("unembed(add_positions(embed(table, ids), positions), table)", arguments, random.randrange(99))


def calls(draw: Any, *settings: Any) -> "SearchStrategy[TensorCall]":
    """Return the strategy of calls that a function draws."""
    return at_random(partial(draw, *settings))


def selects_only(call: TensorCall, run: LibraryRun) -> None:
    """Ask that the work does not depend on the size of the table, but for its gradient."""
    table, ids = call.arguments
    most = 2 * ids.size * table.shape[1] + 8 * ids.size + 8
    most_backward = 3 * (ids.size * table.shape[1] + table.size) + 4 * ids.size + 8
    for name, calls_of, limit in (("forward", run.forward, most), ("backward", run.backward, most_backward)):
        if (count := elements_of(calls_of)) > limit or any(c.name == "matmul" for c in calls_of):
            raise Wrong(
                f"the {name} pass computes {count:,} elements for {ids.size} ids and a table {table.shape}; selecting rows "
                f"takes at most {limit:,}, and no matmul",
                kind="work",
            )


def multiplies_only(call: TensorCall, run: LibraryRun) -> None:
    """Ask that nothing but the scores is computed."""
    x, table = call.arguments
    most = x.size // x.shape[-1] * len(table)
    if (count := elements_of(run.forward)) > most:
        raise Wrong(
            f"{count:,} elements are computed, expected {most:,}, the scores; the table transposed, table.T, is a view",
            kind="copies",
        )


# Wrong answers.


def last_use_only(call: TensorCall) -> Any:
    """Return the answer if of equal ids only the last one adds its gradient."""
    table, ids = call.arguments
    gradient = np.zeros_like(table)
    gradient[ids] = incoming_gradient(call.gradient_seed or 0, (*ids.shape, table.shape[1]))
    return (table[ids],), (gradient,)


def last_positions(call: TensorCall) -> Any:
    """Return the answer if the last rows of positions are added."""
    x, positions = call.arguments
    turned = np.roll(positions, x.shape[-2] - len(positions), 0)
    (value,), (first, second) = expected_answer(call._replace(arguments=(x, turned)))
    return (value,), (first, np.roll(second, len(positions) - x.shape[-2], 0))


def scaled(call: TensorCall) -> Any:
    """Return the answer if scores are divided by the root of the width."""
    factor = call.arguments[0].shape[-1] ** -0.5
    (value,), (first, second) = expected_answer(call)
    return (value * factor,), (first * factor, second * factor)


def detached(call: TensorCall) -> Any:
    """Return the answer if the table gets no gradient from the scores."""
    value, (first, _) = expected_answer(call)
    return value, (first, None)


def adds_all_positions(wrong: Wrong) -> bool:
    """Return whether x and a longer table of positions could not be added."""
    x, positions = wrong.case.arguments
    return f"{x.shape} and {positions.shape}" in wrong.message and len(positions) > x.shape[-2]


TASK = Task(
    id="7.1",
    title="Embeddings",
    file="embedding.py",
    slots=("Embedding", "embed", "add_positions", "unembed"),
    points=5,
    text=(
        "A network computes with numbers, a text is made of tokens. Give each token a row of a table, add a row for each "
        "place, and use the same table for the scores at the end. Write the derivative of selecting rows yourself: a row "
        "that was used twice gets both gradients."
    ),
    hints=(
        "Selecting a row is a copy, so its gradient goes back to that row. If two ids are equal, two gradients go to one "
        "row, and they add up. All other rows get 0. Backward needs nothing but the ids and the shape of the table.",
        "forward: table[ids]. backward: flatten the ids, and the gradient to one row for each id; begin with zeros of the "
        "table's shape, and index_add the rows at the ids. embed: compare ids with 0 and with the number of rows, and raise "
        "before apply. unembed: x @ table.T.",
        "docs/course/7.1-embeddings.md; minifuse/autograd/function.py, minifuse/nn/embedding.py.",
    ),
    reads=("docs/course/7.1-embeddings.md", "docs/guide/gradients.md", "minifuse/autograd/function.py"),
    checks=(
        library_check(
            EMBED,
            partial(calls, embed_call, SMALL),
            (
                only_own_derivatives,
                selects_only,
                saves_at_most(lambda call: 2 * call.arguments[1].nbytes + SLACK, "backward needs ids and a shape"),
            ),
            large=partial(calls, embed_call, LARGE),
            names=("table", "ids"),
            share=0.6,
        ),
        error_check(IDS, partial(calls, id_call), "IndexError", ("table", "ids")),
        in_turn(
            POSITIONS,
            [
                library_check(POSITIONS, partial(calls, position_call), names=("x", "positions"), share=0.5),
                error_check(POSITIONS, partial(calls, long_call), "ValueError", ("x", "positions"), share=0.2),
            ],
        ),
        library_check(
            UNEMBED,
            partial(calls, unembed_call, SMALL_SCORES),
            (multiplies_only,),
            large=partial(calls, unembed_call, LARGE_SCORES),
            names=("x", "table"),
            share=0.5,
        ),
        library_check(TIED, partial(calls, tied_call), combine=tied, names=("table", "ids", "positions"), share=0.3),
    ),
    mistakes=(
        Mistake(
            "of a row that is used twice, only the last use counts",
            "gradient[ids] += rows reads, adds and writes each row once: the last write wins. Use index_add.",
            wrong_answer=last_use_only,
            check=EMBED,
        ),
        Mistake(
            "a one-hot matrix is multiplied",
            "A row of a one-hot matrix has a 1 and zeros: the product computes as many elements as the table has, for each "
            "id. Select rows with table[ids].",
            when=lambda w: w.kind == "work",
            check=EMBED,
        ),
        Mistake(
            "the library derives the selection",
            "Call Embedding.apply(table, ids): then the backward pass runs your backward.",
            when=lambda w: w.kind == "derived",
            check=EMBED,
        ),
        Mistake(
            "ids below 0 count from the end",
            "x[-1] is the last row, as in a list. As a token, -1 is a mistake of the caller, who should hear of it.",
            when=lambda w: w.kind == "no error",
            check=IDS,
        ),
        Mistake(
            "all rows of positions are added",
            "x has fewer places than the table has rows: use the first ones, positions[:length].",
            when=adds_all_positions,
            check=POSITIONS,
        ),
        Mistake(
            "backward returns one gradient",
            "It returns one for each input of forward: those of the table and of ids, of which the second is None.",
            when=lambda w: w.kind == "GradientError" and "got 1 gradients" in w.message,
            check=EMBED,
        ),
        Mistake(
            "the last rows of positions are added",
            "Place 0 gets row 0, however long the table of positions is: positions[:length].",
            wrong_answer=last_positions,
            check=POSITIONS,
        ),
        Mistake(
            "one row of positions is repeated for all places",
            "positions[:length] has one row if positions has, and broadcasting repeats it. Compare the sizes first.",
            when=lambda w: w.kind == "no error",
            check=POSITIONS,
        ),
        Mistake(
            "the scores are divided by the root of the width",
            "That belongs to attention. The scores of the output layer are plain dot products.",
            wrong_answer=scaled,
            check=UNEMBED,
        ),
        Mistake(
            "the table gets no gradient from the scores",
            "detach() and no_grad() cut the history. The table learns at both ends.",
            wrong_answer=detached,
            check=UNEMBED,
        ),
    ),
    allows=frozenset({"minifuse.course.elementary"}),
)
