"""Selection on a GPU: the element with a rank in the order of a row, found digit by digit, from the highest one.

A block counts the highest digits of all keys of a row. The counts tell which digit the key with the rank has, and its rank
among the keys with that digit, of which the next digits are counted. The row is read again for each digit, from a cache. Of
keys that are equal, those at the lowest positions come first, as in a stable sort.

The first elements of a row are those with smaller keys than the last one of them, and some equal to it. Each of them counts
how many are before it, which is its place. A long row is cut into chunks: its first elements are among the first ones of the
chunks, which are the row of the next launch.
"""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from collections.abc import Callable
from functools import cache
from typing import Any

from ..intrinsics.base import ALL_LANES, byte_of, cuda, device, i32, i64, u32
from ..intrinsics.warp_vote import scan_lanes, sum_lanes
from ..tile_shapes import GpuKernel
from .kernels import ADDRESSES, BITS, DIGITS, WARP, KeyFormat, line_start, make_order_key

MAX_SELECTED = 1 << 10  # first elements that a block puts in order
BINS_OF_LANE = DIGITS // WARP
BLOCKS = 2  # of a multiprocessor
LOADS = 4  # of a thread, before the first count


@device
def share_of_warp(n):
    """Return the range of a row of n elements that this warp reads."""
    warp, warps = cuda.threadIdx.x >> 5, cuda.blockDim.x >> 5
    length = ((n + warps - 1) // warps + WARP - 1) // WARP * WARP
    return min(warp * length, n), min((warp + 1) * length, n)


@device
def find_digit(bins, found, rank):
    """Store the digit of the key with a rank, given the counts of all digits, and the key's rank among those with it."""
    lane = cuda.threadIdx.x
    if lane < WARP:
        total = i32(0)
        for j in range(BINS_OF_LANE):
            total = i32(total + i32(bins[lane * BINS_OF_LANE + j]))
        start = scan_lanes(total) - total
        for j in range(BINS_OF_LANE):
            count = i32(bins[lane * BINS_OF_LANE + j])
            if start <= rank < start + count:
                found[0], found[1] = lane * BINS_OF_LANE + j, rank - start
            start += count


@device
def count_before(count, counts):
    """Return the sum of a number over all threads of the warps before this one. `counts` is shared memory for each warp."""
    lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
    count = sum_lanes(count)
    if lane == 0:
        counts[warp] = count
    cuda.syncthreads()
    total = i32(0)
    for w in range(warp):
        total = i32(total + counts[w])
    return total


@cache
def make_find_key(form: KeyFormat, is_first: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the function that computes the key of an element of a row, and the one that finds the key with a rank.

    The row consists of elements of x or, if not `is_first`, of those at chosen positions.
    """
    order_key, top, sign = make_order_key(form), form.digits - 1, 128 * form.has_sign
    integer = i64 if form.word == "i64" else i32

    @device
    def key_at(x, x_start, x_step, chosen, start, i, flips):
        position = start + i if is_first else chosen[start + i]
        return order_key(x[x_start + position * x_step], flips)

    @device
    def find_key(x, x_start, x_step, chosen, start, n, flips, bins, found, rank):
        """Return the key with a rank, and how many keys are smaller."""
        keys = cuda.local.array(LOADS, integer)
        begin, end = share_of_warp(n)
        lane, prefix, rest = cuda.threadIdx.x & 31, integer(0), i32(rank)
        for place in range(top, -1, -1):
            for i in range(cuda.threadIdx.x, DIGITS, cuda.blockDim.x):
                bins[i] = u32(0)
            cuda.syncthreads()
            for first in range(begin, end, LOADS * WARP):
                for k in range(LOADS):
                    keys[k] = key_at(x, x_start, x_step, chosen, start, min(first + k * WARP + lane, end - 1), flips)
                for k in range(LOADS):
                    is_open = place == top or keys[k] >> integer(BITS * (place + 1)) == prefix
                    if is_open and first + k * WARP + lane < end:
                        digit = byte_of(keys[k], place)
                        cuda.atomic.add(bins, digit ^ u32(sign) if place == top else digit, u32(1))
            cuda.syncthreads()
            find_digit(bins, found, rest)
            cuda.syncthreads()
            digit, rest = found[0], i32(found[1])
            prefix = integer(digit - sign) if place == top else integer(prefix * DIGITS + digit)
        return prefix, i32(rank) - rest

    return key_at, find_key


@cache
def make_select_first(form: KeyFormat, threads: int, is_first: bool, has_values: bool, has_indices: bool) -> GpuKernel:
    """Return the kernel that selects the first elements of each chunk of a row, with a block for each.

    Elements are those of a row or, if not `is_first`, those at the positions that the launch before has stored.
    """
    key_at, find_key = make_find_key(form, is_first)
    warps = threads // WARP
    integer = i64 if form.word == "i64" else i32

    def select_first(
        values, indices, x, chosen, n, length, chunks, count, flips, n1, n2,
        v_step, v0, v1, v2, i_step, i0, i1, i2, x_step, x0, x1, x2,
    ):  # fmt: skip
        bins = cuda.shared.array(DIGITS, u32)
        found = cuda.shared.array(2, i32)
        counts = cuda.shared.array(warps, i32)
        stored = cuda.shared.array(1, i32)
        selected_keys = cuda.shared.array(MAX_SELECTED, integer)
        selected = cuda.shared.array(MAX_SELECTED, i32)
        t, row, chunk = cuda.threadIdx.x, i64(cuda.blockIdx.x) // chunks, i64(cuda.blockIdx.x) % chunks
        lane, start = t & 31, chunk * length
        size, x_start = min(length, n - start), line_start(row, n1, n2, x0, x1, x2)
        row_start = start if is_first else row * n + start
        total = min(count, size)
        if t == 0:
            stored[0] = 0
        last, smaller = find_key(x, x_start, x_step, chosen, row_start, size, flips, bins, found, total - 1)
        begin, end = share_of_warp(size)
        own = i32(0)
        for i in range(begin + lane, end, WARP):
            own = i32(own + i32(key_at(x, x_start, x_step, chosen, row_start, i, flips) == last))
        place_of_equal = smaller + count_before(own, counts)
        below = (u32(1) << u32(lane)) - u32(1)
        for first in range(begin, end, WARP):
            i = first + lane
            key = key_at(x, x_start, x_step, chosen, row_start, min(i, end - 1), flips)
            is_equal, is_smaller = i < end and key == last, i < end and key < last
            lanes = u32(cuda.ballot_sync(ALL_LANES, is_equal))
            place = place_of_equal + cuda.popc(lanes & below)
            if is_smaller:
                place = cuda.atomic.add(stored, 0, i32(1))
            if is_smaller or (is_equal and place < total):
                selected_keys[place] = key
                selected[place] = start + i if is_first else chosen[row_start + i]
            place_of_equal += cuda.popc(lanes)
        cuda.syncthreads()
        v_start, i_start = line_start(row, n1, n2, v0, v1, v2), line_start(row, n1, n2, i0, i1, i2)
        for i in range(t, total, threads):
            place, position = i, selected[i]
            if i < smaller:
                place, key = 0, selected_keys[i]
                for j in range(smaller):
                    is_before = selected_keys[j] < key or (selected_keys[j] == key and selected[j] < position)
                    place += i32(is_before)
            if has_values:
                values[v_start + place * v_step] = x[x_start + position * x_step]
            if has_indices:
                indices[i_start + (chunk * count + place) * i_step] = position

    element = f"*{form.element}"
    signature = (element, "*i64", element, "*i64", *["i64"] * 7, *ADDRESSES * 3)
    constants = (*form, threads, is_first, has_values, has_indices)
    return GpuKernel("select_first", constants, select_first, signature, threads, BLOCKS)


@cache
def make_select_ranks(form: KeyFormat, threads: int, has_values: bool, has_indices: bool) -> GpuKernel:
    """Return the kernel that selects the elements of a row with some ranks, with a block for each of them."""
    key_at, find_key = make_find_key(form, True)
    warps = threads // WARP

    def select_ranks(
        values, indices, x, ranks, n, count, flips, n1, n2,
        v_step, v0, v1, v2, i_step, i0, i1, i2, x_step, x0, x1, x2, r_step, r0, r1, r2,
    ):  # fmt: skip
        bins = cuda.shared.array(DIGITS, u32)
        found = cuda.shared.array(2, i32)
        counts = cuda.shared.array(warps, i32)
        row, q, lane = i64(cuda.blockIdx.x) // count, i64(cuda.blockIdx.x) % count, cuda.threadIdx.x & 31
        x_start, r_start = line_start(row, n1, n2, x0, x1, x2), line_start(row, n1, n2, r0, r1, r2)
        rank = min(max(ranks[r_start + q * r_step], 0), n - 1)
        key, smaller = find_key(x, x_start, x_step, ranks, 0, n, flips, bins, found, rank)
        begin, end = share_of_warp(n)
        own = i32(0)
        for i in range(begin + lane, end, WARP):
            own = i32(own + i32(key_at(x, x_start, x_step, ranks, 0, i, flips) == key))
        place = smaller + count_before(own, counts)
        below = (u32(1) << u32(lane)) - u32(1)
        for first in range(begin, end, WARP):
            i = first + lane
            is_equal = i < end and key_at(x, x_start, x_step, ranks, 0, min(i, end - 1), flips) == key
            lanes = u32(cuda.ballot_sync(ALL_LANES, is_equal))
            if is_equal and place + cuda.popc(lanes & below) == rank:
                if has_values:
                    values[line_start(row, n1, n2, v0, v1, v2) + q * v_step] = x[x_start + i * x_step]
                if has_indices:
                    indices[line_start(row, n1, n2, i0, i1, i2) + q * i_step] = i
            place += cuda.popc(lanes)

    element = f"*{form.element}"
    signature = (element, "*i64", element, "*i64", *["i64"] * 5, *ADDRESSES * 4)
    constants = (*form, threads, has_values, has_indices)
    return GpuKernel("select_ranks", constants, select_ranks, signature, threads, BLOCKS)
