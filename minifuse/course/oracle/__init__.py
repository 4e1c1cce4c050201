"""Reference answers of all tasks in NumPy, with `as_strided` and ufuncs: no loops and no kernels that students could copy.

There is one file for each module. `@answers` registers a function under the name of its slot. While a student's function
runs, direct calls of these functions raise `Refused`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, TypeVar

from ...core.errors import CourseError
from ..verdicts import Refused

Slot = Callable[..., Any]
"""A function or class of a task."""
F = TypeVar("F", bound=Slot)

_functions: dict[str, Slot] = {}
_depth = [0]  # how many of the student's functions are running


def answers(function: F) -> F:
    """Register a function or a class as the reference answer for the slot of its name."""
    _functions[function.__name__] = function
    if isinstance(function, type):
        return function

    @wraps(function)
    def ask(*args: object, **options: object) -> object:
        if _depth[0]:
            raise Refused(f"your code calls the course's own {function.__name__}; write it yourself")
        return function(*args, **options)

    return ask  # type: ignore[return-value]  # of the same parameters and result


def function(slot: str) -> Slot:
    """Return the reference answer for a slot.

    Raises
    ------
    CourseError
        There is none.
    """
    load()
    if slot not in _functions:
        raise CourseError(f"{slot} has no reference answer; define it in a file of the folder oracle, below @answers")
    return _functions[slot]


def registered() -> set[str]:
    """Return the slots that have a reference answer."""
    load()
    return set(_functions)


def load() -> list[ModuleType]:
    """Import all files with reference answers."""
    return load_folders(tuple(__path__))


@cache
def load_folders(folders: tuple[str, ...]) -> list[ModuleType]:
    """Import all files of these folders. A teacher's tasks add a folder; to list them again costs more than an answer."""
    return [import_module(f"{__name__}.{module.name}") for module in iter_modules(folders)]


def withhold(slots: Iterable[str]) -> None:
    """Import the reference answers, and delete those for these slots from this process. A teacher's task may lack one."""
    modules = load()
    for slot in slots:
        _functions.pop(slot, None)
        for module in modules:
            vars(module).pop(slot, None)


@contextmanager
def forbid_calls() -> Iterator[None]:
    """Make direct calls of the oracle raise `Refused` in this block, while a function of the student's runs."""
    _depth[0] += 1
    try:
        yield
    finally:
        _depth[0] -= 1
