"""Collectives as programs of messages: what each rank sends and receives, as short generators.

A collective is an operation that all ranks of a group call together, such as the sum of one array of each rank. Most have
several algorithms, which differ in their costs. A message costs a *latency* plus its bytes divided by the bandwidth. So the
docstrings count two things: *rounds*, the messages that must follow each other, and the bytes that one rank sends. There n
is the number of ranks, and B the bytes of the whole array.

- **direct**: each rank sends to all others itself. Sums are taken in the order of ranks, ((x0 + x1) + x2) + ..., so results
  have the bits of a loop over the ranks, for any n. Engines on CPUs use it.
- **ring**: each rank sends only to the next one, so all links between neighbors are in use all the time.
- **tree**: the number of ranks that take part doubles in each round, so rounds are few: best for small arrays.

Arrays are 1-d. No program writes to an array that it was given, sent or received. `combine` is a function of two arrays that
returns a new one, such as `np.add`. Results that all ranks have (all-reduce, all-gather, broadcast) are equal to the bit:
each part is computed on one rank, or in the same order on all.

References
----------
P. Patarasuk and X. Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations, 2009 (the ring).
R. Thakur, R. Rabenseifner and W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005 (the others).
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from .messages import Array, Combine, RankProgram, Recv, Send

# Reduce-scatter: part r of each rank's parts, combined over all ranks, on rank r.


def ring_reduce_scatter(rank: int, size: int, parts: Sequence[Array], combine: Combine) -> RankProgram[Array]:
    """Let the sum of each part travel once around the ring, and grow at each rank: n - 1 rounds, B (n - 1) / n bytes.

    The sum of part r begins on rank r + 1 and ends on rank r. So the order of summation differs between the parts.
    """
    total = parts[(rank - 1) % size]
    for step in range(1, size):
        yield Send((rank + 1) % size, total, chunk=(rank - step) % size)
        received = yield Recv((rank - 1) % size)
        total = combine(received, parts[(rank - step - 1) % size])
    return total


def direct_reduce_scatter(rank: int, size: int, parts: Sequence[Array], combine: Combine) -> RankProgram[Array]:
    """Send each part to its rank, and sum the own ones in the order of ranks: n - 1 messages, B (n - 1) / n bytes."""
    received = yield from direct_all_to_all(rank, size, parts)
    return reduce(combine, received)


# All-gather: the arrays of all ranks, on each rank.


def ring_all_gather(rank: int, size: int, x: Array) -> RankProgram[list[Array]]:
    """Pass on around the ring what came last: n - 1 rounds, B (n - 1) / n bytes, where B is the sum of all sizes."""
    parts = [x] * size
    for step in range(size - 1):
        yield Send((rank + 1) % size, parts[(rank - step) % size], chunk=(rank - step) % size)
        parts[(rank - step - 1) % size] = yield Recv((rank - 1) % size)
    return parts


def direct_all_gather(rank: int, size: int, x: Array) -> RankProgram[list[Array]]:
    """Send the own array to each other rank: n - 1 messages of its size."""
    return (yield from direct_all_to_all(rank, size, [x] * size))


# All-reduce: the sum of the arrays of all ranks, on each rank.


def ring_all_reduce(rank: int, size: int, x: Array, combine: Combine) -> RankProgram[Array]:
    """Reduce-scatter, then all-gather, around the ring: 2 (n - 1) rounds, 2 B (n - 1) / n bytes.

    No algorithm sends fewer bytes: for large n, each rank sends and receives the array twice, however many ranks there are.
    """
    parts = np.array_split(x, size)
    total = yield from ring_reduce_scatter(rank, size, parts, combine)
    totals = yield from ring_all_gather(rank, size, total)
    return np.concatenate(totals)


def direct_all_reduce(rank: int, size: int, x: Array, combine: Combine) -> RankProgram[Array]:
    """Sum a part on each rank in the order of ranks, and send it to all: 2 (n - 1) messages, 2 B (n - 1) / n bytes."""
    total = yield from direct_reduce_scatter(rank, size, np.array_split(x, size), combine)
    totals = yield from direct_all_gather(rank, size, total)
    return np.concatenate(totals)


def tree_all_reduce(rank: int, size: int, x: Array, combine: Combine) -> RankProgram[Array]:
    """Sum along a tree to rank 0, and send the sum back: 2 log2(n) rounds of B bytes."""
    total = yield from tree_reduce(rank, size, x, 0, combine)
    return (yield from tree_broadcast(rank, size, x if total is None else total, 0))


def gather_first_all_reduce(rank: int, size: int, x: Array, combine: Combine) -> RankProgram[Array]:
    """Send the whole array to each other rank, and sum there: n - 1 messages, B (n - 1) bytes. The naive algorithm.

    It has half as many rounds as the ring, but sends n / 2 times as many bytes.
    """
    arrays = yield from direct_all_gather(rank, size, x)
    return reduce(combine, arrays)


# Broadcast: the array of rank `source`, on each rank. The arrays of other ranks are not used.


def direct_broadcast(rank: int, size: int, x: Array, source: int) -> RankProgram[Array]:
    """Send the array from its rank to each other one: n - 1 messages of B bytes, one after the other."""
    if rank != source:
        return (yield Recv(source))
    for step in range(1, size):
        yield Send((rank + step) % size, x)
    return x


def tree_broadcast(rank: int, size: int, x: Array, source: int) -> RankProgram[Array]:
    """Let each rank that has the array send it on, so that twice as many have it: log2(n) rounds of B bytes."""
    place, step = (rank - source) % size, 1  # the source has place 0
    while step < size:
        if place < step and place + step < size:
            yield Send((rank + step) % size, x)
        elif step <= place < 2 * step:
            x = yield Recv((rank - step) % size)
        step *= 2
    return x


# Reduce: the sum of the arrays of all ranks, on rank `target`; None on the others.


def direct_reduce(rank: int, size: int, x: Array, target: int, combine: Combine) -> RankProgram[Array | None]:
    """Send all arrays to the target, which sums in the order of ranks: it receives n - 1 messages of B bytes."""
    if rank != target:
        yield Send(target, x)
        return None
    arrays = [x] * size
    for source in range(size):
        if source != rank:
            arrays[source] = yield Recv(source)
    return reduce(combine, arrays)


def tree_reduce(rank: int, size: int, x: Array, target: int, combine: Combine) -> RankProgram[Array | None]:
    """Sum pairs, then pairs of sums, and so on up to the target: log2(n) rounds of B bytes."""
    place, step = (rank - target) % size, 1  # the target has place 0
    while step < size:
        if place & step:
            yield Send((rank - step) % size, x)
            return None
        if place + step < size:
            x = combine(x, (yield Recv((rank + step) % size)))
        step *= 2
    return x


# All-to-all: parts[r] of each rank, on rank r, by the ranks that they came from.


def direct_all_to_all(rank: int, size: int, parts: Sequence[Array]) -> RankProgram[list[Array]]:
    """Send each part to its rank, beginning with the next one: n - 1 messages, in n - 1 rounds."""
    for step in range(1, size):
        to = (rank + step) % size
        yield Send(to, parts[to], chunk=to)
    received = [parts[rank]] * size
    for source in range(size):
        if source != rank:
            received[source] = yield Recv(source)
    return received


# Shift: the array of the rank that is `by` ranks before.


def direct_shift(rank: int, size: int, x: Array, by: int) -> RankProgram[Array]:
    """Send the array to rank + by, and receive that of rank - by, both modulo n: 1 round of B bytes."""
    if by % size == 0:
        return x
    yield Send((rank + by) % size, x)
    return (yield Recv((rank - by) % size))


ALGORITHMS: dict[str, dict[str, Callable[..., RankProgram[Any]]]] = {
    "all_reduce": {
        "ring": ring_all_reduce,
        "tree": tree_all_reduce,
        "direct": direct_all_reduce,
        "gather_first": gather_first_all_reduce,
    },
    "reduce_scatter": {"ring": ring_reduce_scatter, "direct": direct_reduce_scatter},
    "all_gather": {"ring": ring_all_gather, "direct": direct_all_gather},
    "broadcast": {"tree": tree_broadcast, "direct": direct_broadcast},
    "reduce": {"tree": tree_reduce, "direct": direct_reduce},
    "all_to_all": {"direct": direct_all_to_all},
    "shift": {"direct": direct_shift},
}
