"""The requests that a program of a rank yields: send an array, receive one, or compute for a while.

A *rank* is one of several processes or devices that work together, or its number: 0 to size - 1. The program of a rank is a
generator. It yields what it needs, and does not know who carries the messages: a loop in one process, shared memory, MPI or
NCCL. So the same program can be tested, timed by a cost model, drawn as a picture, and run on real devices.
"""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Combine = Callable[[Array, Array], Array]  # np.add, np.maximum or np.minimum
Result = TypeVar("Result")


class Send(NamedTuple):
    """Send a 1-d array to rank `to`.

    The sender continues at once: it does not wait until the array arrives. It must not write to the array afterwards, so no
    copy is needed. `chunk` is the number of the part of a larger array, for pictures.
    """

    to: int
    data: Array
    chunk: int = 0


class Recv(NamedTuple):
    """Wait for the next array from rank `source`; `yield Recv(source)` returns it.

    Arrays from one rank arrive in the order in which they were sent. They have the dtype of the program, and any size.
    """

    source: int


class Work(NamedTuple):
    """Compute for a number of seconds: only cost models need it."""

    seconds: float
    name: str


RankProgram = Generator[Send | Recv | Work, Array, Result]


def no_data() -> Array:
    """Return an empty array, for messages that only say that something has happened."""
    return np.empty(0, np.uint8)
