"""The size from which threads save time: minifuse with all threads and with one thread, in separate processes.

The processes take turns. Each measures the operations of the sweeps, which also check the results.
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


def measured_rounds(bench: Bench) -> list[dict[str, Any]]:
    """Return player -> curve -> exponent -> seconds for each round. The processes run only once, for all rows."""
    if GROUP not in bench.pool:
        environments: dict[str, dict[str, str]] = {US: {}, ONE_THREAD: {"MINIFUSE_THREADS": "1"}}
        bench.pool[GROUP] = [
            {
                who: json.loads(run_python("-m", "project.benchmarks.thread_times", **environment))
                for who, environment in environments.items()
            }
            for _ in range(1 if bench.is_quick else MIN_ROUNDS)
        ]
    rounds: list[dict[str, Any]] = bench.pool[GROUP]
    return rounds


def thread_setup(curve: str, exponent: int) -> Callable[[Bench], Contest]:
    """Return the setup of one operation at one size."""

    def setup(bench: Bench) -> Contest:
        def clock(who: str) -> Callable[[], float]:
            seconds = iter([seconds_of[who][curve][str(exponent)] for seconds_of in measured_rounds(bench)])
            return lambda: next(seconds)

        return Contest({who: clock(who) for who in (US, ONE_THREAD)}, is_clocked=True)

    return setup


ROWS = [
    Row(
        f"{operation.curve}, 2^{k}",
        GROUP,
        thread_setup(operation.curve, k),
        curve=f"{operation.curve}: threads",
        size=1 << k,
    )
    for operation in OPERATIONS
    for k in EXPONENTS
]
