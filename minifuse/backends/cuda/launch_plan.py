"""Launch plans: everything that defines kernel launches, before they run.

A `GpuPlan` has the launches of hand-written kernels over operands without addresses. A `LaunchPlan` is one launch with all
arguments: the interpreter, the app, the tests and the GPU use the same one, so a picture shows exactly the launch that runs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType
from ...simt import Pointer
from .device.tensor_maps import TensorMapBox
from .geometry import LaunchGeometry
from .tile_shapes import GpuKernel

OUT, WORKSPACE = 0, -1  # operand indices of the first output and of the workspace

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


class OperandAddress(NamedTuple):
    """An address: `offset` elements after the start of an operand or of the workspace. Outputs are the first operands.

    The elements are of `dtype`, or of the dtype of the operand.
    """

    operand: int
    offset: int = 0
    dtype: DType | None = None


class NumberArgument(NamedTuple):
    """One of the numbers that the caller passes to a launch, by position."""

    position: int


class TensorMapArgument(NamedTuple):
    """An operand that is passed as a tensor map, from which the copy engine reads its layout."""

    address: OperandAddress
    box: TensorMapBox


Argument = OperandAddress | NumberArgument | TensorMapArgument | int | float
PointerOf = Callable[[OperandAddress], int | Pointer]  # an address or, for the interpreter, a pointer


class GpuLaunch(NamedTuple):
    """One launch of a kernel over operands without their addresses."""

    kernel: GpuKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]  # of the types in the kernel's signature


class GpuPlan(NamedTuple):
    """The launches of a step in order, and the bytes of workspace that they share."""

    launches: tuple[GpuLaunch, ...] = ()
    workspace: int = 0
