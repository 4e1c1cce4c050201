"""Assign buffers: find when each temporary is needed, and its offset in one arena if all launches are submitted together.

A program that submits all its launches at once must allocate before the first of them. One arena costs one allocation, and
it has the same address in every call, so a recorded CUDA graph can be replayed. Temporaries with disjoint lifetimes share
bytes. If launches run one by one, each temporary is allocated before its first launch and freed after its last one.

All this is computed when a plan is built; nothing here allocates memory.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ..backends.base import Backend
from .graph import Graph, Lifetime, needs
from .schedule_collectives import first_dependents

ALIGNMENT = 256  # bytes; the widest load of a warp must start at a multiple of it
MIN_LAUNCHES_TO_SUBMIT_TOGETHER = 3  # with fewer launches, submitting them together saves no time


@needs(steps=2)
def assign_buffers(graph: Graph, target: Backend) -> Graph:
    """Find the launches that need each temporary, and its offset in one arena if the target submits all launches together.

    The second launch reads `matmul0` while it writes `matmul1`, so these have different bytes in the arena.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x, w: x @ w @ w @ w, (4, 4), (4, 4))
    >>> before, after = run_pass(assign_buffers, graph)
    >>> print(*before.format_launches(graph.names()), sep="\\n")
    launch(x0, x1 -> matmul0)
    launch(matmul0, x1 -> matmul1)
    launch(matmul1, x1 -> matmul2)
    >>> print(*after.format_launches(graph.names()), sep="\\n")
    launch(x0, x1 -> matmul0)
    launch(matmul0, x1 -> matmul1)
    free(matmul0)
    launch(matmul1, x1 -> matmul2)
    free(matmul1)
    >>> _, submitted = run_pass(assign_buffers, graph, join=lambda self, launches, counts, waits: None)
    >>> print(*submitted.format_launches(graph.names()), sep="\\n")
    arena of 512 bytes: matmul0 at 0, matmul1 at 256
    launch(x0, x1 -> matmul0)
    launch(matmul0, x1 -> matmul1)
    launch(matmul1, x1 -> matmul2)
    """
    results = {graph.locate(node)[0] for node in graph.results}
    uses = defaultdict[int, list[int]](list)  # slot -> the steps that read or write it
    for k, step in enumerate(graph.steps):
        for slot, _ in step.buffer_views():
            uses[slot].append(k)
    waits = first_dependents(graph.steps) if target.join is not None else {}
    for k, first in waits.items():  # until then, the collective may still read and write
        for slot, _ in graph.steps[k].buffer_views():
            uses[slot].append(first)
    sizes = enumerate(graph.buffer_nbytes, len(graph.arguments))
    nbytes = {slot: size for slot, size in sizes if slot not in results}
    lifetimes = {slot: Lifetime(x[0], max(x), nbytes[slot]) for slot, x in uses.items() if slot in nbytes}
    if target.join is None or len(graph.steps) < MIN_LAUNCHES_TO_SUBMIT_TOGETHER:
        return graph.decide(lifetimes=lifetimes) if lifetimes else graph
    assignment = assign_offsets([*lifetimes.values()])
    offsets = dict(zip(lifetimes, assignment.offsets, strict=True))
    return graph.decide(lifetimes=lifetimes, offsets=offsets, arena_nbytes=assignment.nbytes, waits=waits)


class Assignment(NamedTuple):
    """The offset of each buffer, and the size of the arena, in bytes."""

    offsets: list[int]
    nbytes: int


def assign_offsets(lifetimes: Sequence[Lifetime]) -> Assignment:
    """Assign each buffer an offset in one arena. Buffers share bytes only if their lifetimes are disjoint.

    A step reads its inputs while it writes its outputs, so a buffer is freed after the outputs of its last step are
    allocated, never before.

    Examples
    --------
    Three layers: step k reads the buffer of step k - 1. The third buffer reuses the bytes of the first.

    >>> assign_offsets([Lifetime(0, 1, 400), Lifetime(1, 2, 400), Lifetime(2, 3, 400)])
    Assignment(offsets=[0, 512, 0], nbytes=1024)
    """
    arena, offsets = Arena(), [0] * len(lifetimes)
    starting, ending = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)  # step -> buffers
    for k, lifetime in enumerate(lifetimes):
        starting[lifetime.first_step].append(k)
        ending[lifetime.last_step].append(k)
    for step in sorted({*starting, *ending}):
        for k in starting[step]:
            offsets[k] = arena.alloc(lifetimes[k].nbytes)
        for k in ending[step]:
            arena.free(offsets[k], lifetimes[k].nbytes)
    return Assignment(offsets, arena.nbytes)


class Arena:
    """A best-fit allocator of offsets: `alloc` takes the smallest free block that is large enough.

    Attributes
    ----------
    nbytes : int
        The size of the arena so far. It never shrinks.
    free_blocks : dict of int to int
        Start of each free block -> its end. Neighbors are merged, so no block ends where another starts.

    Examples
    --------
    >>> arena = Arena()
    >>> a, b, c = arena.alloc(1000), arena.alloc(500), arena.alloc(2000)
    >>> arena.free(a, 1000)
    >>> arena.free(b, 500)  # merged with the block of a
    >>> arena.free_blocks
    {0: 1536}
    >>> arena.alloc(1200), arena.alloc(200), arena.nbytes
    (0, 1280, 3584)
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self.free_blocks: dict[int, int] = {}

    def alloc(self, nbytes: int) -> int:
        """Return the offset of a block of `nbytes` bytes."""
        needed = align_up(nbytes)
        fitting = [(end - start, start) for start, end in self.free_blocks.items() if end - start >= needed]
        if not fitting:
            return self._extend(needed)
        _, start = min(fitting)
        end = self.free_blocks.pop(start)
        if start + needed < end:
            self.free_blocks[start + needed] = end
        return start

    def free(self, start: int, nbytes: int) -> None:
        """Return a block to the arena: `start` is the offset that `alloc(nbytes)` returned."""
        end = start + align_up(nbytes)
        block_start = next((s for s, e in self.free_blocks.items() if e == start), start)
        self.free_blocks.pop(block_start, None)
        self.free_blocks[block_start] = self.free_blocks.pop(end, end)

    def _extend(self, needed: int) -> int:
        """Grow the arena. A free block at its end becomes the start of the new block."""
        start = next((s for s, e in self.free_blocks.items() if e == self.nbytes), self.nbytes)
        self.free_blocks.pop(start, None)
        self.nbytes = start + needed
        return start


def align_up(nbytes: int) -> int:
    """Round up to a multiple of ALIGNMENT. An empty buffer gets one unit, so that no two buffers share an offset."""
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
