"""What a new pointwise kernel costs on a GPU: compiled, and, in another process, found on disk."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..row import US, Bench, Contest, Row, count, within
from .start import python

GROUP = "gpu-compile"


def first_calls(folder: Path) -> dict[str, Any]:
    """Call new functions in a new process, with the kernels of a folder; what it tells."""
    told: dict[str, Any] = json.loads(python("-m", "project.benchmarks.first_kernels", MINIFUSE_CACHE=str(folder)))
    return told


def stage(is_warm: bool) -> Callable[[Bench], Contest]:
    """The first calls of one process, with nothing on disk or with all; each kernel is a round."""

    def setup(bench: Bench) -> Contest:
        folder = bench.folder / ("gpu-warm" if is_warm else "gpu-cold")
        if is_warm:
            first_calls(folder)
        told = first_calls(folder)
        seconds = iter(told.pop("seconds"))
        return Contest({US: lambda: next(seconds)}, is_clocked=True, counts=told)

    return setup


ROWS = [
    Row("first call of a function, nothing on disk", GROUP, stage(is_warm=False), (within(150, "ms"),)),
    Row(
        "first call of a function, a second process",
        GROUP,
        stage(is_warm=True),
        (within(15, "ms"), count("kernels compiled", 0)),
    ),
]
