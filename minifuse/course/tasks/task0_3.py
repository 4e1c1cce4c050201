"""Task 0.3: map, zip and reduce over lists, and functions built from them."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from .. import oracle
from ..check import agreement, in_turn
from ..messages import Opaque
from ..questions.task0_3 import FUNCTIONS, Case, arguments, ask_zip, call, count_calls, or_value_error
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Reduced = tuple[str, list[float], float]
BASES = "map_list", "zip_lists", "reduce_list"
DERIVED = "neg_list", "add_lists", "sum_list", "prod_list"
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


def of_two_lengths() -> "SearchStrategy[Case]":
    """Draw (name of a function, a list, a list of another length)."""
    from hypothesis import strategies as st

    return st.tuples(named(2), elements(), elements()).filter(lambda c: len(c[1]) != len(c[2]))


def reduced() -> "SearchStrategy[Case]":
    """Draw (name of a function, a list, a start)."""
    from hypothesis import strategies as st

    return st.tuples(named(2), elements(), st.integers(-8, 8).map(float))


def right_answer(slot: str) -> Callable[[Case], object]:
    """Return a function of a case: the right answer."""
    return lambda case: oracle.function(slot)(*arguments(case))


def describe_case(slot: str) -> Callable[[Case], str]:
    """Return a function that formats a call as source text."""
    return lambda case: f"{slot}({', '.join(map(str, case))})"


def agrees(slot: str, name: str, cases: Callable[[], "SearchStrategy[Case]"]) -> Check:
    """Return a check that compares a slot with the oracle's."""
    return agreement(name, cases, partial(call, slot), right_answer(slot), describe=describe_case(slot))


def check_base_calls(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a derived function calls none of the base functions."""
    for slot in DERIVED:
        case = ([1.0, -2.5, 4.0],) * (2 if slot == "add_lists" else 1)
        if not student.ask(partial(count_calls, slot, BASES), case):
            raise Wrong(f"{slot} is right, but it calls none of {', '.join(BASES)}", kind="another loop")


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
        agrees("map_list", MAP, lambda: with_function(1)),
        agrees("zip_lists", ZIP, lambda: with_function(2)),
        agreement(
            LENGTHS,
            of_two_lengths,
            ask_zip,
            lambda c: or_value_error(oracle.function("zip_lists"), c),
            describe=describe_case("zip_lists"),
        ),
        agrees("reduce_list", REDUCE, reduced),
        in_turn(
            FOLLOWS,
            [
                agrees("neg_list", "neg_list(xs) has the elements with the other sign", lambda: lists(1)),
                agrees("add_lists", "add_lists(xs, ys) has the sums of pairs", lambda: lists(2)),
                agrees("sum_list", "sum_list(xs) is the sum", lambda: lists(1)),
                agrees("prod_list", "prod_list(xs) is the product", lambda: lists(1)),
            ],
        ),
        Check(MADE, check_base_calls),
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
            "the same loop is written again",
            "What map_list, zip_lists and reduce_list can do, later a thousand threads will do. What is made of them gains; "
            "a loop of its own stays behind.",
            when=lambda w: w.kind == "another loop",
            check=MADE,
        ),
    ),
)
