"""What one point of a row becomes: a function of what is loaded there."""

from collections.abc import Sequence
from typing import NamedTuple

from ....ir.kernel_ir import Expression


class Point(NamedTuple):
    """The function of one point: its name, what it loads, what is the same along the row, what it gives.

    Where nothing is computed it has no name, and gives what is loaded, by number, or what has a name already.
    """

    name: str
    leaves: list[Expression]
    same: list[Expression]
    roots: list[int | str]
    values: Sequence[Expression]
