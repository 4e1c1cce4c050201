"""The functions of a student's folder, for an engine that runs on them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..overlay import Overlay, Share, share_of


class StudentEngine:
    """The functions that a student wrote, and the number of calls of these and of lent ones.

    Parameters
    ----------
    student : Overlay
        The functions of a folder; those that are not written are lent.
    """

    def __init__(self, student: Overlay) -> None:
        self.student = student
        self._slots: dict[str, Callable[..., Any] | None] = {}

    def slot(self, name: str) -> Any:
        """Return the student's function or class of a name; None if it is not written yet.

        Raises
        ------
        CourseError, SyntaxError
            A file cannot be loaded: it is no Python, or imports what it must not.
        """
        if name not in self._slots:
            self._slots[name] = getattr(self.student, name) if self.student.is_from_student(name) else None
        return self._slots[name]

    def has(self, *names: str) -> bool:
        """Return whether all these functions are written."""
        return all(self.slot(name) is not None for name in names)

    def raw(self, name: str) -> Any:
        """Return a written function without its counter."""
        return getattr(self.slot(name), "__wrapped__", self.slot(name))

    def count(self, *names: str) -> None:
        """Count a call of written functions, of those that are called inside a loop without their counters."""
        self.student.calls.update(names)

    @property
    def lent(self) -> Counter[str]:
        """Return the number of calls of each function that the library or the course lends."""
        return self.student.lent

    def lend(self, name: str) -> None:
        """Count a call of the library's function in place of one that is not written."""
        self.lent[name] += 1

    def share(self) -> Share:
        """Return how many of the calls so far ran the student's functions."""
        return share_of(self.student.calls, self.lent)

    def where(self, error: BaseException) -> str:
        """Return the file and the line of the student's code in which an exception was raised; "" if none was."""
        place, trace = "", error.__traceback__
        while trace is not None:
            file = Path(trace.tb_frame.f_code.co_filename)
            if file.parent == self.student.folder:
                place = f"{file.name}:{trace.tb_lineno}"
            trace = trace.tb_next
        return place
