"""Selection on a GPU: the element with a rank in the order of a row, found bit by bit, from the highest bit to the lowest.

The key with rank r is the largest number that at most r keys are smaller than. So a block, whose threads keep the keys of a
row in registers, builds that number by bisection: it sets a bit, counts the keys that are smaller, and keeps the bit if they
are at most r. Of keys that are equal to it, those at the lowest positions come first, as in a stable sort.

The first elements of a row are those with smaller keys than the last one of them, and some equal to it. Each of them counts
how many are before it, which is its place. A row that is longer than a tile is cut into chunks: its first elements are among
the first ones of the chunks, which are the row of the next launch.
"""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from collections.abc import Callable
from functools import cache
from typing import Any

from ..intrinsics.base import ALL_LANES, cuda, device, i32, i64, u32
from ..intrinsics.warp_vote import sum_lanes
from ..tile_shapes import GpuKernel
from .kernels import ADDRESSES, WARP, KeyFormat, SortTile, line_start, make_order_key

MAX_SELECTED = 1 << 10  # first elements that a block puts in order


@cache
def make_find_key(form: KeyFormat, tile: SortTile) -> Callable[..., Any]:
    """Return the function that finds the key with a rank among those of a block."""
    items, threads, bits = tile.items, tile.threads, form.bits
    integer = i64 if form.word == "i64" else i32

    @device
    def find_key(keys, counts, rank):
        """Return the key, and how many keys are smaller. `counts` is shared memory for a number for each bit."""
        t = cuda.threadIdx.x
        for i in range(t, bits, threads):
            counts[i] = 0
        cuda.syncthreads()
        found, smaller = integer(integer(-1) << integer(bits - 1)), i32(0)
        for bit in range(bits - 1, -1, -1):
            candidate = integer(0) if bit == bits - 1 else integer(found + (integer(1) << integer(bit)))
            count = i32(0)
            for k in range(items):
                count = i32(count + i32(keys[k] < candidate))
            count = sum_lanes(count)
            if t & 31 == 0:
                cuda.atomic.add(counts, bit, count)
            cuda.syncthreads()
            if counts[bit] <= rank:
                found, smaller = candidate, i32(counts[bit])
        return integer(found), smaller

    return find_key


@cache
def make_count_equal(tile: SortTile) -> Callable[..., Any]:
    """Return the function that counts the keys with a value in the warps before this one."""
    items = tile.items

    @device
    def count_equal(keys, positions, found, counts):
        """Return the number of such keys. `counts` is shared memory for a number for each warp."""
        lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
        count = i32(0)
        for k in range(items):
            count = i32(count + i32(keys[k] == found and positions[k] >= 0))
        count = sum_lanes(count)
        if lane == 0:
            counts[warp] = count
        cuda.syncthreads()
        count = i32(0)
        for w in range(warp):
            count = i32(count + counts[w])
        return count

    return count_equal


