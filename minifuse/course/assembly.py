"""Build the engine of a student's folder."""

from pathlib import Path

from .engine import Engine
from .overlay import Overlay
from .registry import TASKS
from .student import Student


def engine_of(folder: Path | str, *, is_strict: bool = False, is_parallel: bool = False) -> Engine:
    """Return an engine whose slots are the functions in a student's folder.

    Parameters
    ----------
    folder : Path or str
        The folder of the course.
    is_strict : bool
        True to lend nothing: a function that is not written yet raises NotDoneYet with its name.
    is_parallel : bool
        True to use the loops of tasks 3.1 and 3.2.
    """
    place = Path(folder)
    return Engine(Student(place, TASKS, None) if is_strict else Overlay(place, TASKS), is_parallel=is_parallel)
