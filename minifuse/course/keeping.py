"""A check that a function depends on its arguments alone."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .check import check_each
from .questions.kept_state import ask_kept
from .task import Check
from .verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from .student import Student

CaseT = TypeVar("CaseT")
SHARE = 0.04  # of the usual number of cases


def keeps_nothing(
    name: str,
    cases: Callable[[], "SearchStrategy[CaseT]"],
    slot: str,
    question: Callable[["Student", Any], object],
    other: Callable[[CaseT], CaseT],
) -> Check:
    """Return a check that a call leaves all values of the slot's file as they were.

    What changes from call to call may make a later one differ, whatever a number of calls shows. `other` makes cases that
    were not asked before, which a file could know.
    """

    def examine(case: CaseT, changed: list[str]) -> None:
        if changed:
            message = (
                f"a call changes {', '.join(changed)}; the result depends on the arguments alone, so keep nothing for the "
                "next call"
            )
            raise Wrong(message, kind="kept")

    return check_each(name, cases, partial(ask_kept, slot, question), examine, send=other, describe=str, share=SHARE)
