"""A compiled CPU kernel with all that a launch of it passes but addresses and numbers.

What is here turns a call from Python into one of the driver, or, where one thread does the work, into one C call. It knows
no text and no layouts.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, int32
from ...ir.kernel_ir import KernelParameter
from ..fast_call import make_fast_run
from ..operand import check_fits
from .driver import driver


class CpuKernelLauncher:
    """A launch(*addresses, *numbers) of the kernel at an address, over `count` points in so many chunks."""

    def __init__(
        self,
        address: int,
        count: int,
        chunks: int,
        addresses: int,
        numbers: Sequence[KernelParameter] = (),
        constants: Sequence[int] = (),
        header: Sequence[int] = (),
    ) -> None:
        """`header` are arguments before the addresses, `constants` those behind the numbers."""
        self.address, self.count, self.chunks = address, count, chunks
        self.addresses, self.numbers, self.constants, self.header = addresses, numbers, constants, header
        self.drive, self.pack = driver(), packer(addresses, numbers)
        self.before, self.behind = (np.array(words, np.int64).tobytes() for words in (header, constants))

    def __call__(self, *values: Any) -> None:
        """Launch, on one thread or on several."""
        try:
            self.drive(self.address, self.count, self.chunks, self.before + self.pack(*values) + self.behind)
        except struct.error:
            check_numbers(values[self.addresses :], [p.dtype for p in self.numbers])
            raise

    def direct(self) -> Callable[..., Any]:
        """The same by the shortest way, where one thread does it and no number must be checked."""
        if self.chunks > 1 or any(p.dtype is int32 for p in self.numbers):
            return self
        kinds = ["i64"] * self.addresses + ["f64" if p.dtype.is_float else "i64" for p in self.numbers]
        return make_fast_run(self.address, self.count, kinds, self.constants, self, self.header)


def packer(addresses: int, numbers: Sequence[KernelParameter]) -> Callable[..., bytes]:
    """What packs the values of a launch, 8 bytes each: addresses, then numbers."""
    letters = "".join("d" if p.dtype.is_float else "i4x" if p.dtype is int32 else "q" for p in numbers)
    return struct.Struct(f"={addresses}q{letters}").pack


def check_numbers(values: Sequence[Any], dtypes: Sequence[DType]) -> None:
    """Raise for the first number that its element type does not hold."""
    for value, dtype in zip(values, dtypes, strict=True):
        check_fits(value, dtype)
