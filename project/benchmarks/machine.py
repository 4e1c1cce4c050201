"""The machine that is measured: processor, versions, threads, load. No paths and no host names."""

import os
import platform
import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from . import peers

PACKAGES = ("numpy", "numba", "llvmlite", "torch", "numexpr", "jax", "scikit-learn")
VECTOR_FEATURES = re.compile(r"(sse4|avx|fma|amx|neon|sve|sme)")


def describe() -> dict[str, Any]:
    """Return the processor and its features."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return {
        "processor": model_name() or platform.processor() or platform.machine(),
        "microarchitecture": llvm.get_host_cpu_name(),
        "cores": os.cpu_count(),
        "memory_gib": memory_gib(),
        "vector_features": sorted(name for name, has in features.items() if has and VECTOR_FEATURES.match(name)),
        "system": f"{platform.system()} {platform.machine()}",
    }


def slug() -> str:
    """Return the processor as a part of a file name."""
    import llvmlite.binding as llvm

    return re.sub(r"[^a-z0-9]+", "-", llvm.get_host_cpu_name().lower()).strip("-") or "unknown"


def model_name() -> str | None:
    """Return the processor's name, on Linux."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else None


def memory_gib() -> float | None:
    """Return the size of the memory, if the system reports it."""
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of Python and all libraries that take part."""
    import minifuse

    found = {"python": platform.python_version(), "minifuse": minifuse.__version__}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    found["blas of numpy"] = blas()
    return found


def blas() -> str:
    """Return the library behind NumPy's products, and the processor that it was chosen for."""
    import numpy as np

    built: Any = np.show_config(mode="dicts")
    name = "{name} {version}".format(**built["Build Dependencies"]["blas"])
    kind = peers.blas().get("architecture")
    return f"{name} for {kind}" if kind else name


def load() -> list[float] | None:
    """Return the load averages of the last 1, 5 and 15 minutes; this process is included."""
    try:
        return [round(x, 2) for x in os.getloadavg()]
    except (AttributeError, OSError):
        return None
