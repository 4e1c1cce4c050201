"""Task 0.3: map, zip and reduce over lists, and functions built from them."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from .. import oracle
from ..check import agreement, check_given, in_turn
from ..float_cases import sized
from ..messages import Opaque
from ..questions.task0_3 import (
    FUNCTIONS,
    WATCHING,
    Case,
    arguments,
    ask_lengths,
    call,
    copied_elements,
    look,
    observe_work,
    observed,
    or_value_error,
)
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Reduced = tuple[str, list[float], float]
BASES = "map_list", "zip_lists", "reduce_list"
DERIVED = "neg_list", "add_lists", "sum_list", "prod_list"
LONG = 3000  # elements, more than Python's limit of recursion
MAX_COPIED = 30  # slices of a list of LONG elements may copy that many times as many
VALUES = (1.0, 0.0, -0.0, 0.5, math.inf, 1e300, 0, 1, True, False, None, "", "a", 2)  # of which some are equal
MAP = "map_list: fn of each element, in order, in a list"
ZIP = "zip_lists: fn of each pair, in order, in a list"
LENGTHS = "zip_lists: lists of different lengths raise ValueError"
REDUCE = "reduce_list: one value, from the left, from start"
FOLLOWS = "neg_list, add_lists, sum_list, prod_list are right"
MADE = "and each is made of map_list, zip_lists or reduce_list"


def named(count: int) -> "SearchStrategy[str]":
    """Draw names of functions with `count` arguments."""
    from hypothesis import strategies as st

    return st.sampled_from([name for name, fn in FUNCTIONS.items() if fn.__code__.co_argcount == count])


def elements(least: int = 0, most: int = 7) -> "SearchStrategy[list[float]]":
    """Draw lists of `least` to `most` multiples of 1/4."""
    from hypothesis import strategies as st

    return st.lists(st.integers(-40, 40).map(lambda k: k / 4), min_size=least, max_size=most)


def lists(count: int) -> "SearchStrategy[tuple[list[float], ...]]":
    """Draw `count` lists of equal length."""
    from hypothesis import strategies as st

    return st.integers(0, 6).flatmap(lambda n: st.tuples(*[elements(n, n)] * count))


def with_function(count: int) -> "SearchStrategy[Case]":
    """Draw (name of a function, lists of equal length)."""
    from hypothesis import strategies as st

    return st.tuples(named(count), lists(count)).map(lambda c: (c[0], *c[1]))


def watched(slot: str) -> "SearchStrategy[Case]":
    """Draw (name of a function that watches its calls, lists of any values, of which some are equal, start)."""
    from hypothesis import strategies as st

    def case(name: str, xs: list[object], ys: list[object], start: object) -> Case:
        size = len(xs)
        rest = {"map_list": (), "zip_lists": ((ys * size)[:size] if ys else list(xs),), "reduce_list": (start,)}
        return (name, xs, *rest[slot])

    values = st.lists(st.sampled_from(VALUES), max_size=5)
    return st.builds(
        case, st.sampled_from([*WATCHING]), values, values, st.sampled_from([None, None, "", (), 0.0, False, 7.0])
    )


def long_lists(chance: Random, count: int) -> list[list[float]]:
    """Draw lists of about LONG numbers that floats represent exactly."""
    size = LONG + chance.randrange(100)
    return [[float(chance.randrange(1000)) for _ in range(size)] for _ in range(count)]


def long(count: int, has_start: bool = False) -> "SearchStrategy[Case]":
    """Draw (name of a function, long lists, start)."""
    from hypothesis import strategies as st

    name = "lambda x: 3 * x" if count == 1 and not has_start else "lambda x, y: (31 * x + y) % 1009"
    return st.integers(0, 1000).map(lambda seed: (name, *long_lists(Random(seed), count), *([7.0] if has_start else [])))


def of_two_lengths() -> "SearchStrategy[Case]":
    """Draw (name of a function, a list, a list of another length)."""
    from hypothesis import strategies as st

    return st.tuples(named(2), elements(), elements()).filter(lambda c: len(c[1]) != len(c[2]))


def reduced() -> "SearchStrategy[Case]":
    """Draw (name of a function, a list, a start)."""
    from hypothesis import strategies as st

    return st.tuples(named(2), elements(), st.integers(-8, 8).map(float))


def floats(count: int) -> "SearchStrategy[tuple[list[float], ...]]":
    """Draw `count` lists of equal length of any floats, whose sums and products depend on the order."""
    from hypothesis import strategies as st

    number = st.sampled_from(
        [0.1, 0.2, 0.3, 0.7, -1.1, 1e16, -1e16, 1.0, 1 / 3, 0.0, -0.0, -2.5, 1e300, math.inf, -math.inf]
    )
    return st.integers(0, 7).flatmap(lambda n: st.tuples(*[st.lists(number, min_size=n, max_size=n)] * count))


def long_floats(count: int) -> "SearchStrategy[tuple[list[float], ...]]":
    """Draw `count` long lists of floats near 1."""
    from hypothesis import strategies as st

    def drawn(seed: int) -> tuple[list[float], ...]:
        chance = Random(seed)
        size = LONG + chance.randrange(100)
        return tuple([sized(chance, 0.5, 2.0) for _ in range(size)] for _ in range(count))

    return st.integers(0, 1000).map(drawn)


def both(count: int) -> tuple[Callable[[], "SearchStrategy[Case]"], Callable[[], "SearchStrategy[Case]"]]:
    """Return the strategies of short lists, half of them of simple numbers, and of long ones."""
    return lambda: lists(count) | floats(count), lambda: long_floats(count)


def right_answer(slot: str) -> Callable[[Case], object]:
    """Return a function of a case: the right answer."""
    return lambda case: oracle.function(slot)(*arguments(case))


def describe_case(slot: str) -> Callable[[Case], str]:
    """Return a function that formats a call as source text."""

    def part(x: object) -> str:
        return f"[{x[0]}, {x[1]}, ... {len(x)} elements]" if isinstance(x, list) and len(x) > 20 else str(x)

    return lambda case: f"{slot}({', '.join(map(part, case))})"


def exactly(got: Any, expected: Any) -> bool:
    """Return whether two floats, or lists of floats, are the same, -0.0 and 0.0 being two."""
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(map(exactly, got, expected))
    if not isinstance(got, float):
        return bool(got == expected) if isinstance(expected, str) else False
    if math.isnan(expected):
        return math.isnan(got)
    return bool(got == expected) and math.copysign(1, got) == math.copysign(1, expected)


def almost_exactly(got: Any, expected: Any) -> bool:
    """Return whether two floats are the same. Either zero will do: a sum may begin with 0.0 or with the first element."""
    return exactly(got, expected) or (isinstance(got, float) and got == expected)


def agrees(
    slot: str,
    name: str,
    cases: Callable[[], "SearchStrategy[Case]"],
    large: Callable[[], "SearchStrategy[Case]"],
    share: float = 0.4,
) -> Check:
    """Return a check that compares a slot with the oracle's."""
    agree = None if slot in BASES else almost_exactly if slot == "sum_list" else exactly
    return agreement(
        name,
        cases,
        partial(call, slot),
        right_answer(slot),
        describe=describe_case(slot),
        agree=agree,
        large=large,
        share=share,
    )


