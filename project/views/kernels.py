"""Small kernels for teaching, as ordinary functions, which the interpreter runs unchanged; and an expression."""

from typing import Any

import numpy as np

from minifuse.simt import cuda


def scale(out: Any, a: Any) -> None:
    """A thread for each element; the last block has more threads than are needed."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < out.size:
        out[i] = 2 * a[i]


def scale_unguarded(out: Any, a: Any) -> None:
    """The same without its guard: threads past the end read and write what is not theirs."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    out[i] = 2 * a[i]


def scale_in_strides(out: Any, a: Any) -> None:
    """Half as many threads as elements: each comes back, a whole grid further on."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    while i < out.size:
        out[i] = 2 * a[i]
        i += cuda.gridDim.x * cuda.blockDim.x


def scale_by_turns(out: Any, a: Any) -> None:
    """Neighbours do different things, so the lanes of a warp take turns."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < out.size:
        if i % 2 == 0:
            out[i] = 2 * a[i]
        else:
            out[i] = -a[i]


def scale_2d(out: Any, a: Any) -> None:
    """A thread for each element of a matrix; x goes along its rows."""
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = 2 * a[row, col]


def reverse(out: Any, a: Any) -> None:
    """Each block turns its part around in shared memory, behind a barrier."""
    s = cuda.shared.array(128, np.float32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    n = min(cuda.blockDim.x, out.size - i + t)
    if t < n:
        s[t] = a[i]
    cuda.syncthreads()
    if t < n:
        out[out.size - i + 2 * t - n] = s[n - 1 - t]


def scan(out: Any, a: Any) -> None:
    """A running sum: in each round, a thread adds what lies 1, 2, 4, ... before its own element."""
    s = cuda.shared.array(128, np.float32)
    t = cuda.threadIdx.x
    s[t] = a[t]
    distance = 1
    while distance < cuda.blockDim.x:
        cuda.syncthreads()
        before = s[t - distance] if t >= distance else 0
        cuda.syncthreads()
        s[t] += before
        distance *= 2
    out[t] = s[t]


def multiply_add(x: Any, y: Any) -> Any:
    """Of tensors, not of elements: the library makes a kernel of it."""
    return x * y + 1
