"""A placeholder for code that a student has to write."""

from typing import NoReturn

from ..core.errors import NotDoneYet


def todo(part: str) -> NoReturn:
    """Mark a part of a task that is not written yet: `todo("2.3a")`.

    Raises
    ------
    NotDoneYet
        Always. The verdict is then "pending", not "failed".
    """
    task = part.rstrip("abcdefghijklmnopqrstuvwxyz")
    raise NotDoneYet(part, f"task {part} is still to be written; `minifuse course hint {task}` helps")
