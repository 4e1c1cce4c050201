"""The judge: each slot of the course on NumPy, with `as_strided` and ufuncs. It has no loop and no kernel to copy.

A file for each module. `@answers` enters a function under the name of its slot. While a student's function runs, the judge
is silent for whoever asks it directly: an answer of its own would be no answer of theirs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

from ..verdicts import Refused

Slot = Callable[..., Any]
"""A function or class that answers a task; the task says what it takes and returns."""
F = TypeVar("F", bound=Slot)

MODULES = ("module0", "module1", "module2", "module3", "module4", "module5")
_functions: dict[str, Slot] = {}
_depth = [0]  # how many of the student's functions are running


def answers(function: F) -> F:
    """Enter a function, or a class, as the oracle's answer for the slot of its name."""
    _functions[function.__name__] = function
    if isinstance(function, type):
        return function

    @wraps(function)
    def ask(*args: object, **options: object) -> object:
        if _depth[0]:
            raise Refused(f"{function.__name__} of the course's own was called from your code; write it yourself")
        return function(*args, **options)

    return ask  # type: ignore[return-value]  # of the same parameters and result


def function(slot: str) -> Slot:
    """The oracle's answer for a slot.

    Raises
    ------
    KeyError
        It has none.
    """
    for name in MODULES:
        import_module(f"{__name__}.{name}")
    return _functions[slot]


@contextmanager
def silent() -> Iterator[None]:
    """While a function of the student's runs."""
    _depth[0] += 1
    try:
        yield
    finally:
        _depth[0] -= 1
