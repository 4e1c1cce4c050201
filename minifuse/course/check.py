"""Checks that search for a counterexample: Hypothesis draws cases, and shrinks one that fails."""

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..core.errors import NotDoneYet
from .asked_once import once
from .questions.calling import Raised, answer_each
from .student_process import StudentProcess
from .task import Check, Effort
from .task_folder import place_of
from .verdicts import Refused, StudentError, Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

CaseT = TypeVar("CaseT")
AnswerT = TypeVar("AnswerT")
MAX_FAILURES = 100  # that a known mistake must explain
LARGE_SHARE, LARGE_SHARE_AT_ONCE = 0.05, 0.1  # large cases relative to the usual number of cases
RTOL, ATOL = 1e-9, 1e-12
"""Another order of the same operations differs by much less in float64, and rounding on purpose by more."""
current: list[str] = [""]
"""A one-element list with the text of the running case, for the report of a timeout."""


def agreement(
    name: str,
    cases: Callable[[], "SearchStrategy[CaseT]"],
    ask: Callable[[Any, Any], object],
    expect: Callable[[CaseT], AnswerT],
    *,
    also: Callable[[], "SearchStrategy[CaseT]"] | None = None,
    large: Callable[[], "SearchStrategy[CaseT]"] | None = None,
    send: Callable[[CaseT], object] | None = None,
    read: Callable[[CaseT, Any], object] | None = None,
    describe: Callable[[CaseT], str] = str,
    agree: Callable[[Any, AnswerT], bool] | None = None,
    draw: Callable[[CaseT, Any, AnswerT], Sequence[str]] | None = None,
    link: Callable[[CaseT], str] | None = None,
    share: float = 1.0,
    at_once: bool = False,
) -> Check:
    """Return a check that compares a student's answers with the expected ones on drawn cases.

    Parameters
    ----------
    name : str
        The requirement, as a sentence.
    cases : function
        Returns the Hypothesis strategy. It is called when the check runs, since Hypothesis is imported only then.
    ask : function of (student, case)
        A function of `questions`, which returns the student's answer, as plain data. It must not modify the case.
    expect : function of case
        Returns the right answer.
    also : function
        Returns a strategy of other cases, of which half of the examples are drawn after the others: if a small case fails
        too, it is the one that is shown.
    large : function
        Returns the strategy of cases that are too large to be drawn often. A few are tried after the others: a solution
        may be right up to a size, or know the small cases.
    send : function of case
        Returns what the question gets; default: the case itself.
    read : function of (case, answer)
        Returns what is compared with the right answer, or raises `Wrong`; default: the answer of the question itself.
    describe : function of case
        Returns the case as text: "index (1, 2), strides (3, 1)".
    agree : function of (got, expected)
        Returns whether an answer is right; default `same`.
    draw, link
        `draw` returns a picture as lines, from (case, got, expected), where got is None after an error. `link` returns the
        page of the visualizer that shows the case.
    share : float
        The fraction of the usual number of examples that is tried.
    at_once : bool
        True if all cases are asked in one question first, and one by one only if an answer is wrong, to find the smallest
        case. Checks of a task with equal `cases`, `large`, `share`, `send` and `ask` draw and ask once.
    """
    is_right, right_answer = agree or same, expect

    def answers(student: StudentProcess, effort: Effort, drawn: Sequence[CaseT]) -> Iterator[Any]:
        """Yield the answers to cases, which are asked in one question or one by one."""
        if at_once:
            current[0] = f"one of {len(drawn)} cases; the first is {describe(drawn[0])}"
            question = (ask, cases, also, large, share, send, effort)
            each = partial(answer_each, ask)
            sent = (send(case) if send else case for case in drawn)
            yield from once(student, question, lambda: student.ask(each, list(sent), keeps_case=True))
        else:
            for case in drawn:
                current[0] = describe(case)
                yield student.ask(ask, send(case) if send else case, keeps_case=True)

    def first_wrong(student: StudentProcess, effort: Effort, drawn: Sequence[CaseT]) -> CaseT | None:
        """Ask cases, and return the first with a wrong answer."""
        found = answers(student, effort, drawn)
        for case in drawn:
            try:
                answer = next(found)
                if not is_right(read_answer(read, case, answer) if read else answer, expect(case)):
                    return case
            except Exception:  # the search has it as well, with its case
                return case
        return None

    def run(student: StudentProcess, effort: Effort) -> None:
        if at_once:
            effort = replace(effort, seed=effort.seed or 0)  # both searches draw the same cases
        place = student.drawn.place()
        known = student.drawn.cases_at(place)
        if at_once and not known:
            known = [
                *(case for strategy in filter(None, (cases, also)) for case in draw_cases(strategy, effort, share)),
                *(draw_cases(large, effort, LARGE_SHARE_AT_ONCE) if large else ()),
            ]
        suspect = first_wrong(student, effort, known)
        tried = search_one_by_one(student, effort) if suspect is not None or not known else known
        if suspect is not None:
            message = "the answer is wrong after other calls, and right without them: a function must not remember calls"
            raise Wrong(message, case=suspect, case_text=describe(suspect), kind="remembers")
        student.drawn.keep(place, tried)

    def search_one_by_one(student: StudentProcess, effort: Effort) -> Sequence[CaseT]:
        """Search for a wrong answer; return the cases that were tried if all are right."""
        seen, tried = list[Wrong](), list[CaseT]()

        def expect(case: CaseT) -> AnswerT:
            tried.append(case)
            return right_answer(case)

        def holds(case: CaseT) -> None:
            expected = expect(case)
            current[0] = describe(case)
            failure: Wrong | None = None
            try:
                answer = student.ask(ask, send(case) if send else case, keeps_case=True)
                got = read_answer(read, case, answer) if read else answer
            except (NotDoneYet, Refused):
                raise
            except Wrong as wrong:
                failure = wrong
                wrong.case, wrong.case_text = case, wrong.case_text or current[0]
            except StudentError as error:
                failure = failure_of_error(error, case, current[0], expected)
            if failure is not None:  # raised outside of `except`, hence without a context
                seen.append(failure)
                raise failure
            if not is_right(got, expected):
                seen.append(Wrong(name, case=case, case_text=current[0], expected=expected, got=got))
                raise seen[-1]

        try:
            with failures_that_do_not_repeat(seen):
                for strategy in filter(None, (cases, also)):
                    search(holds, strategy(), effort, share / (2 if also else 1))
                if large is not None:
                    search(holds, large(), effort, LARGE_SHARE_AT_ONCE if at_once else LARGE_SHARE)
        except Wrong as smallest:
            smallest.others = seen[:MAX_FAILURES]
            if smallest.kind != "changed":
                drawn = draw_safely(draw, smallest.case, smallest.got, smallest.expected) if draw else ()
                smallest.drawing = smallest.drawing or list(drawn)
                smallest.link = smallest.link or (link(smallest.case) if link else "")
            raise
        return tried

    return Check(name, run)


