"""The Mandelbrot set: a thread a pixel, and a device function that counts. Complex numbers by hand."""

import numpy as np
from numba import cuda

STEPS = 20


@cuda.jit("int32(float64, float64)", device=True, inline="always")
def escape(real, imaginary):
    x = y = 0.0
    for step in range(STEPS):
        x, y = x * x - y * y + real, 2 * x * y + imaginary
        if x * x + y * y >= 4:
            return step
    return STEPS


@cuda.jit(fastmath=True)
def mandelbrot(image, left, top, size):
    column, row = cuda.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        image[row, column] = escape(left + column * size, top + row * size)


image = np.zeros((11, 22), np.uint8)
mandelbrot[(3, 2), (8, 8)](image, -2.0, -1.0, 0.125)
expected = [[escape.py_func(-2 + c / 8, -1 + r / 8) for c in range(22)] for r in range(11)]
np.testing.assert_array_equal(image, expected)
for line in image:
    print("".join(" .:-=+*#%@"[min(9, step // 2)] for step in line))
