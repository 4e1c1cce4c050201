"""`cuda.reduce`: a fold of a whole array by a function of two values.

Beside `kernels` in `simt.host`. Numba makes kernels of its own for it; they are not a script's to get wrong, so here the
fold is a loop on the host, from the first element to the last. On a GPU the order is another one, which shows in the last
bits of floats.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import ShapeError
from .arrays import DeviceArray


class HostReduction:
    """A fold: `total = cuda.reduce(lambda a, b: a + b)`, then `total(array)`."""

    def __init__(self, functor: Callable[[Any, Any], Any]) -> None:
        functools.update_wrapper(self, functor)
        self.functor = getattr(functor, "py_func", functor)

    def __call__(
        self, arr: Any, size: int | None = None, res: DeviceArray | None = None, init: Any = 0, stream: Any = 0
    ) -> Any:
        """Fold `init` and the first `size` elements of a host or device array of one dim.

        Returns
        -------
        A number of the array's type; None where `res`, a device array, takes it as its first element.
        """
        if arr.ndim != 1:
            raise ShapeError(f"cuda.reduce: only arrays of one dim are folded, got shape {arr.shape}; ravel() it first")
        part = arr[:size]
        if isinstance(part, DeviceArray):
            part.check_written(..., "read by cuda.reduce")
            part = part.data
        total = part.dtype.type(init)
        with np.errstate(all="ignore"):  # as on the device, integers wrap and floats overflow in silence
            for value in part:
                total = part.dtype.type(self.functor(total, value))
        if res is None:
            return total
        res[0] = total
        return None
