"""Sort: an array in order along a dim, and where each element was. Hosts sort by NumPy; a GPU has a kernel.

The order is stable, so equal elements keep their order, also if it is descending. NaN counts as the largest number, and -0.0
is equal to 0.0.
"""

from typing import Any

import numpy as np

from ..core.dtypes import int64
from .along_dim import gather_along
from .array_functions import ShapeDtype
from .composite_op import CompositeOp, CompositeOutput
from .host_order import order_of_rows
from .numpy_op import by_numpy

VALUES, INDICES = "sort_values", "sort_indices"


class Sort(CompositeOp):
    """Sort along a dim.

    Parameters
    ----------
    dim : int
    descending : bool
    names : tuple of str
        The outputs: VALUES, INDICES or both.
    digits : int, optional
        The bytes of the elements, if they are integers that are not negative: a radix sort then has fewer passes.
    """

    __slots__ = ("descending", "digits", "dim", "names", "output_layout_like")

    def __init__(self, dim: int, descending: bool, names: tuple[str, ...], digits: int | None = None) -> None:
        self.dim, self.descending, self.names, self.digits = dim, descending, names, digits
        self.output_layout_like = (None,) * len(names)

    @property
    def parameters(self) -> tuple[int, bool, int | None]:
        """The dim, the direction and the bytes."""
        return self.dim, self.descending, self.digits

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape of the input for each output. Indices are int64."""
        (x,) = inputs
        return tuple((x.shape, int64 if name == INDICES else x.dtype) for name in self.names)

    def body(self, *inputs: Any) -> tuple[Any, ...]:
        """Gather the elements by their order, so that gradients flow to where they came from."""
        (x,) = inputs
        if self.names == (INDICES,):
            return (by_numpy(order_of, x, shape=x.shape, dtype=int64, parameters=(self.dim, self.descending)),)
        order = order_along(x, self.dim, self.descending)
        return tuple(order if name == INDICES else gather_along(x, order, self.dim) for name in self.names)

    @property
    def has_host_function(self) -> bool:
        """Return whether `run` computes the op."""
        return len(self.names) == 1

    def run(self, x: np.ndarray) -> np.ndarray:
        """Sort by NumPy, which is several times faster than to gather by an order."""
        if self.names == (INDICES,):
            return order_of(x, self.dim, self.descending)
        y = np.sort(x, axis=self.dim)
        return np.flip(y, self.dim) if self.descending else y


def sorted_values(x: Any, dim: int, descending: bool = False, digits: int | None = None) -> Any:
    """Return the sorted elements along a dim."""
    (values,) = Sort(dim, descending, (VALUES,), digits)(x)
    return values


def order_along(x: Any, dim: int, descending: bool = False, digits: int | None = None) -> Any:
    """Return the indices that sort an array along a dim, as a node."""
    return CompositeOutput(Sort(dim, descending, (INDICES,), digits), 0)(x)


def order_of(x: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """Return the stable order along a dim. Equal elements keep their order, also if it is descending."""
    rows = np.moveaxis(x, dim, -1)
    order = order_of_rows(rows[..., ::-1] if descending else rows)
    return np.moveaxis(x.shape[dim] - 1 - order[..., ::-1] if descending else order, -1, dim)
