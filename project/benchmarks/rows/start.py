"""The time before the first result: the import, and the first training steps of a separate process."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..row import US, Bench, Contest, Row, count, delay

GROUP = "start"
ROOT = Path(__file__).parents[3]
IMPORT = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def run_python(*arguments: str, **environment: str) -> str:
    """Run Python in another process, and return its output."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def imports(bench: Bench) -> Contest:
    """Return the contest of imports. An untimed import of each loads its files into memory and compiles them to bytecode."""

    def clock(module: str) -> Callable[[], float]:
        run_python("-c", IMPORT.format(module))
        return lambda: float(run_python("-c", IMPORT.format(module)))

    return Contest({US: clock("minifuse"), "numba": clock("numba")}, is_clocked=True)


def first_step(folder: Path) -> dict[str, Any]:
    """Train in a new process whose kernel cache is `folder`, and return the JSON that it prints."""
    printed: dict[str, Any] = json.loads(run_python("-m", "project.benchmarks.first_step", MINIFUSE_CACHE=str(folder)))
    return printed


def steps(stage: str, is_warm: bool) -> Callable[[Bench], Contest]:
    """Return the setup of one stage of `first_step`. A warm process finds its kernels in the disk cache."""

    def setup(bench: Bench) -> Contest:
        counts: dict[str, int] = {}
        folder = bench.folder / "kernels"
        if is_warm and not folder.exists():
            first_step(folder)

        def clock() -> float:
            printed = first_step(folder if is_warm else Path(tempfile.mkdtemp(dir=bench.folder)))[stage]
            seconds = float(printed.pop("seconds"))
            counts.update({what: max(n, counts.get(what, 0)) for what, n in printed.items()})
            return seconds

        return Contest({US: clock}, is_clocked=True, counts=counts)

    return setup


ROWS = [
    Row("import", GROUP, imports, (delay("numba", 0.1),)),
    Row("first step, nothing on disk", GROUP, steps("first step", is_warm=False)),
    Row("first step, a second process", GROUP, steps("first step", is_warm=True), (count("kernels compiled", 0),)),
    Row("first step with a new batch size", GROUP, steps("new size", is_warm=True), (count("kernels compiled", 0),)),
]
