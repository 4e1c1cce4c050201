"""The race: the time of an operation at all sizes, on each backend and in NumPy, measured now.

A race on a page takes a second: it shows the shape of the curves, and cannot show differences of a few percent. Reliable
numbers are in the saved results, which took minutes each and contain device and date.
"""

import datetime
import inspect
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from shlex import quote
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

import minifuse as mf
from minifuse.backends.registry import get_backend
from minifuse.core.errors import MinifuseError
from minifuse.inspect.roofline import MachineLimits, machine_limits

from ..benchmarks import machine
from ..benchmarks.timer import in_turn, spread, time_block
from .cited_facts import Line

BUDGET_S = 0.8  # seconds of a race, without compiling
BLOCK_S = 5e-4  # seconds: calls are repeated until a block takes this long
ROUNDS = 7
NUMPY = "NumPy"
TOLERANCE = 1e-4  # of float32 results, since sums are taken in another order
COLUMNS_OF_ROWS = 256  # elements per row of softmax

Array = npt.NDArray[np.float32]
Roofs = dict[str, MachineLimits]  # backend -> limits of its device; "parallel" for all players on the host


@dataclass(frozen=True)
class Operation:
    """An operation of the race."""

    ours: Callable[..., Any]
    numpys: Callable[..., Any]
    shapes: Callable[[int], tuple[tuple[int, ...], ...]]
    """The shapes of the inputs, given the number of elements of the first input."""
    exponents: tuple[int, ...]
    """The sizes are these powers of two."""
    floats: Callable[[int], int]
    """The number of floats that are read and written, each counted once."""
    flops: Callable[[int], int] = lambda n: 0
    """The number of floating-point operations of a product; 0 for other operations."""
    operators: int = 0
    """The number of operators for each element of other operations; an exponential counts as one."""

    def nbytes(self, elements: int) -> int:
        """Return the number of bytes that are read and written, each counted once."""
        return 4 * self.floats(elements)

    def work(self, elements: int) -> int:
        """Return the number of operators."""
        return self.flops(elements) or self.operators * elements


def softmax(x: Array) -> Array:
    """Return the softmax of rows, written in NumPy."""
    e = np.exp(x - x.max(1, keepdims=True))
    result: Array = e / e.sum(1, keepdims=True)
    return result


def square(n: int) -> tuple[int, int]:
    """Return the shape of a square matrix of n elements."""
    side = round(n**0.5)
    return side, side


