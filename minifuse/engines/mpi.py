"""The MPI engine: ranks on one host or several, whose arrays an MPI library carries.

The ranks are started by `minifuse launch --engine mpi`, or by `mpiexec -n 2 python script.py`. Messages are bytes, sent
without blocking; a rank that waits for one sleeps after a millisecond, where MPI itself would poll.
"""

import sys
import traceback
from types import TracebackType
from typing import Any

import numpy as np

from ..core.errors import MissingPartError
from .base import RankGroup
from .environment import Place
from .messages import RankProgram
from .process import ProcessEngine
from .waiting import wait_until


class MPIEngine(ProcessEngine):
    """Carry arrays by an MPI library."""

    name = "mpi"

    def __init__(self, place: Place) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise MissingPartError(f'the engine mpi needs mpi4py; run: pip install "minifuse[mpi]" ({error})') from None
        self.mpi = MPI
        self.comm = MPI.COMM_WORLD.Dup()
        super().__init__(place._replace(rank=self.comm.rank, size=self.comm.size))
        self.pending: list[tuple[Any, np.ndarray]] = []
        self.is_exchanging = False
        if self.board is None:
            sys.excepthook = self.abort_after

    def send(self, to: int, data: np.ndarray) -> None:
        """Start to send an array."""
        if not self.is_exchanging:
            self.pending = [(request, kept) for request, kept in self.pending if not request.Test()]
            data = data.copy()  # the caller may write to it before it has arrived
        source = np.ascontiguousarray(data).view(np.uint8)
        self.pending.append((self.comm.Isend([source, self.mpi.BYTE], to), source))

    def recv(self, source: int, dtype: np.dtype[Any]) -> np.ndarray:
        """Wait for the next array of a rank."""
        found: list[Any] = []

        def is_there() -> bool:
            message = self.comm.Improbe(source, status=status)
            if message is not None:
                found.append(message)
            return message is not None

        status = self.mpi.Status()
        wait_until(is_there)
        out = np.empty(status.Get_count(self.mpi.BYTE), np.uint8)
        found[0].Recv([out, self.mpi.BYTE])
        return out.view(dtype)

    def exchange(self, program: RankProgram[Any], group: RankGroup, dtype: np.dtype[Any]) -> Any:
        """Run a program of this rank to its end, and until its messages have arrived: they are not copied."""
        self.is_exchanging = True
        result = super().exchange(program, group, dtype)
        self.is_exchanging = False
        self.mpi.Request.Waitall([request for request, _ in self.pending])
        self.pending.clear()
        return result

    def abort(self, reason: str) -> None:
        """Stop all ranks."""
        sys.stderr.write(f"minifuse: rank {self.rank} stops all ranks: {reason}\n")
        sys.stderr.flush()
        self.comm.Abort(1)

    def abort_after(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Show the error of this rank and stop the others, which would wait for it for ever."""
        traceback.print_exception(kind, error, trace)
        self.abort(f"{kind.__name__}: {error}")
