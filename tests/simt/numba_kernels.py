"""Kernels that Numba's own simulator can run. Run as a script, the module runs them there and saves the outputs."""

import math
import sys

import numpy as np
from numba import cuda, float32, int32


@cuda.jit
def stencil(out, a):
    i = cuda.grid(1)
    if 0 < i < a.size - 1:
        out[i] = (a[i - 1] + a[i] + a[i + 1]) / 3


@cuda.jit
def matmul(c, a, b):
    sa = cuda.shared.array((4, 4), float32)
    sb = cuda.shared.array((4, 4), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    s = float32(0)
    for t in range(a.shape[1] // 4):
        sa[ty, tx] = a[y, 4 * t + tx]
        sb[ty, tx] = b[4 * t + ty, x]
        cuda.syncthreads()
        for k in range(4):
            s += sa[ty, k] * sb[k, tx]
        cuda.syncthreads()
    c[y, x] = s


@cuda.jit
def histogram(counts, a):
    local = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        local[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(local, a[cuda.grid(1)], 1)
    cuda.syncthreads()
    if t < 8:
        cuda.atomic.add(counts, t, local[t])


@cuda.jit
def mandelbrot(out):
    i, j = cuda.grid(2)
    c_re, c_im = i / 4.0 - 2, j / 4.0 - 1
    x = y = 0.0
    n = 0
    while n < 20 and x * x + y * y < 4:
        x, y = x * x - y * y + c_re, 2 * x * y + c_im
        n += 1
    out[i, j] = n + math.floor(x)


def launches():
    """Yield a kernel, grid, block and arguments. The first argument is the output."""
    r = np.random.default_rng(0)
    a, b = r.random((8, 8), np.float32), r.random((8, 8), np.float32)
    yield stencil, 3, 8, (np.zeros(20), r.random(20))
    yield matmul, (2, 2), (4, 4), (np.zeros((8, 8), np.float32), a, b)
    yield histogram, 2, 16, (np.zeros(8, np.int32), r.integers(0, 8, 32))
    yield mandelbrot, (3, 2), (4, 4), (np.zeros((12, 8), np.int32),)


if __name__ == "__main__":
    found = []
    for kernel, grid, block, arguments in launches():
        kernel[grid, block](*arguments)
        found.append(arguments[0])
    np.savez(sys.argv[1], **dict(zip(("stencil", "matmul", "histogram", "mandelbrot"), found, strict=True)))
