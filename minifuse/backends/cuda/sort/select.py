"""Selection on a GPU: the element with a rank in the order of a row, found digit by digit, from the highest one.

A block, whose threads keep the keys of a row in registers, counts the highest digits of all keys. The counts tell which
digit the key with the rank has, and its rank among the keys with that digit, of which the next digits are counted. Of keys
that are equal in all digits, those at the lowest positions come first, as in a stable sort.

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
from .kernels import ADDRESSES, DIGITS, WARP, KeyFormat, SortTile, line_start, make_order_key

MAX_SELECTED = 1 << 8  # first elements that a block puts in order faster than it sorts a row
BINS_OF_LANE = DIGITS // WARP


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
def count_before(bits, counts):
    """Return the number of bits that are set in the warps before this one. `counts` is shared memory for each warp."""
    lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
    count = sum_lanes(i32(cuda.popc(bits)))
    if lane == 0:
        counts[warp] = count
    cuda.syncthreads()
    total = i32(0)
    for w in range(warp):
        total = i32(total + counts[w])
    return total


@cache
def make_find_rank(form: KeyFormat, tile: SortTile) -> Callable[..., Any]:
    """Return the function that finds the keys with a rank among those of a block."""
    items, threads, top, sign = tile.items, tile.threads, form.digits - 1, 128 * form.has_sign

    @device
    def digit_of(key, place):
        return byte_of(key, place) ^ u32(sign) if place == top else byte_of(key, place)

    @device
    def find_rank(keys, valid, bins, found, rank):
        """Return which keys of this thread are equal to the one with the rank, which are smaller, and how many are in all.

        Bit k of a number stands for key k. Only `valid` keys count.
        """
        equal, smaller, rest = valid, u32(0), i32(rank)
        for place in range(top, -1, -1):
            for i in range(cuda.threadIdx.x, DIGITS, threads):
                bins[i] = u32(0)
            cuda.syncthreads()
            for k in range(items):
                if equal & u32(1 << k):
                    cuda.atomic.add(bins, digit_of(keys[k], place), u32(1))
            cuda.syncthreads()
            find_digit(bins, found, rest)
            cuda.syncthreads()
            digit, rest = u32(found[0]), i32(found[1])
            for k in range(items):
                own = digit_of(keys[k], place)
                if own < digit:
                    smaller = u32(smaller | (equal & u32(1 << k)))
                if own != digit:
                    equal = u32(equal & u32(~(1 << k)))
        return equal, smaller, i32(rank) - rest

    return find_rank


@cache
def make_select_first(form: KeyFormat, tile: SortTile, is_first: bool, has_values: bool, has_indices: bool) -> GpuKernel:
    """Return the kernel that selects the first elements of each chunk of a row, with a block for each.

    Elements are those of a row or, if not `is_first`, those at the positions that the launch before has stored.
    """
    find_rank, order_key = make_find_rank(form, tile), make_order_key(form)
    items, threads, warps = tile.items, tile.threads, tile.warps
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
        keys = cuda.local.array(items, integer)
        t, row, chunk = cuda.threadIdx.x, i64(cuda.blockIdx.x) // chunks, i64(cuda.blockIdx.x) % chunks
        lane, warp, start = t & 31, t >> 5, chunk * length
        size, x_start = min(length, n - start), line_start(row, n1, n2, x0, x1, x2)
        total, valid = min(count, size), u32(0)
        for k in range(items):
            i = (warp * items + k) * WARP + lane
            position = start + min(i, size - 1)
            if not is_first:
                position = chosen[row * n + position]
            keys[k] = order_key(x[x_start + position * x_step], flips)
            if i < size:
                valid = u32(valid | u32(1 << k))
        if t == 0:
            stored[0] = 0
        equal, smaller, before = find_rank(keys, valid, bins, found, total - 1)
        place_of_equal = before + count_before(equal, counts)
        below = (u32(1) << u32(lane)) - u32(1)
        for k in range(items):
            is_equal, is_smaller = equal & u32(1 << k) != 0, smaller & u32(1 << k) != 0
            lanes = u32(cuda.ballot_sync(ALL_LANES, is_equal))
            place = place_of_equal + cuda.popc(lanes & below)
            if is_smaller:
                place = cuda.atomic.add(stored, 0, i32(1))
            if is_smaller or (is_equal and place < total):
                position = start + (warp * items + k) * WARP + lane
                selected_keys[place] = keys[k]
                selected[place] = position if is_first else chosen[row * n + position]
            place_of_equal += cuda.popc(lanes)
        cuda.syncthreads()
        v_start, i_start = line_start(row, n1, n2, v0, v1, v2), line_start(row, n1, n2, i0, i1, i2)
        for i in range(t, total, threads):
            place, position = i, selected[i]
            if i < before:
                place, key = 0, selected_keys[i]
                for j in range(before):
                    is_before = selected_keys[j] < key or (selected_keys[j] == key and selected[j] < position)
                    place += i32(is_before)
            if has_values:
                values[v_start + place * v_step] = x[x_start + position * x_step]
            if has_indices:
                indices[i_start + (chunk * count + place) * i_step] = position

    element = f"*{form.element}"
    signature = (element, "*i64", element, "*i64", *["i64"] * 7, *ADDRESSES * 3)
    constants = (*form, *tile, is_first, has_values, has_indices)
    return GpuKernel("select_first", constants, select_first, signature, threads, tile.blocks)


@cache
def make_select_ranks(form: KeyFormat, tile: SortTile, has_values: bool, has_indices: bool) -> GpuKernel:
    """Return the kernel that selects the elements of a row with some ranks, with a block for each row."""
    find_rank, order_key = make_find_rank(form, tile), make_order_key(form)
    items, threads, warps = tile.items, tile.threads, tile.warps
    integer = i64 if form.word == "i64" else i32

    def select_ranks(
        values, indices, x, ranks, n, count, flips, n1, n2,
        v_step, v0, v1, v2, i_step, i0, i1, i2, x_step, x0, x1, x2, r_step, r0, r1, r2,
    ):  # fmt: skip
        bins = cuda.shared.array(DIGITS, u32)
        found = cuda.shared.array(2, i32)
        counts = cuda.shared.array(warps, i32)
        keys = cuda.local.array(items, integer)
        t, row, valid = cuda.threadIdx.x, i64(cuda.blockIdx.x), u32(0)
        lane, warp = t & 31, t >> 5
        x_start, r_start = line_start(row, n1, n2, x0, x1, x2), line_start(row, n1, n2, r0, r1, r2)
        for k in range(items):
            i = (warp * items + k) * WARP + lane
            keys[k] = order_key(x[x_start + min(i, n - 1) * x_step], flips)
            if i < n:
                valid = u32(valid | u32(1 << k))
        below = (u32(1) << u32(lane)) - u32(1)
        for q in range(count):
            rank = i32(min(max(ranks[r_start + q * r_step], 0), n - 1))
            equal, _, before = find_rank(keys, valid, bins, found, rank)
            place = before + count_before(equal, counts)
            for k in range(items):
                is_equal = equal & u32(1 << k) != 0
                lanes = u32(cuda.ballot_sync(ALL_LANES, is_equal))
                if is_equal and place + cuda.popc(lanes & below) == rank:
                    i = (warp * items + k) * WARP + lane
                    if has_values:
                        values[line_start(row, n1, n2, v0, v1, v2) + q * v_step] = x[x_start + i * x_step]
                    if has_indices:
                        indices[line_start(row, n1, n2, i0, i1, i2) + q * i_step] = i
                place += cuda.popc(lanes)

    element = f"*{form.element}"
    signature = (element, "*i64", element, "*i64", *["i64"] * 5, *ADDRESSES * 4)
    constants = (*form, *tile, has_values, has_indices)
    return GpuKernel("select_ranks", constants, select_ranks, signature, threads, tile.blocks)
