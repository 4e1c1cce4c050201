"""A launch plan: everything that defines one kernel launch, before it runs.

The interpreter, the app, the tests and the GPU use the same plan, so a picture shows exactly the launch that runs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...simt import Pointer
from .geometry import LaunchGeometry

KernelArgument = int | float | np.generic | np.ndarray | Pointer  # for the interpreter, an address is a pointer or an array


class LaunchPlan(NamedTuple):
    """One launch of a kernel."""

    kernel: Callable[..., None]
    grid: tuple[int, ...]  # blocks along x, y, z
    block: tuple[int, ...]  # threads along x, y, z
    arguments: tuple[KernelArgument, ...]
    shared: int = 0  # bytes of dynamic shared memory


class DeviceLaunch(partial[None]):
    """A launch of a loaded kernel without its arguments, as `device.prepare` returns it."""

    kernel: Any  # as `load` of the same device returns it
    geometry: LaunchGeometry
    shared: int  # bytes


class ReadyLaunch(NamedTuple):
    """One launch on a GPU, before it runs: the prepared launch, and the types and values of its arguments."""

    run: DeviceLaunch
    kinds: tuple[str, ...]
    arguments: list[KernelArgument]
    owner: object = None  # owns memory that must stay allocated until the launch has ended
