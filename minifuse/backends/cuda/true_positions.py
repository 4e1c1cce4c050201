"""Positions of the true elements of a mask on a GPU: each warp counts those of its part, then each warp stores its own.

A warp stores behind all warps before it, so it needs the sum of their counts. The loads of several steps precede the votes.
"""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from typing import TYPE_CHECKING

from ...core.dtypes import DType, bool_, int32, int64
from ...core.rounding import ceil_div
from ...simt import Pointer
from .intrinsics.base import ALL_LANES, atomic_add, cuda, i32, i64, u8, u32
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


def store_true(out, counts, mask, n, length):
    """Store the positions of the true elements of the part of each warp."""
    sums = cuda.shared.array(WARPS, i64)
    found = cuda.local.array(STEPS, u8)
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
        for k in range(STEPS):
            i = first + k * WARP + lane
            found[k] = mask[i] if i < end else u8(0)
        for k in range(STEPS):
            lanes = u32(cuda.ballot_sync(ALL_LANES, found[k] != 0))
            if found[k] != 0:
                out[start + cuda.popc(lanes & below)] = first + k * WARP + lane
            start += cuda.popc(lanes)


COUNT = GpuKernel("count_true", (), count_true, ("*i32", "*i64", "*u8", "i64", "i64"), THREADS)
STORE = GpuKernel("store_true", (), store_true, ("*i64", "*i32", "*u8", "i64", "i64"), THREADS)


def true_positions(device: "CudaDevice", mask: "Tensor") -> "Tensor":
    """Return the row-major positions of the true elements of a contiguous mask, as int64. It waits for their number."""
    n, backend = mask.size, mask.meta.backend
    warps = min(ceil_div(n, TILE), WARPS_PER_MULTIPROCESSOR * device.multiprocessors)
    length = ceil_div(ceil_div(n, max(warps, 1)), TILE) * TILE
    blocks = ceil_div(ceil_div(n, max(length, 1)), WARPS)
    counts, total = mask.empty((blocks * WARPS,), int32, backend), mask.full((1,), 0, int64, backend)
    if n:
        run(device, COUNT, blocks, [counts, total, mask], n, length)
    result = mask.empty((int(total.item()),), int64, backend)
    if result.size:
        run(device, STORE, blocks, [result, counts, mask], n, length)
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
