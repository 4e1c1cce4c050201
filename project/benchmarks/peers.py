"""The peers: which libraries take part, with how many threads each, and why some do not.

Thread counts and waiting policy must be in the environment before a library is loaded. Therefore `prepare` is called first,
and this module imports no such library.
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
FUSING = ("torch", "torch.compile", "numpy", "numexpr", "jax")  # of the rows of fused functions
TRAINING = ("torch", "torch.compile")  # of the rows of training whole networks
COSTING = ("numpy", "torch")  # of the rows about the growth of cost, and of the library of functions
PROGRAMS = ("torch", "torch.compile")  # of the rows of programs from publications and of loop nests
# Suites besides the main one, and what the page calls them.
KINDS = {
    "fusion": "fused functions",
    "networks": "training",
    "sweeps": "all sizes",
    "costs": "how cost grows",
    "held-out": "programs from publications",
    "loop-nests": "loop nests of many shapes",
    "library": "joins, indices, scans and sorts",
}
THREAD_VARIABLES = (
    "MINIFUSE_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


# Idle threads of OpenMP sleep, instead of taking a core from the next player.
WAITING = {"OMP_WAIT_POLICY": "passive"}
# JAX allocates GPU memory on demand, and leaves the rest to others. Numba does not warn about small grids.
SHARING = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0"}


def prepare() -> None:
    """Set the same number of threads for all players, and let idle threads release their cores."""
    threads = os.environ.get("MINIFUSE_THREADS") or str(processors())
    os.environ.update({**dict.fromkeys(THREAD_VARIABLES, threads), **WAITING, **SHARING})


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def library(who: str) -> str:
    """Return the library of a player.

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
    os.environ["JAX_PLATFORMS"] = "cpu"  # it would use a GPU if there is one
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
        found["jax"].config.update("jax_enable_x64", True)  # without it, JAX computes float64 as float32
    return found, missing


def advice(name: str) -> str:
    """Return how to install a missing library."""
    package = {"cupy": "cupy-cuda13x", "numexpr": '"minifuse[bench]"'}.get(library(name), library(name))
    return "" if name in OWN else f"; pip install {package}"


def threads(peers: dict[str, ModuleType]) -> dict[str, Any]:
    """Return how many threads each library reports to use."""
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
    """Return threadpoolctl's information on the library behind NumPy's products; empty if it is not installed."""
    try:
        pools = import_module("threadpoolctl").threadpool_info()
    except ImportError:
        return {}
    return next((pool for pool in pools if "numpy" in pool["filepath"]), {})
