"""Reference answers of module 6: the library's own programs of messages, and NumPy."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ...engines.algorithms import ring_all_gather, ring_reduce_scatter
from ...engines.messages import Send
from ..ranks import Array
from . import answers

Sender = Callable[[int, Array], None]
Receiver = Callable[[int], Array]


def drive(program: Any, send: Sender, receive: Receiver) -> Any:
    """Run a program of the library's, with functions for its messages."""
    received: Array | None = None
    while True:
        try:
            request = program.send(received)
        except StopIteration as stop:
            return stop.value
        received = send(request.to, request.data) if isinstance(request, Send) else receive(request.source)  # type: ignore[func-returns-value]


@answers
def chunk_bounds(count: int, size: int) -> list[tuple[int, int]]:
    """Cut a range as `np.array_split` does."""
    ends = np.cumsum([0, *map(len, np.array_split(np.arange(count), size))]).tolist()
    return list(pairwise(ends))


@answers
def reduce_scatter(x: Array, rank: int, size: int, send: Sender, receive: Receiver) -> Array:
    """Sum chunks around the ring."""
    total = drive(ring_reduce_scatter(rank, size, np.array_split(x, size), np.add), send, receive)
    return np.array(total)


@answers
def all_gather(part: Array, rank: int, size: int, send: Sender, receive: Receiver) -> list[Array]:
    """Pass on what came last."""
    return list(drive(ring_all_gather(rank, size, part), send, receive))


@answers
def all_reduce(x: Array, rank: int, size: int, send: Sender, receive: Receiver) -> Array:
    """Sum chunks around the ring, and pass the sums on."""
    total = drive(ring_reduce_scatter(rank, size, np.array_split(x.reshape(-1), size), np.add), send, receive)
    return np.concatenate(drive(ring_all_gather(rank, size, total), send, receive)).reshape(x.shape)
