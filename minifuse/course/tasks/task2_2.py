"""Task 2.2: broadcasting."""

from functools import partial
from math import prod
from random import Random
from typing import TYPE_CHECKING

from ...core.indexing import Shape
from .. import oracle
from ..cases import among, at_random, broadcasting_link, shapes
from ..check import agreement, in_turn
from ..questions import task2_2
from ..questions.task2_2 import Two
from ..task import Mistake, Task

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

FIT, UNFIT = "shapes that fit give the size that is not 1, in each dim", "shapes that do not fit raise ValueError"


def pairs(fitting: bool = True, least: int = 1) -> "SearchStrategy[Two]":
    """Draw two small shapes that broadcast, or any two small shapes with sizes of at least `least`."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Two:
        big = draw(shapes(4, least))
        one, two = [tuple(draw(among(n, n, 1) if fitting else among(n, 1, least, 2, 3)) for n in big) for _ in "ab"]
        return one[draw(among(*range(len(one) + 1))) :], two[draw(among(*range(len(two) + 1))) :] or two

    return case()


def wide_sizes(random: Random, least: int) -> list[int]:
    """Return four to nine sizes, among them large ones, of a tensor that a memory could count."""
    made: list[int] = []
    for _ in range(random.randint(4, 9)):
        n = random.choice((least, 1, 2, 8, random.randrange(2, 100), random.randrange(256, 10**9)))
        made.append(n if n * prod(max(size, 1) for size in made) < 2**62 else 1)
    return made


def wide_pair(fitting: bool, least: int, random: Random) -> Two:
    """Return two shapes with many dims or large sizes. If they don't fit, one size differs, often by a factor."""
    big = wide_sizes(random, least)
    one, two = [[random.choice((n, n, 1)) for n in big] for _ in "ab"]
    cut = random.choice((0, 0, random.randrange(len(big))))
    if not fitting:
        d = random.choice((cut, random.randrange(cut, len(big)), max(range(cut, len(big)), key=big.__getitem__)))
        n = big[d] if big[d] != 1 else 8
        one[d], two[d] = n, random.choice((n + 1, 2 * n, 8 * n, n + 256, n - 1, least))
    shapes_ = tuple(one), tuple(two[cut:])
    return shapes_ if random.random() < 0.5 else shapes_[::-1]


