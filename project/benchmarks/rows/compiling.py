"""The cost of compiling: the first call of a new function, and the first batch of each recipe's network.

Both are measured in new processes, once without kernels in the disk cache, and once with all kernels in it. The network with
the most kernels is also measured without compile workers, and in two processes that start at the same time.
"""

import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from minifuse.recipes import MODULES

from ..first_batch import DEMO
from ..row import US, Bench, Contest, Row, Target, count, within
from .start import run_python

GROUP, GPU_GROUP = "costs-compiling", "gpu-costs-compiling"
NETWORKS = (DEMO, *MODULES)
LARGEST = "gpt"  # the network with the most kernels
NO_WORKERS = {"MINIFUSE_COMPILE_WORKERS": "0"}


def run_module(module: str, folder: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run a module of this package in a new process with this kernel cache, and return the JSON that it prints."""
    command = "-m", f"project.benchmarks.{module}", *arguments
    printed: dict[str, Any] = json.loads(run_python(*command, MINIFUSE_CACHE=str(folder), **environment))
    return printed


def first_call(backend: str, stage: str, is_warm: bool) -> Callable[[Bench], Contest]:
    """Return the setup of the first calls in a new process, one kernel per round. A warm process finds kernels on disk."""

    def setup(bench: Bench) -> Contest:
        runs, folder = bench.pool.setdefault(f"first calls of {backend}", []), bench.folder / f"{backend}-calls"
        while len(runs) <= is_warm:  # the first run is cold, and leaves its kernels to the second
            runs.append(run_module("first_kernels", folder, backend))
        run = runs[is_warm]
        seconds = iter(run[stage])
        return Contest({US: lambda: next(seconds)}, is_clocked=True, counts=run["counts"])

    return setup


def first_batch(
    name: str, backend: str, is_warm: bool, processes: int = 1, **environment: str
) -> Callable[[Bench], Contest]:
    """Return the setup of the first batch of a network, in one process or in several that start at the same time.

    Each round starts new processes, and its time is that of the slowest one.
    """

    def setup(bench: Bench) -> Contest:
        counts: dict[str, int] = {}
        folder = bench.folder / f"{backend}-{name}"

        def clock() -> float:
            cache = folder if is_warm else Path(tempfile.mkdtemp(dir=bench.folder))
            with ThreadPoolExecutor(processes) as pool:
                started = [
                    pool.submit(run_module, "first_batch", cache, name, backend, **environment) for _ in range(processes)
                ]
            runs = [run.result() for run in started]
            for run in runs:
                counts.update({what: max(n, counts.get(what, 0)) for what, n in run["counts"].items()})
            return max(float(run["seconds"]) for run in runs)

        if is_warm and not folder.exists():
            run_module("first_batch", folder, name, backend)
        return Contest({US: clock}, is_clocked=True, counts=counts)

    return setup


def calls(backend: str, group: str, cold_ms: float, warm_ms: float, new_size: Target | None = None) -> list[Row]:
    """Return rows of the first call of a function: compiled, found on disk, and with another size."""
    compiles_nothing = count("kernels compiled", 0)
    cold, warm = (first_call(backend, "first call", is_warm) for is_warm in (False, True))
    return [
        Row("first call of a function, nothing on disk", group, cold, (within(cold_ms, "ms"),) if cold_ms else ()),
        Row("first call of a function, a second process", group, warm, (within(warm_ms, "ms"), compiles_nothing)),
        Row(
            "first call with another size",
            group,
            first_call(backend, "new size", True),
            (new_size, compiles_nothing) if new_size else (compiles_nothing,),
        ),
    ]


def batches(backend: str, group: str, target: Target | None = None) -> list[Row]:
    """Return rows of the first batch of each network, compiled and on disk, with a target for compiling the largest."""
    return [
        Row(
            f"{name}: first batch, {'a second process' if is_warm else 'nothing on disk'}",
            group,
            first_batch(name, backend, is_warm),
            (count("kernels compiled", 0),) if is_warm else (target,) if target and name == LARGEST else (),
        )
        for name in NETWORKS
        for is_warm in (False, True)
    ]


def workers(backend: str, group: str, target: Target | None = None) -> list[Row]:
    """Return rows of the first batch of the largest network, nothing on disk: compiled by one process and by several."""
    targets = (target,) if target else ()
    return [
        Row(
            f"{LARGEST}: first batch, nothing on disk, no compile workers",
            group,
            first_batch(LARGEST, backend, False, **NO_WORKERS),
        ),
        Row(
            f"{LARGEST}: first batch of two processes at once, nothing on disk",
            group,
            first_batch(LARGEST, backend, False, processes=2),
            targets,
        ),
    ]


ROWS = [*calls("parallel", GROUP, 0, 5, within(0.5, "ms")), *batches("parallel", GROUP), *workers("parallel", GROUP)]
GPU_ROWS = [*batches("cuda", GPU_GROUP, within(6, "s")), *workers("cuda", GPU_GROUP, within(6, "s"))]
