"""A placeholder for parts that a student is to write."""

from typing import NoReturn

from ..core.errors import NotDoneYet


def todo(part: str) -> NoReturn:
    """Stands for a part of a task that is still to be written: `todo("2.3a")`.

    Raises
    ------
    NotDoneYet
        Always. A check takes it for "not yet", never for wrong.
    """
    task = part.rstrip("abcdefghijklmnopqrstuvwxyz")
    raise NotDoneYet(part, f"task {part} is still to be written; `minifuse course hint {task}` helps")
