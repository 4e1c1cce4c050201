"""`cuda` as a kernel sees it: positions, barriers, warp operations, memory, atomics, bits.

A word finds the lane that runs, so one object serves every launch, in every thread. What a barrier or a warp operation
gives is decided in `machine`, when all lanes that must meet have come. A name that is not here raises UnknownWordError.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, TypeVar

from ..core.errors import BarrierError, UnknownWordError
from .address_spaces import ConstantClosureArray
from .arithmetic import CASTS, DTYPE_ALIASES, MATH, fma
from .atomics import AtomicFunctions
from .bytecode_locations import instruction_key
from .lanes import WARP_SIZE, Lane, Wait, current, getcurrent, kernel_frame, lane_error, raise_unknown
from .libdevice import Fp16Functions
from .memory import KernelArray

FULL_MASK: Final = 0xFFFF_FFFF
Function = TypeVar("Function", bound=Callable[..., Any])


def word(function: Function) -> Function:
    """Mark the Python meaning of an instruction: it runs as it stands, and what it accesses belongs to the kernel's line.

    Parameters
    ----------
    function : callable
        Uses arrays and pointers of the launch, `cuda`, `current()` and Python.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> from minifuse import simt
    >>> import numpy as np
    >>> @simt.word
    ... def load_pair(array, i):
    ...     return array.load(2 * i, 2)
    >>> def swap(a):
    ...     i = simt.cuda.threadIdx.x
    ...     a[2 * i + 1], a[2 * i] = load_pair(a, i)
    >>> a = np.arange(4.0)
    >>> simt.run(swap, 1, 2, a)
    >>> a
    array([1., 0., 3., 2.])
    """
    function.is_word = True  # type: ignore[attr-defined]
    return function


class LaneIndex:
    """A triple of the current lane: `cuda.threadIdx`, `cuda.blockDim`, ..."""

    def __init__(self, name: str, find: Callable[[Lane], tuple[int, int, int]]) -> None:
        self._name, self._find = name, find

    def _index(self) -> tuple[int, int, int]:
        lane = getattr(getcurrent(), "lane", None) or current(f"cuda.{self._name}")
        return self._find(lane)

    x = property(lambda self: self._index()[0])
    y = property(lambda self: self._index()[1])
    z = property(lambda self: self._index()[2])


def join_collective(name: str, mask: Any, *operands: Any) -> Any:
    """Wait until the lanes of a mask have come to this instruction; what it gives to this lane."""
    lane = current(f"cuda.{name}")
    caller = sys._getframe(2)
    frame = kernel_frame(caller)
    mask = int(mask) & FULL_MASK
    if not mask >> lane.laneid & 1:
        raise lane_error(
            BarrierError,
            f"cuda.{name} with the mask {mask:#010x}, which leaves out the calling lane {lane.laneid}",
            "a mask names every lane that calls",
        )
    return lane.pause(Wait(name, instruction_key(caller, frame), mask, operands, frame))


def mma_sync(kind: str, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any]) -> tuple[Any, ...]:
    """The lane's fragment of a @ b + c, of matrices that the warp holds together: `mma.sync`.

    Parameters
    ----------
    kind : {"tf32", "bf16"}
        What the operands are: float32 of which the upper 19 bits count, or pairs of bf16 in integers of 32 bits.
    a, b, c
        Its fragments of the operands: 4, 2 and 4 registers. See `simt.fragments` for where their elements lie.
    """
    return join_collective("mma_sync", FULL_MASK, kind, a, b, c)  # type: ignore[no-any-return]


def wait_at_barrier(name: str, *operands: Any) -> Any:
    """Wait at a barrier; what it gives."""
    lane = current(f"cuda.{name}")
    caller = sys._getframe(2)
    frame = kernel_frame(caller)
    return lane.pause(Wait(name, instruction_key(caller, frame), 0, operands, frame))


class SharedMemory:
    """`cuda.shared`: memory of a block."""

    @staticmethod
    def array(shape: Any, dtype: Any, alignment: int | None = None) -> KernelArray:
        """An array of the block, the same for all its lanes; one an instruction. Shape 0: the dynamic shared memory."""
        caller = sys._getframe(1)
        frame = kernel_frame(caller)
        return current("cuda.shared.array").machine.shared_array(
            instruction_key(caller, frame), frame, shape, dtype, alignment
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise_unknown(f"cuda.shared.{name}")


class LocalMemory:
    """`cuda.local`: memory of a lane."""

    @staticmethod
    def array(shape: Any, dtype: Any, alignment: int | None = None) -> KernelArray:
        """An array of this lane; one an instruction."""
        caller = sys._getframe(1)
        frame = kernel_frame(caller)
        return current("cuda.local.array").machine.local_array(instruction_key(caller, frame), frame, shape, dtype)

    def __getattr__(self, name: str) -> NoReturn:
        raise_unknown(f"cuda.local.{name}")


class ConstantMemory:
    """`cuda.const`: memory that kernels only read."""

    @staticmethod
    def array_like(ndarray: Any) -> KernelArray:
        """The array of the surrounding program, as it is."""
        if isinstance(ndarray, ConstantClosureArray):
            return ndarray.launch_view()
        if not isinstance(ndarray, KernelArray):
            raise lane_error(
                UnknownWordError,
                f"cuda.const.array_like of a {type(ndarray).__name__}",
                "it takes an array of the program around the kernel",
            )
        return ndarray

    def __getattr__(self, name: str) -> NoReturn:
        raise_unknown(f"cuda.const.{name}")


class GridGroup:
    """All blocks of a cooperative launch."""

    @staticmethod
    def sync() -> None:
        """Wait for every lane of the grid."""
        wait_at_barrier("grid.sync")


class CooperativeGroups:
    """`cuda.cg`."""

    @staticmethod
    def this_grid() -> GridGroup:
        """All blocks; they are alive at once."""
        return GridGroup()

    def __getattr__(self, name: str) -> NoReturn:
        raise_unknown(f"cuda.cg.{name}")


def unsigned_bits(value: Any) -> tuple[int, int]:
    """An integer without its sign, and the bits that it has: 32, or 64 where it does not fit."""
    value = int(value)
    bits = 32 if -(1 << 31) <= value < 1 << 32 else 64
    return value & ((1 << bits) - 1), bits


class CudaNamespace:
    """The words of `numba.cuda` that kernels use.

    Notes
    -----
    Integers have no width here: `popc` of a negative one, `clz` and `brev` count in 32 bits where the value fits them, else
    in 64.
    """

    threadIdx = LaneIndex("threadIdx", lambda lane: lane.threadIdx)  # noqa: N815
    blockIdx = LaneIndex("blockIdx", lambda lane: lane.blockIdx)  # noqa: N815
    blockDim = LaneIndex("blockDim", lambda lane: lane.machine.block)  # noqa: N815
    gridDim = LaneIndex("gridDim", lambda lane: lane.machine.grid)  # noqa: N815
    warpsize = WARP_SIZE
    shared, local, const, atomic, cg, fp16 = (
        SharedMemory(),
        LocalMemory(),
        ConstantMemory(),
        AtomicFunctions(),
        CooperativeGroups(),
        Fp16Functions(),
    )

    @property
    def laneid(self) -> int:
        """The position of the lane in its warp."""
        lane: Lane = current("cuda.laneid")
        return lane.laneid

    @staticmethod
    def grid(ndim: int) -> Any:
        """The position in the grid: an int for one dim, else a tuple."""
        lane = current("cuda.grid")
        machine, thread, block = lane.machine, lane.threadIdx, lane.blockIdx
        if ndim == 1:
            return thread[0] + block[0] * machine.block[0]
        return machine.leading_sizes(ndim, [t + b * size for t, b, size in zip(thread, block, machine.block, strict=True)])

    @staticmethod
    def gridsize(ndim: int) -> Any:
        """The threads of the grid: an int for one dim, else a tuple."""
        machine = current("cuda.gridsize").machine
        return machine.leading_sizes(ndim, [a * b for a, b in zip(machine.grid, machine.block, strict=True)])

    @staticmethod
    def syncthreads() -> None:
        """Wait for all lanes of the block."""
        wait_at_barrier("syncthreads")

    @staticmethod
    def syncthreads_count(predicate: Any) -> int:
        """Wait for all lanes of the block; for how many the predicate is true."""
        return wait_at_barrier("syncthreads_count", predicate)  # type: ignore[no-any-return]

    @staticmethod
    def syncthreads_and(predicate: Any) -> int:
        """Wait for all lanes of the block; 1 where the predicate is true for all."""
        return wait_at_barrier("syncthreads_and", predicate)  # type: ignore[no-any-return]

    @staticmethod
    def syncthreads_or(predicate: Any) -> int:
        """Wait for all lanes of the block; 1 where the predicate is true for any."""
        return wait_at_barrier("syncthreads_or", predicate)  # type: ignore[no-any-return]

    @staticmethod
    def syncwarp(mask: int = FULL_MASK) -> None:
        """Wait for the lanes of the mask; what they wrote before is seen after."""
        join_collective("syncwarp", mask)

    @staticmethod
    def shfl_sync(mask: int, value: Any, src_lane: int) -> Any:
        """The value of lane `src_lane`, modulo 32."""
        return join_collective("shfl_sync", mask, value, src_lane)

    @staticmethod
    def shfl_up_sync(mask: int, value: Any, delta: int) -> Any:
        """The value of the lane `delta` below; the own one where there is none."""
        return join_collective("shfl_up_sync", mask, value, delta)

    @staticmethod
    def shfl_down_sync(mask: int, value: Any, delta: int) -> Any:
        """The value of the lane `delta` above; the own one where there is none."""
        return join_collective("shfl_down_sync", mask, value, delta)

    @staticmethod
    def shfl_xor_sync(mask: int, value: Any, lane_mask: int) -> Any:
        """The value of the lane whose number is this one's xor `lane_mask`."""
        return join_collective("shfl_xor_sync", mask, value, lane_mask)

    @staticmethod
    def ballot_sync(mask: int, predicate: Any) -> int:
        """A bit for each lane of the mask whose predicate is true."""
        return join_collective("ballot_sync", mask, predicate)  # type: ignore[no-any-return]

    @staticmethod
    def any_sync(mask: int, predicate: Any) -> bool:
        """Whether the predicate is true for any lane of the mask."""
        return join_collective("any_sync", mask, predicate)  # type: ignore[no-any-return]

    @staticmethod
    def all_sync(mask: int, predicate: Any) -> bool:
        """Whether the predicate is true for all lanes of the mask."""
        return join_collective("all_sync", mask, predicate)  # type: ignore[no-any-return]

    @staticmethod
    def eq_sync(mask: int, predicate: Any) -> bool:
        """Whether the predicate is the same for all lanes of the mask."""
        return join_collective("eq_sync", mask, predicate)  # type: ignore[no-any-return]

    @staticmethod
    def match_any_sync(mask: int, value: Any) -> int:
        """A bit for each lane of the mask that has the same value."""
        return join_collective("match_any_sync", mask, value)  # type: ignore[no-any-return]

    @staticmethod
    def match_all_sync(mask: int, value: Any) -> tuple[int, bool]:
        """The mask and True where all its lanes have the same value, else 0 and False."""
        return join_collective("match_all_sync", mask, value)  # type: ignore[no-any-return]

    @staticmethod
    def activemask() -> int:
        """A bit for each lane of the warp that comes to this instruction together with this one."""
        lane = current("cuda.activemask")
        caller = sys._getframe(1)
        frame = kernel_frame(caller)
        return lane.pause(Wait("activemask", instruction_key(caller, frame), 1 << lane.laneid, (), frame))  # type: ignore[no-any-return]

    @staticmethod
    def lanemask_lt() -> int:
        """A bit for each lane of the warp below this one."""
        return (1 << current("cuda.lanemask_lt").laneid) - 1

    @staticmethod
    def threadfence() -> None:
        """Order the accesses of this lane for the whole device."""
        record_fence("threadfence")

    @staticmethod
    def threadfence_block() -> None:
        """Order the accesses of this lane for its block."""
        record_fence("threadfence_block")

    @staticmethod
    def threadfence_system() -> None:
        """Order the accesses of this lane for all devices."""
        record_fence("threadfence_system")

    @staticmethod
    def nanosleep(ns: int) -> None:
        """Let others run; no time passes."""
        current("cuda.nanosleep").machine.spin(sys._getframe(1))

    @staticmethod
    def selp(condition: Any, a: Any, b: Any) -> Any:
        """`a` where the condition is true, else `b`."""
        return a if condition else b

    @staticmethod
    def popc(value: Any) -> int:
        """How many bits are set."""
        return unsigned_bits(value)[0].bit_count()

    @staticmethod
    def clz(value: Any) -> int:
        """How many bits above the highest one that is set."""
        found, bits = unsigned_bits(value)
        return bits - found.bit_length()

    @staticmethod
    def ffs(value: Any) -> int:
        """The position of the lowest bit that is set, from 1; 0 where none is."""
        found = int(value)
        return (found & -found).bit_length()

    @staticmethod
    def brev(value: Any) -> int:
        """The bits in the opposite order."""
        found, bits = unsigned_bits(value)
        return int(f"{found:0{bits}b}"[::-1], 2)

    fma = staticmethod(fma)
    cbrt = staticmethod(MATH["cbrt"])

    def __getattr__(self, name: str) -> Any:
        kind = DTYPE_ALIASES.get(name, name)
        if kind in CASTS:
            return CASTS[kind]
        if name.startswith("__") or getattr(getcurrent(), "lane", None) is None:
            raise AttributeError(f"minifuse.simt knows no word cuda.{name}")
        return raise_unknown(f"cuda.{name}")


def record_fence(kind: str) -> None:
    """Record a memory fence; it waits for nobody."""
    lane = current(f"cuda.{kind}")
    frame = kernel_frame(sys._getframe(1))
    lane.machine.record_fence(lane, kind, frame)
    lane.machine.spin(frame)


cuda = CudaNamespace()
