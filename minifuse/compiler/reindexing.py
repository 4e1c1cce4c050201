"""Chains of views as the order of elements that they show.

A kernel that computes a view of a value computes the value at other indices. Two chains of views that show the same elements
in the same order are one reindexing, so a kernel computes the value once for both.
"""

from collections.abc import Sequence

from ..core.errors import MinifuseError
from ..core.layout import Layout, row_major
from ..ir.array_functions import View
from ..ir.graph import merge_views

RESHAPE_NEEDS_COPY = "a reshape of what is computed cannot be a matter of strides"

Shape = tuple[int, ...]
Views = tuple[View, ...]  # in the order in which they are applied


class ViewChains:
    """The shortest known chain of views for each reindexing of arrays of a shape."""

    def __init__(self) -> None:
        self.known: dict[tuple[Shape, Layout], Views] = {}
        self.found: dict[tuple[Shape, Views], Views | None] = {}
        self.pairs: dict[tuple[Shape, Views, Views], Views] = {}

    def shortest(self, shape: Shape, views: Views) -> Views | None:
        """Return a chain that shows the same elements in the same order; None where a kernel cannot compute one."""
        key = shape, views
        if key not in self.found:
            self.found[key] = self.shorter(shape, views) if is_computable(shape, views) else None
        return self.found[key]

    def shorter(self, shape: Shape, views: Views) -> Views:
        """Return the first chain of its reindexing, or one that is shorter: this one."""
        layout = layout_of_views(shape, views)
        if layout is None:
            return views
        if layout is row_major(shape):
            return ()
        found = self.known.get((shape, layout))
        if found is None or len(found) > len(views):
            found = self.known[shape, layout] = views
        return found

    def joined(self, shape: Shape, first: Views, second: Views) -> Views:
        """Return two chains that a kernel can compute, one after the other, as one chain."""
        if not first:
            return second
        key = shape, first, second
        found = self.pairs.get(key)
        if found is None:
            both = [*first]
            for view in second:
                one = merge_views(both[-1], view)
                both[-1:] = [both[-1], view] if one is None else [one]
            chain = self.shortest(shape, tuple(both))
            found = self.pairs[key] = tuple(both) if chain is None else chain
        return found


def layout_of_views(shape: Shape, views: Views) -> Layout | None:
    """Return the layout of views of a row-major array; None where positions there do not tell which element is meant."""
    layout = row_major(shape)
    try:
        for view in views:
            if view.method == "as_strided":
                return None
            layout = view.layout(layout)
    except MinifuseError:
        return None
    return layout


def is_computable(shape: Shape, views: Views) -> bool:
    """Return whether a kernel can compute views of a value of a shape: reshapes only split dims."""
    for view in views if any(view.method == "reshape" for view in views) else ():
        # Each view is applied to a row-major array of the shape before it: only its new shape matters here.
        old, shape = shape, view.layout(row_major(shape)).shape
        if view.method == "reshape" and not is_unflatten(old, shape):
            return False
    return True


def is_unflatten(old: Sequence[int], new: Sequence[int]) -> bool:
    """Return whether a reshape only splits dims, and adds or drops dims of size 1: a view of any layout."""
    rest = drop_ones(new)
    for size in drop_ones(old):
        found = 1
        while rest and found < size:
            found *= rest.pop(0)
        if found != size:
            return False
    return not rest


def drop_ones(shape: Sequence[int]) -> list[int]:
    """Return the sizes of a shape other than 1."""
    return [n for n in shape if n != 1]
