"""`cuda.reduce`: reduce a whole array with a binary function.

Numba generates kernels for it, which are not part of the script. So here the reduction is a loop on the host, from the first
element to the last. A GPU uses another order, which changes the last bits of floats.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import ShapeError
from ..arithmetic import LaneNumber
from .arrays import DeviceArray, HostOrDevice


class HostReduction:
    """A reduction: `total = cuda.reduce(lambda a, b: a + b)`, then `total(array)`."""

    def __init__(self, functor: Callable[[Any, Any], object]) -> None:
        functools.update_wrapper(self, functor)
        self.functor = getattr(functor, "py_func", functor)

    def __call__(
        self,
        arr: HostOrDevice,
        size: int | None = None,
        res: DeviceArray | None = None,
        init: LaneNumber = 0,
        stream: object = 0,
    ) -> np.generic | None:
        """Reduce `init` and the first `size` elements of a 1-D host or device array.

        Returns
        -------
        A number of the array's dtype. If `res` is given, its first element is set to the result, and None is returned.
        """
        if arr.ndim != 1:
            raise ShapeError(f"cuda.reduce: got shape {arr.shape}, expected an array of one dim; write arr.ravel()")
        part = arr[:size]
        if isinstance(part, DeviceArray):
            part.check_written(..., "read by cuda.reduce")
            part = part.data
        total: np.generic = part.dtype.type(init)
        with np.errstate(all="ignore"):  # as on the device, integers wrap and floats overflow without a warning
            for value in part:
                total = part.dtype.type(self.functor(total, value))
        if res is None:
            return total
        res[0] = total
        return None
