"""Measuring on a GPU: whether there is one, which peers take part, what rows share, and the clock of the device.

All players use the legacy default stream, one after the other, and read the same memory. Without a GPU, tests use the
backend's interpreter: rows can be set up and checked on any machine, but not measured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

import minifuse as mf
from minifuse.backends.registry import get_backend
from minifuse.core.errors import MinifuseError

from .peers import advice, library
from .row import Array, Bench, Contest, Player, Row, Work, is_ours, to_float64

BACKEND = "cuda"
OWN = {"indexed": "project.benchmarks.indexed_gpu"}  # written here, of Python and Numba alone
KNOWN = ("torch", "cupy", "jax", *OWN)
# Peers of the rows of fused functions.
FUSING = ("torch", "torch.compile", "cupy", "cupy.fuse", "cupy.ElementwiseKernel", "jax")
SWEEPING = ("torch", "torch.compile", "cupy", "cupy.fuse", "jax", "numpy")  # of one operation at all sizes
LIBRARY = ("torch", "cupy")  # of the library of functions
FLUSHED = 128 << 20  # bytes that are written between two calls: more than the size of any L2 cache
PACKAGES = (
    *(
        "numpy",
        "numba",
        "numba-cuda",
        "cuda-core",
        "cuda-bindings",
        "torch",
        "triton",
        "jax",
        "cupy-cuda13x",
        "cupy-cuda12x",
    ),
)


def absence() -> str:
    """Return why nothing can be measured here; empty if there is a GPU with its driver and libraries."""
    from minifuse.backends.cuda.device import driver

    found = driver.query_driver()
    if found.reason:
        return found.reason
    try:
        driver.require_cuda_packages(found)
    except MinifuseError as error:
        return str(error)
    return ""


def load(names: Sequence[str]) -> tuple[dict[str, ModuleType], dict[str, str]]:
    """Return the peers that can use the GPU, without TF32, and for each other peer the reason why it cannot."""
    found, missing = {}, {}
    for name in names:
        try:
            module = import_module(OWN.get(name, library(name)))
            sees_it = name == "numpy" or is_seen_by(module)
        except Exception as error:  # each library raises a different error if it does not support the driver
            missing[name] = f"{name} cannot be loaded ({type(error).__name__}){advice(name)}"
        else:
            if sees_it:
                found[name] = module
            else:
                missing[name] = f"{name} {getattr(module, '__version__', '')}".rstrip() + " sees no GPU"
    for name in {"torch", "torch.compile"} & found.keys():
        found[name].set_float32_matmul_precision("highest")
        found[name].backends.cudnn.allow_tf32 = False  # of convolutions; torch allows it by default
    if "jax" in found:
        found["jax"].config.update("jax_default_matmul_precision", "highest")
    return found, missing


def is_seen_by(module: Any) -> bool:
    """Return True if a library can use the GPU."""
    if hasattr(module, "devices"):
        return any(device.platform == "gpu" for device in module.devices())
    return bool(module.cuda.is_available())


def describe(device: Any) -> dict[str, Any]:
    """Return the device and its driver."""
    from minifuse.backends.cuda.device import driver

    version = driver.query_driver().version
    found = {
        "name": device.name,
        "compute_capability": ".".join(map(str, device.capability)),
        "multiprocessors": device.multiprocessors,
        "driver": f"for CUDA {version // 1000}.{version % 1000 // 10}",
        "flushed_mib": FLUSHED >> 20,
        "allows_tf32": False,
    }
    if not device.is_simulated:
        found["memory_gib"] = round(driver.check(device.bindings.cuMemGetInfo())[1] / 2**30, 1)
        found["l2_mib"] = device.core.properties.l2_cache_size / 2**20
    return found


def slug(name: str) -> str:
    """Return the device as a part of a file name.

    Examples
    --------
    >>> slug("NVIDIA H200")
    'h200'
    """
    words = "".join(c if c.isalnum() else " " for c in name.lower().removeprefix("nvidia ")).split()
    return "-".join(words) or "unknown"


@dataclass(frozen=True)
class GpuBench(Bench):
    """The resources that the rows on a GPU share. Random numbers are made and copied once; rows read the first ones."""

    @property
    def device(self) -> Any:
        """The device of the backend."""
        return get_backend(BACKEND).device  # type: ignore[attr-defined]

    @cached_property
    def clock(self) -> "Events":
        """The clock of the device."""
        return Events(self.device)

    def normal(self, k: int, shape: Sequence[int], dtype: str) -> Any:
        """Return standard normal numbers, the first ones of pool k."""
        return self.taken(("normal", k, dtype), shape, lambda n: self.rng.standard_normal(n, np.dtype(dtype)))

    def uniform(self, k: int, shape: Sequence[int], low: float, high: float, dtype: str) -> Any:
        """Return numbers between low and high, the first ones of a pool."""

        def made(n: int) -> Array:
            return self.rng.random(n, np.dtype(dtype)) * np.dtype(dtype).type(high - low) + np.dtype(dtype).type(low)

        return self.taken(("uniform", k, low, high, dtype), shape, made)

    def taken(self, key: Any, shape: Sequence[int], made: Callable[[int], Array]) -> Any:
        """Return a tensor over the first numbers of a pool, which grows on demand."""
        shape = self.cut(shape)
        size = int(np.prod(shape))
        if key not in self.pool or self.pool[key].size < size:
            self.pool[key] = mf.from_numpy(made(size), backend=BACKEND)
        return self.pool[key][:size].reshape(shape)

    def drawn(self, k: int, shape: Sequence[int], is_positive: bool = False) -> Any:
        """Return numbers that many rows read, like all numbers on a GPU."""
        return self.uniform(k, shape, 0.0, 1.0, "float32") if is_positive else self.normal(k, shape, "float32")

    def lend(self, who: str, arrays: Sequence[Any]) -> list[Any]:
        """Return the same memory as a player's arrays; for NumPy, a copy on the host."""
        if is_ours(who):
            return list(arrays)
        if who == "numpy":
            return [x.numpy() for x in arrays]
        if library(who) in ("torch", "jax"):
            module = self.module(who)
            return [getattr(module, "numpy", module).from_dlpack(x) for x in arrays]
        return [self.module(who).asarray(x) for x in arrays]

    def hand(self, who: str, arrays: Sequence[Any], gradients: bool) -> list[Any]:
        """Return the same memory as a player's arrays; with gradients, the first array is a copy."""
        handed = self.lend(who, arrays)
        if gradients:
            handed[0] = handed[0].clone().requires_grad_()
        return handed

    def held(self, array: Array) -> Any:
        """Return an array of the host as a tensor of the device."""
        return mf.from_numpy(array, backend=BACKEND)

    def exact(self, work: Work, arrays: Sequence[Any], part: Any = ...) -> Any:
        """Compute the work in float64 by CuPy, or, without CuPy, by NumPy on the host, which takes long."""
        return work(*[to_float64(self.read(x)[part]) for x in arrays])

    def read(self, result: Any) -> Any:
        """Return a player's result as an array of CuPy, or else of NumPy. Flatten and concatenate the tensors of a tuple."""
        if isinstance(result, tuple):
            return self.peers.get("cupy", np).concatenate([self.read(x).ravel() for x in result])
        result = result.detach() if hasattr(result, "detach") else result
        if hasattr(result, "backend") and result.backend != BACKEND:
            result = result.numpy()  # of minifuse, computed on the host
        if "cupy" in self.peers:
            return self.peers["cupy"].asarray(result)
        if isinstance(result, np.ndarray):
            return result
        return np.asarray(result.cpu() if hasattr(result, "cpu") else result.numpy())

    def settle(self) -> None:
        """Wait until the device is idle: the host's time of a call does not include its queue."""
        self.device.synchronize()

    def copier(self, nbytes: int) -> dict[str, Player]:
        """Return a player that moves as many bytes by a copy on the device: half of them read, half written."""
        torch: Any = self.peers.get("torch")
        if torch is None:
            return {}
        place = torch.from_dlpack(self.normal(0, (1,), "float32")).device
        source = torch.randn(nbytes // 8, device=place)
        return {"copy": partial(torch.empty_like(source).copy_, source)}


def on_device(row: Row, beside_copy: bool = False) -> Row:
    """Return the row, timed by the clock of the device, on request beside a copy of as many bytes."""

    def setup(bench: Bench) -> Contest:
        contest = replace(row.setup(bench), is_on_device=True)
        if "jax" in contest.players:
            contest.players["jax"] = in_own_stream(bench, contest.players["jax"])
        if not beside_copy or not isinstance(bench, GpuBench):
            return contest
        copy = bench.copier(contest.nbytes)
        return replace(contest, players=contest.players | copy, unchecked=tuple(copy))

    return replace(row, setup=setup)


def in_own_stream(bench: Bench, player: Player) -> Player:
    """Return a player that starts after all work on the device, and returns after its own; its streams are non-blocking."""

    def play() -> Any:
        bench.settle()
        return player()

    return play


class Events:
    """The clock of a device: events in its stream, and a way to flush its cache."""

    def __init__(self, device: Any) -> None:
        from minifuse.backends.cuda.device.driver import check

        self.device, self.bindings, self.check = device, device.bindings, check
        self.stream = int(device.stream.handle)
        self.scratch = device.allocate(FLUSHED)

    def record(self) -> Any:
        """Return an event after all work that is queued so far."""
        event = self.check(self.bindings.cuEventCreate(0))
        self.check(self.bindings.cuEventRecord(event, self.stream))
        return event

    def seconds(self, start: Any, end: Any) -> float:
        """Return the time between two completed events; both can be reused."""
        ms: float = self.check(self.bindings.cuEventElapsedTime(start, end))
        for event in (start, end):
            self.check(self.bindings.cuEventDestroy(event))
        return ms * 1e-3

    def flush(self) -> None:
        """Write enough to replace the contents of the L2 cache; meanwhile the host gets ahead of the device."""
        self.device.fill(self.scratch.address, FLUSHED, np.uint8(0))

    def synchronize(self) -> None:
        """Wait until the device is idle."""
        self.device.synchronize()
