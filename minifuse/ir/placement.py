"""Placements: which part of a parameter a rank holds, and which ranks hold the others.

Sums over all elements of a parameter, such as its norm, and the mean of its gradient over ranks depend on them.
"""

from math import prod
from typing import NamedTuple

from ..core.even_parts import even_sizes
from ..core.indexing import Shape
from .collectives import Axes


class Placement(NamedTuple):
    """The division of a parameter among the ranks along some axes of a mesh: each holds one part.

    Parameters
    ----------
    axes : Axes
    shape : tuple of int
        The shape of the whole parameter.
    dim : int or None
        The dim that is divided, evenly. None: the flattened parameter is divided, and parts are 1-d.
    order : int
        The dim that is moved to the front before the parameter is flattened. It is the dim along which the whole is itself
        divided, if it is: so a part of a part is a range of the elements of the whole, and checkpoints can name it.
    whole : Placement, optional
        If the whole is itself a part, the division that made it.

    Examples
    --------
    >>> placement = Placement(Axes(("model",), 2), shape=(5, 3), dim=0)
    >>> placement.sizes
    (3, 2)
    >>> Placement(Axes(("data",), 4), (3, 3), None, whole=placement).all_axes
    Axes(names=('model', 'data'), size=8)
    """

    axes: Axes
    shape: Shape
    dim: int | None
    whole: "Placement | None" = None
    order: int = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """The length of each part along the divided dim."""
        length = prod(self.shape) if self.dim is None else self.shape[self.dim]
        return even_sizes(length, self.axes.size)

    @property
    def all_axes(self) -> Axes:
        """The axes along which ranks hold different parts."""
        if self.whole is None:
            return self.axes
        outer = self.whole.all_axes
        return Axes((*outer.names, *self.axes.names), outer.size * self.axes.size)


def placement_of(x: object) -> Placement | None:
    """Return the placement of a parameter; None if each rank holds the whole."""
    placement: Placement | None = getattr(x, "placement", None)
    return placement


def sharded_axes(x: object) -> Axes | None:
    """Return the axes along which ranks hold different parts of a parameter; None if each rank holds the whole."""
    placement = placement_of(x)
    return None if placement is None else placement.all_axes
