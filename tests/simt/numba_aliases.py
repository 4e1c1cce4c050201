"""Kernels that import Numba's functions and types under other names."""

import numba
from numba import cuda, float32, int32, njit, types
from numba import cuda as gpu
from numba.cuda import atomic, grid, shared, syncthreads, threadIdx
from numba.cuda.random import xoroshiro128p_uniform_float32
from numba.extending import register_jitable


@cuda.jit(device=True)
def square(x):
    return x * x


@njit
def cube(x):
    return x * square_plain(x)


@register_jitable
def square_plain(x):
    return x * x


@cuda.jit
def alias(out, a):
    tile = shared.array(4, float32)
    i = threadIdx.x
    tile[i] = square(a[i]) + cube(a[i])
    syncthreads()
    other = gpu.shared.array(4, types.int32)
    other[i] = int32(3.9) + numba.uint8(257)
    gpu.syncthreads()
    out[i] = tile[3 - i] + other[3 - i] + types.float32(0.5) + cuda.float64(0)
    atomic.add(out, 0, grid(1))


@cuda.jit
def uniform(states, out):
    out[cuda.grid(1)] = xoroshiro128p_uniform_float32(states, cuda.grid(1))


@cuda.jit
def unknown(out):
    out[0] = cuda.libdevice.sin(1.0)
