"""Sort of short rows on a GPU: a bitonic network [1]_, in which each row has some lanes of a warp, and each lane some keys.

A step of the network compares keys at a distance, and swaps them if they are in the wrong order. If both are keys of a lane,
they are in its registers; otherwise, lanes exchange them by a shuffle. Equal keys are compared by their positions, which are
distinct: so the network is stable.

References
----------
.. [1] K. E. Batcher, Sorting Networks and Their Applications, AFIPS Spring Joint Computer Conference, 1968
"""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from ....core.rounding import power_of_two
from ..compiler import kernel_from_text
from ..intrinsics.base import ALL_LANES, cuda, device, i32, i64
from ..tile_shapes import GpuKernel
from .kernels import ADDRESSES, WARP, KeyFormat, line_start, make_order_key

WARPS = 4  # of a block
MAX_SIZE = 16 * WARP  # of a row: a lane has registers for 16 keys


class NetworkTile(NamedTuple):
    """The keys of a row: `lanes` of a warp have `items` keys each; both are powers of two."""

    lanes: int
    items: int

    @classmethod
    def of(cls, n: int) -> "NetworkTile":
        """Return the tile of a row: at most 8 keys for each lane, or 16 in the longest rows, and lanes of adjacent keys.

        >>> NetworkTile.of(16), NetworkTile.of(500)
        (NetworkTile(lanes=4, items=4), NetworkTile(lanes=32, items=16))
        """
        size = power_of_two(max(n, 2))
        lanes = min(max(size // 8, min(size, 4)), WARP)
        return cls(lanes, size // lanes)

    @property
    def size(self) -> int:
        """Return the number of keys of a row."""
        return self.lanes * self.items

    @property
    def rows(self) -> int:
        """Return the number of rows of a block."""
        return WARPS * WARP // self.lanes

    def steps(self) -> Iterator[tuple[int, int]]:
        """Yield the block size and the distance of each step. Each block of keys is sorted when its steps have run.

        >>> list(NetworkTile(lanes=2, items=2).steps())
        [(2, 1), (4, 2), (4, 1)]
        """
        size = 2
        while size <= self.size:
            distance = size // 2
            while distance:
                yield size, distance
                distance //= 2
            size *= 2


@cache
def make_compare(tile: NetworkTile) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions of a step: for a distance within a lane, and for one between lanes.

    Key `item * lane + k` of a row is the lane's key k. Every other block is sorted in descending order, so that it is the
    mirror image of the block that it is merged with.
    """
    items = tile.items

    @device
    def compare_items(keys, positions, lane, size, distance):
        for k in range(items):
            if k & distance == 0:
                other = k | distance
                key, position = keys[k], positions[k]
                is_after = key > keys[other] or (key == keys[other] and position > positions[other])
                if is_after == ((lane * items + k) & size == 0):
                    keys[k], positions[k] = keys[other], positions[other]
                    keys[other], positions[other] = key, position

    @device
    def compare_lanes(keys, positions, lane, size, distance):
        for k in range(items):
            index = lane * items + k
            key = cuda.shfl_xor_sync(ALL_LANES, keys[k], distance // items)
            position = cuda.shfl_xor_sync(ALL_LANES, positions[k], distance // items)
            is_after = keys[k] > key or (keys[k] == key and positions[k] > position)
            if is_after == ((index & distance == 0) == (index & size == 0)):
                keys[k], positions[k] = key, position

    return compare_items, compare_lanes


def network_text(tile: NetworkTile) -> str:
    """Return the text of a function with the steps of the network, whose distances must be constants.

    >>> print(network_text(NetworkTile(lanes=2, items=2)))
    @device
    def kernel(keys, positions, lane):
        compare_items(keys, positions, lane, 2, 1)
        compare_lanes(keys, positions, lane, 4, 2)
        compare_items(keys, positions, lane, 4, 1)
    """
    lines = ["@device", "def kernel(keys, positions, lane):"]
    for size, distance in tile.steps():
        name = "compare_items" if distance < tile.items else "compare_lanes"
        lines.append(f"    {name}(keys, positions, lane, {size}, {distance})")
    return "\n".join(lines)


@cache
def make_sort_short_rows(form: KeyFormat, tile: NetworkTile, has_values: bool, has_indices: bool) -> GpuKernel:
    """Return the kernel that sorts short rows, several of them with each warp."""
    compare_items, compare_lanes = make_compare(tile)
    text = network_text(tile)
    sort_keys: Any = kernel_from_text(text, compare_items=compare_items, compare_lanes=compare_lanes)
    order_key, lanes, items, rows_of_block = make_order_key(form), tile.lanes, tile.items, tile.rows
    integer, largest = (i64, (1 << 63) - 1) if form.word == "i64" else (i32, (1 << 31) - 1)
    pitch = tile.size + tile.size // WARP  # keeps the lanes of a row in different banks
    total = rows_of_block * pitch

    def sort_short_rows(
        values, indices, x, n, rows, flips, n1, n2, v_step, v0, v1, v2, i_step, i0, i1, i2, x_step, x0, x1, x2
    ):  # fmt: skip
        order = cuda.shared.array(total, i32)
        keys = cuda.local.array(items, integer)
        positions = cuda.local.array(items, i32)
        t = cuda.threadIdx.x
        lane, own = t % lanes, (t // lanes) * pitch
        row = i64(cuda.blockIdx.x) * rows_of_block + t // lanes
        x_start = line_start(min(row, rows - 1), n1, n2, x0, x1, x2)
        for k in range(items):
            i = k * lanes + lane
            key = order_key(x[x_start + min(i, n - 1) * x_step], flips)
            keys[k], positions[k] = key if i < n else integer(largest), i32(i)
        sort_keys(keys, positions, lane)
        for k in range(items):
            i = lane * items + k
            order[own + i + i // WARP] = positions[k]
        cuda.syncwarp()
        if row < rows:
            v_start, i_start = line_start(row, n1, n2, v0, v1, v2), line_start(row, n1, n2, i0, i1, i2)
            for k in range(items):
                i = k * lanes + lane
                if i < n:
                    position = order[own + i + i // WARP]
                    if has_values:
                        values[v_start + i * v_step] = x[x_start + position * x_step]
                    if has_indices:
                        indices[i_start + i * i_step] = position

    element = f"*{form.element}"
    signature = (element, "*i64", element, *["i64"] * 5, *ADDRESSES * 3)
    constants = (*form, *tile, has_values, has_indices)
    return GpuKernel("sort_short_rows", constants, sort_short_rows, signature, WARPS * WARP, text=text)
