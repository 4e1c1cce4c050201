"""Limit the work of a student's function: count the lines that it runs, which is the same on every machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from ..student import Student
from ..verdicts import Wrong


@contextmanager
def limited_lines(student: Student, slot: str, most: int, advice: str) -> Iterator[None]:
    """Raise `Wrong` if the code of the student's folder runs more than `most` lines in this block.

    A line of a loop counts each time. Code that catches the error once cannot go on for long: it is raised again at the end.
    """
    lines = 0

    def too_many() -> Wrong:
        return Wrong(f"{slot} runs more than {most:,} lines for this case; {advice}", kind="work")

    def on_line(frame: FrameType, event: str, value: object) -> Callable[..., Any] | None:
        nonlocal lines
        lines += event == "line"
        if lines > most:
            raise too_many()
        return on_line

    def on_call(frame: FrameType, event: str, value: object) -> Callable[..., Any] | None:
        return on_line if Path(frame.f_code.co_filename).parent == student.folder else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)
    if lines > most:
        raise too_many()
