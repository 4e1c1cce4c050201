"""Map with the number of blocks rounded down: the last 100 - 3 * 32 elements have no thread."""

import numpy as np
from numba import cuda


@cuda.jit
def double(out, a):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]


a = cuda.to_device(np.arange(100.0))
out = cuda.device_array(100)  # uninitialised: allocation
double[100 // 32, 32](out, a)
print("first:", out[0])
host = out.copy_to_host()  # uninitialised: read
