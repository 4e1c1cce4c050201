"""Module 5: which calls may share a kernel, and a cache of kernels.

A call is a function and its arguments: tensors (`Strided`: storage, shape, strides, offset) and numbers. A kernel is built
for a call, and can be used for another call for which the same kernel would be built. It depends on:

- the dtype of each tensor (x.storage.dtype.str), and its number of dims
- for each dim whether the stride is 0, 1, or something else, which is an argument of the kernel; a dim of size 1
  counts as stride 0, since it may be broadcast. Not on sizes
- how two tensors alias: in different storages; equal (one storage, the same shape, strides and offset, with the strides
  as they are, also of dims of size 1: loaded once);
  or otherwise in one storage (the order of loads and stores matters). Test `x.storage is y.storage`
- the type of each number that is an argument (bool, int, float), not its value, which is an argument of the kernel
- the function's code, and the values and types of its closure and its defaults: `insides(function)` returns (code,
  closure, defaults), where code is a text that is equal for equal code. 2 and 2.0 are different there, and so are 0.0 and
  -0.0, also inside of a tuple; nan is one number. A function there counts by its own insides, not by its identity;
  `callable(value)` says whether a value is a function
"""

from minifuse.course import Strided, todo
from minifuse.course.fusion import insides

# Task 5.4


def call_key(function, arguments):
    """Return a hashable value that is equal for two calls if and only if one kernel can be used for both."""
    # begin 5.4a
    parts = []
    for x in arguments:
        if not isinstance(x, Strided):
            parts.append(type(x).__name__)
            continue
        classes = []
        for size, stride in zip(x.shape, x.strides):
            classes.append(0 if size == 1 else stride if stride in (0, 1) else "s")
        parts.append((x.storage.dtype.str, tuple(classes)))
    for k, x in enumerate(arguments):
        for y in arguments[k + 1 :]:
            if not (isinstance(x, Strided) and isinstance(y, Strided)) or x.storage is not y.storage:
                parts.append("apart")
            else:
                is_same = (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)
                parts.append("same" if is_same else "overlap")

    def described(value):
        """Return a text of a value: that of a function has its code, and the values that it reads."""
        if isinstance(value, tuple):
            return f"({', '.join([described(x) for x in value])})"
        return described(tuple(insides(value))) if callable(value) else repr(value)

    return (described(function), *parts)
    # end


class KernelCache:
    """A least-recently-used cache of kernels by the keys of calls, with at most `most` kernels."""

    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        """Return the kernel of a call, building it unless it is cached. If build() raises, the cache does not change."""
        # begin 5.4b
        key = call_key(function, arguments)
        kernel = self.kernels.pop(key) if key in self.kernels else build()
        self.kernels[key] = kernel  # a dict keeps its order: the newest is the last
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel
        # end
