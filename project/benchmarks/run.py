"""Run rows: set up, check every player's result against float64, then measure, and return the results as JSON data.

A wrong result is never timed: it is reported in its row, and the run ends with an error. Missed targets are not errors.
Before a row is timed, it is prepared: its players are compiled, called and checked. If other processes measure at the same
time, all rows are prepared before the first one is timed.
"""

import datetime
import os
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from . import (
    gpu,
    machine,
    machine_peaks,
    peers,
)
from .row import US, Array, Bench, Contest, Result, Row, is_ours
from .timer import Times, read_clocks, spread, take_turns, take_turns_on
from .timing_lock import TimingLock

FORMAT = 1  # version of the JSON files of results
NO_LOCK = TimingLock()


class WrongResultError(Exception):
    """The result of a player differs from that of NumPy in float64."""


def run(
    rows: Iterable[Row],
    modules: Mapping[str, ModuleType],
    missing: Mapping[str, str],
    seed: int,
    is_quick: bool = False,
    tell: Callable[[Row, Result], None] = lambda row, result: None,
    is_on_gpu: bool = False,
    save: Callable[[Result], None] = lambda results: None,
    lock: TimingLock = NO_LOCK,
) -> Result:
    """Measure rows one after the other.

    Parameters
    ----------
    modules, missing
        The imported module of each peer that takes part, and the reason for each peer that does not.
    seed
        Seed of the random numbers.
    tell
        Called with each row and its result when it is done.
    is_on_gpu
        Whether the rows are those of a GPU.
    save
        Called after each row with the results so far, so that an interrupted run keeps the rows that it has measured.
    lock
        If it has a file, all rows are prepared first, with the lock shared, and each is timed with the lock alone.

    Returns
    -------
    dict
        The content of the JSON file: the machine, versions, threads, load, and a list of rows.
    """
    before = machine.load()
    results: Result = {}
    with tempfile.TemporaryDirectory() as folder:
        arguments = modules, np.random.default_rng(seed), Path(folder), is_quick
        bench: Any = (gpu.GpuBench if is_on_gpu else Bench)(*arguments, is_ahead=bool(lock))
        results |= {
            "format": FORMAT,
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "quick": is_quick,
            "seed": seed,
            "machine": machine.describe(),
            **({"device": gpu.describe(bench.device)} if is_on_gpu else {}),
            "versions": machine.versions(gpu.PACKAGES if is_on_gpu else machine.PACKAGES),
            "threads": {} if is_on_gpu else peers.threads(dict(modules)),
            "environment": {name: os.environ.get(name) for name in peers.WAITING},
            "load": {"before": before},
            "missing": dict(missing),
            "rows": [],
        }
        prepared: Iterable[PreparedRow] = (prepare(row, bench) for row in rows)
        if lock:
            with lock.shared():
                prepared = list(prepared)
        for ready in prepared:
            with lock.alone():
                result = time_row(ready, bench)
            results["rows"].append(result)
            results["load"]["after"] = machine.load()
            tell(ready.row, result)
            save(results)
    if any("work" in result for result in results["rows"]):
        with lock.alone():
            roofs = measure_roofs(is_on_gpu)
        results |= {"roofs": roofs} if roofs else {}
    return results


def measure_roofs(is_on_gpu: bool) -> machine_peaks.Roofs:
    """Return the peak rates of the machine; an empty dict if they cannot be measured."""
    try:
        return machine_peaks.measure_peaks(is_on_gpu)
    except Exception:
        traceback.print_exc()
        return {}


class PreparedRow(NamedTuple):
    """A row whose players have run once, with right results; or no contest, and a result that says why it is not timed."""

    row: Row
    result: Result
    contest: Contest | None


def measure(row: Row, bench: Bench) -> Result:
    """Check the results of one row, time its players, and compare the times with the targets.

    An exception in a row is reported in its result, and the run continues.
    """
    return time_row(prepare(row, bench), bench)


def prepare(row: Row, bench: Bench) -> PreparedRow:
    """Set up a row, compile and call its players, and check their results."""
    load = machine.load()
    curve_point = {"curve": row.curve, "size": row.size} if row.curve else {}
    result: Result = {"group": row.group, "name": row.name, **curve_point, "load": load and load[0]}
    try:
        contest = row.setup(bench)
        errors, wrong, broken = check(contest, bench.read)
    except Exception as error:
        return PreparedRow(row, {**result, **report_failure(error)}, None)
    result |= {"errors": errors} | ({"broken": broken} if broken else {})
    if wrong:
        return PreparedRow(row, {**result, "wrong": wrong}, None)
    players = {who: player for who, player in contest.players.items() if who not in broken}
    return PreparedRow(row, result, replace(contest, players=players, exact=None))