def agreement_at_once(
    name: str,
    cases: Callable[[StudentProcess, Random, int], Sequence[CaseT]],
    ask: Callable[[Any, Any], object],
    expect: Callable[[CaseT], AnswerT],
    *,
    send: Callable[[CaseT], object] | None = None,
    describe: Callable[[CaseT], str] = str,
    agree: Callable[[Any, AnswerT], bool] | None = None,
    draw: Callable[[CaseT, Any, AnswerT], Sequence[str]] | None = None,
) -> Check:
    """Return a check that compares the answers for many cases, of which all are asked at once, and several times over.

    That costs little for a case, so thousands are tried; the failure is the case with the shortest text. A function must
    not remember: its answers in later rounds are those in the first.

    Parameters
    ----------
    cases : function of (student, chance, count)
        Draws a multiple of `count` cases.
    ask : function of (student, cases)
        Returns the first answers, and later ones to the same cases. An exception is a `Raised`.
    send : function of case
        Returns what the question gets for a case; default: the case itself.
    """
    is_right = agree or same

    def failure_at(case: CaseT, got: object) -> Wrong | None:
        expected = expect(case)
        if isinstance(got, Raised):
            error = StudentError(got.kind, got.text, [(str(file), int(line)) for file, line in got.lines])
            return failure_of_error(error, case, describe(case), expected)
        if is_right(got, expected):
            return None
        return Wrong(name, case=case, case_text=describe(case), expected=expected, got=got)

    def run(student: StudentProcess, effort: Effort) -> None:
        chance = Random(name if effort.seed is None else effort.seed)
        drawn = {describe(case): case for case in cases(student, chance, effort.examples)}
        ordered = [drawn[text] for text in sorted(drawn, key=lambda text: (len(text), text))]
        current[0] = f"{name}: {len(ordered)} cases"
        first, later = student.ask(ask, [send(case) if send else case for case in ordered])
        for answers in (first, later):
            failures = (failure_at(case, got) for case, got in zip(ordered, answers, strict=True))
            seen = [wrong for wrong in failures if wrong is not None]
            if seen and answers is later:
                seen[0].message = "the first call had the right answer, a later one with the same numbers has not"
            if seen:
                smallest = seen[0]
                smallest.others = seen[1:MAX_FAILURES]
                drawn_lines = draw_safely(draw, smallest.case, smallest.got, smallest.expected) if draw else ()
                smallest.drawing = list(drawn_lines)
                raise smallest

    return Check(name, run)


def check_each(
    name: str,
    cases: Callable[[], "SearchStrategy[CaseT]"],
    ask: Callable[[Any, Any], object],
    examine: Callable[[CaseT, Any], None],
    *,
    large: Callable[[], "SearchStrategy[CaseT]"] | None = None,
    send: Callable[[CaseT], object] | None = None,
    describe: Callable[[CaseT], str] = str,
    link: Callable[[CaseT], str] | None = None,
    share: float = 1.0,
    at_once: bool = False,
) -> Check:
    """Return a check in which `examine(case, answer)` raises `Wrong` for a wrong answer. See `agreement` for the rest."""
    options: dict[str, Any] = {"large": large, "send": send, "describe": describe, "link": link}
    return agreement(name, cases, ask, lambda case: None, read=examine, share=share, at_once=at_once, **options)


