"""Search in sorted rows: NumPy does it on hosts; elsewhere a kernel does a binary search for each value.

The steps of a binary search depend on the length of the row only. So they are unrolled into pointwise ops and loads at
computed indices, which fuse with the ops around them.
"""

from typing import Any

import numpy as np

from ..core.dtypes import DType, int32, int64, promote
from ..core.operators import eq, ge, isnan, lt, where
from .along_dim import positions_along
from .array_functions import Full, ShapeDtype
from .composite_op import CompositeOp
from .gather import GatherND


class SearchSorted(CompositeOp):
    """Find where each value of the second input would be inserted in its row of the first one, which is sorted.

    Parameters
    ----------
    is_right : bool
        Whether the place is after equal elements, not before them.
    dtype : DType
        The type of the places.
    """

    __slots__ = ("dtype", "is_right")
    names = ("searchsorted",)
    output_layout_like = (1,)

    def __init__(self, is_right: bool, dtype: DType) -> None:
        self.is_right, self.dtype = is_right, dtype

    @property
    def parameters(self) -> tuple[bool, DType]:
        """The side and the type of the places."""
        return self.is_right, self.dtype

    def infer(self, rows: Any, values: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape of the values."""
        return ((values.shape, self.dtype),)

    def vjp(self, index: int, g: Any, *inputs: Any) -> tuple[Any, ...]:
        """Return no gradients."""
        return None, None

    def body(self, rows: Any, values: Any) -> tuple[Any, ...]:
        """Halve the range of places until one is left: its first half is dropped if the value belongs after the half.

        The place is in `low` ... `low + size`. A range of `size` elements shrinks to `size - size // 2`, whichever half is
        dropped, so that all values take the same steps and no load needs a test of its index.
        """
        index_type = int32 if rows.shape[-1] < 1 << 31 else int64
        low, size = values.apply(Full(values.shape, index_type), 0), rows.shape[-1]
        batch = [positions_along(values, d) for d in range(rows.ndim - 1)]
        while size:
            half = max(size // 2, 1)
            element = GatherND(None)(rows, *batch, low + (half - 1))
            low = where(self.is_before(element, values), low + half, low)
            size = size - half if size > 1 else 0
        return (low.to(self.dtype),)

    def is_before(self, element: Any, value: Any) -> Any:
        """Return whether an element belongs before a value. NaN is the largest number, and equal to NaN."""
        is_less = ge(value, element) if self.is_right else lt(element, value)
        if not value.dtype.is_float:
            return is_less
        return is_less | (isnan(value) if self.is_right else isnan(value) & eq(element, element))

    def run(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Search by NumPy."""
        side: Any = "right" if self.is_right else "left"
        if rows.ndim == 1:
            return np.asarray(np.searchsorted(rows, values, side))
        pairs = zip(rows.reshape(-1, rows.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
        return np.stack([np.searchsorted(row, value, side) for row, value in pairs]).reshape(values.shape)


def places(rows: Any, values: Any, is_right: bool, is_int32: bool) -> Any:
    """Return the place of each value in the row that it belongs to."""
    if not isinstance(values.dtype, DType):  # a number
        dtype = promote(rows.dtype, values.dtype)
        values = rows.apply(Full((), dtype), values.to(dtype))
    (y,) = SearchSorted(is_right, int32 if is_int32 else int64)(rows, values)
    return y
