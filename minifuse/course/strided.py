"""The tensors of the course: a flat storage, and the strides that map an index to a position in it."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.indexing import Shape

Array = npt.NDArray[np.float64]


class Strided(NamedTuple):
    """A tensor over a flat storage: the element at an index has position offset + sum(index[d] * strides[d]).

    Two tensors may share a storage; a stride may be 0 (an element that is repeated) or negative (a dim that is flipped).

    Examples
    --------
    >>> import numpy as np
    >>> x = Strided(np.arange(6.0), (2, 3), (3, 1), 0)
    >>> x.storage[x.offset + 1 * x.strides[0] + 2 * x.strides[1]]
    np.float64(5.0)
    """

    storage: Array
    """Flat: shape (n,)."""
    shape: Shape
    strides: tuple[int, ...]
    """Counted in elements."""
    offset: int

    def array(self) -> Array:
        """Return the elements as a NumPy array over the same storage."""
        size = self.storage.itemsize
        steps = [stride * size for stride in self.strides]
        if 0 in self.shape:
            return np.empty(self.shape, self.storage.dtype)
        return np.ndarray(self.shape, self.storage.dtype, self.storage, self.offset * size, steps)
