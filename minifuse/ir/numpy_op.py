"""NumpyOp: an op that NumPy computes on whole arrays, as a step of its own: sorting, searching and the like.

Host backends pass the memory of the operands to NumPy, without a copy. Others copy inputs to the host and the result back.
"""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..core.dtypes import DType
from ..core.indexing import Shape
from .array_functions import ShapeDtype
from .composite_op import CompositeOp

Compute = Callable[..., np.ndarray]  # of NumPy arrays, then parameters


class NumpyOp(CompositeOp):
    """A function of NumPy arrays with one result, whose shape depends on shapes only. It has no gradient.

    Parameters
    ----------
    compute : callable
        The function: it gets the arrays, then the parameters.
    shape, dtype
        Those of the result.
    parameters : tuple
        Hashable.
    """

    __slots__ = ("compute", "dtype", "names", "parameters", "shape")
    output_layout_like = (None,)

    def __init__(self, compute: Compute, shape: Shape, dtype: DType, parameters: tuple[Hashable, ...]) -> None:
        self.compute, self.shape, self.dtype = compute, shape, dtype
        self.parameters = parameters  # type: ignore[misc]  # a property in the base class
        self.names = (compute.__name__.strip("_"),)

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """Return the given shape and dtype."""
        return ((self.shape, self.dtype),)

    def vjp(self, index: int, g: Any, *inputs: Any) -> tuple[Any, ...]:
        """Return no gradients."""
        return (None,) * len(inputs)

    def run(self, *arrays: np.ndarray) -> np.ndarray:
        """Compute the result."""
        return np.asarray(self.compute(*arrays, *self.parameters))


def by_numpy(compute: Compute, *inputs: Any, shape: Shape, dtype: DType, parameters: tuple[Hashable, ...] = ()) -> Any:
    """Return the result of a function of NumPy arrays, as a node. Call it in the body of a function of arrays."""
    (y,) = NumpyOp(compute, shape, dtype, parameters)(*inputs)
    return y
