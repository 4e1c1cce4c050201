"""Notes of kernels: indices that are out of range, in memory of the host, which kernels write and the host reads.

Each kind of check has a slot, so a call costs one lookup. The host reads the slots when it has waited for the device anyway.
"""

from collections.abc import Callable

import numpy as np

from ....ir.index_checks import IndexCheck

SLOTS = 4096  # kinds of checks; others are checked before the call


class IndexNotes:
    """The slots of a device. A slot that is 0 has no note: 0 is in the range of each check.

    Parameters
    ----------
    allocate : callable
        Returns zeros of int64 in host memory, given their number.
    advice : str
        The end of error messages.
    """

    def __init__(self, allocate: Callable[[int], np.ndarray], advice: str = "") -> None:
        self.allocate, self.advice = allocate, advice
        self.addresses = dict[IndexCheck, int]()
        self.slots: np.ndarray | None = None

    def address_of(self, check: IndexCheck) -> int | None:
        """Return the address of the slot of a check; None if there is none left."""
        address = self.addresses.get(check)
        if address is None and len(self.addresses) < SLOTS:
            if self.slots is None:
                self.slots = self.allocate(SLOTS)
            address = self.addresses[check] = self.slots.ctypes.data + self.slots.itemsize * len(self.addresses)
        return address

    def raise_first(self) -> None:
        """Raise IndexingError if there is a note, and clear all notes."""
        if self.slots is None or not self.slots[: len(self.addresses)].any():
            return
        k = int(np.flatnonzero(self.slots)[0])
        index, check = int(self.slots[k]), [*self.addresses][k]
        self.slots[:] = 0
        raise check.error(index, advice=self.advice)
