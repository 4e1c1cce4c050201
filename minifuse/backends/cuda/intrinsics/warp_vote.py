"""Votes, sums and scans of the lanes of a warp, for blocked segment sums, sorts and selections."""

from typing import Any

import numpy as np

from ....simt import Array, cuda
from .base import ALL_LANES, cast_like, device, i64, intrinsic


@intrinsic("base_llvm.equal_lanes")
def equal_lanes(byte: int) -> np.uint32:
    """Return the lanes of the warp that have the same byte as this one, as bits. All lanes must call it."""
    return np.uint32(cuda.match_any_sync(ALL_LANES, byte))


@device
def lanes_where(condition: bool) -> np.signedinteger:
    """Return the lanes of the warp for which a condition is true, as bits of an int64. All lanes must call it."""
    return i64(cuda.ballot_sync(ALL_LANES, condition)) & ALL_LANES


@device
def sum_lanes(x: Any) -> Any:
    """Return the sum of an integer over the lanes of the warp, in each lane and of its type. All lanes must call it."""
    for step in (16, 8, 4, 2, 1):
        x = cast_like(x, x + cuda.shfl_xor_sync(ALL_LANES, x, step))
    return x


@device
def scan_lanes(x: Any) -> Any:
    """Return the sum of an integer over this lane and those below it, of its type. All lanes must call it."""
    for step in (1, 2, 4, 8, 16):
        before = cuda.shfl_up_sync(ALL_LANES, x, step)
        if cuda.threadIdx.x & 31 >= step:
            x = cast_like(x, x + before)
    return x


@device
def note_own(notes: Array, start: int, count: int, place: int, end: int, row: int, rows: int) -> int:
    """Note which lanes of the warp have a key in a block of `rows` rows, and return the new number of notes.

    A lane's key is at index `place` + its lane number, which must be less than `end`, and belongs to row `row` of the block.
    New notes start at notes[start + count].
    """
    lane = cuda.threadIdx.x & 31
    is_match = place + lane < end and 0 <= row < rows
    matches = lanes_where(is_match)
    if is_match:
        notes[start + count + cuda.popc(matches & ((1 << lane) - 1))] = (place + lane) * rows + row
    return count + cuda.popc(matches)


@device
def sort_notes(notes: Array, room: int, counts: Array, begins: Array, places: Array, rows: int) -> None:
    """Sort the notes of all warps of a block by row, so that row r owns places[begins[r]] ... places[begins[r + 1] - 1].

    Warp w has counts[w] notes, which start at notes[room * w] and keep their order. Each warp sorts for its own rows.
    """
    warp, warps, lane = cuda.threadIdx.x >> 5, cuda.blockDim.x >> 5, cuda.threadIdx.x & 31
    cuda.syncthreads()
    for row in range(warp, rows, warps):
        count = i64(0)
        for w in range(warps):
            for first in range(0, counts[w], 32):
                is_match = first + lane < counts[w] and notes[room * w + first + lane] % rows == row
                count += cuda.popc(lanes_where(is_match))
        if lane == 0:
            begins[row + 1] = count
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        begins[0] = 0
        for row in range(rows):
            begins[row + 1] += begins[row]
    cuda.syncthreads()
    for row in range(warp, rows, warps):
        next_place = begins[row]
        for w in range(warps):
            for first in range(0, counts[w], 32):
                note = room * w + first + lane
                is_match = first + lane < counts[w] and notes[note] % rows == row
                matches = lanes_where(is_match)
                if is_match:
                    places[next_place + cuda.popc(matches & ((1 << lane) - 1))] = notes[note] // rows
                next_place += cuda.popc(matches)
    cuda.syncthreads()


DEVICE_FUNCTIONS: dict[str, object] = {"lanes_where": lanes_where, "note_own": note_own, "sort_notes": sort_notes}
