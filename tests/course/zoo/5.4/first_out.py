"""the kernel that was built first goes first"""


class KernelCache:
    """Kernels by the keys of calls; at most so many, of which the one that was not asked for the longest goes first."""

    def __init__(self, most):
        self.most = most
        self.kernels = {}

    def kernel(self, function, arguments, build):
        """The kernel of a call: what build() gave for a call with this key, or gives now. An error in it leaves nothing."""
        key = call_key(function, arguments)
        kernel = self.kernels[key] if key in self.kernels else build()
        self.kernels[key] = kernel
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel
