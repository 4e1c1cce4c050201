"""The engine between GPUs: NCCL reads and writes device memory, in the stream of the kernels or in one beside them.

Each process has one GPU. What is on the host, such as the id of a communicator, goes through another engine, `host`. Sums
have the same bits in each run on one machine, but not the order of ranks, so they may differ from those of hosts by
rounding.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.errors import DTypeError
from .base import DeviceVector, Engine, RankGroup, Request
from .messages import Combine
from .nccl_library import DTYPES, OPERATORS, UNIQUE_ID_NBYTES, NcclLibrary, load_nccl


class NcclEngine(Engine):
    """Carry arrays between GPUs by NCCL.

    Parameters
    ----------
    host : Engine
        The engine of the same ranks for arrays on the host.
    library : NcclLibrary, optional
        Default: nccl4py, or ctypes.
    """

    name = "nccl"
    takes_addresses = True

    def __init__(self, host: Engine, library: NcclLibrary | None = None) -> None:
        self._host, self.rank, self.size = host, host.rank, host.size
        self.library = library or load_nccl()
        self.communicators: dict[tuple[int, ...], int] = {}

    @property
    def host(self) -> Engine:
        """The engine for arrays on the host."""
        return self._host

    def announce(self, group: RankGroup, request: Request) -> None:
        """Let the host's engine compare."""
        self._host.announce(group, request)

    def connect(self, group: RankGroup) -> int:
        """Return the communicator of a group. The first call makes it, with all other ranks of the group."""
        if group.ranks not in self.communicators:
            own = self.library.unique_id() if group.rank == 0 else bytes(UNIQUE_ID_NBYTES)
            shared = np.frombuffer(own, np.uint8).copy()
            self._host.broadcast(group, shared, shared.copy(), 0)
            self.communicators[group.ranks] = self.library.init_rank(group.size, shared.tobytes(), group.rank)
        return self.communicators[group.ranks]

    @contextmanager
    def grouped(self) -> Iterator[None]:
        """Make one operation of the calls in a block."""
        self.library.group_start()
        try:
            yield
        finally:
            self.library.group_end()

    # Collectives of arrays on devices.

    def all_reduce(self, group: RankGroup, outputs: Sequence[Any], inputs: Sequence[Any], combine: Combine) -> None:
        """Combine each array over all ranks."""
        comm, op = self.connect(group), operator_code(combine)
        with self.grouped():
            for out, x in zip(outputs, inputs, strict=True):
                self.library.all_reduce(x.address, out.address, x.size, dtype_code(x), op, comm, x.stream)

    def reduce_scatter(self, group: RankGroup, out: Any, parts: Sequence[Any], combine: Combine) -> None:
        """Combine part k of all ranks on rank k: one call for equal parts, else a reduction for each."""
        comm, op = self.connect(group), operator_code(combine)
        if len({part.size for part in parts}) == 1:
            self.library.reduce_scatter(parts[0].address, out.address, out.size, dtype_code(out), op, comm, out.stream)
            return
        with self.grouped():
            for k, part in enumerate(parts):
                target = out.address if k == group.rank else part.address
                self.library.reduce(part.address, target, part.size, dtype_code(part), op, k, comm, out.stream)

    def all_gather(self, group: RankGroup, outputs: Sequence[Any], x: Any) -> None:
        """Store the array of rank k in output k: one call for equal sizes, else a broadcast for each."""
        comm = self.connect(group)
        if len({out.size for out in outputs}) == 1:
            self.library.all_gather(x.address, outputs[0].address, x.size, dtype_code(x), comm, x.stream)
            return
        with self.grouped():
            for k, out in enumerate(outputs):
                source = x.address if k == group.rank else out.address
                self.library.broadcast(source, out.address, out.size, dtype_code(out), k, comm, x.stream)

    def broadcast(self, group: RankGroup, out: Any, x: Any, source: int) -> None:
        """Store the array of one rank on all."""
        comm = self.connect(group)
        self.library.broadcast(x.address, out.address, x.size, dtype_code(x), source, comm, x.stream)

    def reduce(self, group: RankGroup, out: Any, x: Any, target: int, combine: Combine) -> None:
        """Combine the arrays of all ranks on one, and store zeros on the others."""
        comm, op = self.connect(group), operator_code(combine)
        self.library.reduce(x.address, out.address, x.size, dtype_code(x), op, target, comm, x.stream)
        if group.rank != target:
            self.clear(out)

    def clear(self, x: DeviceVector) -> None:
        """Store zeros."""
        from cuda.bindings import driver

        driver.cuMemsetD8Async(x.address, 0, x.size * x.dtype.itemsize, x.stream)

    def all_to_all(self, group: RankGroup, outputs: Sequence[Any], parts: Sequence[Any]) -> None:
        """Send part k to rank k, and store what comes from rank k."""
        comm = self.connect(group)
        with self.grouped():
            for k, (out, part) in enumerate(zip(outputs, parts, strict=True)):
                self.library.send(part.address, part.size, dtype_code(part), k, comm, part.stream)
                self.library.recv(out.address, out.size, dtype_code(out), k, comm, out.stream)

    def shift(self, group: RankGroup, out: Any, x: Any, by: int) -> None:
        """Send the array along the ring."""
        comm = self.connect(group)
        with self.grouped():
            self.library.send(x.address, x.size, dtype_code(x), (group.rank + by) % group.size, comm, x.stream)
            self.library.recv(out.address, out.size, dtype_code(out), (group.rank - by) % group.size, comm, out.stream)

    # What is on the host.

    def send(self, to: int, data: np.ndarray) -> None:
        """Send an array of the host."""
        self._host.send(to, data)

    def recv(self, source: int, dtype: np.dtype[Any]) -> np.ndarray:
        """Receive an array of the host."""
        return self._host.recv(source, dtype)

    def barrier(self, group: RankGroup) -> None:
        """Wait until the programs of all ranks are here."""
        self._host.barrier(group)

    def abort(self, reason: str) -> None:
        """Stop the other ranks."""
        for comm in self.communicators.values():
            self.library.comm_abort(comm)
        self._host.abort(reason)

    def close(self) -> None:
        """Close the engine of the host. Communicators end with the process: captured graphs may still refer to them."""
        self._host.close()


def operator_code(combine: Combine) -> int:
    """Return NCCL's number of an operator."""
    return OPERATORS[combine.__name__]


def dtype_code(x: DeviceVector) -> int:
    """Return NCCL's number of a dtype. Raise DTypeError if it has none."""
    if x.dtype.name not in DTYPES:
        raise DTypeError(f"nccl: got {x.dtype.name}, expected one of {', '.join(DTYPES)}; write x.to(mf.int32)")
    return DTYPES[x.dtype.name]
