"""The contract of an engine: what carries arrays between ranks.

A rank is one of several copies of a program: a process, or a turn of the simulated engine. An engine needs `send` and
`recv` of one array; every collective has a default made of these, by the generators in `algorithms.py`. So to add an
engine, subclass Engine, write the two methods, and pass an instance to `world.use_world`. Override a collective where the
engine has a faster one.

All arrays here are flat: 1-d, contiguous NumPy arrays of one dtype; or a `DeviceVector` each, for an engine that
`takes_addresses`, since it reads the memory of devices by itself. Sums are in the order of ranks by default, so all engines
of hosts compute the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .algorithms import ALGORITHMS
from .messages import Combine, RankProgram, Recv, Send


class RankGroup(NamedTuple):
    """Some ranks that communicate with each other: all, or those along an axis of a mesh."""

    ranks: tuple[int, ...]
    """The members, as ranks of the world."""
    rank: int
    """The position of this process among the members."""

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.ranks)


class Request(NamedTuple):
    """A collective that a rank asks for: all members of a group must ask for the same, in the same order."""

    op: str
    """The collective and its parameters, as text."""
    shapes: tuple[tuple[int, ...], ...]
    """The shapes of the arrays that must be equal on all ranks."""
    dtypes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.op} of {', '.join(f'{d} {s}' for d, s in zip(self.dtypes, self.shapes, strict=True))}"


@dataclass(frozen=True)
class DeviceVector:
    """A contiguous array in device memory, and the stream in which it is used. Slices are parts of it."""

    address: int
    size: int
    dtype: np.dtype[Any]
    stream: int

    def __getitem__(self, part: slice) -> "DeviceVector":
        start, stop, _ = part.indices(self.size)
        return replace(self, address=self.address + start * self.dtype.itemsize, size=stop - start)


class Engine:
    """Carry arrays between the ranks of a program.

    Attributes
    ----------
    name : str
    rank, size : int
        The rank of this process, and the number of ranks of the world.
    takes_addresses : bool
        Whether the collectives get device addresses, not NumPy arrays.
    algorithm : str
        The generators in `algorithms.py` that the defaults run.
    """

    name = "base"
    takes_addresses = False
    algorithm = "direct"
    rank: int
    size: int

    @property
    def host(self) -> "Engine":
        """The engine for arrays on the host: this one, unless it takes addresses."""
        return self

    def send(self, to: int, data: np.ndarray) -> None:
        """Send an array to a rank. Return before it has arrived: two ranks may send to each other, then receive."""
        raise NotImplementedError

    def recv(self, source: int, dtype: np.dtype[Any]) -> np.ndarray:
        """Wait for the next array of a rank, and return it: 1-d, of any size."""
        raise NotImplementedError

    def announce(self, group: RankGroup, request: Request) -> None:
        """Note what this rank asks for, so that others can compare. The default does nothing."""

    def work(self, seconds: float, name: str) -> None:
        """Note that this rank has computed, for traces. The default does nothing."""

    def exchange(self, program: RankProgram[Any], group: RankGroup, dtype: np.dtype[Any]) -> Any:
        """Run a program of this rank to its end, by `send` and `recv`. Its ranks are positions in the group."""
        answer: Any = None
        while True:
            try:
                wish = program.send(answer)
            except StopIteration as end:
                return end.value
            answer = None
            if isinstance(wish, Send):
                self.send(group.ranks[wish.to], wish.data)
            elif isinstance(wish, Recv):
                answer = self.recv(group.ranks[wish.source], dtype)
            else:
                self.work(wish.seconds, wish.name)

    def run(self, op: str, group: RankGroup, *inputs: Any, dtype: np.dtype[Any]) -> Any:
        """Run a collective by the generator of `algorithm`, or by the direct one where it has none."""
        generators = ALGORITHMS[op]
        program = generators.get(self.algorithm, generators["direct"])
        return self.exchange(program(group.rank, group.size, *inputs), group, dtype)

    # Collectives. Arrays are flat; `combine` is np.add, np.maximum or np.minimum.

    def all_reduce(
        self, group: RankGroup, outputs: Sequence[np.ndarray], inputs: Sequence[np.ndarray], combine: Combine
    ) -> None:
        """Combine each array over all ranks, and store it on all."""
        for out, x in zip(outputs, inputs, strict=True):
            out[...] = self.run("all_reduce", group, x, combine, dtype=x.dtype)

    def reduce_scatter(self, group: RankGroup, out: np.ndarray, parts: Sequence[np.ndarray], combine: Combine) -> None:
        """Combine part k of all ranks, and store it on rank k."""
        out[...] = self.run("reduce_scatter", group, parts, combine, dtype=out.dtype)

    def all_gather(self, group: RankGroup, outputs: Sequence[np.ndarray], x: np.ndarray) -> None:
        """Store the array of rank k in output k, on all ranks."""
        for out, part in zip(outputs, self.run("all_gather", group, x, dtype=x.dtype), strict=True):
            out[...] = part

    def broadcast(self, group: RankGroup, out: np.ndarray, x: np.ndarray, source: int) -> None:
        """Store the array of one rank on all."""
        out[...] = self.run("broadcast", group, x, source, dtype=x.dtype)

    def reduce(self, group: RankGroup, out: np.ndarray, x: np.ndarray, target: int, combine: Combine) -> None:
        """Combine the arrays of all ranks, and store the result on one; zeros on the others."""
        result = self.run("reduce", group, x, target, combine, dtype=x.dtype)
        out[...] = 0 if result is None else result

    def all_to_all(self, group: RankGroup, outputs: Sequence[np.ndarray], parts: Sequence[np.ndarray]) -> None:
        """Send part k to rank k, and store what comes from rank k in output k."""
        for out, part in zip(outputs, self.run("all_to_all", group, parts, dtype=parts[0].dtype), strict=True):
            out[...] = part

    def shift(self, group: RankGroup, out: np.ndarray, x: np.ndarray, by: int) -> None:
        """Send the array to the rank `by` positions further along the ring, and store what comes."""
        out[...] = self.run("shift", group, x, by, dtype=x.dtype)

    def barrier(self, group: RankGroup) -> None:
        """Wait until all ranks of a group are here."""
        token = np.zeros(1, np.uint8)
        self.all_reduce(group, [token], [token.copy()], np.maximum)

    def abort(self, reason: str) -> None:
        """Stop the other ranks, because this one cannot continue. The default does nothing."""

    def close(self) -> None:
        """Free what the engine holds. The default holds nothing."""
