"""The tensors of the course: a flat storage, and the rule that says where each element lies."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Strided(NamedTuple):
    """A tensor over a flat storage: the element at an index lies at offset + sum(index[d] * strides[d]).

    Two tensors may share a storage; a stride may be 0 (an element that is repeated) or negative (a dim that is flipped).

    Examples
    --------
    >>> import numpy as np
    >>> x = Strided(np.arange(6.0), (2, 3), (3, 1), 0)
    >>> x.storage[x.offset + 1 * x.strides[0] + 2 * x.strides[1]]
    np.float64(5.0)
    """

    storage: npt.NDArray[Any]
    """Flat: shape (n,)."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Counted in elements."""
    offset: int

    def array(self) -> npt.NDArray[Any]:
        """The elements as a NumPy array over the same storage."""
        size = self.storage.itemsize
        steps = [stride * size for stride in self.strides]
        if 0 in self.shape:
            return np.empty(self.shape, self.storage.dtype)
        return np.ndarray(self.shape, self.storage.dtype, self.storage, self.offset * size, steps)
