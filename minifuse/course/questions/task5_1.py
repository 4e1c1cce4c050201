"""Questions of task 5.1: the graph of a program, and what capture does with functions that need elements."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.errors import FuseError, NotDoneYet
from ...core.indexing import Shape
from ..fusion import Graph
from ..programs import Program
from ..student import Student
from ..verdicts import Refused

Captured = Callable[..., object]


def caught(x: Any) -> object:
    """Ask for the truth of several values again and again, and return one that is not refused."""
    for y in (x, x, x * 2.0, x.sum(), x, x < 0.0):
        asks: tuple[Callable[[Any], object], ...] = (bool, lambda y: y or x, lambda y: not y)
        for ask in asks:
            try:
                ask(y)
            except FuseError:
                continue
            return y
    return x if x.max() < 0.0 else -x


def compared(x: Any) -> object:
    """Compare several values again and again, and return one that is not refused."""
    for y in (x, x, x * 2.0, x.sum(), None, 0.0, "x", (1.0,)):
        asks: tuple[Callable[[Any], object], ...] = (lambda y: x == y, lambda y: x != y, lambda y: x.max() == y)
        for ask in asks:
            try:
                ask(y)
            except FuseError:
                continue
            return x
    return x * (x == 1.0)


def loops(x: Any) -> object:
    """Compute until a value is small."""
    while x.max() < 1.0:
        x = x * 2.0
    return x


BRANCHING: dict[str, Callable[[Any], object]] = {
    "def f(x): return x if x.sum() < 0.0 else -x": lambda x: x if x.sum() < 0.0 else -x,
    "def f(x): return x.max() and x * 2.0": lambda x: x.max() and x * 2.0,
    "def f(x): return max(x, x * 2.0)": lambda x: max(x, x * 2.0),
    "def f(x): return x * (not x.max())": lambda x: x * (not x.max()),
    "def f(x): return x or 1.0": lambda x: x or 1.0,
    "def f(x): return sorted([x, x * 2.0])[0]": lambda x: sorted([x, x * 2.0])[0],
    "def f(x): return x * any([x < 0.0])": lambda x: x * any([x < 0.0]),
    "def f(x): while x.max() < 1.0: x = x * 2.0": loops,
    "a function that catches the FuseError of a branch, and branches again": caught,
}
EQUALITY: dict[str, Callable[[Any], object]] = {
    "def f(x): return x if x == 0.0 else x * 2.0": lambda x: x if x == 0.0 else x * 2.0,
    "def f(x): return x + (x.sum() == x.max())": lambda x: x + (x.sum() == x.max()),
    "def f(x): return x * (x == x)": lambda x: x * (x == x),
    "def f(x): return x * (x != 0.0)": lambda x: x * (x != 0.0),
    "def f(x): return x if x == None else -x": lambda x: x if x == None else -x,  # noqa: E711  # as a student may write it
    "def f(x): return x if 1.0 == x else -x": lambda x: x if 1.0 == x else -x,  # noqa: SIM300  # as above
    "def f(x): return x * (x in [1.0, 2.0])": lambda x: x * (x in [1.0, 2.0]),
    "a function that catches the FuseError of x == y, and compares again": compared,
}
"""Functions that cannot be captured, by their text."""


def with_variable() -> Iterator[Captured]:
    """Yield a function again after a variable changed that it reads from around it."""
    k = 2.0

    def f(x: Any) -> object:
        return x * k + k

    yield f
    k = -2.0
    yield f
    k = 2.0
    yield f


def with_default() -> Iterator[Captured]:
    """Yield a function again after its default changed."""

    def f(x: Any, k: float = 0.0) -> object:
        return x / k

    yield f
    f.__defaults__ = (-0.0,)
    yield f


def with_list() -> Iterator[Captured]:
    """Yield a function again after a list changed that it reads."""
    ks = [1.0]

    def f(x: Any) -> object:
        return sum((x * k for k in ks), start=x)

    yield f
    ks.append(2.0)
    yield f


def made_anew() -> Iterator[Captured]:
    """Yield functions of one code over different numbers, which are freed at once."""
    for k in (0.0, -0.0, 1.0, True, -1.0, -2.0, 3, 3.0, 2.0**61):
        yield lambda x, k=k: k - x * k


def with_whole_numbers() -> Iterator[Captured]:
    """Yield a function in which one number is an int, a bool and a float."""
    yield lambda x: (x * 1 + 1.0 < True) - 2 / (2.0 + x)


def expanded() -> Iterator[Captured]:
    """Yield a function that repeats one value to two shapes."""
    yield lambda x: (x.sum().expand((4, 5)), x.sum().expand((4, 7)), x.sum().expand((4, 5)))


WHOLE_NUMBERS = "def f(x): return (x * 1 + 1.0 < True) - 2 / (2.0 + x)"
CHANGING: dict[str, Callable[[], Iterator[Captured]]] = {
    "a function, before and after a variable changed that it reads": with_variable,
    "a function, before and after its default changed": with_default,
    "a function, before and after a list changed that it reads": with_list,
    "functions of one code over the numbers 0.0, -0.0, 1.0, True, -1.0, -2.0, 3, 3.0 and 2.0 ** 61": made_anew,
    WHOLE_NUMBERS: with_whole_numbers,
    "def f(x): return x.sum().expand((4, 5)), x.sum().expand((4, 7)), x.sum().expand((4, 5))": expanded,
}
"""Functions to capture one after the other, by their text."""
TapeCall = tuple[str, tuple[int, ...], float | int | None, Shape]
"""The arguments of Tape.add."""


def capture_program(student: Student, program: Program) -> Graph:
    """Capture a program."""
    graph: Graph = student.capture(program, *program.shapes)
    return graph


def capture_impossible(student: Student, text: str) -> tuple[bool, str, str] | None:
    """Capture a function of BRANCHING or EQUALITY. Return (is it a FuseError, name, text) of the error; None for none."""
    try:
        student.capture((BRANCHING | EQUALITY)[text], (3, 4))
    except (NotDoneYet, Refused):
        raise
    except Exception as error:
        return isinstance(error, FuseError), type(error).__name__, str(error)
    return None


def capture_tuple(student: Student, program: Program) -> Graph:
    """Capture a program that returns a tuple, also if it has one output."""

    def run(*xs: object) -> tuple[object, ...]:
        found = program(*xs)
        return found if isinstance(found, tuple) else (found,)

    graph: Graph = student.capture(run, *program.shapes)
    return graph


def capture_changing(student: Student, text: str) -> list[Graph]:
    """Capture the functions of CHANGING one after the other."""
    return [student.capture(function, (4, 5)) for function in CHANGING[text]()]


def use_tape(student: Student, calls: Sequence[TapeCall]) -> tuple[list[int], list[object]]:
    """Return the numbers that a new tape gives to nodes, and its nodes."""
    tape = student.Tape()
    return [tape.add(*call) for call in calls], list(tape.nodes)
