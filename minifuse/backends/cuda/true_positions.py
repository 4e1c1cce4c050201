"""Positions of the true elements of a mask on a GPU: each warp counts those of its part, then each warp stores its own.

The positions are one index of the flattened mask, or a row of indices, one for each dim.

A warp stores behind all warps before it, so it needs the sum of their counts. The loads of several steps precede the votes.
"""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import DType, bool_, int32, int64
from ...core.rounding import ceil_div
from ...simt import Pointer
from .intrinsics.base import ALL_LANES, atomic_add, cuda, i32, i64, u8, u32
from .intrinsics.integers import divmod32, divmod64
from .intrinsics.warp_vote import sum_lanes
from .launch_plan import GpuLaunch
from .planned_launcher import prepare_launch
from .tile_shapes import GpuKernel

if TYPE_CHECKING:
    from ...tensors.tensor import Tensor
    from .device import CudaDevice

WARP, WARPS, STEPS = 32, 8, 16
THREADS, TILE = WARP * WARPS, WARP * STEPS
WARPS_PER_MULTIPROCESSOR = 64


def count_true(counts, total, mask, n, length):
    """Count the true elements of the part of each warp, and of all."""
    found = cuda.local.array(STEPS, u8)
    lane = cuda.threadIdx.x & 31
    warp = i64(cuda.blockIdx.x) * WARPS + (cuda.threadIdx.x >> 5)
    end = min((warp + 1) * length, n)
    count = i32(0)
    for first in range(warp * length, end, TILE):
        for k in range(STEPS):
            i = first + k * WARP + lane
            found[k] = mask[i] if i < end else u8(0)
        for k in range(STEPS):
            count += i32(found[k] != 0)
    count = sum_lanes(count)
    if lane == 0:
        counts[warp] = count
        atomic_add(total, 0, i64(count))


@cache
def make_store(is_flat: bool, is_small: bool) -> GpuKernel:
    """Return the kernel that stores the positions in a vector, or rows of indices, by divisions of 32 or 64 bits."""
    divide = divmod32 if is_small else divmod64

    def store_true(out, counts, mask, sizes, n, length, dims):
        """Store the indices of the true elements of the part of each warp."""
        sums = cuda.shared.array(WARPS, i64)
        t, first_warp = cuda.threadIdx.x, i64(cuda.blockIdx.x) * WARPS
        lane, own = t & 31, t >> 5
        start = i64(0)
        for w in range(t, first_warp, THREADS):
            start += counts[w]
        start = sum_lanes(start)
        if lane == 0:
            sums[own] = start
        cuda.syncthreads()
        start = i64(0)
        for w in range(WARPS):
            start += sums[w] + (i64(counts[first_warp + w]) if w < own else i64(0))
        end = min((first_warp + own + 1) * length, n)
        below = (u32(1) << u32(lane)) - u32(1)
        for first in range((first_warp + own) * length, end, TILE):
            found = u32(0)
            for k in range(STEPS):
                i = first + k * WARP + lane
                element = mask[min(i, end - 1)]
                if i < end and element != 0:
                    found = u32(found | u32(1 << k))
            for k in range(STEPS):
                is_found = found & u32(1 << k) != 0
                lanes = u32(cuda.ballot_sync(ALL_LANES, is_found))
                if is_found:
                    place, rest = start + cuda.popc(lanes & below), first + k * WARP + lane
                    if not is_flat:
                        place *= dims
                        for d in range(dims - 1, 0, -1):
                            rest, index = divide(rest, sizes[d])
                            out[place + d] = index
                    out[place] = rest
                start += cuda.popc(lanes)

    signature = ("*i64", "*i32", "*u8", "*i64", "i64", "i64", "i64")
    return GpuKernel("store_true", (is_flat, is_small), store_true, signature, THREADS)


COUNT = GpuKernel("count_true", (), count_true, ("*i32", "*i64", "*u8", "i64", "i64"), THREADS)


def true_positions(device: "CudaDevice", mask: "Tensor") -> "Tensor":
    """Return the row-major positions of the true elements of a contiguous mask, as int64. It waits for their number."""
    return true_indices(device, mask.reshape(mask.size)).reshape(-1)


def true_indices(device: "CudaDevice", mask: "Tensor") -> "Tensor":
    """Return a row of indices, as int64, for each true element of a contiguous mask. It waits for their number."""
    n, dims, backend = mask.size, mask.ndim, mask.meta.backend
    warps = min(ceil_div(n, TILE), WARPS_PER_MULTIPROCESSOR * device.multiprocessors)
    length = ceil_div(ceil_div(n, max(warps, 1)), TILE) * TILE
    blocks = ceil_div(ceil_div(n, max(length, 1)), WARPS)
    counts, total = mask.empty((blocks * WARPS,), int32, backend), mask.full((1,), 0, int64, backend)
    if n:
        run(device, COUNT, blocks, [counts, total, mask], n, length)
    sizes = mask.asarray_like(np.array(mask.shape)) if dims > 1 else total  # copied while the first kernel runs
    result = mask.empty((int(total.item()), dims), int64, backend)
    if result.size:
        run(device, make_store(dims == 1, n < 1 << 31), blocks, [result, counts, mask, sizes], n, length, dims)
    return result


def run(device: "CudaDevice", kernel: GpuKernel, blocks: int, tensors: "list[Tensor]", *numbers: int) -> None:
    """Launch a kernel over tensors and numbers."""
    launch = prepare_launch(device, GpuLaunch(kernel, (blocks, 1, 1), (kernel.threads, 1, 1), ()))
    pointers = [pointer_of(x) if device.is_simulated else x.address for x in tensors]
    launch(*pointers, *numbers)


def pointer_of(x: "Tensor") -> Pointer:
    """Return the memory of a tensor for the interpreter."""
    dtype: DType = x.dtype
    return Pointer(x.address, 0, x.size, "uint8" if dtype is bool_ else dtype.numpy)
