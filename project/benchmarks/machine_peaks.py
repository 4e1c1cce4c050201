"""Peak rates of the machine, measured in the same run: bytes of a copy, and arithmetic in registers.

The copy is that of `minifuse.inspect.roofline`. The arithmetic is a loop over registers without memory accesses, with twelve
vectors per thread on a processor, enough to hide the latency of an instruction, and eight numbers per thread on a GPU.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from minifuse.backends.registry import get_backend
from minifuse.inspect.roofline import machine_limits

MULTIPLIED, MULTIPLIERS = 3, 4  # vectors: their products are added to twelve sums
ROUNDS = 1 << 20
REPEATS = 5  # the fastest counts
BLOCKS, THREADS, CHAINS, UNROLLED, GPU_ROUNDS = 4096, 256, 8, 16, 256  # on a GPU

Roofs = dict[str, float]


def measure_peaks(is_on_gpu: bool) -> Roofs:
    """Measure GB/s of a copy, reads plus writes, and GFLOP/s of float32."""
    backend: Any = get_backend("cuda" if is_on_gpu else "parallel")
    if is_on_gpu and backend.device.is_simulated:
        return {}
    gflops = measure_gpu(backend.device) if is_on_gpu else measure_processor()
    return {"copy_gb_per_s": machine_limits(backend).gbytes_per_s, "fma_gflop_per_s": gflops}


def measure_processor() -> float:
    """Measure GFLOP/s of all threads."""
    from numba import njit, types

    from minifuse.backends.parallel import driver
    from minifuse.backends.parallel.micro_kernel import pointer
    from minifuse.backends.parallel.vector_emitter import VectorEmitter, const_i64, emitted_function

    lanes = list[int]()

    @emitted_function
    def multiply_add(v: VectorEmitter, numbers: Any, rounds: Any) -> None:
        """Multiply vectors and add the products to sums in registers; each round does one of each per vector."""
        lanes[:] = [v.lanes]
        vectors = [v.load(v.builder.gep(numbers, [const_i64(k * v.lanes)])) for k in range(MULTIPLIED + MULTIPLIERS)]
        xs, ys = vectors[:MULTIPLIED], vectors[MULTIPLIED:]
        zeros = [v.zeros] * (MULTIPLIED * MULTIPLIERS)
        _, totals = v.loop(const_i64(0), rounds, const_i64(1), zeros, lambda k, sums: v.add_products(sums, xs, ys))
        for k, total in enumerate(totals):
            v.store(total, v.builder.gep(numbers, [const_i64(k * v.lanes)]))

    @njit("void(int64, int64)", nogil=True)
    def kernel(address: int, rounds: int) -> None:
        multiply_add(pointer(address, types.float32), rounds)

    memory = [np.zeros(4096, np.float32) for _ in range(driver.THREADS)]
    with ThreadPoolExecutor(driver.THREADS) as pool:

        def seconds() -> float:
            start = time.perf_counter()
            list(pool.map(lambda x: kernel(x.ctypes.data, ROUNDS), memory))
            return time.perf_counter() - start

        fastest = min(seconds() for _ in range(REPEATS + 1))
    return 2 * MULTIPLIED * MULTIPLIERS * lanes[0] * ROUNDS * driver.THREADS / fastest / 1e9


def multiply_add_kernel() -> Any:
    """Run eight independent chains of multiply-adds per thread, 16 in each round.

    The compiler writes the inner loop out, so that counting takes no time to speak of.
    """
    from numba import cuda

    @cuda.jit
    def kernel(out, x, y, rounds):  # type: ignore[no-untyped-def]
        a, b, c, d = x, x + y, x - y, y
        e, f, g, h = x * y, -x, -y, y + y
        for _ in range(rounds):
            for _ in range(UNROLLED):
                a, b, c, d = a * x + y, b * x + y, c * x + y, d * x + y
                e, f, g, h = e * x + y, f * x + y, g * x + y, h * x + y
        out[cuda.grid(1)] = a + b + c + d + e + f + g + h

    return kernel


def measure_gpu(device: Any) -> float:
    """Measure GFLOP/s of the whole device."""
    from numba import cuda

    kernel, out = multiply_add_kernel(), cuda.device_array(BLOCKS * THREADS, np.float32)

    def seconds() -> float:
        device.synchronize()
        start = time.perf_counter()
        kernel[BLOCKS, THREADS](out, np.float32(0.5), np.float32(1), GPU_ROUNDS)
        cuda.synchronize()
        return time.perf_counter() - start

    fastest = min(seconds() for _ in range(REPEATS + 1))
    return 2 * CHAINS * UNROLLED * GPU_ROUNDS * BLOCKS * THREADS / fastest / 1e9
