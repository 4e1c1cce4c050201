"""Buckets of gradients: their all-reduces begin while the backward pass still computes the others.

A device does two things at a time here, so it has two programs: one computes, and tells the other when a bucket is complete.
Device r of n computes as rank r, and communicates as rank n + r.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from .algorithms import ring_all_gather, ring_reduce_scatter
from .cost import Link
from .messages import Array, RankProgram, Recv, Send, Work, no_data

Result = TypeVar("Result")


def on_ranks(program: RankProgram[Result], ranks: Sequence[int], chunk: int | None = None) -> RankProgram[Result]:
    """Run a program of ranks 0, 1, ... on other ranks: its rank k is `ranks[k]`. `chunk` replaces the numbers of chunks."""
    received: Array | None = None
    while True:
        try:
            request = program.send(received)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as stop:
            result: Result = stop.value
            return result
        if isinstance(request, Send):
            yield Send(ranks[request.to], request.data, request.chunk if chunk is None else chunk)
            received = None
        elif isinstance(request, Recv):
            received = yield Recv(ranks[request.source])
        else:
            received = yield request


def backward_pass(rank: int, size: int, layers: Sequence[float], buckets: Sequence[Sequence[int]]) -> RankProgram[None]:
    """Compute the gradients of layers, the last one first, and announce each bucket when all its layers are done.

    `layers` has the seconds of each layer, and `buckets` the layers of each bucket.
    """
    done = set[int]()
    for layer in reversed(range(len(layers))):
        yield Work(layers[layer], f"L{layer}")
        complete = [k for k, bucket in enumerate(buckets) if layer in bucket and done.issuperset({*bucket} - {layer})]
        done.add(layer)
        for k in complete:
            yield Send(size + rank, no_data(), chunk=k)


def reduce_buckets(rank: int, size: int, nbytes: Sequence[int]) -> RankProgram[None]:
    """Wait for one bucket after the other, and all-reduce it around the ring; the values are not computed."""
    for k, n in enumerate(nbytes):
        yield Recv(rank)
        parts = np.array_split(np.broadcast_to(np.uint8(0), n), size)  # one byte of memory
        ring = range(size, 2 * size)
        part = yield from on_ranks(ring_reduce_scatter(rank, size, parts, lambda a, _: a), ring, chunk=k)
        yield from on_ranks(ring_all_gather(rank, size, part), ring, chunk=k)


def data_parallel(
    size: int, layers: Sequence[float], buckets: Sequence[Sequence[int]], nbytes: Sequence[int]
) -> list[RankProgram[None]]:
    """Return the programs of a backward pass with buckets on `size` devices.

    `layers` has the seconds of each layer, `buckets` the layers of each bucket, in the order in which they are sent, and
    `nbytes` its bytes.
    """
    computing = [backward_pass(rank, size, layers, buckets) for rank in range(size)]
    return computing + [reduce_buckets(rank, size, nbytes) for rank in range(size)]


def between_devices(size: int, link: Link) -> Callable[[int, int], Link]:
    """Return the link for two programs a device: messages within a device cost nothing."""
    return lambda source, target: Link(0, 0) if source % size == target % size else link