def check_given(
    name: str,
    cases: Sequence[CaseT],
    ask: Callable[[Any, Any], object],
    examine: Callable[[CaseT, Any], None],
    *,
    send: Callable[[CaseT], object] | None = None,
    describe: Callable[[CaseT], str] = str,
) -> Check:
    """Return a check of these cases, one after the other. `examine(case, answer)` raises `Wrong` for a wrong answer."""

    def run(student: StudentProcess, effort: Effort) -> None:
        for case in cases:
            current[0] = describe(case)
            read_answer(examine, case, student.ask(ask, send(case) if send else case))

    return Check(name, run)


def read_answer(read: Callable[[CaseT, Any], AnswerT], case: CaseT, answer: object) -> AnswerT:
    """Return what `read` makes of an answer. Exceptions other than verdicts mean that the answer has a wrong type."""
    try:
        return read(case, answer)
    except (NotDoneYet, Refused, StudentError, Wrong):
        raise
    except Exception as error:
        raise StudentError(type(error).__name__, str(error), (), place_of(error)) from None


def in_turn(name: str, parts: Sequence[Check]) -> Check:
    """Return a check that runs several checks one after the other. The failure is that of the first one that fails."""

    def run(student: StudentProcess, effort: Effort) -> None:
        for part in parts:
            part.run(student, effort)

    return Check(name, run)


def draw_safely(
    draw: Callable[[CaseT, Any, AnswerT], Sequence[str]], case: CaseT, got: object, expected: AnswerT
) -> Sequence[str]:
    """Return the picture of a case; no lines if `draw` fails on an answer of a wrong type."""
    try:
        return draw(case, got, expected)
    except (TypeError, ValueError, IndexError, AttributeError, KeyError):
        return ()


def failure_of_error(error: StudentError, case: object, case_text: str, expected: object) -> Wrong:
    """Return the failure for an exception: of the student's code, or of the question if the answer has a wrong type."""
    return Wrong(
        str(error) if error.lines else explain_error(str(error), error.place, "the returned value has a wrong type"),
        case=case,
        case_text=case_text,
        expected=expected,
        lines=error.lines,
        kind=error.kind,
    )


def explain_error(text: str, place: str, other_cause: str) -> str:
    """Return the message for an error outside of the student's files; `place` is a line of a teacher's task."""
    return f"{place}: {text}; if that line is right, {other_cause}" if place else f"{other_cause} ({text})"


@contextmanager
def failures_that_do_not_repeat(seen: Sequence[Wrong]) -> Iterator[None]:
    """Raise the first failure if Hypothesis complains in this block that a case failed once, and not when tried again."""
    from hypothesis.errors import Flaky

    try:
        yield
    except Flaky:
        if not seen:
            raise
        first = seen[0]
        first.message += "; asked once more, the same case has another answer, so something is kept from call to call"
        raise first from None


@lru_cache(maxsize=64)
def draw_cases(cases: Callable[[], "SearchStrategy[CaseT]"], effort: Effort, share: float) -> Sequence[CaseT]:
    """Return the cases that a search tries as long as all are right."""
    found = list[CaseT]()

    def keep(case: CaseT) -> None:
        found.append(case)

    search(keep, cases(), effort, share)
    return found


def search(holds: Callable[[CaseT], None], cases: "SearchStrategy[CaseT]", effort: Effort, share: float = 1.0) -> None:
    """Run `holds` on drawn cases. If it raises, shrink the case, and raise the error of the smallest one."""
    from hypothesis import HealthCheck, Phase, Verbosity, configuration, given, seed, settings
    from hypothesis.errors import HypothesisWarning

    configuration.set_hypothesis_home_dir(Path(tempfile.gettempdir(), "minifuse-course"))  # not in the student's folder
    decorate: list[Any] = [given(cases)]
    if effort.seed is not None:
        decorate.append(seed(effort.seed))
    options = settings(
        max_examples=max(1, round(effort.examples * share)),
        phases=(Phase.generate, Phase.shrink),  # without Phase.explain, which would take most of the time
        database=None,
        deadline=None,
        derandomize=effort.seed is None,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    for decorator in (*decorate, options):
        holds = decorator(holds)
    test: Any = holds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)  # of a large case, whose text is not used
        test()


def same(got: object, expected: object) -> bool:
    """Return whether answers have equal types and values: (1,) is not [1], True is not 1. Floats may differ by rounding."""
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
    """Return whether two arrays have the same shape and elements up to rounding. NaN equals NaN."""
    try:
        a, b = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    except (TypeError, ValueError, OverflowError):  # an int may be too large for a float
        return False
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=RTOL, atol=ATOL, equal_nan=True))


def is_near(got: object, expected: npt.NDArray[np.float64]) -> bool:
    """Return whether arrays are equal up to the rounding of sums in any order, however small the elements are."""
    if not isinstance(got, np.ndarray) or got.shape != expected.shape:
        return False
    return bool(np.allclose(got, expected, rtol=RTOL, atol=0, equal_nan=True))
