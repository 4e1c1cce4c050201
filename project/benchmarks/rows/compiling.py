"""The cost of compiling: the first call of a new function, and the first batch of each recipe's network.

Each is measured in separate processes, with no kernel on disk, and with all of them.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minifuse.recipes import MODULES

from ..first_batch import DEMO
from ..row import US, Bench, Contest, Row, SkippedRowError, Target, count, within
from .start import run_python

GROUP, GPU_GROUP = "costs-compiling", "gpu-costs-compiling"
NETWORKS = (DEMO, *MODULES)


def run_module(module: str, folder: Path, *words: str) -> dict[str, Any]:
    """Return the JSON that a module prints in a new process with this kernel cache."""
    told: dict[str, Any] = json.loads(run_python("-m", f"project.benchmarks.{module}", *words, MINIFUSE_CACHE=str(folder)))
    return told


def first_call(backend: str, stage: str, is_warm: bool) -> Callable[[Bench], Contest]:
    """Return the setup of the first calls of a process, each kernel a round. A warm process finds kernels on disk."""

    def setup(bench: Bench) -> Contest:
        processes, folder = bench.pool.setdefault(f"first calls of {backend}", []), bench.folder / f"{backend}-calls"
        while len(processes) <= is_warm:
            processes.append(run_module("first_kernels", folder, backend))
        told = processes[is_warm]
        seconds = iter(told[stage])
        return Contest({US: lambda: next(seconds)}, is_clocked=True, counts=told["counts"])

    return setup


def first_batch(name: str, backend: str, is_warm: bool) -> Callable[[Bench], Contest]:
    """Return the setup of the first batch of a network; each process is a round."""

    def setup(bench: Bench) -> Contest:
        counts: dict[str, int] = {}
        folder = bench.folder / f"{backend}-{name}"

        def clock() -> float:
            place = folder if is_warm else Path(tempfile.mkdtemp(dir=bench.folder))
            told = run_module("first_batch", place, name, backend)
            counts.update({what: max(n, counts.get(what, 0)) for what, n in told["counts"].items()})
            seconds: float = told["seconds"]
            return seconds

        try:
            if is_warm and not folder.exists():
                run_module("first_batch", folder, name, backend)
        except subprocess.CalledProcessError as error:
            raise SkippedRowError(f"its process ended with {error.returncode}; is scikit-learn installed?") from error
        return Contest({US: clock}, is_clocked=True, counts=counts)

    return setup


def calls(backend: str, group: str, cold_ms: float, warm_ms: float, new_size: Target | None = None) -> list[Row]:
    """Return rows of the first call of a function: compiled, found on disk, and with another size."""
    nothing = count("kernels compiled", 0)
    cold, warm = (first_call(backend, "first call", is_warm) for is_warm in (False, True))
    return [
        Row("first call of a function, nothing on disk", group, cold, (within(cold_ms, "ms"),) if cold_ms else ()),
        Row("first call of a function, a second process", group, warm, (within(warm_ms, "ms"), nothing)),
        Row(
            "first call with another size",
            group,
            first_call(backend, "new size", True),
            (new_size, nothing) if new_size else (nothing,),
        ),
    ]


def batches(backend: str, group: str) -> list[Row]:
    """Return rows of the first batch of each network, compiled and found on disk."""
    return [
        Row(
            f"{name}: first batch, {'a second process' if is_warm else 'nothing on disk'}",
            group,
            first_batch(name, backend, is_warm),
            (count("kernels compiled", 0),) if is_warm else (),
        )
        for name in NETWORKS
        for is_warm in (False, True)
    ]


ROWS = [*calls("parallel", GROUP, 0, 5, within(0.5, "ms")), *batches("parallel", GROUP)]
GPU_ROWS = batches("cuda", GPU_GROUP)
