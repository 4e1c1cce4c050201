"""Selection: the elements of rows that have some ranks in the order of `ir.sort`, without the order of all others.

The order is that of a stable sort: equal elements keep their order, NaN is the largest number, and -0.0 is equal to 0.0.
"""

from typing import Any

import numpy as np

from ..core.dtypes import int64
from .along_dim import GatherAlong, gather_along
from .array_functions import ShapeDtype
from .composite_op import CompositeOp, CompositeOutput
from .sort import order_along, order_of, sorted_values

OUTPUTS = VALUES, INDICES = "selected_values", "selected_indices"
MIN_ROW_PER_SELECTED = 8  # elements of a row for each selected one, from which on a partition is faster than a sort


class Selection(CompositeOp):
    """Select elements along a dim by rank: the first ones, or those at the ranks in the second input.

    Parameters
    ----------
    dim : int
    descending : bool
    names : tuple of str
        The outputs: VALUES, INDICES or both.
    count : int or None
        How many elements are selected, from the first rank on. If None, there is an input with ranks, which has the shape of
        the first one but for the dim.
    """

    __slots__ = ("count", "descending", "dim", "names", "output_layout_like")

    def __init__(self, dim: int, descending: bool, names: tuple[str, ...], count: int | None = None) -> None:
        self.dim, self.descending, self.names, self.count = dim, descending, names, count
        self.output_layout_like = (None,) * len(names)

    @property
    def parameters(self) -> tuple[int, bool, int | None]:
        """The dim, the direction and the number of elements."""
        return self.dim, self.descending, self.count

    def infer(self, x: Any, *ranks: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape of the input, but for the dim, for each output. Indices are int64."""
        count = ranks[0].shape[self.dim] if self.count is None else self.count
        shape = (*x.shape[: self.dim], count, *x.shape[self.dim + 1 :])
        return tuple((shape, int64 if name == INDICES else x.dtype) for name in self.names)

    @property
    def has_host_function(self) -> bool:
        """Return whether `run` computes the op."""
        return self.names == (INDICES,) and self.count is not None

    def body(self, x: Any, *ranks: Any) -> tuple[Any, ...]:
        """Sort, and select by rank."""
        if self.names == (VALUES,) and ranks:
            return (gather_along(sorted_values(x, self.dim, self.descending), ranks[0], self.dim),)
        if self.names == (INDICES,):
            order = order_along(x, self.dim, self.descending)
            first = (*[slice(None)] * self.dim, slice(self.count))
            return (gather_along(order, ranks[0], self.dim) if ranks else order[first],)
        indices = self.indices(x, *ranks)
        return tuple(indices if name == INDICES else gather_along(x, indices, self.dim) for name in self.names)

    def vjp(self, index: int, g: Any, *inputs: Any) -> tuple[Any, ...]:
        """Add the gradient where the elements were selected."""
        (x, *ranks) = inputs
        gradient, _ = GatherAlong(self.dim).vjp(0, g, x, self.indices(*inputs))
        return gradient, *[None] * len(ranks)

    def indices(self, *inputs: Any) -> Any:
        """Return the indices of the selected elements."""
        return CompositeOutput(Selection(self.dim, self.descending, (INDICES,), self.count), 0)(*inputs)

    def run(self, x: np.ndarray) -> np.ndarray:
        """Return the indices of the first elements, by NumPy: find the last one, and sort those that are not behind it.

        If more elements are equal to the last one, or some are NaN, all are sorted.
        """
        assert self.count is not None
        rows, count = np.moveaxis(x, self.dim, -1), self.count
        if rows.shape[-1] >= MIN_ROW_PER_SELECTED * count > 0:
            place = rows.shape[-1] - count if self.descending else count - 1
            last = np.partition(rows, place, -1)[..., place, None]
            is_selected = ~(rows < last) if self.descending else ~(rows > last)
            if np.count_nonzero(is_selected) == count * last.size:
                indices = np.nonzero(is_selected)[-1].reshape(*rows.shape[:-1], count)
                order = order_of(np.take_along_axis(rows, indices, -1), rows.ndim - 1, self.descending)
                return np.moveaxis(np.take_along_axis(indices, order, -1), -1, self.dim)
        return order_of(x, self.dim, self.descending).take(range(count), self.dim)