def smaller_places() -> "SearchStrategy[Two]":
    """Draw (index in a small shape, a shape that broadcasts to it)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Two:
        big = draw(shapes(4, 1))
        index = tuple(draw(st.integers(0, n - 1)) for n in big)
        small = tuple(draw(st.sampled_from([n, 1])) for n in big)
        return index, small[draw(st.integers(0, len(small))) :]

    return case()


def wide_place(random: Random) -> Two:
    """Return (index in a shape of many dims or large sizes, a shape that broadcasts to it)."""
    big = wide_sizes(random, 1)
    small = tuple(random.choice((n, n, 1)) for n in big)
    return tuple(random.choice((n - 1, random.randrange(n))) for n in big), small[random.randrange(len(big)) :]


def shape_or_error(case: Two) -> object:
    """Return the right shape, or the name of the ValueError if there is none."""
    try:
        return oracle.function("broadcast_shape")(*case)
    except ValueError:
        return task2_2.UNFIT


def columns_of(case: Two) -> list[tuple[int, int]]:
    """Return the sizes of two shapes, aligned at the last dim."""
    return list(zip(*[(*[1] * (max(map(len, case)) - len(x)), *x) for x in case], strict=True))


def larger_if_one_is_1(case: Two) -> object:
    """Return the larger size of each dim; the name of the ValueError if two sizes differ and neither is 1."""
    columns = columns_of(case)
    return task2_2.UNFIT if any(m != n and 1 not in (m, n) for m, n in columns) else tuple(map(max, columns))


def shape_from_the_front(case: Two) -> Shape | None:
    """Broadcast shapes aligned at the first dim; None if they are incompatible."""
    columns = list(zip(*[(*x, *[1] * (max(map(len, case)) - len(x))) for x in case], strict=True))
    return None if any(m != n and 1 not in (m, n) for m, n in columns) else tuple(max(pair) for pair in columns)


TASK = Task(
    id="2.2",
    title="Broadcasting",
    file="tensors.py",
    slots=("broadcast_shape", "broadcast_index"),
    points=3,
    text=(
        "Shapes are aligned at their last dim; a dim that is missing or has size 1 is repeated. Write the shape that two "
        "shapes give (a ValueError where they do not fit), and the index in a small tensor that an index in the large one "
        "stands for."
    ),
    hints=(
        "Put ones in front of the shorter shape. Then each dim is decided by itself.",
        "For each dim, equal sizes stay; where one is 1 the other counts; else it is an error. For an index: drop what is "
        "in front, and put 0 where the small shape has a 1.",
        "docs/guide/layouts.md, and the page Broadcasting of `minifuse app`.",
    ),
    reads=(
        "docs/course/2.2-broadcasting.md",
        "docs/guide/layouts.md",
    ),
    checks=(
        agreement(
            FIT,
            pairs,
            task2_2.ask_shape,
            lambda c: oracle.function("broadcast_shape")(*c),
            also=lambda: at_random(partial(wide_pair, True, 1)),
            describe=lambda c: f"shapes {c[0]} and {c[1]}",
            link=lambda c: broadcasting_link(*c),
        ),
        in_turn(
            UNFIT,
            [
                agreement(
                    name,
                    partial(pairs, fitting=False, least=least),
                    task2_2.shape_or_error,
                    shape_or_error,
                    also=partial(at_random, partial(wide_pair, False, least)),
                    describe=lambda c: f"shapes {c[0]} and {c[1]}",
                    link=lambda c: broadcasting_link(*c),
                )
                for name, least in ((UNFIT, 1), ("0 goes with 0 and with 1, and gives 0", 0))
            ],
        ),
        agreement(
            "an index of the large shape finds its element in the small one",
            smaller_places,
            task2_2.ask_index,
            lambda c: oracle.function("broadcast_index")(*c),
            also=lambda: at_random(wide_place),
            describe=lambda c: f"index {c[0]}, small shape {c[1]}",
        ),
    ),
    mistakes=(
        Mistake(
            "shapes are aligned at their first dim",
            "(5,) goes with the last dim of (3, 5), as in NumPy. Where does a missing dim stand?",
            wrong_answer=shape_from_the_front,
            when=lambda w: w.kind == "ValueError" and shape_from_the_front(w.case) is None,
            check=FIT,
        ),
        Mistake(
            "1 wins over 0",
            "A 1 is repeated to whatever stands in the other shape: to 0 too, which leaves nothing.",
            wrong_answer=larger_if_one_is_1,
            check=UNFIT,
        ),
        Mistake(
            "the larger size wins, whether the shapes fit or not",
            "(3,) and (2,) are no pair: neither is 1.",
            wrong_answer=lambda c: tuple(map(max, columns_of(c))),
            check=UNFIT,
        ),
        Mistake(
            "another error than ValueError is raised",
            "Expected ValueError: whoever calls waits for that.",
            when=lambda w: w.kind not in ("", "ValueError") and bool(w.lines) and shape_or_error(w.case) == task2_2.UNFIT,
            check=UNFIT,
        ),
        Mistake(
            "a dim of size 1 keeps the index of the large shape",
            "A dim of size 1 has one element, and it is repeated: which index has it?",
            wrong_answer=lambda c: c[0][len(c[0]) - len(c[1]) :],
            check="an index of the large shape finds its element in the small one",
        ),
        Mistake(
            "the index is cut at its end",
            "Shapes are aligned at their last dim, so what is too much stands in front.",
            wrong_answer=lambda c: tuple(0 if n == 1 else i for i, n in zip(c[0], c[1], strict=False)),
            check="an index of the large shape finds its element in the small one",
        ),
    ),
)
