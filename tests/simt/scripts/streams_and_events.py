"""Two halves of an array in two streams, pinned memory to copy from, and events around the work."""

import numpy as np
from numba import cuda


@cuda.jit
def square(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= a[i]


device = cuda.get_current_device()
print(f"on {device.name}, {device.MULTIPROCESSOR_COUNT} multiprocessors, warps of {device.WARP_SIZE}")

host = cuda.pinned_array(64, np.float32)
host[:] = np.arange(64)
result = np.empty_like(host)
begin, end = cuda.event(), cuda.event()
streams = [cuda.stream(), cuda.stream()]

begin.record()
for half, stream in zip((slice(0, 32), slice(32, 64)), streams, strict=True):
    with stream.auto_synchronize(), cuda.defer_cleanup():
        part = cuda.to_device(host[half], stream=stream)
        square[1, 32, stream](part)
        part.copy_to_host(result[half], stream=stream)
end.record()
end.synchronize()
cuda.synchronize()
assert begin.elapsed_time(end) > 0
np.testing.assert_array_equal(result, np.arange(64, dtype=np.float32) ** 2)

mapped = cuda.mapped_array(4)
mapped[:] = 3
square[1, 4](mapped)
assert mapped.sum() == 36
print("last square:", result[-1])
