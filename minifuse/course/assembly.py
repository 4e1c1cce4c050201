"""The engine of a folder: what a student has written, put to work."""

from pathlib import Path

from .engine import Engine
from .overlay import Overlay
from .registry import TASKS
from .student import Student


def engine_of(folder: Path | str, *, is_strict: bool = False, is_parallel: bool = False) -> Engine:
    """An engine whose slots are the functions in a student's folder.

    Parameters
    ----------
    folder : Path or str
        The folder of the course.
    is_strict : bool
        Whether nothing is taken from the oracle: what is still to be written then raises NotDoneYet, which names it.
    is_parallel : bool
        Whether the loops are those of tasks 3.1 and 3.2.
    """
    place = Path(folder)
    return Engine(Student(place, TASKS, None) if is_strict else Overlay(place, TASKS), is_parallel=is_parallel)
