"""The computation at one point of a row, as a device function of what is loaded there."""

from collections.abc import Sequence
from typing import NamedTuple

from ....ir.kernel_ir import Expression


class Point(NamedTuple):
    """The function of one point: its name, its loads, its inputs that are equal along the row, and its results.

    If nothing is computed, it has no name; its results are then indices of loads, or names.
    """

    name: str
    leaves: list[Expression]
    same: list[Expression]
    roots: list[int | str]
    values: Sequence[Expression]
