"""Radix sort on a GPU: stable sorts by one digit of 8 bits after the other, from the lowest digit to the highest [1]_.

A sort by one digit is a count: a key goes behind all keys with smaller digits, and behind the keys before it with an equal
digit. A block ranks the keys of a tile so. Each of its warps counts in 256 bins: lanes with equal digits find each other by
votes, the lowest of them adds their number to the bin, and the rank of a lane is the bin plus the number of those below it.

A row that fits in a tile is sorted by one block in shared memory, all digits in one launch. A longer row is cut into chunks,
and each digit takes three launches: `count_digits` of each chunk, `scan_counts` of all chunks, and `move_keys`, which ranks
the keys of a chunk tile by tile and stores them where their digit continues.

Keys are integers that have the order of the elements. An integer is its own key. The bits of a float are one that is not
negative; for a negative float, all bits but the sign are flipped. NaN is the largest key, and -0.0 has the digits of 0.0.

References
----------
.. [1] D. Merrill, A. Grimshaw, High Performance and Scalable Radix Sorting: A Case Study of Implementing Dynamic Parallelism
   for GPU Computing, Parallel Processing Letters 21(2), 2011
"""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ....core.dtypes import DType
from ..codegen.dialect import storage_of
from ..intrinsics.base import ALL_LANES, byte_of, cuda, device, i16, i32, i64, u32
from ..intrinsics.warp_vote import equal_lanes, scan_lanes
from ..tile_shapes import GpuKernel

WARP = 32
BITS = 8  # of a digit
DIGITS = 1 << BITS
ADDRESSES = ("i64",) * 4  # the strides of an operand: along a row, and along three axes of rows


class KeyFormat(NamedTuple):
    """How elements become keys: the type of an element in memory, read as an integer, and the number of digits."""

    element: str
    digits: int
    is_float: bool
    has_sign: bool

    @classmethod
    def of(cls, dtype: DType, digits: int | None = None) -> "KeyFormat":
        """Return the format of a dtype. Elements of a given number of `digits` are integers that are not negative."""
        element = {4: "i32", 8: "i64"}[dtype.itemsize] if dtype.is_float else storage_of(dtype)
        has_sign = digits is None and element != "u8"
        return cls(element, digits or dtype.itemsize, dtype.is_float, has_sign)

    @property
    def word(self) -> str:
        """Return the type of a key: 32 bits, or 64."""
        return "i64" if self.element == "i64" else "i32"


class SortTile(NamedTuple):
    """The keys of a block: each lane of its warps has `items` keys. `blocks` is the minimum per multiprocessor."""

    warps: int
    items: int
    blocks: int

    @property
    def threads(self) -> int:
        """Return the number of threads of a block."""
        return WARP * self.warps

    @property
    def bins(self) -> int:
        """Return the number of bins of all warps."""
        return self.warps * DIGITS

    @property
    def size(self) -> int:
        """Return the number of keys of a tile."""
        return self.threads * self.items


