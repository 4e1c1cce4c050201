"""Heat spreads along a rod: many launches, each from one array into the other, which then change places."""

import numpy as np
from numba import cuda


@cuda.jit
def step(new, old, rate):
    i = cuda.grid(1)
    if 0 < i < old.size - 1:
        new[i] = old[i] + rate * (old[i - 1] - 2 * old[i] + old[i + 1])


rod = np.zeros(48)
rod[0], rod[-1] = 100, 50
old, new = cuda.to_device(rod), cuda.to_device(rod)
for _ in range(20):
    step[2, 24](new, old, 0.4)
    old, new = new, old

expected = rod.copy()
for _ in range(20):
    expected[1:-1] += 0.4 * (expected[:-2] - 2 * expected[1:-1] + expected[2:])
np.testing.assert_allclose(old.copy_to_host(), expected)
print("temperatures near the ends:", expected[[1, -2]].round(2))
