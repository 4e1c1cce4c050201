"""Runs rows: set up, check every player's result against NumPy in float64, then measure, and say all of it as JSON.

A result that is wrong is never timed: its row says so, and the run ends with an error. Targets are judged, not enforced.
"""

import datetime
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from . import machine, peers
from .row import US, Array, Bench, Contest, Result, Row, SkippedRowError
from .timer import Times, read_clocks, spread, take_turns

FORMAT = 1  # of the JSON


class WrongResultError(Exception):
    """A player computed something else than NumPy did in float64."""


def run(
    rows: Iterable[Row],
    modules: Mapping[str, ModuleType],
    missing: Mapping[str, str],
    seed: int,
    is_quick: bool = False,
    tell: Callable[[Row, Result], None] = lambda row, result: None,
) -> Result:
    """Measure rows one after the other.

    Parameters
    ----------
    modules, missing
        The peers that take part, and why others do not.
    seed
        Of the random numbers.
    tell
        Called with each row when it is done.

    Returns
    -------
    dict
        What is written to the JSON: the machine, versions, threads, load, and a list of rows.
    """
    before = machine.load()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(modules, np.random.default_rng(seed), Path(folder), is_quick)
        for row in rows:
            result = measure(row, bench)
            found.append(result)
            tell(row, result)
    return {
        "format": FORMAT,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": is_quick,
        "seed": seed,
        "machine": machine.describe(),
        "versions": machine.versions(),
        "threads": peers.threads(dict(modules)),
        "environment": {name: os.environ.get(name) for name in peers.WAITING},
        "load": {"before": before, "after": machine.load()},
        "missing": dict(missing),
        "rows": found,
    }


def measure(row: Row, bench: Bench) -> Result:
    """One row: checked, timed, judged."""
    load = machine.load()
    result: Result = {"group": row.group, "name": row.name, "load": load and load[0]}
    try:
        contest = row.setup(bench)
    except SkippedRowError as reason:
        return {**result, "skipped": str(reason)}
    errors, wrong = check(contest)
    result["errors"] = errors
    if wrong:
        return {**result, "wrong": wrong}
    if contest.is_clocked:
        times = read_clocks(contest.players, bench.is_quick)
    else:
        times = take_turns(contest.players, bench.is_quick, contest.rests)
    result |= summarize(times) | {"counts": dict(contest.counts)}
    if contest.flops:
        result["gflop_per_s"] = {who: contest.flops / t["median"] / 1e9 for who, t in result["times"].items()}
    return result | {"targets": [target.judge(result) for target in row.targets]}


def check(contest: Contest) -> tuple[dict[str, float], dict[str, str]]:
    """Call every player once; the error of each, and what is wrong with those that are not right."""
    errors: dict[str, float] = {}
    wrong: dict[str, str] = {}
    if contest.exact is None:
        return errors, wrong
    for who, player in contest.players.items():
        try:
            errors[who] = error_of(as_array(player()), contest.exact, contest.dtype)
            if not errors[who] <= contest.tolerance:
                raise WrongResultError(
                    f"differs from NumPy in float64 by {errors[who]:.1e}, and {contest.tolerance:.0e} is allowed"
                )
        except WrongResultError as error:
            wrong[who] = str(error)
    return errors, wrong


def as_array(result: Any) -> Array:
    """A result as a NumPy array, whoever made it."""
    return np.asarray(result.detach().numpy() if hasattr(result, "detach") else result)


def error_of(result: Array, exact: Array, dtype: str) -> float:
    """The largest difference, relative to the element and the root mean square of all: small ones may be less exact.

    Raises
    ------
    WrongResultError
        Shape or element type differ, or a NaN stands where there should be none.
    """
    if result.shape != exact.shape or result.dtype != dtype:
        raise WrongResultError(f"is {result.dtype} of shape {result.shape}, expected {dtype} of shape {exact.shape}")
    if not np.isfinite(result).all():
        raise WrongResultError("has elements that are not finite")
    typical = np.sqrt(np.mean(np.square(exact)))
    return float(np.max(np.abs(result - exact) / (np.abs(exact) + (typical or 1))))


def summarize(times: Times) -> Result:
    """Medians and quartiles of the times, and of each peer's time over ours within a round."""
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
    """The rows whose group or name contains one of the words; all where there are none.

    Raises
    ------
    ValueError
        A word is in no name.
    """
    for word in words:
        if not any(word in row.group or word in row.name for row in rows):
            groups = ", ".join(dict.fromkeys(row.group for row in rows))
            raise ValueError(f"no row has {word!r} in its name or group; the groups are {groups}")
    return [row for row in rows if not words or any(word in row.group or word in row.name for word in words)]
