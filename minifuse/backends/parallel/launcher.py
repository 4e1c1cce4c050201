"""Launch compiled CPU kernels: pack the arguments of a Python call, and call the driver or the kernel."""

import struct
from collections.abc import Callable, Sequence

import numpy as np

from ...core.dtypes import DType, int32
from ...ir.kernel_ir import KernelParameter
from ..base import Launcher
from ..fast_call import make_fast_run
from ..operand import check_fits
from .driver import driver


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
        self.drive, self.pack = driver(), packer(address_count, numbers)
        self.prefix, self.suffix = (np.array(words, np.int64).tobytes() for words in (header, constants))

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


def packer(address_count: int, numbers: Sequence[KernelParameter]) -> Callable[..., bytes]:
    """Return a function that packs the values of a launch, 8 bytes each: addresses, then numbers."""
    letters = "".join("d" if p.dtype.is_float else "i4x" if p.dtype is int32 else "q" for p in numbers)
    return struct.Struct(f"={address_count}q{letters}").pack


def check_numbers(values: Sequence[float], dtypes: Sequence[DType]) -> None:
    """Raise DTypeError for the first number that is out of the range of its dtype."""
    for value, dtype in zip(values, dtypes, strict=True):
        check_fits(value, dtype)
