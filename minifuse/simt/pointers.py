"""Raw pointers: memory that a kernel indexes without a shape, within a range of allowed indices that may be negative.

A `Table` is memory that contains addresses. A kernel loads an address from it, and accesses the memory there.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..core.errors import OutOfBoundsError, SimtError
from .arithmetic import RealNumber
from .lanes import LaunchState, lane_error
from .memory import ArrayIndex, ElementIndex, KernelArray, MemoryBlock


class Pointer:
    """A raw pointer to elements, and the range of indices that a kernel may use.

    Parameters
    ----------
    data : ndarray or int
        One-dimensional contiguous memory, whose first element has the index `low`; or the address of the element with the
        index 0, even if 0 is not an allowed index.
    low, high : int
        Allowed indices are `low <= index < high`; they may be negative. `high` is required with an address.
    dtype : dtype, optional
        Type of the elements; required with an address.
    owner : object, optional
        The owner of the memory, kept alive as long as the pointer.

    Examples
    --------
    >>> from minifuse import simt
    >>> import numpy as np
    >>> def shift(out, source, n):
    ...     i = simt.cuda.grid(1)
    ...     if i < n:
    ...         out[i] = source[i - 1]
    >>> out = np.zeros(3)
    >>> simt.run(shift, 1, 4, out, simt.Pointer(np.array([5.0, 6.0, 7.0]), low=-1), 3)
    >>> out
    array([5., 6., 7.])
    """

    __slots__ = ("data", "high", "low", "misalignment", "owner")

    def __init__(
        self,
        data: np.ndarray | int,
        low: int = 0,
        high: int | None = None,
        dtype: DTypeLike | None = None,
        owner: object = None,
    ) -> None:
        self.misalignment = 0  # for memory given by its address: the address of the first element modulo 64
        if isinstance(data, int):
            if high is None or dtype is None:
                raise ValueError("Pointer: an address needs high= and dtype=")
            element_dtype = np.dtype(dtype)
            self.misalignment = (data + low * element_dtype.itemsize) % 64
            data = memory_at(data + low * element_dtype.itemsize, high - low, element_dtype)
        if data.ndim != 1 or not data.flags.c_contiguous:
            raise ValueError(f"Pointer: expected 1-D contiguous memory, got shape {data.shape} and strides {data.strides}")
        if high is not None and high - low != data.size:
            raise ValueError(f"Pointer: got {data.size} elements for the indices {low} <= i < {high}")
        self.data, self.low, self.high, self.owner = data, low, low + data.size, owner


class Table(Pointer):
    """A table of addresses in int64 memory, and the `Pointer` at each address.

    Parameters
    ----------
    data : ndarray or int
        Memory or address, as for a `Pointer`. An address requires `count`.
    targets : dict
        {index in the table: (name, pointer)}: the pointers that a kernel may load.
    count : int, optional
        Number of elements; required with an address.
    owner : object, optional
        The owner of the memory, kept alive as long as the pointer.

    Examples
    --------
    >>> from minifuse import simt
    >>> import numpy as np
    >>> @simt.word
    ... def array_at(table, k):
    ...     return table.follow(k, np.float64)
    >>> def fill(table):
    ...     out = array_at(table, simt.cuda.blockIdx.x)
    ...     out[simt.cuda.threadIdx.x] = 1
    >>> a, b = np.zeros(3), np.zeros(3)
    >>> pointers = {k: (f"out[{k}]", simt.Pointer(x)) for k, x in enumerate([a, b])}
    >>> simt.run(fill, 2, 3, simt.Table(np.array([x.ctypes.data for x in (a, b)]), pointers))
    >>> a, b
    (array([1., 1., 1.]), array([1., 1., 1.]))
    """

    __slots__ = ("targets",)

    def __init__(
        self,
        data: np.ndarray | int,
        targets: Mapping[int, tuple[str, Pointer]],
        count: int | None = None,
        owner: object = None,
    ) -> None:
        super().__init__(data, 0, count, np.int64, owner)
        self.targets = targets


def memory_at(address: int, count: int, dtype: np.dtype) -> np.ndarray:
    """Return the elements at an address of this process."""

    class RawMemory:
        __array_interface__ = {"data": (address, False), "shape": (count,), "typestr": dtype.str, "version": 3}  # noqa: RUF012

    return np.asarray(RawMemory()) if count else np.zeros(0, dtype)


class OffsetArray(KernelArray):
    """The memory of a `Pointer` whose first index is not 0, as a kernel uses it."""

    __slots__ = ("_low",)

    def __init__(self, machine: LaunchState, pointer: Pointer, name: str, allocation: MemoryBlock, row: int) -> None:
        super().__init__(machine, pointer.data, name, allocation, row)
        self._low = pointer.low

    def _memory_index(self, allowed_index: object) -> int:
        """Convert an allowed index to an index in memory."""
        index = self._check_integer(allowed_index)
        if not self._low <= index < self._low + self.size:
            raise lane_error(
                OutOfBoundsError,
                f"pointer '{self.name}': access to element {index}, which is out of bounds",
                f"the index needs {self._low} <= index < {self._low + self.size}",
                array=self.name,
                element=(index,),
            )
        return index - self._low

    def __getitem__(self, index: ArrayIndex) -> Any:
        return KernelArray.__getitem__(self, self._memory_index(index))

    def __setitem__(self, index: ArrayIndex, value: Any) -> None:
        KernelArray.__setitem__(self, self._memory_index(index), value)

    def load(self, index: int, width: int) -> tuple[RealNumber, ...]:
        """See `KernelArray.load`."""
        return super().load(index - self._low, width)

    def gather(self, indices: NDArray[np.int64], width: int) -> np.ndarray:
        """See `KernelArray.gather`."""
        return super().gather(indices - self._low, width)

    def peek(self, index: int, width: int) -> np.ndarray:
        """See `KernelArray.peek`."""
        return super().peek(index - self._low, width)

    def store(self, index: int, values: tuple[RealNumber, ...]) -> None:
        """See `KernelArray.store`."""
        super().store(index - self._low, values)

    def update(self, index: ElementIndex, change: Callable[[Any], RealNumber]) -> RealNumber:
        """See `KernelArray.update`."""
        return super().update(self._memory_index(index), change)


class PointerTableArray(KernelArray):
    """A `Table` as a kernel uses it: integers, some of which are addresses of other arrays."""

    __slots__ = ("_targets",)

    def __init__(
        self, machine: LaunchState, table: Table, name: str, memory: KernelArray, targets: Mapping[int, KernelArray]
    ) -> None:
        super().__init__(machine, table.data, name, memory._allocation, memory._row)
        self._targets = targets

    def follow(self, index: int, dtype: DTypeLike) -> KernelArray:
        """Load an address, and return the array of this dtype that is stored there."""
        self[index]
        target = self._targets.get(index)
        if target is None or target.dtype != dtype:
            actual = "no address" if target is None else f"the address of '{target.name}', of {target.dtype}"
            advice = f"expected the address of memory of {np.dtype(dtype)}"
            raise lane_error(SimtError, f"{self}: element {index} is loaded as a pointer, but is {actual}", advice)
        return target