@cache
def make_select_first(form: KeyFormat, tile: SortTile, is_first: bool, has_values: bool, has_indices: bool) -> GpuKernel:
    """Return the kernel that selects the first elements of each chunk of a row, with a block for each.

    Elements are those of a row or, if not `is_first`, those at the positions that the launch before has stored. A negative
    position has no element.
    """
    find_key, count_equal, order_key = make_find_key(form, tile), make_count_equal(tile), make_order_key(form)
    items, threads, warps, bits = tile.items, tile.threads, tile.warps, form.bits
    integer, largest = (i64, (1 << 63) - 1) if form.word == "i64" else (i32, (1 << 31) - 1)

    def select_first(
        values, indices, x, chosen, n, length, chunks, count, flips, n1, n2,
        v_step, v0, v1, v2, i_step, i0, i1, i2, x_step, x0, x1, x2,
    ):  # fmt: skip
        counts = cuda.shared.array(bits, i32)
        counts_of_warps = cuda.shared.array(warps, i32)
        stored = cuda.shared.array(1, i32)
        selected_keys = cuda.shared.array(MAX_SELECTED, integer)
        selected = cuda.shared.array(MAX_SELECTED, i32)
        keys = cuda.local.array(items, integer)
        positions = cuda.local.array(items, i32)
        t, row, chunk = cuda.threadIdx.x, i64(cuda.blockIdx.x) // chunks, i64(cuda.blockIdx.x) % chunks
        lane, warp = t & 31, t >> 5
        x_start, end = line_start(row, n1, n2, x0, x1, x2), min((chunk + 1) * length, n)
        for k in range(items):
            i = chunk * length + (warp * items + k) * WARP + lane
            positions[k] = -1 if i >= end else i32(i) if is_first else i32(chosen[row * n + i])
            key = order_key(x[x_start + max(positions[k], 0) * x_step], flips)
            keys[k] = key if positions[k] >= 0 else integer(largest)
        for i in range(t, count, threads):
            selected[i] = -1
        if t == 0:
            stored[0] = 0
        last, smaller = find_key(keys, counts, count - 1)
        equal = count_equal(keys, positions, last, counts_of_warps)
        below = (u32(1) << u32(lane)) - u32(1)
        for k in range(items):
            is_equal = keys[k] == last and positions[k] >= 0
            lanes = u32(cuda.ballot_sync(ALL_LANES, is_equal))
            place = smaller + equal + cuda.popc(lanes & below)
            if keys[k] < last:
                place = cuda.atomic.add(stored, 0, i32(1))
            if keys[k] < last or (is_equal and place < count):
                selected_keys[place] = keys[k]
                selected[place] = positions[k]
            equal += cuda.popc(lanes)
        cuda.syncthreads()
        v_start, i_start = line_start(row, n1, n2, v0, v1, v2), line_start(row, n1, n2, i0, i1, i2)
        for i in range(t, count, threads):
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
    constants = (*form, *tile, is_first, has_values, has_indices)
    return GpuKernel("select_first", constants, select_first, signature, threads, tile.blocks)


@cache
def make_select_ranks(form: KeyFormat, tile: SortTile, has_values: bool, has_indices: bool) -> GpuKernel:
    """Return the kernel that selects the elements of a row with some ranks, with a block for each row."""
    find_key, count_equal, order_key = make_find_key(form, tile), make_count_equal(tile), make_order_key(form)
    items, threads, warps, bits = tile.items, tile.threads, tile.warps, form.bits
    integer, largest = (i64, (1 << 63) - 1) if form.word == "i64" else (i32, (1 << 31) - 1)

    def select_ranks(
        values, indices, x, ranks, n, count, flips, n1, n2,
        v_step, v0, v1, v2, i_step, i0, i1, i2, x_step, x0, x1, x2, r_step, r0, r1, r2,
    ):  # fmt: skip
        counts = cuda.shared.array(bits, i32)
        counts_of_warps = cuda.shared.array(warps, i32)
        keys = cuda.local.array(items, integer)
        positions = cuda.local.array(items, i32)
        t, row = cuda.threadIdx.x, i64(cuda.blockIdx.x)
        lane, warp = t & 31, t >> 5
        x_start, r_start = line_start(row, n1, n2, x0, x1, x2), line_start(row, n1, n2, r0, r1, r2)
        v_start, i_start = line_start(row, n1, n2, v0, v1, v2), line_start(row, n1, n2, i0, i1, i2)
        for k in range(items):
            i = (warp * items + k) * WARP + lane
            positions[k] = i32(i) if i < n else i32(-1)
            key = order_key(x[x_start + min(i, n - 1) * x_step], flips)
            keys[k] = key if i < n else integer(largest)
        below = (u32(1) << u32(lane)) - u32(1)
        for q in range(count):
            rank = min(max(ranks[r_start + q * r_step], 0), n - 1)
            found, smaller = find_key(keys, counts, rank)
            equal = count_equal(keys, positions, found, counts_of_warps)
            for k in range(items):
                is_equal = keys[k] == found and positions[k] >= 0
                lanes = u32(cuda.ballot_sync(ALL_LANES, is_equal))
                if is_equal and smaller + equal + cuda.popc(lanes & below) == rank:
                    if has_values:
                        values[v_start + q * v_step] = x[x_start + positions[k] * x_step]
                    if has_indices:
                        indices[i_start + q * i_step] = positions[k]
                equal += cuda.popc(lanes)

    element = f"*{form.element}"
    signature = (element, "*i64", element, "*i64", *["i64"] * 5, *ADDRESSES * 4)
    constants = (*form, *tile, has_values, has_indices)
    return GpuKernel("select_ranks", constants, select_ranks, signature, threads, tile.blocks)
