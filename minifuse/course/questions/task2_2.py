"""Questions of task 2.2: broadcasting."""

import sys
from contextlib import suppress

from ...core.indexing import Shape
from ..student import Student
from .calling import ErrorName

Two = tuple[Shape, Shape]

UNFIT = ErrorName("ValueError")
HASH_MODULUS = sys.hash_info.modulus  # ints that differ by it have equal hashes


def ask_shape(student: Student, case: Two) -> object:
    """Return the student's broadcast shape, after two other shapes with equal hashes: a hash is no key."""
    others = [tuple(n if n < 2 else n + HASH_MODULUS for n in shape) for shape in case]
    with suppress(ValueError):
        student.broadcast_shape(*others)
    return student.broadcast_shape(*case)


def shape_or_error(student: Student, case: Two) -> object:
    """Return the student's broadcast shape, or the name of a ValueError."""
    try:
        return student.broadcast_shape(*case)
    except ValueError:
        return UNFIT


def ask_index(student: Student, case: Two) -> object:
    """Return the student's index for an index that is a list, if the function accepts one; else for a tuple."""
    index, shape = case
    try:
        return student.broadcast_index(list(index), shape)
    except TypeError:
        return student.broadcast_index(index, shape)
