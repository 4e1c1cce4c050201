"""Questions of task 5.1: the graph of a program, and what capture does with functions that need elements."""

from collections.abc import Callable
from typing import Any

from ...core.errors import FuseError, NotDoneYet
from ..fusion import Graph
from ..programs import Program
from ..student import Student
from ..verdicts import Refused

BRANCHING: dict[str, Callable[[Any], object]] = {
    "def f(x): return x if x.sum() < 0.0 else -x": lambda x: x if x.sum() < 0.0 else -x,
    "def f(x): return x.max() and x * 2.0": lambda x: x.max() and x * 2.0,
    "def f(x): return max(x, x * 2.0)": lambda x: max(x, x * 2.0),
    "def f(x): return x * (not x.max())": lambda x: x * (not x.max()),
}
EQUALITY: dict[str, Callable[[Any], object]] = {
    "def f(x): return x if x == 0.0 else x * 2.0": lambda x: x if x == 0.0 else x * 2.0,
    "def f(x): return x + (x.sum() == x.max())": lambda x: x + (x.sum() == x.max()),
}
"""Functions that cannot be captured, by their text."""


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
