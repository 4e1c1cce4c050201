"""Module 5: which calls may share a kernel, and a cache of kernels.

A call is a function and its arguments: tensors (`Strided`: storage, shape, strides, offset) and numbers. A kernel is made
for a call, and may serve another one if nothing in it would differ. It has in it:

- the dtype of each tensor (x.storage.dtype.str), and its number of dims
- for each dim whether the stride is 0, 1, or something else, which the kernel is told when it runs; a dim of size 1 counts
  as stride 0, since it may be repeated. No sizes
- how each two tensors lie to each other: in storages of their own, at the same place (one storage, the same shape,
  strides and offset: loaded once), or otherwise in one storage (the order of loads and stores matters). `x.storage is
  y.storage` tells
- the type of each number that is an argument (bool, int, float), not its value, which travels with the call
- the function's code, and the values with their types of what it reads from around it, and of its defaults:
  `insides(function)` gives (code, closure, defaults). 2 and 2.0 are two numbers there, so are 0.0 and -0.0
"""

from minifuse.course import Strided, todo
from minifuse.course.fusion import insides

# Task 5.4


def call_key(function, arguments):
    """A value that can be in a dict, and is equal for two calls exactly where one kernel may serve both."""
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
    code, closure, defaults = insides(function)
    return (code, repr(closure), repr(defaults), *parts)
    # end


class KernelCache:
    """Kernels by the keys of calls; at most so many, of which the one that was not asked for the longest goes first."""

    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        """The kernel of a call: what build() gave for a call with this key, or gives now. An error in it leaves nothing."""
        # begin 5.4b
        key = call_key(function, arguments)
        kernel = self.kernels.pop(key) if key in self.kernels else build()
        self.kernels[key] = kernel  # a dict keeps its order: the newest is the last
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel
        # end
