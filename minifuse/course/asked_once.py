"""Answers of a student's process that several checks of a task need."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from .student_process import StudentProcess

AnswerT = TypeVar("AnswerT")
_answers: WeakKeyDictionary[StudentProcess, dict[Hashable, Any]] = WeakKeyDictionary()


def once(student: StudentProcess, key: Hashable, ask: Callable[[], AnswerT]) -> AnswerT:
    """Return what `ask` returns, which is called once for a process and a key."""
    known = _answers.setdefault(student, {})
    if key not in known:
        known[key] = ask()
    answer: AnswerT = known[key]
    return answer