SIZES = tuple(range(8, 23, 2))
OPERATIONS = {
    "a + b": Operation(lambda a, b: a + b, np.add, lambda n: ((n,), (n,)), SIZES, lambda n: 3 * n, operators=1),
    "exp(x)": Operation(lambda x: x.exp(), np.exp, lambda n: ((n,),), SIZES, lambda n: 2 * n, operators=1),
    "x.sum()": Operation(lambda x: x.sum(), np.sum, lambda n: ((n,),), SIZES, lambda n: n + 1, operators=1),
    "softmax of rows": Operation(
        lambda x: x.softmax(1),
        softmax,
        lambda n: ((n // COLUMNS_OF_ROWS, COLUMNS_OF_ROWS),),
        SIZES,
        lambda n: 2 * n,
        operators=5,
    ),
    "a @ b": Operation(
        lambda a, b: a @ b,
        np.matmul,
        lambda n: (square(n), square(n)),
        tuple(range(8, 19, 2)),
        lambda n: 3 * n,
        lambda n: 2 * round(n**1.5),
    ),
}


@dataclass(frozen=True)
class Point:
    """The time of one player at one size."""

    who: str
    elements: int
    seconds: float
    """The median of the rounds."""
    low: float
    """The lower quartile."""
    high: float
    """The upper quartile."""


@dataclass(frozen=True)
class Race:
    """The results of a race, with machine and date."""

    operation: str
    points: tuple[Point, ...]
    players: tuple[str, ...]
    place: str
    date: str
    budget_s: float


def players() -> tuple[str, ...]:
    """Return the players that can run here: NumPy, and all backends but the interpreter."""
    return NUMPY, *(name for name in mf.backends() if is_fast(name))


def limiting_backend(name: str) -> str:
    """Return the backend whose roofline limits a player: a GPU has its own, all others share the host's."""
    return name if name != NUMPY and not get_backend(name).is_host else "parallel"


def measure_rooflines(who: Sequence[str]) -> Roofs:
    """Measure the peak rates of the players' devices; the first call takes about a second per device."""
    limits_of = {name: machine_limits(get_backend(name)) for name in dict.fromkeys(map(limiting_backend, who))}
    for limits in limits_of.values():
        limits.peak("float32")
    return limits_of


def is_fast(name: str) -> bool:
    """Return True if a backend is not an interpreter."""
    backend: Any = get_backend(name)
    return bool(backend.is_host or backend.has_roofline)


def run_race(operation: str, who: Sequence[str], budget_s: float = BUDGET_S) -> Race:
    """Let the players run an operation at increasing sizes, in turn, until the time is up.

    Parameters
    ----------
    operation : str
        One of OPERATIONS.
    who
        Some of `players`.
    budget_s : float
        Seconds in all, after a first call at the smallest size, which compiles. A player whose next size would not fit
        into its part of them stays behind.

    Raises
    ------
    MinifuseError
        There is no such operation or player, or a result differs from NumPy's.
    """
    if operation not in OPERATIONS:
        raise MinifuseError(f"there is no operation {operation!r}; expected one of {', '.join(OPERATIONS)}")
    if not who or set(who) - set(players()):
        raise MinifuseError(f"players are {', '.join(who) or 'none'}; expected some of {', '.join(players())}")
    chosen, points = OPERATIONS[operation], list[Point]()
    for name in who:
        check_result(chosen, name)
    share_s, is_product = budget_s / len(who), chosen.flops(1 << chosen.exponents[0]) > 0
    # After a product the threads of OpenBLAS look for more work for some 100 ms: NumPy comes last then, and alone.
    for heat in [[name] for name in sorted(who, key=NUMPY.__eq__)] if is_product else [list(who)]:
        points += run_heat(chosen, dict.fromkeys(heat, share_s))
    gpus = [gpu for name in who if (gpu := gpu_name(name))]
    place = ", ".join([f"{machine.model_name() or platform.machine()}", f"{os.cpu_count()} cores", *gpus])
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Race(operation, tuple(points), tuple(who), place, now, budget_s)


def gpu_name(name: str) -> str:
    """Return the name of the GPU of a player; empty for a player on the CPU."""
    backend: Any = None if name == NUMPY else get_backend(name)
    return "" if backend is None or backend.is_host or not backend.has_roofline else str(backend.device.name)


def run_heat(operation: Operation, remaining_s: dict[str, float]) -> list[Point]:
    """Time the players at all sizes; a player leaves when its remaining time is too short for the next size."""
    points = list[Point]()
    for exponent in operation.exponents:
        elements, calls, preparation_s = 1 << exponent, dict[str, Callable[[], Any]](), dict[str, float]()
        for name in remaining_s:
            began = perf_counter()
            calls[name] = prepare_call(operation, name, elements)
            preparation_s[name] = perf_counter() - began
            remaining_s[name] -= preparation_s[name]
        new_points = time_rounds(calls, elements, remaining_s)
        next_s = {p.who: preparation_s[p.who] + ROUNDS * BLOCK_S + (ROUNDS + 2) * p.seconds for p in new_points}
        growth, points = work_growth(operation, elements), points + new_points
        remaining_s = {name: rest for name, rest in remaining_s.items() if rest > growth * next_s[name]}
        if not remaining_s:
            break
    return points


def work_growth(operation: Operation, elements: int) -> float:
    """Return how many times as much work the next size is."""
    work = operation.flops if operation.flops(elements) else operation.floats
    return work(4 * elements) / work(elements)


def time_rounds(calls: dict[str, Callable[[], Any]], elements: int, remaining_s: dict[str, float]) -> list[Point]:
    """Time rounds of blocks of calls, in turn; each player's time is subtracted from its budget."""
    call_counts, rounds = dict[str, int](), {name: list[float]() for name in calls}
    for name, player in calls.items():
        began = perf_counter()
        player()  # untimed: brings its data into the caches
        once = time_block(player, 1)
        call_counts[name] = max(1, min(int(BLOCK_S / max(once, 1e-9)), 1000))
        remaining_s[name] -= perf_counter() - began
    for count in range(ROUNDS):
        for name in in_turn(calls, count):
            rounds[name].append(time_block(calls[name], call_counts[name]))
            remaining_s[name] -= rounds[name][-1] * call_counts[name]
    return [Point(name, elements, *spread(seconds)) for name, seconds in rounds.items()]


@cache
def random_numbers(k: int) -> Array:
    """Return random numbers from this seed, which inputs number k of all sizes share."""
    largest = 1 << max(operation.exponents[-1] for operation in OPERATIONS.values())
    return np.random.default_rng(k).standard_normal(largest, np.float32)


def inputs(operation: Operation, elements: int) -> list[Array]:
    """Return the inputs of a size."""
    return [random_numbers(k)[:elements].reshape(shape) for k, shape in enumerate(operation.shapes(elements))]


def prepare_call(operation: Operation, name: str, elements: int) -> Callable[[], Any]:
    """Return a call of one player, which returns when the work is done."""
    arrays = inputs(operation, elements)
    if name == NUMPY:
        return lambda: operation.numpys(*arrays)
    tensors = [mf.tensor(x, backend=name) for x in arrays]
    if get_backend(name).is_host:
        return lambda: operation.ours(*tensors)

    def wait() -> Any:
        result = operation.ours(*tensors)
        mf.synchronize(name)
        return result

    return wait


def check_result(operation: Operation, name: str) -> None:
    """Compare a player's result with NumPy's, at the smallest size; what is to be compiled is compiled then.

    Raises
    ------
    MinifuseError
        They differ.
    """
    elements = 1 << operation.exponents[0]
    expected = operation.numpys(*inputs(operation, elements))
    if not np.allclose(np.asarray(prepare_call(operation, name, elements)()), expected, rtol=TOLERANCE, atol=TOLERANCE):
        raise MinifuseError(f"{name} and NumPy differ by more than {TOLERANCE:g}; nothing was timed")


def command(race: Race, has_roof: bool = False) -> str:
    """Return the terminal command that measures the same."""
    who = f"--players {quote(','.join(race.players))}"
    return " ".join(["minifuse race", quote(race.operation), who, *["--roof"] * has_roof])


def source() -> list[Line]:
    """Return the source of the timer."""
    lines, first = inspect.getsourcelines(time_rounds)
    return [Line(first + k, line.rstrip("\n")) for k, line in enumerate(lines)]
