"""The loops of a kernel: the shape that they run over, and the dims that they reduce."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..core.errors import ShapeError
from ..core.layout import Layout, row_major
from ..ir.array_functions import Reduce, View
from ..ir.graph import Node, strip_views
from .reindexing import is_unflatten

Reindex = Callable[[Layout], Layout]
"""A function that maps the layout of an array to the layout in which the loops of a kernel read it."""


class IterationSpace(NamedTuple):
    """The loops of a kernel: a shape, and the dims that it reduces (none for a pointwise kernel)."""

    shape: tuple[int, ...]
    dims: tuple[int, ...]

    def __str__(self) -> str:
        if not self.dims:
            return f"the elements of {self.shape}"
        return f"{self.shape} along dim{'s' * (len(self.dims) > 1)} {', '.join(map(str, self.dims))}"

    @property
    def rows(self) -> tuple[int, ...]:
        """The shape of values that have one element per row: reduced dims have size 1."""
        return tuple(1 if d in self.dims else n for d, n in enumerate(self.shape))

    def reindex_for(self, shape: tuple[int, ...]) -> Reindex:
        """Return the function that maps the layout of an array of a shape to the layout in which the loops read the array.

        An array with one element per row is repeated along the row.
        """
        if shape == self.shape:
            return keep_layout
        return lambda layout: layout.reshape(*self.rows).expand(*self.shape)

    def contains_shape(self, shape: tuple[int, ...]) -> bool:
        """Return whether values of a shape have one element per point of the space, or one per row.

        The dims of the rows may be those of the shape, or parts of them.
        """
        return shape == self.shape or is_unflatten(shape, self.rows)

    def is_own_reduction(self, leaf: Node) -> bool:
        """Return whether a leaf is a reduction of the rows of this space, under views that only repeat it along the row."""
        source = strip_views(leaf)
        if not isinstance(source.function, Reduce) or reduction_space(source) != self:
            return False
        return is_read_as(leaf, self.reindex_for(leaf.shape), lambda layout: layout.expand(*self.shape))

    def is_read_in_order(self, leaf: Node) -> bool:
        """Return whether the loops read each element of the leaf's source (see `strip_views`) once, in row-major order."""
        return is_read_as(leaf, keep_layout, lambda layout: layout.reshape(*self.shape))


def reduction_space(node: Node) -> IterationSpace:
    """Return the iteration space of a kernel that computes a reduction."""
    return IterationSpace(node.inputs[0].shape, node.function.dims)


def is_read_as(leaf: Node, reindex: Reindex, expected: Reindex) -> bool:
    """Return whether the loops read the elements of the leaf's source in the expected order.

    The source is the value under the views of the leaf. `expected` maps the layout of the source to a layout that visits the
    elements in this order.
    """
    layout = row_major(strip_views(leaf).shape)
    try:
        return reindex(layout_through_views(leaf, layout)).same_traversal(expected(layout))
    except ShapeError:
        return False


def layout_through_views(node: Node, layout: Layout) -> Layout:
    """Return the layout of a node that is a chain of views, where the value under the views is stored in `layout`."""
    views = []
    while isinstance(node.function, View):
        views.append(node.function)
        (node,) = node.inputs
    for view in without_repeated_reshapes(views[::-1]):
        layout = view.layout(layout)
    return layout


def without_repeated_reshapes(views: Sequence[View]) -> list[View]:
    """Drop each reshape that another reshape follows: only the last shape counts, and strides may describe it alone.

    A reshape to one dim stays: followed by the old shape, it asks for elements in row-major order.
    """
    is_reshape = [type(view) is View and view.method == "reshape" for view in views]
    last = len(views) - 1
    return [
        view
        for k, view in enumerate(views)
        if k == last or not (is_reshape[k] and is_reshape[k + 1] and len(view.parameters) > 1)
    ]


def keep_layout(layout: Layout) -> Layout:
    """Return the layout unchanged."""
    return layout
