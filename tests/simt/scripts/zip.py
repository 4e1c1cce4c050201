"""Zip: two arrays in, one out, kept on the device between two launches."""

import numpy as np
from numba import cuda


@cuda.jit("void(float64[:], float64[:], float64[:])")
def add(out, a, b):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


a, b = np.arange(100.0), np.arange(100.0)[::-1].copy()
d_a, d_b = cuda.to_device(a), cuda.to_device(b)
d_out = cuda.device_array_like(a)

add.forall(a.size)(d_out, d_a, d_b)
add.forall(a.size, tpb=32)(d_out, d_out, d_a)  # in place: each thread reads what it then writes

np.testing.assert_array_equal(d_out.copy_to_host(), a + b + a)
print("every sum is", d_out[0], "plus its place")