@device
def line_start(row, n1, n2, s0, s1, s2):
    """Return the position of the first element of a row, given the sizes of the last two axes of rows, and their strides."""
    rest = row // n2
    return (rest // n1) * s0 + (rest % n1) * s1 + (row % n2) * s2


@device
def scan_digits(counts):
    """Replace the count of each digit by the sum of the counts of all smaller digits. The first warp does it."""
    lane, own = cuda.threadIdx.x, DIGITS // WARP
    if lane < WARP:
        total = i32(0)
        for j in range(own):
            total += i32(counts[own * lane + j])
        start = scan_lanes(total) - total
        for j in range(own):
            count = i32(counts[own * lane + j])
            counts[own * lane + j] = start
            start += count


@cache
def key_functions(form: KeyFormat) -> tuple[Callable[..., Any], ...]:
    """Return the functions that compute a digit of a key, the key of an element, and the element of a key."""
    integer, largest = (i64, (1 << 63) - 1) if form.word == "i64" else (i32, (1 << 31) - 1)
    infinity = 0x7FF << 52 if form.word == "i64" else 0xFF << 23
    is_float, top, sign = form.is_float, form.digits - 1, 128 * form.has_sign
    shift_of_sign = 63 if form.word == "i64" else 31

    @device
    def digit_of(key, place, mask):
        if is_float and key == integer(-1):  # -0.0
            key = integer(0)
        digit = byte_of(key, place) ^ mask
        return u32(digit ^ u32(sign)) if place == top else u32(digit)

    @device
    def flip(bits):
        return bits ^ ((bits >> integer(shift_of_sign)) & integer(largest)) if is_float else bits

    @device
    def key_of(bits):
        key = integer(bits)
        if is_float and (key & integer(largest)) > integer(infinity):  # NaN
            return integer(largest)
        return flip(key)

    return digit_of, key_of, flip


@cache
def make_order_key(form: KeyFormat) -> Callable[..., Any]:
    """Return the function that computes a key of an element, so that comparisons of keys order elements in a direction."""
    key_of, is_float, integer = key_functions(form)[1], form.is_float, i64 if form.word == "i64" else i32
    bits = -1 if form.has_sign else (1 << BITS * form.digits) - 1

    @device
    def order_key(element, flips):
        """Return the key of an element. `flips` is -1 in descending order, else 0. Both zeros have the same key."""
        key = key_of(element)
        if is_float and key == integer(-1):  # -0.0
            key = integer(0)
        return integer(key ^ integer(flips & bits))

    return order_key


@cache
def make_rank_keys(form: KeyFormat, tile: SortTile) -> Callable[..., None]:
    """Return the function that ranks the keys of a block by a digit."""
    digit_of, _, _ = key_functions(form)
    warps, items, threads, bin_count = tile.warps, tile.items, tile.threads, tile.bins

    @device
    def rank_keys(keys, digits, ranks, bins, begins, count, place, mask):
        """Store the rank of each key, and where each digit begins. Behind `count` keys, all digits are the largest."""
        t = cuda.threadIdx.x
        lane, warp = t & 31, t >> 5
        own = u32(warp * DIGITS)
        for i in range(t, bin_count, threads):
            bins[i] = u32(0)
        cuda.syncthreads()
        below = (u32(1) << u32(lane)) - u32(1)
        for k in range(items):
            digits[k] = digit_of(keys[k], place, mask) if (warp * items + k) * WARP + lane < count else u32(DIGITS - 1)
            ranks[k] = equal_lanes(digits[k])
        for k in range(items):
            equal, before = ranks[k], u32(bins[own + digits[k]])
            cuda.syncwarp()
            rank = u32(cuda.popc(equal & below))
            if rank == 0:
                bins[own + digits[k]] = before + u32(cuda.popc(equal))
            cuda.syncwarp()
            ranks[k] = before + rank
        cuda.syncthreads()
        for digit in range(t, DIGITS, threads):
            total = u32(0)
            for w in range(warps):
                count_of_warp = u32(bins[w * DIGITS + digit])
                bins[w * DIGITS + digit] = total
                total += count_of_warp
            begins[digit] = total
        cuda.syncthreads()
        scan_digits(begins)
        cuda.syncthreads()
        for k in range(items):
            ranks[k] += begins[digits[k]] + u32(bins[own + digits[k]])

    return rank_keys


@cache
def make_exchange(tile: SortTile) -> Callable[..., None]:
    """Return the function that moves the items of a block to their ranks, in shared memory."""
    items = tile.items

    @device
    def exchange_items(exchange, values, ranks):
        lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
        for k in range(items):
            exchange[ranks[k]] = values[k]
        cuda.syncthreads()
        for k in range(items):
            values[k] = exchange[(warp * items + k) * WARP + lane]

    return exchange_items


@cache
def make_sort_rows(form: KeyFormat, tile: SortTile, has_values: bool, has_indices: bool) -> GpuKernel:
    """Return the kernel that sorts rows that fit in a tile, with a block for each row."""
    rank_keys, (_, key_of, element_of) = make_rank_keys(form, tile), key_functions(form)
    exchange_items = make_exchange(tile)
    items, size, bin_count, places = tile.items, tile.size, tile.bins, form.digits
    integer = i64 if form.word == "i64" else i32

    def sort_rows(
        values, indices, x, n, mask, n1, n2, v_step, v0, v1, v2, i_step, i0, i1, i2, x_step, x0, x1, x2
    ):  # fmt: skip
        bins = cuda.shared.array(bin_count, i16)  # shared memory has room for the keys and these
        begins = cuda.shared.array(DIGITS, u32)
        exchange = cuda.shared.array(size, integer)
        keys = cuda.local.array(items, integer)
        order = cuda.local.array(items, i32)
        digits = cuda.local.array(items, u32)
        ranks = cuda.local.array(items, u32)
        row = i64(cuda.blockIdx.x)
        lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
        start, flips = line_start(row, n1, n2, x0, x1, x2), u32(mask)
        for k in range(items):
            i = (warp * items + k) * WARP + lane
            keys[k] = key_of(x[start + min(i, n - 1) * x_step])
            order[k] = i32(i)
        for place in range(places):
            rank_keys(keys, digits, ranks, bins, begins, n, place, flips)
            exchange_items(exchange, keys, ranks)
            if has_indices:
                cuda.syncthreads()
                exchange_items(exchange, order, ranks)
        v_start, i_start = line_start(row, n1, n2, v0, v1, v2), line_start(row, n1, n2, i0, i1, i2)
        for k in range(items):
            i = (warp * items + k) * WARP + lane
            if i < n:
                if has_values:
                    values[v_start + i * v_step] = element_of(keys[k])
                if has_indices:
                    indices[i_start + i * i_step] = order[k]

    element = f"*{form.element}"
    signature = (element, "*i64", element, *["i64"] * 4, *ADDRESSES, *ADDRESSES, *ADDRESSES)
    return GpuKernel("sort_rows", (*form, *tile, has_values, has_indices), sort_rows, signature, tile.threads, tile.blocks)


@cache
def make_count_digits(form: KeyFormat, tile: SortTile, is_first: bool) -> GpuKernel:
    """Return the kernel that counts the digits of each chunk of a row. In the first pass, elements are converted to keys."""
    digit_of, key_of, _ = key_functions(form)
    items, size, threads, warps, bin_count = tile.items, tile.size, tile.threads, tile.warps, tile.bins
    integer = i64 if form.word == "i64" else i32

    def count_digits(counts, x, n, length, chunks, place, mask, n1, n2, x_step, x0, x1, x2):
        bins = cuda.shared.array(bin_count, u32)
        keys = cuda.local.array(items, integer)
        t, row, chunk = cuda.threadIdx.x, i64(cuda.blockIdx.x) // chunks, i64(cuda.blockIdx.x) % chunks
        own = u32((t >> 5) * DIGITS)
        for i in range(t, bin_count, threads):
            bins[i] = u32(0)
        cuda.syncthreads()
        start, flips = line_start(row, n1, n2, x0, x1, x2), u32(mask)
        end = min((chunk + 1) * length, n)
        for first in range(chunk * length, end, size):
            for k in range(items):  # all loads before the first count
                bits = x[start + min(first + k * threads + t, end - 1) * x_step]
                keys[k] = key_of(bits) if is_first else integer(bits)
            for k in range(items):
                if first + k * threads + t < end:
                    cuda.atomic.add(bins, own + digit_of(keys[k], place, flips), u32(1))
        cuda.syncthreads()
        for digit in range(t, DIGITS, threads):
            total = u32(0)
            for w in range(warps):
                total += bins[w * DIGITS + digit]
            counts[(row * DIGITS + digit) * chunks + chunk] = total

    source = f"*{form.element if is_first else form.word}"
    signature = (f"*{form.word}", source, *["i64"] * 7, *ADDRESSES)
    return GpuKernel("count_digits", (*form, *tile, is_first), count_digits, signature, threads)


@cache
def make_scan_counts(word: str) -> GpuKernel:
    """Return the kernel that replaces each count by the sum of those before it, and stores the totals of all chunks."""

    def scan_counts(counts, totals, chunks):
        lane = cuda.threadIdx.x
        start = i64(cuda.blockIdx.x) * chunks
        total = i32(0)
        for first in range(0, chunks, WARP):
            chunk = first + lane
            count = i32(counts[start + chunk]) if chunk < chunks else i32(0)
            end = scan_lanes(count)
            if chunk < chunks:
                counts[start + chunk] = total + end - count
            total += cuda.shfl_sync(ALL_LANES, end, 31)
        if lane == 0:
            totals[cuda.blockIdx.x] = total

    return GpuKernel("scan_counts", (word,), scan_counts, (f"*{word}", f"*{word}", "i64"), WARP)


@cache
def make_move_keys(
    form: KeyFormat, tile: SortTile, is_first: bool, is_last: bool, has_values: bool, has_indices: bool, is_dense: bool
) -> GpuKernel:
    """Return the kernel that moves the keys of each chunk to their places by one digit.

    In the first pass, elements are converted to keys, and the index of a key is its position; in the last one, keys are
    converted back. `has_values` and `has_indices` tell what is stored. If `is_dense`, elements of a row are neighbors.
    """
    rank_keys, (digit_of, key_of, element_of) = make_rank_keys(form, tile), key_functions(form)
    items, size, threads, bin_count = tile.items, tile.size, tile.threads, tile.bins
    integer = i64 if form.word == "i64" else i32

    def move_keys(
        values, indices, x, order, counts, totals, n, length, chunks, place, mask, n1, n2,
        v_step, v0, v1, v2, i_step, i0, i1, i2, x_step, x0, x1, x2,
    ):  # fmt: skip
        bins = cuda.shared.array(bin_count, u32)
        begins = cuda.shared.array(DIGITS, u32)
        bases = cuda.shared.array(DIGITS, u32)  # where the next key with this digit is stored
        exchange = cuda.shared.array(size, integer)
        targets = cuda.local.array(items, u32)
        keys = cuda.local.array(items, integer)
        digits = cuda.local.array(items, u32)
        ranks = cuda.local.array(items, u32)
        t, row, chunk = cuda.threadIdx.x, i64(cuda.blockIdx.x) // chunks, i64(cuda.blockIdx.x) % chunks
        lane, warp, flips = t & 31, t >> 5, u32(mask)
        for digit in range(t, DIGITS, threads):
            bases[digit] = u32(totals[row * DIGITS + digit])
        cuda.syncthreads()
        scan_digits(bases)
        cuda.syncthreads()
        for digit in range(t, DIGITS, threads):
            bases[digit] += u32(counts[(row * DIGITS + digit) * chunks + chunk])
        x_start, o_start = line_start(row, n1, n2, x0, x1, x2), row * n
        v_start, i_start = line_start(row, n1, n2, v0, v1, v2), line_start(row, n1, n2, i0, i1, i2)
        if is_dense:
            x_step, v_step, i_step = 1, 1, 1
        end = min((chunk + 1) * length, n)
        for first in range(chunk * length, end, size):
            count = min(end - first, size)
            for k in range(items):
                i = min((warp * items + k) * WARP + lane, count - 1)
                bits = x[x_start + (first + i) * x_step]
                keys[k] = key_of(bits) if is_first else integer(bits)
            rank_keys(keys, digits, ranks, bins, begins, count, place, flips)
            for k in range(items):
                exchange[ranks[k]] = keys[k]
            cuda.syncthreads()
            for k in range(items):
                i = k * threads + t
                digit = digit_of(exchange[i], place, flips)
                targets[k] = bases[digit] + u32(i) - begins[digit]
                if has_values and i < count:
                    values[v_start + targets[k] * v_step] = element_of(exchange[i]) if is_last else exchange[i]
            cuda.syncthreads()
            if has_indices:
                for k in range(items):
                    i = first + min((warp * items + k) * WARP + lane, count - 1)
                    exchange[ranks[k]] = i if is_first else order[o_start + i]
                cuda.syncthreads()
                for k in range(items):
                    if k * threads + t < count:
                        indices[i_start + targets[k] * i_step] = exchange[k * threads + t]
            for digit in range(t, DIGITS, threads):
                after = begins[digit + 1] if digit < DIGITS - 1 else u32(size)
                bases[digit] += after - begins[digit]
            cuda.syncthreads()

    word, element = f"*{form.word}", f"*{form.element}"
    targets = element if is_last else word, "*i64" if is_last else word
    sources = element if is_first else word, word
    signature = (*targets, *sources, word, word, *["i64"] * 7, *ADDRESSES * 3)
    constants = (*form, *tile, is_first, is_last, has_values, has_indices, is_dense)
    return GpuKernel("move_keys", constants, move_keys, signature, threads, tile.blocks)
