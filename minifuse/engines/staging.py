"""The staging area of a group of ranks in shared memory, and sums over the ranks.

`all_reduce` has three ways, the fastest that fits: short arrays are staged whole, and every rank computes all sums. Arrays
that lie in the arenas of their ranks are read and written in place: each rank sums one slice, and stores it in the outputs
of all. Other arrays pass through the area in chunks that fit into caches.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from .base import RankGroup
from .messages import Array, Combine
from .region import Region
from .shared_arena import SharedArena
from .waiting import fence, wait_until

CHUNK_NBYTES = 1 << 18
SMALL_NBYTES = 1 << 14  # so short arrays are summed whole by all ranks, which saves waits
LINE_NBYTES = 64  # of a cache: what different ranks write lies on different lines
MAX_ARRAYS = 2040  # of a call that sums in place: inputs and outputs
HEAD_NBYTES = LINE_NBYTES + MAX_ARRAYS * 8  # of each rank: its counter, and the offsets of its arrays


class StagingArea:
    """The area of a group: for each rank a counter, offsets of arrays and two chunks; and two chunks of sums.

    Parameters
    ----------
    region : Region
    group : RankGroup
    arenas : list of SharedArena
        The arenas of the members.
    check : callable
        Raises an error if a rank, its argument, has ended.
    """

    def __init__(
        self, region: Region, group: RankGroup, arenas: Sequence[SharedArena], check: Callable[[int], None]
    ) -> None:
        self.group, self.arenas, self.check = group, arenas, check
        self.region = region  # whose address other ranks may not have opened yet
        self.words = memoryview(region.memory).cast("q")
        self.others = [k for k in range(group.size) if k != group.rank]
        self.count = self.steps = 0
        first, count = group.size * HEAD_NBYTES, 2 * (group.size + 1)
        chunks = [region.array(np.uint8, CHUNK_NBYTES, first + k * CHUNK_NBYTES) for k in range(count)]
        self.staged = [chunks[: group.size], chunks[group.size : -2]]
        self.sums = chunks[-2:]
        self.offsets = [region.array(np.int64, MAX_ARRAYS, k * HEAD_NBYTES + LINE_NBYTES) for k in range(group.size)]
        self.scratch = np.empty(CHUNK_NBYTES, np.uint8)

    @staticmethod
    def nbytes(size: int) -> int:
        """Return the size of the area of so many ranks."""
        return size * HEAD_NBYTES + 2 * (size + 1) * CHUNK_NBYTES

    def meet(self) -> None:
        """Wait until all ranks of the group are here."""
        self.count = count = self.count + 1
        words, step = self.words, HEAD_NBYTES // 8
        fence()
        words[self.group.rank * step] = count
        for k in self.others:
            if words[k * step] < count:
                wait_until(lambda: words[k * step] >= count, lambda: self.check(self.group.ranks[k]))  # noqa: B023
        fence()

    def all_reduce(self, x: "Concatenation", out: "Concatenation", combine: Combine) -> None:
        """Combine arrays over the ranks of the group."""
        if x.size * x.dtype.itemsize <= SMALL_NBYTES:
            self.all_reduce_small(x, out, combine)
        elif not self.all_reduce_in_place(x, out, combine):
            self.all_reduce_staged(x, out, combine)

    def all_reduce_in_place(self, x: "Concatenation", out: "Concatenation", combine: Combine) -> bool:
        """Combine arrays in the arenas: each rank reads its slice of all inputs, and writes it to all outputs.

        Return False, before anything is done, if not all arrays of all ranks lie in arenas.
        """
        n, me, count, item = self.group.size, self.group.rank, len(x.arrays), x.dtype.itemsize
        mine = [self.arenas[me].offset_of(array) if array.size else 0 for array in (*x.arrays, *out.arrays)]
        self.offsets[me][: 2 * count] = mine if 2 * count <= MAX_ARRAYS else -1
        self.meet()
        table = [offsets[: 2 * count].tolist() for offsets in self.offsets]
        if any(-1 in offsets for offsets in table):
            return False
        low, high = slice_of(x.size, n, me)
        chunk = CHUNK_NBYTES // item
        is_summed_beside = n > 2 and any(mine[j] == mine[count + j] for j in range(count))  # else sum 1 + 2 replaces term 3
        memory = [arena.bytes for arena in self.arenas]
        for start in range(low, high, chunk):
            for piece, at, j in x.pieces(start, min(start + chunk, high)):
                nbytes, skipped = piece.nbytes, (at - x.ends[j] + x.arrays[j].size) * item
                starts = [(skipped + row[j], skipped + row[count + j]) for row in table]
                terms = [memory[k][first : first + nbytes].view(x.dtype) for k, (first, _) in enumerate(starts)]
                results = [memory[k][first : first + nbytes].view(x.dtype) for k, (_, first) in enumerate(starts)]
                total = self.scratch[:nbytes].view(x.dtype) if is_summed_beside else results[me]
                combine_in_order(terms, total, combine)
                for result in results:
                    if result is not total:
                        result[...] = total
        self.meet()
        return True

    def all_reduce_staged(self, x: "Concatenation", out: "Concatenation", combine: Combine) -> None:
        """Combine arrays that lie anywhere.

        Chunks pass through the area as on an assembly line: between two waits each rank stages chunk k + 1, sums its slice
        of chunk k, and copies the sums of chunk k - 1 out.
        """
        dtype, size = x.dtype, x.size
        chunk = CHUNK_NBYTES // dtype.itemsize
        ends = [*range(0, size, chunk), size]
        count, parity = len(ends) - 1, self.steps
        n, me = self.group.size, self.group.rank
        staged = [[part.view(dtype) for part in parts] for parts in self.staged]
        sums = [part.view(dtype) for part in self.sums]
        for k in range(-1, count + 1):
            if k + 1 < count:
                start, end = ends[k + 1], ends[k + 2]
                low, high = slice_of(end - start, n, me)
                target = staged[(parity + k + 1) % 2][me]
                x.copy_to(target, start, start, start + low)
                x.copy_to(target, start, start + high, end)
            if 0 <= k < count:
                start, end = ends[k], ends[k + 1]
                low, high = slice_of(end - start, n, me)
                parts, total = staged[(parity + k) % 2], sums[(parity + k) % 2]
                for piece, at, _ in x.pieces(start + low, start + high):
                    here = slice(at - start, at - start + piece.size)
                    terms = [piece if other == me else part[here] for other, part in enumerate(parts)]
                    combine_in_order(terms, total[here], combine)
            if k >= 1:
                out.copy_from(sums[(parity + k - 1) % 2], ends[k - 1], ends[k - 1], ends[k])
            if k < count:
                self.meet()
        self.steps = (parity + count + 1) % 2

    def all_reduce_small(self, x: "Concatenation", out: "Concatenation", combine: Combine) -> None:
        """Combine short arrays: every rank computes all sums."""
        parts = [part[: x.size * x.dtype.itemsize].view(x.dtype) for part in self.staged[self.steps]]
        x.copy_to(parts[self.group.rank], 0, 0, x.size)
        self.meet()
        for piece, at, _ in out.pieces(0, x.size):
            combine_in_order([part[at : at + piece.size] for part in parts], piece, combine)
        self.steps = 1 - self.steps


class Concatenation:
    """Flat arrays of one dtype, as if they lay one after the other."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays, self.dtype = arrays, arrays[0].dtype
        self.ends = list(accumulate(array.size for array in arrays))
        self.size = self.ends[-1]

    def pieces(self, start: int, end: int) -> Iterator[tuple[Array, int, int]]:
        """Yield the parts of arrays between two positions, the position of each, and the index of its array."""
        k = bisect_right(self.ends, start)
        while start < end:
            stop = min(end, self.ends[k])
            first = self.ends[k] - self.arrays[k].size
            if stop > start:
                yield self.arrays[k][start - first : stop - first], start, k
            start, k = stop, k + 1

    def copy_to(self, target: Array, origin: int, start: int, end: int) -> None:
        """Copy what is between two positions to an array that begins at the position `origin`."""
        for piece, at, _ in self.pieces(start, end):
            target[at - origin : at - origin + piece.size] = piece

    def copy_from(self, source: Array, origin: int, start: int, end: int) -> None:
        """Copy what is between two positions from an array that begins at the position `origin`."""
        for piece, at, _ in self.pieces(start, end):
            piece[...] = source[at - origin : at - origin + piece.size]


def combine_in_order(terms: Sequence[Array], out: Array, combine: Combine) -> None:
    """Store ((term 0 + term 1) + term 2) + ..."""
    if len(terms) == 1:
        out[...] = terms[0]
        return
    combine(terms[0], terms[1], out=out)  # type: ignore[call-arg]  # a ufunc
    for term in terms[2:]:
        combine(out, term, out=out)  # type: ignore[call-arg]


def slice_of(size: int, parts: int, k: int) -> tuple[int, int]:
    """Return where part k of an array begins and ends; the parts differ by at most one element."""
    return size * k // parts, size * (k + 1) // parts
