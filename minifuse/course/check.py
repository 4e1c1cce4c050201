"""Demands that are looked for counter-examples: Hypothesis draws cases, and makes the one that fails as small as it can."""

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..core.errors import NotDoneYet
from .student import Student
from .task import Check, Effort
from .verdicts import Refused, Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

CaseT = TypeVar("CaseT")
AnswerT = TypeVar("AnswerT")
MAX_FAILURES = 100  # failures that a mistake must explain
CHANGED = "your function changes what it is given; work on a copy, since whoever called it still needs its own"
current: list[str] = [""]
"""The case that is asked now, in words: for whoever finds that it takes for ever."""


def agreement(
    name: str,
    cases: Callable[[], "SearchStrategy[CaseT]"],
    ask: Callable[[Student, CaseT], object],
    expect: Callable[[CaseT], AnswerT],
    *,
    told: Callable[[CaseT], str] = str,
    agree: Callable[[Any, AnswerT], bool] | None = None,
    draw: Callable[[CaseT, Any, AnswerT], Sequence[str]] | None = None,
    link: Callable[[CaseT], str] | None = None,
    share: float = 1.0,
) -> Check:
    """The demand that a student's function answers each case as the judge does.

    Parameters
    ----------
    name : str
        The demand, as a sentence.
    cases : function
        Gives the Hypothesis strategy; called late, since Hypothesis is imported late.
    ask : function of (student, case)
        The student's answer. It must not change the case.
    expect : function of case
        The right answer.
    told : function of case
        The case in words, as a student would type it: "index (1, 2), strides (3, 1)".
    agree : function of (got, expected)
        Whether an answer is right; `same` if left out.
    draw, link
        Lines that picture the case, from (case, got, expected), where got is None if there was an error; the address of a
        page of the visualizer that shows it.
    share : float
        Of the usual number of examples.
    """
    is_right = agree or same

    def run(student: Student, effort: Effort) -> None:
        seen: list[Wrong] = []

        def holds(case: CaseT) -> None:
            expected = expect(case)
            current[0] = told(case)
            before = frozen(case)
            failure: Wrong | None = None
            try:
                got = ask(student, case)
            except (NotDoneYet, Refused, Wrong):
                raise
            except Exception as error:
                failure = raised(error, student.folder, case, current[0], expected)
            if failure is not None:  # with no context: where a recursion ends is another place each time
                seen.append(failure)
                raise failure
            if frozen(case) != before:
                seen.append(Wrong(CHANGED, case=case, told=current[0], kind="changed"))
                raise seen[-1]
            if not is_right(got, expected):
                seen.append(Wrong(name, case=case, told=current[0], expected=expected, got=got))
                raise seen[-1]

        try:
            search(holds, cases(), effort, share)
        except Wrong as smallest:
            smallest.others = seen[:MAX_FAILURES]
            if smallest in seen and smallest.kind != "changed":  # no other one is looked at
                smallest.drawing = list(pictured(draw, smallest.case, smallest.got, smallest.expected)) if draw else []
                smallest.link = link(smallest.case) if link else ""
            raise

    return Check(name, run)


def in_turn(name: str, parts: Sequence[Check]) -> Check:
    """A demand of several parts, looked at one after the other until one fails, which then says its own name."""

    def run(student: Student, effort: Effort) -> None:
        for part in parts:
            part.run(student, effort)

    return Check(name, run)


def pictured(
    draw: Callable[[CaseT, Any, AnswerT], Sequence[str]], case: CaseT, got: object, expected: AnswerT
) -> Sequence[str]:
    """The picture of a case; none where an answer is not even of a kind that can be drawn."""
    try:
        return draw(case, got, expected)
    except (TypeError, ValueError, IndexError, AttributeError, KeyError):
        return ()


def frozen(value: object) -> object:
    """Take a snapshot of a case, to see later that nothing in it has changed: lists, dicts and arrays by their elements."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, list | tuple):
        return type(value), [frozen(part) for part in value]
    if isinstance(value, dict):
        return [(key, frozen(part)) for key, part in value.items()]
    return value if isinstance(value, int | str) else id(value)


def raised(error: Exception, folder: Path, case: object, told: str, expected: object) -> Wrong:
    """An error of a student's code, or of ours where what it gave is of no use, as what is wrong with it."""
    lines = lines_of(error, folder)
    said = f"{type(error).__name__}: {error}"
    return Wrong(
        said if lines else f"what it gives is not of the kind that is asked for ({said})",
        case=case,
        told=told,
        expected=expected,
        lines=lines,
        kind=type(error).__name__,
    )


def lines_of(error: BaseException, folder: Path) -> list[tuple[str, int]]:
    """Where in the student's files an error passed, the place of the fault last."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    places = dict.fromkeys(frames)  # the same line a thousand times, in a recursion
    return [(Path(file).name, line) for file, line in places if Path(file).parent == folder]


def search(holds: Callable[[CaseT], None], cases: "SearchStrategy[CaseT]", effort: Effort, share: float = 1.0) -> None:
    """Look for a case that does not hold; what is raised is of the smallest one that was found."""
    from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

    decorate: list[Any] = [given(cases)]
    if effort.seed is not None:
        decorate.append(seed(effort.seed))
    found = settings(
        max_examples=max(1, round(effort.examples * share)),
        phases=(Phase.generate, Phase.shrink),  # it would take most of the time to explain what nobody is told
        database=None,
        deadline=None,
        derandomize=effort.seed is None,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    for decorator in (*decorate, found):
        holds = decorator(holds)
    test: Any = holds
    test()


def same(got: object, expected: object) -> bool:
    """Equal in value and kind: a tuple is no list, True no 1; floats may differ by rounding."""
    if isinstance(expected, np.ndarray):
        return close(got, expected)
    if isinstance(expected, float):
        return isinstance(got, int | float | np.floating) and not isinstance(got, bool) and close(got, expected)
    if isinstance(expected, list | tuple):
        if not isinstance(got, list | tuple) or type(got) is not type(expected) or len(got) != len(expected):
            return False
        return all(same(a, b) for a, b in zip(got, expected, strict=True))
    if isinstance(expected, bool) or expected is None:
        return got is expected
    if isinstance(expected, int):
        return isinstance(got, int | np.integer) and not isinstance(got, bool) and int(got) == expected
    return bool(got == expected)


def close(got: Any, expected: npt.ArrayLike) -> bool:
    """Equal numbers of one shape, up to rounding; NaN is NaN."""
    try:
        a, b = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    except (TypeError, ValueError):
        return False
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=True))