def loop(
    slot: str, name: str, cases: Callable[[], "SearchStrategy[Case]"], large: Callable[[], "SearchStrategy[Case]"]
) -> Check:
    """Return a check of one of the three loops: its results, its calls of fn, and how much it copies."""
    return in_turn(
        name,
        [
            agrees(slot, name, cases, large),
            agreement(
                f"{slot} calls fn once for each element, from the first to the last, and returns what is new",
                partial(watched, slot),
                partial(look, slot),
                lambda case: observed(oracle.function(slot), case),
                describe=describe_case(slot),
                agree=lambda got, expected: repr(got) == repr(expected),
                share=0.6,
            ),
            check_given(name, [LONG], partial(copied_elements, slot), partial(examine_copies, slot)),
        ],
    )


def examine_copies(slot: str, size: int, copied: Sequence[int]) -> None:
    """Raise `Wrong` if a loop copies about as many elements for each element as there are."""
    sliced, rebuilt = copied
    if sliced > MAX_COPIED * size or rebuilt >= 5:
        how = (
            f"its slices copy {sliced:,} elements"
            if rebuilt < 5
            else "each element goes to a new list, a copy of the last one"
        )
        raise Wrong(
            f"{slot} is right, but for a list of {size:,} elements {how}; walk over the list, and append to one result",
            case_text=f"{slot} with a list of {size:,} elements",
            kind="copies",
        )


