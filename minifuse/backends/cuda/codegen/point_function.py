"""The computation at one point of a row, as a device function of the loaded values."""

from collections.abc import Sequence
from typing import NamedTuple

from ....ir.kernel_ir import Expression


class Point(NamedTuple):
    """The function of one point: name, loads (`leaves`), inputs that are constant along the row (`same`), and results.

    If nothing is computed, the name is empty, and `roots` contains indices of leaves, or names.
    """

    name: str
    leaves: list[Expression]
    same: list[Expression]
    roots: list[int | str]
    values: Sequence[Expression]
