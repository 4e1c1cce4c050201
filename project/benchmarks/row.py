"""A row of the benchmark: what is compared, how its results are checked, and its targets.

A row sets up a `Contest`: players that do the same work, minifuse first. Most rows are a `formula`, one expression that is
written once for all libraries with PyTorch's functions, and again for NumPy where its functions differ. Nothing is measured
here.
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
Result = dict[str, Any]  # the JSON data of a row

US = "minifuse"
QUICK_SIZE = 256  # no dim is longer in a quick run
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}  # sums of 4,096 float32 in NumPy's order differ by up to 1e-5


@dataclass(frozen=True)
class Bench:
    """The resources that the rows of one run share: the peers, random numbers, a temporary folder."""

    peers: Mapping[str, ModuleType]
    rng: np.random.Generator
    folder: Path
    is_quick: bool = False
    pool: dict[Any, Any] = field(default_factory=dict)
    """Objects that rows share: pools of numbers, and results of other processes."""
    is_ahead: bool = False
    """True if all rows are prepared before the first one is timed, so that what they compiled must be kept."""

    def cut(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape to measure: a quick run limits long dims."""
        return tuple(min(n, QUICK_SIZE) if self.is_quick else n for n in shape)

    def normal(self, k: int, shape: Sequence[int], dtype: str) -> Any:
        """Return standard normal numbers."""
        return self.rng.standard_normal(self.cut(shape)).astype(dtype)

    def uniform(self, k: int, shape: Sequence[int], low: float, high: float, dtype: str) -> Any:
        """Return numbers between low and high."""
        return self.rng.uniform(low, high, self.cut(shape)).astype(dtype)

    def drawn(self, k: int, shape: Sequence[int], is_positive: bool = False) -> Any:
        """Return float32 numbers that many rows read, as input k: the first ones of a pool. They must not be changed."""
        size, key = int(np.prod(shape)), (k, is_positive)
        if key not in self.pool or self.pool[key].size < size:
            self.pool[key] = (self.rng.random if is_positive else self.rng.standard_normal)(size, np.float32)
        return self.pool[key][:size].reshape(shape)

    def lend(self, who: str, arrays: Sequence[Any]) -> list[Any]:
        """Return the arrays as a player's tensors, over the same memory if the library can do so."""
        if is_ours(who):
            return [mf.from_numpy(x) for x in arrays]
        if library(who) == "torch":
            return [self.module(who).from_numpy(x) for x in arrays]
        return [self.module(who).numpy.asarray(x) for x in arrays] if who == "jax" else list(arrays)

    def hand(self, who: str, arrays: Sequence[Any], gradients: bool) -> list[Any]:
        """Return copies of the arrays, as a player's tensors."""
        copies = self.lend(who, [x.copy() for x in arrays])
        if gradients:
            copies[0].requires_grad = True
        return copies

    def held(self, array: Array) -> Any:
        """Return an array that is computed from others, as an input of a row."""
        return array

    def module(self, who: str) -> Any:
        """Return the library of a player."""
        return next(module for name, module in self.peers.items() if library(name) == library(who))

    def exact(self, work: Work, arrays: Sequence[Any], part: Any = ...) -> Any:
        """Compute the work in float64 by NumPy, on the compared part of the arrays."""
        return np.asarray(work(*[to_float64(x[part]) for x in arrays]))

    def read(self, result: Any) -> Any:
        """Return a player's result as a NumPy array. Flatten and concatenate the tensors of a tuple."""
        if isinstance(result, tuple):
            return np.concatenate([self.read(x).ravel() for x in result])
        return np.asarray(result.detach().numpy() if hasattr(result, "detach") else result)

    def settle(self) -> None:
        """Prepare a block of calls; on a CPU, there is no work to wait for."""