def lengths(slot: str, cases: Callable[[], "SearchStrategy[Case]"], share: float = 1.0) -> Check:
    """Return a check that lists of two lengths raise ValueError."""
    return agreement(
        LENGTHS if slot == "zip_lists" else f"{slot}: lists of different lengths raise ValueError",
        cases,
        partial(ask_lengths, slot),
        lambda c: or_value_error(oracle.function(slot), c),
        describe=describe_case(slot),
        share=share,
    )


def check_work(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a derived function does not compute by the base functions, or does not use what they compute."""
    chance = Random(MADE if effort.seed is None else effort.seed)
    for slot in DERIVED:
        case = [[sized(chance, 0.5, 9.0) for _ in range(6)] for _ in range(2 if slot == "add_lists" else 1)]
        works = student.ask(partial(observe_work, slot), case)
        result, inside, outside = works[0]
        wanted = result if isinstance(result, list) else [result]
        is_inside = all(any(math.isclose(x, y, rel_tol=1e-9) for y in inside) for x in wanted)
        is_used = any(
            all(not math.isclose(x, y, rel_tol=1e-9) for x, y in zip(wanted, as_list(other), strict=False))
            for other, *_ in works[1:]
        )
        if not is_inside or not is_used or len(outside) >= len(case[0]) - 1:
            called = f"it computes beside {', '.join(BASES)}" if inside else f"it calls none of {', '.join(BASES)}"
            raise Wrong(f"{slot} is right, but {called}: let one of them walk over the list", kind="another loop")


def as_list(value: object) -> list[Any]:
    """Return a list; a float as a list of one element; no elements for an error."""
    return value if isinstance(value, list) else [value] if isinstance(value, float) else []


def from_the_right(case: Reduced) -> object:
    """Reduce from the end of the list."""
    return right_answer("reduce_list")((case[0], case[1][::-1], case[2]))


def swapped(case: Reduced) -> object:
    """Reduce with the running value as the second argument of fn."""
    fn = FUNCTIONS[case[0]]
    return oracle.function("reduce_list")(lambda value, x: fn(x, value), *case[1:])


def without_start(case: Reduced) -> object:
    """Reduce from the first element, without start."""
    return right_answer("reduce_list")((case[0], case[1][1:], case[1][0]) if case[1] else case)


TASK = Task(
    id="0.3",
    title="Map, zip, reduce on lists",
    file="lists.py",
    slots=(*BASES, *DERIVED),
    points=3,
    text=(
        "map_list(fn, xs) gives a new list of fn(x); zip_lists(fn, xs, ys) one of fn(x, y), and a ValueError for lists of "
        "different lengths; reduce_list(fn, xs, start) takes the elements one after the other into a single value. Then "
        "neg_list, add_lists, sum_list and prod_list, each by one of the three and an operator, with no loop of its own."
    ),
    hints=(
        "Functions are values: fn is called like any function that has a name. All three walk a list once; they differ in "
        "what they keep: a new list, or one value.",
        "map_list: begin with an empty list, append fn(x) for each x. reduce_list: begin with value = start, and put "
        "value = fn(value, x) for each x. sum_list is reduce_list with add; what is the sum of nothing?",
        "minifuse/backends/python.py has the same three for tensors. From operators.py come add, mul and neg.",
    ),
    reads=("docs/course/0.3-lists.md", "minifuse/backends/python.py"),
    checks=(
        loop("map_list", MAP, lambda: with_function(1), lambda: long(1)),
        loop("zip_lists", ZIP, lambda: with_function(2), lambda: long(2)),
        lengths("zip_lists", of_two_lengths, share=0.5),
        loop("reduce_list", REDUCE, reduced, lambda: long(1, has_start=True)),
        in_turn(
            FOLLOWS,
            [
                agrees("neg_list", "neg_list(xs) has the elements with the other sign", *both(1), share=0.3),
                agrees("add_lists", "add_lists(xs, ys) has the sums of pairs", *both(2), share=0.3),
                lengths("add_lists", lambda: of_two_lengths().map(lambda c: c[1:]), share=0.2),
                agrees("sum_list", "sum_list(xs) is the sum, from the left", *both(1), share=0.3),
                agrees("prod_list", "prod_list(xs) is the product, from the left", *both(1), share=0.3),
            ],
        ),
        Check(MADE, check_work),
    ),
    mistakes=(
        Mistake(
            "the result is no list yet",
            "map and zip of Python, and an expression in round brackets, give something that can be walked once. A list is "
            "made by list(...), by [... for ...], or by append.",
            when=lambda w: isinstance(w.got, Opaque) and w.got.is_iterable,
        ),
        Mistake(
            "the end of the longer list is dropped",
            "Python's zip stops where the shorter list ends, and says nothing. Whoever gave lists of different lengths has "
            "made a mistake, and should hear of it here.",
            when=lambda w: isinstance(w.got, list) and len(w.got) == min(map(len, w.case[1:])),
            check=LENGTHS,
        ),
        Mistake(
            "one list is walked past its end",
            "Before the loop, compare the lengths, and raise ValueError where they differ.",
            when=lambda w: w.kind == "IndexError",
            check=LENGTHS,
        ),
        Mistake(
            "the reduction goes from right to left",
            "fn(fn(start, first), second): the first element is taken first. For x + y nobody would see it, for x - y all "
            "do.",
            wrong_answer=from_the_right,
            check=REDUCE,
        ),
        Mistake(
            "fn is given the element first, and what it has so far second",
            "fn(what there is so far, the next element): with x - y the two orders differ.",
            wrong_answer=swapped,
            check=REDUCE,
        ),
        Mistake(
            "the reduction begins with the first element, not with start",
            "start is the first value that fn is given, and all there is for an empty list.",
            wrong_answer=without_start,
            when=lambda w: w.kind in ("IndexError", "StopIteration", "TypeError") and not w.case[1],
            check=REDUCE,
        ),
        Mistake(
            "the list that was given is written over",
            "Somebody else may still need it. Begin with an empty list, and append to that.",
            when=lambda w: w.kind == "changed",
        ),
        Mistake(
            "the product of nothing is taken for 0",
            "Joining two lists should multiply their products: prod(xs + []) = prod(xs) * prod([]). What must prod([]) be?",
            when=lambda w: w.case_text.startswith("prod_list") and w.got == 0.0 and w.expected != 0.0,
            check=FOLLOWS,
        ),
        Mistake(
            "fn is called for other values than it should be, or in another order",
            "Whatever fn is, it is called once for each element, from the first to the last. The number before a call "
            "tells which one it was.",
            when=lambda w: w.case[0] in WATCHING and isinstance(w.got, list) and len(w.got) == 1,
        ),
        Mistake(
            "the same loop is written again",
            "What map_list, zip_lists and reduce_list can do, later a thousand threads will do. What is made of them gains; "
            "a loop of its own stays behind.",
            when=lambda w: w.kind == "another loop",
            check=MADE,
        ),
    ),
)
