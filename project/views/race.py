"""The race: the time of an operation at all sizes, on each backend and in NumPy, measured now; and saved results.

A race on a page takes a second: it shows the shape of the curves, and cannot show differences of a few percent. Reliable
numbers are in the saved results, which took minutes each and contain device and date.
"""

import datetime
import inspect
import json
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shlex import quote
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

import minifuse as mf
from minifuse.backends.registry import get_backend
from minifuse.core.errors import MinifuseError
from minifuse.inspect.roofline import MachineLimits, machine_limits

from ..benchmarks import (
    formatting,
    kernel_counts,
    machine,
    report,
)
from ..benchmarks.timer import in_turn, time_block
from .cited_facts import DERIVED, MEASURED, Fact, Line
from .picture import IDLE, LOAD, Cell, Grid, Picture

BUDGET_S = 0.8  # seconds of a race, without compiling
BLOCK_S = 5e-4  # seconds: calls are repeated until a block takes this long
ROUNDS = 5
NUMPY = "NumPy"
FOLDER = Path(report.__file__).parent / "results"
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
    "a + b": Operation(lambda a, b: a + b, np.add, lambda n: ((n,), (n,)), SIZES, lambda n: 3 * n),
    "exp(x)": Operation(lambda x: x.exp(), np.exp, lambda n: ((n,),), SIZES, lambda n: 2 * n),
    "x.sum()": Operation(lambda x: x.sum(), np.sum, lambda n: ((n,),), SIZES, lambda n: n + 1),
    "softmax of rows": Operation(
        lambda x: x.softmax(1), softmax, lambda n: ((n // COLUMNS_OF_ROWS, COLUMNS_OF_ROWS),), SIZES, lambda n: 2 * n
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
    fastest: float
    slowest: float


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
    return [
        Point(name, elements, statistics.median(seconds), min(seconds), max(seconds)) for name, seconds in rounds.items()
    ]


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


# What is shown.


def roofline_seconds(operation: str, elements: int, limits: MachineLimits) -> float:
    """Return the least seconds that a machine needs for the bytes, or for the arithmetic of a product."""
    chosen = OPERATIONS[operation]
    of_bytes = chosen.floats(elements) * 4 / limits.gbytes_per_s / 1e9
    flops = chosen.flops(elements)
    peak = limits.peak("float32") if flops else None
    return max(of_bytes, flops / peak / 1e9 if peak else 0.0)


def rows(race: Race, roofs: Roofs | None = None) -> list[dict[str, Any]]:
    """Return the curves as rows: player, elements, microseconds; the roofline of each device is a player."""
    sizes = sorted({point.elements for point in race.points})
    return [{"who": p.who, "elements": p.elements, "us": p.seconds * 1e6} for p in race.points] + [
        {"who": f"roof of {name}", "elements": n, "us": roofline_seconds(race.operation, n, limits) * 1e6}
        for name, limits in (roofs or {}).items()
        if name in map(limiting_backend, race.players)
        for n in sizes
    ]


def picture(race: Race) -> Picture:
    """Draw the time of each player at each size."""
    exponents, times = OPERATIONS[race.operation].exponents, {(p.who, p.elements): p for p in race.points}
    fastest = {1 << e: min((p.seconds for p in race.points if p.elements == 1 << e), default=0.0) for e in exponents}
    cells = [
        time_cell(race, row, column, times.get((who, 1 << e)), fastest[1 << e])
        for row, who in enumerate(race.players)
        for column, e in enumerate(exponents)
    ]
    names = tuple(f"2^{e}" for e in exponents)
    grid = Grid(
        "race", f"{race.operation}, by elements", len(race.players), len(exponents), tuple(cells), race.players, names
    )
    return Picture(sentence(race), (grid,), words=((LOAD, "the fastest at this size"), (IDLE, "no time was left")))


def time_cell(race: Race, row: int, column: int, point: Point | None, fastest: float) -> Cell:
    """Format the time of a player at a size."""
    who, exponent = race.players[row], OPERATIONS[race.operation].exponents[column]
    if point is None:
        return Cell(row, column, "", f"{who}, 2^{exponent} elements: no time was left", IDLE)
    is_fastest = point.seconds == fastest
    times = "the fastest" if is_fastest else f"{formatting.number(point.seconds / fastest)} times the fastest"
    spread = f"{formatting.duration(point.fastest)} to {formatting.duration(point.slowest)}"
    label = f"{who}, 2^{exponent} elements: {formatting.duration(point.seconds)} ({spread}), {times}"
    return Cell(row, column, formatting.duration(point.seconds), label, LOAD if is_fastest else "")


def sentence(race: Race) -> str:
    """Summarize the picture."""
    largest = max(point.elements for point in race.points)
    last = sorted((p for p in race.points if p.elements == largest), key=lambda p: p.seconds)
    order = ", ".join(f"{p.who} {formatting.duration(p.seconds)}" for p in last)
    return f"{race.operation}, one call at 2^{largest.bit_length() - 1} elements of float32: {order}."


def facts(race: Race, roofs: Roofs | None = None) -> list[Fact]:
    """Return facts about the machine, and how near the largest size comes to the roofline."""
    chosen = OPERATIONS[race.operation]
    how = f"the median of {ROUNDS} rounds, {race.budget_s:g} s in all: a glance, no benchmark; a GPU is waited for"
    known = [Fact("machine", race.place, MEASURED, f"at {race.date}"), Fact("time", "of one call", MEASURED, how)]
    for who in race.players:
        point = max((p for p in race.points if p.who == who), key=lambda p: p.elements)
        rate = f"{chosen.floats(point.elements) * 4 / point.seconds / 1e9:,.1f} GB/s"
        if chosen.flops(point.elements):
            rate = f"{chosen.flops(point.elements) / point.seconds / 1e9:,.1f} GFLOP/s"
        size = f"at 2^{point.elements.bit_length() - 1} elements, in {formatting.duration(point.seconds)}"
        known.append(Fact(who, rate, MEASURED, size))
        if limits := (roofs or {}).get(limiting_backend(who)):
            share = roofline_seconds(race.operation, point.elements, limits) / point.seconds
            known.append(
                Fact(f"{who}: share of the roof", f"{share:.0%}", DERIVED, "above 100 % where caches hold the data")
            )
    for name, limits in (roofs or {}).items():
        known.append(Fact(f"roof of {name}", str(limits), MEASURED, "a copy, and products, of large arrays"))
    return known


def command(race: Race, has_roof: bool = False) -> str:
    """Return the terminal command that measures the same."""
    who = f"--players {quote(','.join(race.players))}"
    return " ".join(["minifuse race", quote(race.operation), who, *["--roof"] * has_roof])


def source() -> list[Line]:
    """Return the source of the timer."""
    lines, first = inspect.getsourcelines(time_rounds)
    return [Line(first + k, line.rstrip("\n")) for k, line in enumerate(lines)]


# What was kept.


@dataclass(frozen=True)
class SavedResults:
    """A file of results."""

    device: str
    date: str
    lines: tuple[str, ...]
    tables: tuple[report.Table, ...]


def result_files(folder: Path = FOLDER) -> list[str]:
    """Return the names of the files of results."""
    return sorted(path.name for path in folder.glob("*.json"))


def load_results(name: str, folder: Path = FOLDER) -> SavedResults:
    """Load a file of results.

    Raises
    ------
    MinifuseError
        There is no such file, or it is damaged.
    """
    if name not in result_files(folder):
        raise MinifuseError(
            f"there is no file of results {name!r}; expected one of {', '.join(result_files(folder)) or 'none'}"
        )
    try:
        return read_results(folder / name)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise MinifuseError(
            f"{folder / name} is no file of results, or a damaged one ({type(error).__name__}: {error}); take it from the "
            "repository again, or measure anew"
        ) from error


def read_results(path: Path) -> SavedResults:
    """Return the content of a file of results."""
    if path.name == kernel_counts.KEPT.name:
        counts = kernel_counts.load_counts(path)
        header, *lines = kernel_counts.table(counts)
        dates = ", ".join(dict.fromkeys(results["date"] for results in counts.values()))
        table = report.Table("How many kernels twenty functions become", header, lines)
        return SavedResults("no device: kernels are counted", dates, tuple(kernel_counts.facts(counts)), (table,))
    results = json.loads(path.read_text(encoding="utf-8"))
    device = results["device"]["name"] if "device" in results else results["machine"]["processor"]
    return SavedResults(device, results["date"][:10], tuple(report.summary(results)), tuple(report.tables(results)))


def as_rows(table: report.Table) -> list[dict[str, str]]:
    """Return a table as rows; the column without a name contains what is measured."""
    header = [name or "what" for name in table.header]
    return [dict(zip(header, line, strict=True)) for line in table.rows]
