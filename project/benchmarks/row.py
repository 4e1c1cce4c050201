"""A row of the benchmark: what is compared, how its results are checked, and how fast it should be.

A row sets up a `Contest`: players that do the same work, minifuse first. Most rows are a `formula`, one expression that
is written once for all who have PyTorch's words, and once more for NumPy where its words differ. Nothing here measures.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

import minifuse as mf
from minifuse.compiler.plan import Plan
from minifuse.core.errors import MinifuseError

from .operations import operations_of
from .peers import library
from .timer import BUDGET_S

Array = npt.NDArray[Any]
Work = Callable[..., Any]
Player = Callable[[], Any]
Result = dict[str, Any]  # what the JSON says of a row

US = "minifuse"
QUICK_SIZE = 256  # no dim is longer in a quick run
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}  # sums of 4,096 float32 in NumPy's order differ by up to 1e-5


class SkippedRowError(Exception):
    """A row cannot be measured here; says why."""


@dataclass(frozen=True)
class Bench:
    """What the rows of one run share: who takes part, random numbers, a folder that is gone afterwards."""

    peers: Mapping[str, ModuleType]
    rng: np.random.Generator
    folder: Path
    is_quick: bool = False
    pool: dict[Any, Any] = field(default_factory=dict)
    """What rows have in common: numbers of which they read the first ones, and what other processes told."""

    def cut(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape to measure: a quick run makes long dims shorter."""
        return tuple(min(n, QUICK_SIZE) if self.is_quick else n for n in shape)

    def normal(self, k: int, shape: Sequence[int], dtype: str) -> Any:
        """Standard normal numbers, as input k of a row."""
        return self.rng.standard_normal(self.cut(shape)).astype(dtype)

    def uniform(self, k: int, shape: Sequence[int], low: float, high: float, dtype: str) -> Any:
        """Numbers between low and high, as input k of a row."""
        return self.rng.uniform(low, high, self.cut(shape)).astype(dtype)

    def drawn(self, k: int, shape: Sequence[int], is_positive: bool = False) -> Any:
        """Numbers of float32 that many rows read, as input k: the first ones of a pool. Nobody may change them."""
        size, key = int(np.prod(shape)), (k, is_positive)
        if key not in self.pool or self.pool[key].size < size:
            self.pool[key] = (self.rng.random if is_positive else self.rng.standard_normal)(size, np.float32)
        return self.pool[key][:size].reshape(shape)

    def lend(self, who: str, arrays: Sequence[Any]) -> list[Any]:
        """The arrays as what a player computes with, over the same memory where the library can."""
        if is_ours(who):
            return [mf.from_numpy(x) for x in arrays]
        if library(who) == "torch":
            return [self.module(who).from_numpy(x) for x in arrays]
        return [self.module(who).numpy.asarray(x) for x in arrays] if who == "jax" else list(arrays)

    def hand(self, who: str, arrays: Sequence[Any], gradients: bool) -> list[Any]:
        """Copies of the arrays, as what a player computes with."""
        copies = self.lend(who, [x.copy() for x in arrays])
        if gradients:
            copies[0].requires_grad = True
        return copies

    def held(self, array: Array) -> Any:
        """An array that is computed from others, as an input of a row."""
        return array

    def module(self, who: str) -> Any:
        """The library of a player."""
        return next(module for name, module in self.peers.items() if library(name) == library(who))

    def exact(self, work: Work, arrays: Sequence[Any], part: Any = ...) -> Any:
        """The work in float64, by NumPy; of a part of the arrays, where that is all that is compared."""
        return np.asarray(work(*[widened(x[part]) for x in arrays]))

    def read(self, result: Any) -> Any:
        """A result, whoever made it, as what it is compared with."""
        return np.asarray(result.detach().numpy() if hasattr(result, "detach") else result)

    def settle(self) -> None:
        """What comes before each block of calls: on a processor, nothing is left to wait for."""


