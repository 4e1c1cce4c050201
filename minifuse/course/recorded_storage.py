"""A storage for loops in Python: it is read and written one element at a time, and records how often."""

from collections import Counter
from operator import index
from typing import NoReturn, SupportsIndex

from .strided import Array


class RecordedStorage:
    """A flat array of floats that counts its accesses. It has no operation on many elements: the loop is the task.

    Examples
    --------
    >>> import numpy as np
    >>> x = RecordedStorage(np.arange(3.0), "a")
    >>> x[1] + x[1] + x[2], x.reads
    (4.0, 3)
    """

    def __init__(self, values: Array, name: str) -> None:
        self.values, self.name = values.copy(), name
        self.reads = 0
        self.writes: Counter[int] = Counter()
        """Number of writes of each position."""

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: int | slice) -> float | list[float]:
        if isinstance(place, slice):
            return [float(self.values[k]) for k in range(*place.indices(len(self))) if self.count_read()]
        self.count_read()
        return float(self.values[self.position(place)])

    def __setitem__(self, place: int, value: float) -> None:
        position = self.position(place)
        self.writes[position] += 1
        self.values[position] = value

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"{self.name}.storage has no {name} here, and {self.name}.array() does not work: compute the position of each "
            f"element, and read or write {self.name}.storage[position]"
        )

    def count_read(self) -> bool:
        """Count a read, and return True."""
        self.reads += 1
        return True

    def position(self, place: object) -> int:
        """Check a position, and return it counted from the front."""
        if not isinstance(place, SupportsIndex):
            raise TypeError(f"{self.name}.storage[{place}]: a position is one integer")
        at, n = index(place), len(self)
        if not -n <= at < n:
            raise IndexError(f"{self.name}.storage[{at}] is out of bounds: it has {n} elements")
        return at % n

    def item(self, place: int) -> float:
        """Return an element."""
        self.count_read()
        return float(self.values[self.position(place)])

    def tolist(self) -> list[float]:
        """Return all elements."""
        self.reads += len(self)
        return [float(x) for x in self.values]

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return len(self)