@dataclass(frozen=True)
class Contest:
    """Players that do the same work, and the expected result.

    Attributes
    ----------
    players
        Name -> a call of the work. The first player is minifuse; the others are its peers.
    exact
        The result, computed by NumPy in float64; None if there is nothing to compare.
    dtype
        The element type that every result must have.
    tolerance
        The largest error, as computed by `run.error_of`.
    flops
        Additions and multiplications of one call, if their rate is shown.
    nbytes
        The minimum of bytes that a call moves: each input is read once, and the result is written once.
    operations
        Operators of one call, element by element, for the roofline; 0 if `operations_of` cannot count them.
    part
        The index of the part of a result that is compared; all of it by default.
    unchecked
        Players that do different work, for comparison.
    budget_s
        The time after which no further rounds start, if there are enough.
    rests
        Whether there is a pause before each player, because threads of the previous one may still use a core.
    is_clocked
        Whether a call returns the seconds that it measured itself, in another process.
    is_on_device
        Whether the clock of the GPU is used, from before the work to after it, instead of the host's.
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
    """How fast a row should be. Missing a target is reported, but is not an error."""

    words: str
    measured: Callable[[Result], float | None]  # None if a peer is missing
    bound: float
    is_upper: bool

    def judge(self, result: Result) -> Result:
        """Return the target and its result as JSON data."""
        value = self.measured(result)
        is_met = None if value is None else (value <= self.bound if self.is_upper else value >= self.bound)
        return {"words": self.words, "bound": self.bound, "value": value, "met": is_met}


@dataclass(frozen=True)
class Row:
    """A name, a group, the setup of a contest, and targets.

    Rows of one `curve` do the same work at different sizes. They are shown as one table and one picture.
    """

    name: str
    group: str
    setup: Callable[[Bench], Contest]
    targets: tuple[Target, ...] = ()
    curve: str = ""
    size: int = 0


def speed(peer: str, at_least: float) -> Target:
    """Return the target that a peer's median time is at least this many times the time of minifuse."""
    return Target(
        f"{peer} at least {at_least:.2f}x",
        lambda result: result["ratios"].get(peer, {}).get("median"),
        at_least,
        is_upper=False,
    )


def every(at_least: float) -> Target:
    """Return the target that each peer takes at least this many times as long as minifuse."""

    def measured(result: Result) -> float | None:
        return min((ratio["median"] for ratio in result["ratios"].values()), default=None)

    return Target(f"each peer at least {at_least:.2f}x", measured, at_least, is_upper=False)


def within(at_most: float, unit: str, of: str = "") -> Target:
    """Return the target that the median call takes at most this time, or this time per counted thing."""
    seconds = at_most * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]

    def measured(result: Result) -> float | None:
        median: float = result["times"][US]["median"]
        if not of:
            return median
        return median / result["counts"][of] if result["counts"].get(of) else None

    return Target(f"at most {at_most:g} {unit}" + f" for each of {of}" * bool(of), measured, seconds, is_upper=True)


def delay(peer: str, at_most_s: float) -> Target:
    """Return the target that minifuse takes at most this many seconds more than a peer."""

    def measured(result: Result) -> float | None:
        times = result["times"]
        return times[US]["median"] - times[peer]["median"] if peer in times else None

    return Target(f"at most {at_most_s:.2f} s more than {peer}", measured, at_most_s, is_upper=True)


def count(what: str, at_most: int) -> Target:
    """Return the target that a recorded number is at most this large."""
    return Target(f"at most {at_most} {what}", lambda result: result["counts"].get(what), at_most, is_upper=True)


Inputs = Callable[[Bench], list[Any]]


def normal(*shapes: tuple[int, ...], dtype: str = "float32") -> Inputs:
    """Return standard normal numbers."""
    return lambda bench: [bench.normal(k, shape, dtype) for k, shape in enumerate(shapes)]


def uniform(*shapes: tuple[int, ...], low: float = 0.0, high: float = 1.0, dtype: str = "float32") -> Inputs:
    """Return numbers between low and high."""
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
    """Return a row whose players compute one expression of the same arrays.

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
            works.setdefault("jax", jax_jit(lambda np: tensors))
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
    """Return the number of operators of a call, element by element; 0 if the call cannot be captured as one."""
    try:
        return operations_of(Plan(work, tensors))
    except MinifuseError:
        return 0


def jax_jit(make: Callable[[Any], Work]) -> Work:
    """Compile a function, which `make` builds from the NumPy module of JAX, by jax.jit; calls wait for the result."""
    made: list[Work] = []

    def work(*inputs: Any) -> Any:
        if not made:
            jax = import_module("jax")
            made.append(jax.jit(make(jax.numpy)))
        return made[0](*inputs).block_until_ready()

    return work


def to_float64(x: Any) -> Any:
    """Return floats as float64, and other arrays unchanged."""
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def is_ours(who: str) -> bool:
    """Return True if a player is minifuse, in any variant."""
    return who.startswith(US)