@dataclass(frozen=True)
class Contest:
    """Players that do the same work, and what the result must be.

    Attributes
    ----------
    players
        Who -> a call of the work. The first one is minifuse; the others are its peers.
    exact
        The result, computed by NumPy in float64; None where there is nothing to compare.
    dtype
        The element type that every result must have.
    tolerance
        The largest error, as `run.error_of` measures it.
    flops
        Additions and multiplications of one call, where their rate is worth showing.
    nbytes
        The fewest bytes that a call moves: each input is read once, and the result is written once.
    operations
        Operators of one call, element by element, where `operations_of` can count them: where it lies under the roof.
    part
        What of a result is compared: an index; all of it, if left out.
    unchecked
        Players that do other work, as a yardstick.
    budget_s
        How long rounds go on, where there are enough of them.
    rests
        Whether a pause comes before each player, since threads of the one before may still take a core.
    is_clocked
        Whether a call gives the seconds that it measured itself, in another process.
    is_on_device
        Whether the clock of the GPU counts, from before the work to after it; else that of the host.
    counts
        Numbers to record beside the times, read after the last call.
    """

    players: dict[str, Player]
    exact: Array | None = None
    dtype: str = "float32"
    tolerance: float = TOLERANCE["float32"]
    flops: int = 0
    nbytes: int = 0
    operations: int = 0
    part: Any = ...
    unchecked: Collection[str] = ()
    budget_s: float = BUDGET_S
    rests: bool = False
    is_clocked: bool = False
    is_on_device: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """How fast a row should be. It is shown as met or not met, and never an error."""

    words: str
    measured: Callable[[Result], float | None]  # None where a peer is missing
    bound: float
    is_upper: bool

    def judge(self, result: Result) -> Result:
        """What the JSON says of it."""
        value = self.measured(result)
        is_met = None if value is None else (value <= self.bound if self.is_upper else value >= self.bound)
        return {"words": self.words, "bound": self.bound, "value": value, "met": is_met}


@dataclass(frozen=True)
class Row:
    """A name, a group, a contest that is set up when its turn comes, and targets.

    Rows of one `curve` do the same work at different sizes. They are shown as one table and one picture.
    """

    name: str
    group: str
    setup: Callable[[Bench], Contest]
    targets: tuple[Target, ...] = ()
    curve: str = ""
    size: int = 0


def speed(peer: str, at_least: float) -> Target:
    """A peer is to take at least so many times as long as minifuse, in the median of the rounds."""
    return Target(
        f"{peer} at least {at_least:.2f}x",
        lambda result: result["ratios"].get(peer, {}).get("median"),
        at_least,
        is_upper=False,
    )


def every(at_least: float) -> Target:
    """Each peer, and so the fastest, is to take at least so many times as long as minifuse."""

    def measured(result: Result) -> float | None:
        return min((ratio["median"] for ratio in result["ratios"].values()), default=None)

    return Target(f"each peer at least {at_least:.2f}x", measured, at_least, is_upper=False)


def within(at_most: float, unit: str, of: str = "") -> Target:
    """A call is to take at most so long, in the median of the rounds; or so long for each of what is counted beside it."""
    seconds = at_most * {"ms": 1e-3, "us": 1e-6}[unit]

    def measured(result: Result) -> float | None:
        median: float = result["times"][US]["median"]
        if not of:
            return median
        return median / result["counts"][of] if result["counts"].get(of) else None

    return Target(f"at most {at_most:g} {unit}" + f" for each of {of}" * bool(of), measured, seconds, is_upper=True)


def delay(peer: str, at_most_s: float) -> Target:
    """minifuse is to take at most so many seconds more than a peer."""

    def measured(result: Result) -> float | None:
        times = result["times"]
        return times[US]["median"] - times[peer]["median"] if peer in times else None

    return Target(f"at most {at_most_s:.2f} s more than {peer}", measured, at_most_s, is_upper=True)


