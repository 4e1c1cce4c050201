"""Sum of a warp without shared memory: the lanes hand their registers down."""

import numpy as np
from numba import cuda, float32

FULL = 0xFFFFFFFF


@cuda.jit(device=True)
def warp_sum(value):
    distance = 16
    while distance > 0:
        value += cuda.shfl_down_sync(FULL, value, distance)
        distance //= 2
    return value


@cuda.jit
def total(out, a):
    i = cuda.grid(1)
    value = warp_sum(a[i] if i < a.size else float32(0))
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, value)


a = np.arange(100, dtype=np.float32)
out = np.zeros(1, np.float32)
total[2, 64](out, a)
assert out[0] == a.sum()
print("sum:", out[0])
