"""Forces added up in memory that nobody set to zero."""

import numpy as np
from numba import cuda


@cuda.jit
def accelerate(force, position):
    i = cuda.grid(1)
    if i < position.size:
        for k in range(position.size):
            force[i] += position[k] - position[i]  # uninitialised: read


position = cuda.to_device(np.arange(10.0))
force = cuda.device_array(10)
accelerate[1, 16](force, position)
