"""The size from which a second thread pays: minifuse with all threads beside minifuse with one, in separate processes.

The processes take turns, and each measures all operations and sizes of the sweeps, where results are checked.
"""

import json
from collections.abc import Callable
from typing import Any

from ..row import US, Bench, Contest, Row
from ..thread_times import EXPONENTS
from ..timer import MIN_ROUNDS
from .start import run_python
from .sweeps import OPERATIONS

GROUP = "sweeps-threads"
ONE_THREAD = f"{US}, one thread"


def processes(bench: Bench) -> list[dict[str, Any]]:
    """Return each process's rounds of player -> curve -> exponent -> seconds. They run once, for all rows."""
    if GROUP not in bench.pool:
        ways: dict[str, dict[str, str]] = {US: {}, ONE_THREAD: {"MINIFUSE_THREADS": "1"}}
        bench.pool[GROUP] = [
            {
                who: json.loads(run_python("-m", "project.benchmarks.thread_times", **threads))
                for who, threads in ways.items()
            }
            for _ in range(1 if bench.is_quick else MIN_ROUNDS)
        ]
    found: list[dict[str, Any]] = bench.pool[GROUP]
    return found


def beside_one(curve: str, exponent: int) -> Callable[[Bench], Contest]:
    """Return the row of one operation at one size; each process is a round."""

    def setup(bench: Bench) -> Contest:
        def clock(who: str) -> Callable[[], float]:
            seconds = iter([told[who][curve][str(exponent)] for told in processes(bench)])
            return lambda: next(seconds)

        return Contest({who: clock(who) for who in (US, ONE_THREAD)}, is_clocked=True)

    return setup


ROWS = [
    Row(f"{of.curve}, 2^{k}", GROUP, beside_one(of.curve, k), curve=f"{of.curve}: threads", size=1 << k)
    for of in OPERATIONS
    for k in EXPONENTS
]
