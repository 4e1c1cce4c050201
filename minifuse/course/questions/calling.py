"""The simplest questions: what does one of the student's functions return?"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ...core.errors import NotDoneYet
from ..student import Student
from ..verdicts import Refused
from ..worker import lines_of

T = TypeVar("T")
MAX_MADE = 20  # objects, until one is at a given address


class Raised(NamedTuple):
    """An exception in place of an answer."""

    kind: str
    text: str
    lines: list[tuple[str, int]]


class ErrorName(NamedTuple):
    """The name of an error that is raised in place of an answer: ErrorName("ValueError"), which prints as ValueError."""

    name: str

    def __repr__(self) -> str:
        return self.name


def call_with_all(slot: str, student: Student, case: Sequence[object]) -> object:
    """Call a slot with the parts of the case as arguments."""
    return getattr(student, slot)(*case)


def call_with_one(slot: str, student: Student, case: object) -> object:
    """Call a slot with the case as its only argument."""
    return getattr(student, slot)(case)


def call_named(student: Student, case: tuple[str, Sequence[object]]) -> object:
    """Call the slot that the case names with the arguments of the case."""
    slot, arguments = case
    return getattr(student, slot)(*arguments)


def calls(slot: str) -> Callable[[Student, Any], object]:
    """Return the question that calls a slot with the parts of the case."""
    return partial(call_with_all, slot)


def calls_with_one(slot: str) -> Callable[[Student, Any], object]:
    """Return the question that calls a slot with the whole case."""
    return partial(call_with_one, slot)


def answer_each(ask: Callable[[Student, Any], object], student: Student, cases: Sequence[Any]) -> list[object]:
    """Ask a question of each case, one after the other."""
    return [ask(student, case) for case in cases]


def made_where_another_was(other: Callable[[], T], use: Callable[[T], object], make: Callable[[], T]) -> T:
    """Return a new object, at the address of another that was used and freed if there is one: an address is no key."""
    first = other()
    use(first)
    address = id(first)
    del first
    made = [make()]
    while id(made[-1]) != address and len(made) < MAX_MADE:
        made.append(make())
    return made[-1]


def answer_or_error(student: Student, function: Callable[..., object], arguments: Sequence[object]) -> object:
    """Call a function, and return its answer, or its exception as `Raised`."""
    try:
        return function(*arguments)
    except (NotDoneYet, Refused):
        raise
    except Exception as error:
        return Raised(type(error).__name__, str(error), lines_of(error, student.folder))


def first_and_later(answer: Callable[[Any], object], cases: Sequence[Any], rounds: int) -> list[list[object]]:
    """Answer each case in several rounds; return the first answers, and later ones, which differ if any round differed."""
    first = [answer(case) for case in cases]
    later = list(first)
    for _ in range(rounds - 1):
        for k, case in enumerate(cases):
            again = answer(case)
            if again != first[k]:
                later[k] = again
    return [first, later]


def call_with_each(slot: str, least: int, student: Student, cases: Sequence[Sequence[object]]) -> object:
    """Call a slot with each of many arguments, in rounds of `least` calls together, and return first and later answers."""
    function, rounds = student.raw(slot), max(2, least // max(len(cases), 1) + 1)

    def answer_all() -> list[list[object]]:
        return first_and_later(lambda xs: answer_or_error(student, function, xs), cases, rounds)

    student.count(slot)
    return student.count_calls(slot, answer_all)()
