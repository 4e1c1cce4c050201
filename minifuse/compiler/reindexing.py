"""Normalize chains of views: chains that select the same elements in the same order are one reindexing.

A kernel that computes a view of a value computes the value at other indices. If two chains of views are one reindexing, the
kernel computes the value once for both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..core.errors import MinifuseError
from ..core.layout import Layout, row_major
from ..ir.array_functions import View
from ..ir.graph import merge_views

RESHAPE_NEEDS_COPY = "this reshape needs a copy: no strides describe it"

Shape = tuple[int, ...]
Views = tuple[View, ...]  # in the order in which they are applied


@dataclass(eq=False)
class ViewChains:
    """A cache of the shortest known chain of views for each shape and reindexing."""

    by_layout: dict[tuple[Shape, Layout], Views] = field(default_factory=dict)
    by_chain: dict[tuple[Shape, Views], Views | None] = field(default_factory=dict)
    by_pair: dict[tuple[Shape, Views, Views], Views] = field(default_factory=dict)

    def shortest(self, shape: Shape, views: Views) -> Views | None:
        """Return the shortest known chain with the same reindexing as `views`, or None if a kernel cannot compute it."""
        key = shape, views
        if key not in self.by_chain:
            self.by_chain[key] = self.keep_shorter(shape, views) if is_computable(shape, views) else None
        return self.by_chain[key]

    def keep_shorter(self, shape: Shape, views: Views) -> Views:
        """Return the shorter of `views` and the known chain with the same reindexing, which becomes the known chain."""
        layout = layout_of_views(shape, views)
        if layout is None:
            return views
        if layout is row_major(shape):
            return ()
        known = self.by_layout.get((shape, layout))
        if known is None or len(known) > len(views):
            known = self.by_layout[shape, layout] = views
        return known

    def join(self, shape: Shape, first: Views, second: Views) -> Views:
        """Join two chains that a kernel can compute, applied one after the other, into one."""
        if not first:
            return second
        key = shape, first, second
        joined = self.by_pair.get(key)
        if joined is None:
            combined = [*first]
            for view in second:
                merged = merge_views(combined[-1], view)
                combined[-1:] = [combined[-1], view] if merged is None else [merged]
            chain = self.shortest(shape, tuple(combined))
            joined = self.by_pair[key] = tuple(combined) if chain is None else chain
        return joined


def layout_of_views(shape: Shape, views: Views) -> Layout | None:
    """Return the layout of a chain of views of a row-major array.

    It is None if no layout identifies the elements: after `as_strided`, and after a reshape that needs a copy.
    """
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
    """Return whether a kernel can compute views of a value of a shape: its reshapes only split dims."""
    for view in views if any(view.method == "reshape" for view in views) else ():
        # Each view is applied to a row-major array of the shape before it: only its new shape matters here.
        old, shape = shape, view.layout(row_major(shape)).shape
        if view.method == "reshape" and not is_unflatten(old, shape):
            return False
    return True


def is_unflatten(old: Sequence[int], new: Sequence[int]) -> bool:
    """Return whether a reshape only splits dims, or adds or drops dims of size 1: then it is a view of any layout."""
    rest = drop_ones(new)
    for size in drop_ones(old):
        product = 1
        while rest and product < size:
            product *= rest.pop(0)
        if product != size:
            return False
    return not rest


def is_reshape(function: object) -> bool:
    """Return whether a function is a view that has all elements of an array in the same order."""
    return isinstance(function, View) and function.method in ("reshape", "unflatten")


def find_kept_dims(view: View, shape: Shape, view_shape: Shape) -> dict[int, int] | None:
    """Return each dim of an array -> the dim of a view with its elements; None if a view does not only move or drop dims.

    A permutation keeps all dims. A reshape that only adds or drops dims of size 1 keeps all others.

    >>> find_kept_dims(View("reshape", (3, 1, 4)), (1, 3, 4), (3, 1, 4))
    {1: 0, 2: 2}
    """
    if view.method == "permute":
        return {d: k for k, d in enumerate(view.parameters)}
    if not is_reshape(view) or drop_ones(shape) != drop_ones(view_shape):
        return None
    found = iter([k for k, n in enumerate(view_shape) if n != 1])
    return {d: next(found) for d, n in enumerate(shape) if n != 1}


def drop_ones(shape: Sequence[int]) -> list[int]:
    """Return the sizes of a shape other than 1."""
    return [n for n in shape if n != 1]