def report_failure(error: Exception) -> Result:
    """Print the traceback of an exception in a row, and return the entry of its result."""
    traceback.print_exc()
    return {"wrong": {"the row": format_error(error)}}


def time_row(prepared: PreparedRow, bench: Bench) -> Result:
    """Time the players of a prepared row, and compare the times with the targets."""
    row, result, contest = prepared
    if contest is None:
        return result
    try:
        result |= summarize(take_times(contest, bench)) | {"counts": dict(contest.counts)}
    except Exception as error:
        return {**result, **report_failure(error)}
    medians = {who: times["median"] for who, times in result["times"].items()}
    if contest.flops:
        result["gflop_per_s"] = {who: contest.flops / seconds / 1e9 for who, seconds in medians.items()}
    elif contest.is_on_device:
        result["gb_per_s"] = {who: contest.nbytes / seconds / 1e9 for who, seconds in medians.items()}
    if contest.dtype == "float32" and (contest.operations or contest.flops):
        result["work"] = {"operations": contest.operations or contest.flops, "nbytes": contest.nbytes}
    return result | {"targets": [target.judge(result) for target in row.targets]}


def take_times(contest: Contest, bench: Bench) -> Times:
    """Time the players in turn, by the clock of host or device."""
    if contest.is_clocked:
        return read_clocks(contest.players, bench.is_quick)
    if contest.is_on_device:
        assert isinstance(bench, gpu.GpuBench)
        return take_turns_on(bench.clock, contest.players, bench.is_quick)
    return take_turns(contest.players, bench.is_quick, contest.rests, bench.settle, contest.budget_s)


def check(contest: Contest, read: Callable[[Any], Array]) -> tuple[dict[str, float], dict[str, str], dict[str, str]]:
    """Call every player once, and return the numerical errors, the reasons of wrong results, and the exceptions of peers."""
    errors: dict[str, float] = {}
    wrong: dict[str, str] = {}
    broken: dict[str, str] = {}
    for who, player in contest.players.items() if contest.exact is not None else ():
        if who in contest.unchecked:
            player()
            continue
        try:
            errors[who] = error_of(read(player())[contest.part], contest.exact, contest.dtype)
            if not errors[who] <= contest.tolerance:
                raise WrongResultError(
                    f"differs from NumPy in float64 by {errors[who]:.1e}, and {contest.tolerance:.0e} is allowed"
                )
        except WrongResultError as error:
            wrong[who] = str(error)
        except Exception as error:
            traceback.print_exc()
            (wrong if is_ours(who) else broken)[who] = format_error(error)
    return errors, wrong, broken


def format_error(error: Exception) -> str:
    """Format an exception as a line of the report."""
    first, _, _ = str(error).partition("\n")
    return f"{type(error).__name__}: {first[:200]}"


def error_of(result: Array, exact: Array, dtype: str) -> float:
    """Return the largest error: |result - exact|, divided by |exact| plus the root mean square of `exact`.

    Raises
    ------
    WrongResultError
        The shape or dtype differs, or an element is NaN or infinite.
    """
    if result.shape != exact.shape or result.dtype != dtype:
        raise WrongResultError(f"is {result.dtype} of shape {result.shape}, expected {dtype} of shape {exact.shape}")
    if not np.isfinite(result).all():
        raise WrongResultError("has elements that are not finite")
    rms = np.sqrt(np.mean(np.square(exact)))
    return float(np.max(np.abs(result - exact) / (np.abs(exact) + (rms or 1))))


def summarize(times: Times) -> Result:
    """Return medians and quartiles of the times, and of each peer's time divided by ours within a round."""
    ours = times.rounds[US]
    ratios = {
        who: spread([theirs / us for theirs, us in zip(seconds, ours, strict=True)])._asdict()
        for who, seconds in times.rounds.items()
        if who != US
    }
    return {
        "rounds": len(ours),
        "calls": times.calls,
        "times": {who: spread(seconds)._asdict() for who, seconds in times.rounds.items()},
        "ratios": ratios,
    }


def choose(rows: Sequence[Row], words: Sequence[str]) -> list[Row]:
    """Return the rows whose group or name contains one of the words; without words, all rows.

    Raises
    ------
    ValueError
        A word occurs in no name or group.
    """
    for word in words:
        if not any(word in row.group or word in row.name for row in rows):
            groups = ", ".join(dict.fromkeys(row.group for row in rows))
            raise ValueError(f"no row has {word!r} in its name or group; the groups are {groups}")
    return [row for row in rows if not words or any(word in row.group or word in row.name for word in words)]
