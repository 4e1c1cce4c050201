"""The peers: which libraries take part, with how many threads each, and why some do not.

Thread counts and waiting policy must be in the environment before a library is loaded, so `prepare` comes before all else,
and nothing is imported here at the top that could load one.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

LIBRARIES = ("numpy", "torch", "numexpr", "jax")
OWN = {  # written here, of Python and Numba alone
    "indexed": "project.benchmarks.indexed",
    "loops": "project.benchmarks.by_hand",
}
KNOWN = (*LIBRARIES, *OWN)
FUSING = ("torch", "torch.compile", "numpy", "numexpr", "jax")  # of the rows in which functions are fused
TRAINING = ("torch", "torch.compile")  # of the rows in which whole networks learn
COSTING = ("numpy", "torch")  # of the rows that say how cost grows
# Suites besides the main one, and what the page calls them.
KINDS = {"fusion": "fused functions", "networks": "training", "sweeps": "all sizes", "costs": "how cost grows"}
THREAD_VARIABLES = (
    "MINIFUSE_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


# Idle threads of OpenMP sleep, instead of taking a core from whoever comes next.
WAITING = {"OMP_WAIT_POLICY": "passive"}
# JAX takes the memory of a GPU as it needs it, and leaves the rest to others. Numba does not mind small grids.
SHARING = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0"}


def prepare() -> None:
    """Give everyone the same number of threads, and a core when their turn comes."""
    threads = os.environ.get("MINIFUSE_THREADS") or str(processors())
    os.environ.update({**dict.fromkeys(THREAD_VARIABLES, threads), **WAITING, **SHARING})


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def library(who: str) -> str:
    """The library of a player that is one of its ways.

    Examples
    --------
    >>> library("torch.compile")
    'torch'
    """
    return who.partition(".")[0]


def load(names: Sequence[str]) -> tuple[dict[str, ModuleType], dict[str, str]]:
    """Load peers.

    Returns
    -------
    dict, dict
        The modules by name; and for each that cannot be loaded, why.
    """
    found, missing = {}, {}
    os.environ["JAX_PLATFORMS"] = "cpu"  # it would take a GPU that is there
    for name in names:
        try:
            found[name] = import_module(OWN.get(name, library(name)))
        except ImportError as error:
            missing[name] = f"{error.name or name} cannot be imported ({type(error).__name__}){advice(name)}"
    threads = int(os.environ["MINIFUSE_THREADS"])
    for name in {"torch", "torch.compile"} & found.keys():
        found[name].set_num_threads(threads)
    if "numexpr" in found:
        found["numexpr"].set_num_threads(threads)
    if "jax" in found:
        found["jax"].config.update("jax_enable_x64", True)  # else float64 is computed as float32
    return found, missing


def advice(name: str) -> str:
    """How to get a library that is missing."""
    package = {"cupy": "cupy-cuda13x", "numexpr": '"minifuse[bench]"'}.get(library(name), library(name))
    return "" if name in OWN else f"; pip install {package}"


def threads(peers: dict[str, ModuleType]) -> dict[str, Any]:
    """How many threads each uses, as it says itself."""
    from minifuse.backends.parallel.driver import THREADS

    found: dict[str, Any] = {"minifuse": THREADS}
    for name in ("torch", "torch.compile"):
        if name in peers:
            found["torch"] = peers[name].get_num_threads()
    if "numexpr" in peers:
        found["numexpr"] = peers["numexpr"].get_num_threads()
    asked = os.environ.get("OPENBLAS_NUM_THREADS")
    found["blas of numpy"] = blas().get("num_threads", f"{asked} asked for")
    return found


def blas() -> dict[str, Any]:
    """What threadpoolctl says of the library behind NumPy's products; nothing where it is not installed."""
    try:
        pools = import_module("threadpoolctl").threadpool_info()
    except ImportError:
        return {}
    return next((pool for pool in pools if "numpy" in pool["filepath"]), {})
