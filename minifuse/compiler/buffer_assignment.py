"""One buffer for all temporaries of a call: which bytes of it each of them has, and from when on others may have them.

A call that hands over its launches together allocates everything before the first of them. One buffer costs it one request,
and lies at the same address whenever the call comes again, so that a replay of its launches fits.
"""

ALIGNMENT = 256  # bytes: the widest load of a warp starts at one of its multiples


class Arena:
    """Bytes that are handed out and come back: the smallest gap that is large enough, at its start.

    Examples
    --------
    >>> workspace = Workspace()
    >>> a, b, c = workspace.take(1000), workspace.take(500), workspace.take(2000)
    >>> workspace.give(a, 1000)
    >>> workspace.give(b, 500)  # they are one gap now
    >>> workspace.take(1200), workspace.take(200), workspace.size
    (0, 1280, 3584)
    """

    def __init__(self) -> None:
        self.size = 0
        """Bytes that it needs."""
        self.free_blocks: dict[int, int] = {}
        """Starts of what is free, with their ends."""

    def alloc(self, nbytes: int) -> int:
        """The offset of so many bytes, in bytes."""
        needed = align_up(nbytes)
        fitting = [(end - start, start) for start, end in self.free_blocks.items() if end - start >= needed]
        if not fitting:
            return self._extend(needed)
        _, start = min(fitting)
        end = self.free_blocks.pop(start)
        if start + needed < end:
            self.free_blocks[start + needed] = end
        return start

    def _extend(self, needed: int) -> int:
        """The offset of bytes at the end, of which some may be free already."""
        start = next((start for start, end in self.free_blocks.items() if end == self.size), self.size)
        self.free_blocks.pop(start, None)
        self.size = start + needed
        return start

    def free(self, start: int, nbytes: int) -> None:
        """Let go of what `take` gave for so many bytes."""
        end = start + align_up(nbytes)
        before = next((s for s, e in self.free_blocks.items() if e == start), start)
        self.free_blocks.pop(before, None)
        self.free_blocks[before] = self.free_blocks.pop(end, end)


def align_up(nbytes: int) -> int:
    """Bytes, rounded up to where the next ones may start; at least one step, so that no two offsets are the same."""
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
