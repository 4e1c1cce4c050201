"""Launch compiled CPU kernels: pack the arguments of a Python call, and call the driver or the kernel."""

import struct
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from ...core.dtypes import DType, int32
from ...ir.kernel_ir import KernelParameter
from ..base import Launcher
from ..fast_call import make_fast_run
from ..operand import check_fits
from .driver import Drive, driver


class CpuKernelLauncher:
    """A launch(*addresses, *numbers) of a compiled kernel, whose first axis of size `count` is split into chunks."""

    def __init__(
        self,
        kernel_address: int,
        count: int,
        chunks: int,
        address_count: int,
        numbers: Sequence[KernelParameter] = (),
        constants: Sequence[int] = (),
        header: Sequence[int] = (),
    ) -> None:
        """Bind constant arguments: `header` precedes the addresses, `constants` follow the numbers."""
        self.kernel_address, self.count, self.chunks = kernel_address, count, chunks
        self.address_count, self.numbers, self.constants, self.header = address_count, numbers, constants, header
        self.prefix, self.suffix = np.array(header, np.int64).tobytes(), np.array(constants, np.int64).tobytes()

    @cached_property
    def drive(self) -> Drive:
        """The driver. Few launches of small arrays need it, and linking it takes 8 ms."""
        return driver()

    @cached_property
    def pack(self) -> Callable[..., bytes]:
        """The function that packs the values of a launch, 8 bytes each: addresses, then numbers."""
        letters = "".join("d" if p.dtype.is_float else "i4x" if p.dtype is int32 else "q" for p in self.numbers)
        return struct.Struct(f"={self.address_count}q{letters}").pack

    def __call__(self, *values: float) -> None:
        """Launch the kernel on one thread or on several."""
        try:
            self.drive(self.kernel_address, self.count, self.chunks, self.prefix + self.pack(*values) + self.suffix)
        except struct.error:
            check_numbers(values[self.address_count :], [p.dtype for p in self.numbers])
            raise

    def fast_entry(self) -> Launcher:
        """Return a faster function for this launch if it runs on one thread and no number needs a check; else self."""
        if self.chunks > 1 or any(p.dtype is int32 for p in self.numbers):
            return self
        kinds = ["i64"] * self.address_count + ["f64" if p.dtype.is_float else "i64" for p in self.numbers]
        return make_fast_run(self.kernel_address, self.count, kinds, self.constants, self, self.header)


def check_numbers(values: Sequence[float], dtypes: Sequence[DType]) -> None:
    """Raise DTypeError for the first number that is out of the range of its dtype."""
    for value, dtype in zip(values, dtypes, strict=True):
        check_fits(value, dtype)
