"""The question what a student's file keeps from one call to the next."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from inspect import unwrap
from random import Random
from types import FunctionType, GeneratorType, ModuleType
from typing import Any

import numpy as np

from ..student import Student

MAX_DEPTH = 6


def ask_kept(slot: str, question: Callable[[Student, Any], object], student: Student, case: Any) -> list[str]:
    """Return the names of the file of a slot whose values change when the question is asked.

    A value is what it holds: elements of containers, attributes of objects, and what functions keep in closures.
    """
    before = digests(student, slot)
    question(student, case)
    return [name for name, value in digests(student, slot).items() if before.get(name) != value]


def digests(student: Student, slot: str) -> dict[str, str]:
    """Return a digest of each value of the file of a slot."""
    module = student.module(student.home[slot].file)
    return {name: digest(value) for name, value in vars(module).items() if not name.startswith("__")}


def digest(value: object) -> str:
    """Return a digest of a value."""
    return sha256("\n".join(parts(value, 0, set())).encode()).hexdigest()


def parts(value: object, depth: int, seen: set[int]) -> Iterator[str]:
    """Yield what makes up a value as text."""
    yield type(value).__name__
    if (isinstance(value, type) and value.__module__ == "builtins") or isinstance(value, ModuleType):
        return
    if isinstance(value, np.ndarray):
        yield value.tobytes().hex()
        return
    inner = contents(value)
    if not inner and not isinstance(value, FunctionType | type | list | dict | set):
        yield text(value)
    if depth < MAX_DEPTH and id(value) not in seen:
        seen.add(id(value))
        for part in inner:
            yield from parts(part, depth + 1, seen)


def contents(value: object) -> list[object]:
    """Return the values that a value holds."""
    if isinstance(value, str | bytes | int | float | complex):
        return []
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, Random):
        return [repr(value.getstate())]
    if isinstance(value, GeneratorType):
        return [value.gi_frame.f_lasti, value.gi_frame.f_locals] if value.gi_frame else [None]
    value = (
        unwrap(value) if callable(value) and not isinstance(value, type) else value
    )  # of a counter, whose own count is none of the student's
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if is_full(cell)]
        return [value.__defaults__, value.__kwdefaults__, vars(value), *cells]
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, type):
        return [part for name, part in vars(value).items() if name not in ("__dict__", "__weakref__", "__init__")]
    return [vars(value)] if hasattr(value, "__dict__") else []


def is_full(cell: object) -> bool:
    """Return whether a cell of a closure has a value."""
    try:
        return cell.cell_contents is not None  # type: ignore[attr-defined]  # a cell
    except ValueError:
        return False


def text(value: object) -> str:
    """Return a value as text; iterators such as itertools.count show where they are."""
    try:
        return repr(value.__reduce__()) if hasattr(value, "__next__") else repr(value)
    except Exception:  # of a class of the student's
        return ""