def count(what: str, at_most: int) -> Target:
    """A number that is recorded beside the times is to be at most so large."""
    return Target(f"at most {at_most} {what}", lambda result: result["counts"].get(what), at_most, is_upper=True)


Inputs = Callable[[Bench], list[Any]]


def normal(*shapes: tuple[int, ...], dtype: str = "float32") -> Inputs:
    """Standard normal numbers."""
    return lambda bench: [bench.normal(k, shape, dtype) for k, shape in enumerate(shapes)]


def uniform(*shapes: tuple[int, ...], low: float = 0.0, high: float = 1.0, dtype: str = "float32") -> Inputs:
    """Numbers between low and high: sums and logarithms of them are far from 0."""
    return lambda bench: [bench.uniform(k, shape, low, high, dtype) for k, shape in enumerate(shapes)]


def formula(
    name: str,
    group: str,
    inputs: Inputs,
    tensors: Work,
    numpy: Work | None = None,
    *,
    exact: Work | None = None,
    others: Mapping[str, Work] | None = None,
    without: Sequence[str] = (),
    gradients: bool = False,
    tolerance: float | None = None,
    flops: Callable[..., int] | None = None,
    rests: bool = False,
    targets: Sequence[Target] = (),
) -> Row:
    """A row whose players compute one expression of the same arrays.

    Parameters
    ----------
    inputs
        Makes the arrays. Every player gets copies of its own; on a GPU all read the same memory.
    tensors
        The expression, on tensors of minifuse and of torch.
    numpy
        The same on arrays of NumPy or CuPy; `tensors` itself if left out, which jax.jit then takes too.
    exact
        The same on float64 arrays, for the check; as `numpy` if left out.
    others
        More players, or other expressions for those named above.
    without
        Players that are left out.
    gradients
        Whether the first array requires a gradient, where there are gradients.
    flops
        Additions and multiplications, by the result and the arrays.
    tolerance, rests, targets
        As `Contest` and `Row` describe them.
    """

    def setup(bench: Bench) -> Contest:
        arrays = inputs(bench)
        dtype = arrays[0].dtype.name
        arrays_too = dict.fromkeys(("numpy", "cupy"), numpy or tensors)
        works = {US: tensors, "torch": tensors, **arrays_too, **(others or {})}
        if numpy is None and not gradients:
            works.setdefault("jax", jitted(lambda np: tensors))
        players: dict[str, Player] = {}
        for who, work in works.items():
            if who not in without and (is_ours(who) or who in bench.peers):
                players[who] = partial(work, *bench.hand(who, arrays, gradients))
        result = bench.exact(exact or numpy or tensors, arrays)
        work_done = flops(result, *arrays) if flops else 0
        moved = sum(x.size for x in (*arrays, result)) * arrays[0].dtype.itemsize
        counted = 0 if gradients else operations(tensors, bench.lend(US, arrays))
        return Contest(players, result, dtype, tolerance or TOLERANCE[dtype], work_done, moved, counted, rests=rests)

    return Row(name, group, setup, tuple(targets))


def operations(work: Work, tensors: Sequence[Any]) -> int:
    """Operators of a call, element by element; 0 where the call cannot be captured as one."""
    try:
        return operations_of(Plan(work, tensors))
    except MinifuseError:
        return 0


def jitted(make: Callable[[Any], Work]) -> Work:
    """A function in NumPy's words, given the module that has them, by jax.jit. It returns when its result is there."""
    made: list[Work] = []

    def work(*inputs: Any) -> Any:
        if not made:
            jax = import_module("jax")
            made.append(jax.jit(make(jax.numpy)))
        return made[0](*inputs).block_until_ready()

    return work


def widened(x: Any) -> Any:
    """Floats as float64; all else as it is."""
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def is_ours(who: str) -> bool:
    """Whether a player is minifuse, in one of its ways."""
    return who.startswith(US)
