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
MIN_ROW_PER_SELECTED = 8  # elements of a row for each selected one, from which on a bound is faster than a sort of all
MIN_ROW_PER_CANDIDATE = 4  # elements of a row for each one that is sorted instead
LANES_PER_SELECTED = 8  # with fewer, several of the first elements are more often in one lane, and the bound is far behind


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
        """Return the indices of the first elements, by NumPy: sort only those that are not behind a bound.

        If many elements are not, since they are equal to it or NaN, all are sorted.
        """
        assert self.count is not None
        rows, count = np.moveaxis(x, self.dim, -1), self.count
        n = rows.shape[-1]
        if rows.size and n >= MIN_ROW_PER_SELECTED * count > 0:
            bound = bound_of_first(rows, count, self.descending)
            flat = np.flatnonzero(~(rows < bound) if self.descending else ~(rows > bound))
            counts = np.bincount(flat // n, minlength=bound.size)
            width = counts.max()
            if n >= MIN_ROW_PER_CANDIDATE * width:
                is_candidate = np.arange(width) < counts[:, None]
                values, indices = np.repeat(bound.reshape(-1, 1), width, 1), np.zeros(is_candidate.shape, np.int64)
                values[is_candidate], indices[is_candidate] = rows.reshape(-1)[flat], flat % n
                order = order_of(values, 1, self.descending)[:, :count]
                return np.moveaxis(np.take_along_axis(indices, order, 1).reshape(*rows.shape[:-1], count), -1, self.dim)
        return order_of(x, self.dim, self.descending).take(range(count), self.dim)


def bound_of_first(rows: np.ndarray, count: int, descending: bool) -> np.ndarray:
    """Return an element of each row that is not before any of the first `count` elements, and rarely far behind them.

    A row is dealt to lanes, each of which has a first element. The bound is the last one of the first `count` of these.
    """
    length = max(rows.shape[-1] // (LANES_PER_SELECTED * count), 1)
    lanes = rows.shape[-1] // length
    elements = rows[..., : length * lanes].reshape(*rows.shape[:-1], length, lanes)
    firsts = np.maximum.reduce(elements, -2) if descending else np.fmin.reduce(elements, -2)  # NaN is the largest number
    place = lanes - count if descending else count - 1
    return np.partition(firsts, place, -1)[..., place, None]
