"""Map: one thread for each element. The first kernel that anybody writes."""

import numpy as np
from numba import cuda


@cuda.jit
def double(out, a):
    i = cuda.threadIdx.x
    out[i] = 2 * a[i]


a = np.arange(8, dtype=np.float32)
out = np.zeros_like(a)
double[1, a.size](out, a)
print("doubled:", out)
np.testing.assert_array_equal(out, 2 * a)
