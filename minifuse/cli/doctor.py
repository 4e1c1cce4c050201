"""`minifuse doctor`: what this machine has, what is missing, and the line that installs it."""

import json as json_
import os
import platform
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib import metadata

import numpy as np
from rich.console import Console
from rich.table import Table

from ..creation import tensor
from ..kernel_cache import cache

EXTRAS = {"rich": "cli", "typer": "cli", "scikit-learn": "cli", "hypothesis": "test", "pytest": "test"}
NEEDED = ("numpy", "numba", "llvmlite")
VECTORS = {"avx512f": "AVX-512: 16 float32 at once", "avx2": "AVX2: 8 float32 at once", "neon": "NEON: 4 float32 at once"}


@dataclass(frozen=True)
class Finding:
    """One line of the report; `advice` says what to do where it is not `ok`."""

    topic: str
    found: str
    ok: bool = True
    advice: str = ""


def examine() -> list[Finding]:
    """Look at everything that minifuse needs or can use."""
    return [*machine(), *packages(), cache_folder(), kernel()]


def machine() -> list[Finding]:
    """The processor, its vectors, its threads, and Python."""
    import llvmlite.binding as llvm

    from ..backends.parallel.driver import THREADS

    features = llvm.get_host_cpu_features()
    vectors = next((words for name, words in VECTORS.items() if features.get(name)), "128-bit or none known")
    return [
        Finding("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        Finding("processor", f"{llvm.get_host_cpu_name()}, {os.cpu_count()} cores, {THREADS} threads for kernels"),
        Finding("vectors", vectors),
    ]


def packages() -> list[Finding]:
    """What is installed, and what optional parts are not."""
    found = [Finding(name, metadata.version(name)) for name in NEEDED]
    for name, extra in EXTRAS.items():
        try:
            found.append(Finding(name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            found.append(Finding(name, "not installed", False, f'pip install "minifuse[{extra}]"'))
    return found


def cache_folder() -> Finding:
    """Whether compiled kernels can be kept."""
    stats = cache.stats()
    advice = "set MINIFUSE_CACHE to a folder that can be written"
    if stats.folder is None:
        return Finding("kernel cache", "no folder on this platform", False, advice)
    try:
        stats.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=stats.folder):
            pass
    except OSError as error:
        return Finding("kernel cache", f"{stats.folder}: {error.strerror}", False, advice)
    return Finding("kernel cache", f"{stats.folder}: {stats.on_disk} kernels, {stats.nbytes_on_disk / 1e6:.1f} MB")


def kernel() -> Finding:
    """Whether a kernel compiles, runs, and is right."""
    start = time.perf_counter()
    x = np.linspace(-2, 2, 1000, dtype=np.float32)
    result = (tensor(x, backend="parallel") * 2 + 1).exp().numpy()
    error = float(np.max(np.abs(result / np.exp(x.astype(np.float64) * 2 + 1) - 1)))
    ms = (time.perf_counter() - start) * 1e3
    return Finding(
        "a kernel", f"compiled or loaded, and run, in {ms:.0f} ms; largest relative error {error:.1e}", error < 1e-6,
        "report this with the output of `minifuse doctor --json`",
    )  # fmt: skip


def run(json: bool) -> int:
    """Print the report; the exit status is 1 where a needed part does not work."""
    findings = examine()
    if json:
        print(json_.dumps([asdict(f) for f in findings], indent=2))
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for f in findings:
            table.add_row("[green]ok[/]" if f.ok else "[red]--[/]", f.topic, f.found)
            if not f.ok:
                table.add_row("", "", f"[bold]{f.advice.replace('[', chr(92) + '[')}[/]")
        Console().print(table)
    return int(any(not f.ok for f in findings if f.topic not in EXTRAS))
