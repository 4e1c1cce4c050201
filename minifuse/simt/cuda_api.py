"""The `cuda` namespace that kernels use: thread indices, barriers, warp operations, memory, atomics and bit operations.

Each function looks up the lane that is running, so one object serves all launches in all threads. `machine` computes the
result of a barrier or warp operation when all participating lanes have arrived. All other names raise UnknownWordError.
"""

import sys
from collections.abc import Callable
from typing import Final, Literal, NoReturn, SupportsInt, TypeVar, overload

import numpy as np

from ..core.errors import BarrierError, SimtError, UnknownWordError
from .address_spaces import AddressSpaces, CapturedConstantArray, ShapeLike
from .arithmetic import CASTS, DTYPE_ALIASES, DTypeName, ScalarFunction, cbrt, fma
from .atomics import AtomicFunctions
from .bytecode_locations import instruction_key
from .collectives import Registers
from .lanes import WARP_SIZE, Dim3, Lane, Wait, current, getcurrent, kernel_frame, lane_error, raise_unknown
from .libdevice import Fp16Functions
from .memory import KernelArray

FULL_MASK: Final = 0xFFFF_FFFF
Function = TypeVar("Function", bound=Callable[..., object])
Value = TypeVar("Value")
ShuffleName = Literal["shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync"]


def word(function: Function) -> Function:
    """Mark a Python function as an instruction: its accesses are attributed to the line of the kernel that calls it.

    Parameters
    ----------
    function : callable
        Python code that may use arrays and pointers of the launch, `cuda` and `current()`.

    Returns
    -------
    callable
        The function itself.

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
    function.is_word = True  # type: ignore[attr-defined]  # `rebind` reads it
    return function


class LaneIndex:
    """Indices or sizes along x, y and z, looked up for the running lane: `cuda.threadIdx`, `cuda.blockDim`, ..."""

    def __init__(self, name: str, find: Callable[[Lane], Dim3]) -> None:
        self._name, self._find = name, find

    def _index(self) -> Dim3:
        lane: Lane = getattr(getcurrent(), "lane", None) or current(f"cuda.{self._name}")
        return self._find(lane)

    x = property(lambda self: self._index()[0])
    y = property(lambda self: self._index()[1])
    z = property(lambda self: self._index()[2])


@overload
def join_collective(name: ShuffleName, mask: int, value: Value, other: int, /) -> Value: ...
@overload
def join_collective(name: Literal["any_sync", "all_sync", "eq_sync"], mask: int, predicate: object, /) -> bool: ...
@overload
def join_collective(name: Literal["ballot_sync", "match_any_sync"], mask: int, value: object, /) -> int: ...
@overload
def join_collective(name: Literal["match_all_sync"], mask: int, value: object, /) -> tuple[int, bool]: ...
@overload
def join_collective(name: Literal["mma_sync"], mask: int, *operands: object) -> tuple[np.float32, ...]: ...
@overload
def join_collective(name: Literal["shfl_registers"], mask: int, values: np.ndarray, other: int, /) -> np.ndarray: ...
@overload
def join_collective(name: Literal["syncwarp"], mask: int) -> None: ...
def join_collective(name: str, mask: int, *operands: object) -> object:
    """Wait until all lanes of a mask have reached this instruction, and return this lane's result."""
    lane = current(f"cuda.{name}")
    caller = sys._getframe(2)
    frame = kernel_frame(caller)
    mask = int(mask) & FULL_MASK
    if not mask >> lane.laneid & 1:
        raise lane_error(
            BarrierError,
            f"cuda.{name} with the mask {mask:#010x}, which does not include the calling lane {lane.laneid}",
            "a mask must include every lane that calls",
        )
    return lane.pause(Wait(name, instruction_key(caller, frame), mask, operands, frame))


def mma_sync(kind: str, a: Registers, b: Registers, c: Registers) -> tuple[np.float32, ...]:
    """Multiply two matrices stored in the lanes of a warp (`mma.sync`), and return this lane's fragment of a @ b + c.

    Parameters
    ----------
    kind : {"tf32", "bf16"}
        The operands: float32 values of which the upper 19 bits are used, or pairs of bf16 in 32-bit integers.
    a, b, c
        This lane's fragments: 4, 2 and 4 registers. `simt.fragments` defines which elements they contain.
    """
    return join_collective("mma_sync", FULL_MASK, kind, a, b, c)


def shuffle_registers(values: np.ndarray, lanes: int) -> np.ndarray:
    """Return the values of the lane xor `lanes`: one `shfl_xor_sync` for each register, in one step of the interpreter."""
    return join_collective("shfl_registers", FULL_MASK, values, lanes)


def wait_at_barrier(name: str, *predicates: object) -> int:
    """Wait at a barrier, and return its result."""
    lane = current(f"cuda.{name}")
    caller = sys._getframe(2)
    frame = kernel_frame(caller)
    result: int = lane.pause(Wait(name, instruction_key(caller, frame), 0, predicates, frame))
    return result


class SharedMemory:
    """`cuda.shared`: memory shared by the lanes of a block."""

    @staticmethod
    def array(shape: ShapeLike, dtype: DTypeName, alignment: int | None = None) -> KernelArray:
        """Return the shared array that this instruction creates: one array for all lanes of the block.

        With shape 0, it is the dynamic shared memory of the launch.
        """
        caller = sys._getframe(1)
        frame = kernel_frame(caller)
        lane = current("cuda.shared.array")
        spaces: AddressSpaces = lane.machine.spaces
        return spaces.shared_array(lane, instruction_key(caller, frame), frame, shape, dtype, alignment)

    def __getattr__(self, name: str) -> NoReturn:
        raise_unknown(f"cuda.shared.{name}")


class LocalMemory:
    """`cuda.local`: private memory of a lane."""

    @staticmethod
    def array(shape: ShapeLike, dtype: DTypeName, alignment: int | None = None) -> KernelArray:
        """Return the local array that this instruction creates: one array for each lane."""
        caller = sys._getframe(1)
        frame = kernel_frame(caller)
        lane = current("cuda.local.array")
        spaces: AddressSpaces = lane.machine.spaces
        return spaces.local_array(lane, instruction_key(caller, frame), frame, shape, dtype)

    def __getattr__(self, name: str) -> NoReturn:
        raise_unknown(f"cuda.local.{name}")


class ConstantMemory:
    """`cuda.const`: memory that kernels can only read."""

    @staticmethod
    def array_like(ndarray: object) -> KernelArray:
        """Return a NumPy array that the kernel refers to as a Python global variable, as a read-only array."""
        if isinstance(ndarray, CapturedConstantArray):
            return ndarray.launch_view()
        if not isinstance(ndarray, KernelArray):
            raise lane_error(
                UnknownWordError,
                f"cuda.const.array_like of a {type(ndarray).__name__}",
                "pass a NumPy array that is a global variable of the program",
            )
        return ndarray

    def __getattr__(self, name: str) -> NoReturn:
        raise_unknown(f"cuda.const.{name}")


class GridGroup:
    """All blocks of a cooperative launch."""

    @staticmethod
    def sync() -> None:
        """Wait for all lanes of the grid."""
        wait_at_barrier("grid.sync")


class CooperativeGroups:
    """`cuda.cg`: cooperative groups."""

    @staticmethod
    def this_grid() -> GridGroup:
        """Return the group of all blocks. They run concurrently."""
        return GridGroup()

    def __getattr__(self, name: str) -> NoReturn:
        raise_unknown(f"cuda.cg.{name}")


def leading_sizes(ndim: int, sizes: list[int]) -> int | tuple[int, ...]:
    """Return the first `ndim` sizes: an int for one, otherwise a tuple."""
    if ndim not in (1, 2, 3):
        raise SimtError(f"cuda.grid, cuda.gridsize: expected 1, 2 or 3 dims, got {ndim}")
    return sizes[0] if ndim == 1 else tuple(sizes[:ndim])


def unsigned_bits(value: SupportsInt) -> tuple[int, int]:
    """Return an integer as an unsigned number, and its width: 32 bits if it fits, otherwise 64."""
    number = int(value)
    bits = 32 if -(1 << 31) <= number < 1 << 32 else 64
    return number & ((1 << bits) - 1), bits


class CudaNamespace:
    """The names of `numba.cuda` that kernels use.

    Notes
    -----
    Integers have no fixed width. `clz`, `brev`, and `popc` of a negative number use 32 bits if the value fits, otherwise 64.
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
        """The index of the lane in its warp."""
        lane: Lane = current("cuda.laneid")
        return lane.laneid

    @overload
    @staticmethod
    def grid(ndim: Literal[1]) -> int: ...
    @overload
    @staticmethod
    def grid(ndim: Literal[2, 3]) -> tuple[int, ...]: ...
    @staticmethod
    def grid(ndim: int) -> int | tuple[int, ...]:
        """Return the index of the thread in the grid: an int for one dim, otherwise a tuple."""
        lane = current("cuda.grid")
        machine, thread, block = lane.machine, lane.threadIdx, lane.blockIdx
        if ndim == 1:
            return thread[0] + block[0] * machine.block[0]
        return leading_sizes(ndim, [t + b * size for t, b, size in zip(thread, block, machine.block, strict=True)])

    @overload
    @staticmethod
    def gridsize(ndim: Literal[1]) -> int: ...
    @overload
    @staticmethod
    def gridsize(ndim: Literal[2, 3]) -> tuple[int, ...]: ...
    @staticmethod
    def gridsize(ndim: int) -> int | tuple[int, ...]:
        """Return the number of threads in the grid: an int for one dim, otherwise a tuple."""
        machine = current("cuda.gridsize").machine
        return leading_sizes(ndim, [a * b for a, b in zip(machine.grid, machine.block, strict=True)])

    @staticmethod
    def syncthreads() -> None:
        """Wait for all lanes of the block."""
        wait_at_barrier("syncthreads")

    @staticmethod
    def syncthreads_count(predicate: object) -> int:
        """Wait for all lanes of the block, and return the number of true predicates."""
        return wait_at_barrier("syncthreads_count", predicate)

    @staticmethod
    def syncthreads_and(predicate: object) -> int:
        """Wait for all lanes of the block, and return 1 if the predicate is true for all of them."""
        return wait_at_barrier("syncthreads_and", predicate)

    @staticmethod
    def syncthreads_or(predicate: object) -> int:
        """Wait for all lanes of the block, and return 1 if the predicate is true for any of them."""
        return wait_at_barrier("syncthreads_or", predicate)

    @staticmethod
    def syncwarp(mask: int = FULL_MASK) -> None:
        """Wait for the lanes of the mask. Their earlier writes are visible to each other afterwards."""
        join_collective("syncwarp", mask)

    @staticmethod
    def shfl_sync(mask: int, value: Value, src_lane: int) -> Value:
        """Return the value of lane `src_lane`, modulo 32."""
        return join_collective("shfl_sync", mask, value, src_lane)

    @staticmethod
    def shfl_up_sync(mask: int, value: Value, delta: int) -> Value:
        """Return the value of the lane `delta` below, or this lane's value if there is none."""
        return join_collective("shfl_up_sync", mask, value, delta)

    @staticmethod
    def shfl_down_sync(mask: int, value: Value, delta: int) -> Value:
        """Return the value of the lane `delta` above, or this lane's value if there is none."""
        return join_collective("shfl_down_sync", mask, value, delta)

    @staticmethod
    def shfl_xor_sync(mask: int, value: Value, lane_mask: int) -> Value:
        """Return the value of the lane with the index `laneid ^ lane_mask`."""
        return join_collective("shfl_xor_sync", mask, value, lane_mask)

    @staticmethod
    def ballot_sync(mask: int, predicate: object) -> int:
        """Return a bit mask of the lanes whose predicate is true."""
        return join_collective("ballot_sync", mask, predicate)

    @staticmethod
    def any_sync(mask: int, predicate: object) -> bool:
        """Return whether the predicate is true for any lane of the mask."""
        return join_collective("any_sync", mask, predicate)

    @staticmethod
    def all_sync(mask: int, predicate: object) -> bool:
        """Return whether the predicate is true for all lanes of the mask."""
        return join_collective("all_sync", mask, predicate)

    @staticmethod
    def eq_sync(mask: int, predicate: object) -> bool:
        """Return whether the predicate is equal for all lanes of the mask."""
        return join_collective("eq_sync", mask, predicate)

    @staticmethod
    def match_any_sync(mask: int, value: object) -> int:
        """Return a bit mask of the lanes with the same value."""
        return join_collective("match_any_sync", mask, value)

    @staticmethod
    def match_all_sync(mask: int, value: object) -> tuple[int, bool]:
        """Return (mask, True) if all lanes of the mask have the same value, otherwise (0, False)."""
        return join_collective("match_all_sync", mask, value)

    @staticmethod
    def activemask() -> int:
        """Return a bit mask of the lanes of the warp that execute this instruction together."""
        lane = current("cuda.activemask")
        caller = sys._getframe(1)
        frame = kernel_frame(caller)
        mask: int = lane.pause(Wait("activemask", instruction_key(caller, frame), 1 << lane.laneid, (), frame))
        return mask

    @staticmethod
    def lanemask_lt() -> int:
        """Return a bit mask of the lanes of the warp with a smaller index."""
        return (1 << current("cuda.lanemask_lt").laneid) - 1

    @staticmethod
    def threadfence() -> None:
        """Order this lane's accesses as seen by the whole device."""
        record_fence("threadfence")

    @staticmethod
    def threadfence_block() -> None:
        """Order this lane's accesses as seen by its block."""
        record_fence("threadfence_block")

    @staticmethod
    def threadfence_system() -> None:
        """Order this lane's accesses as seen by all devices and the host."""
        record_fence("threadfence_system")

    @staticmethod
    def nanosleep(ns: int) -> None:
        """Let other lanes run. No time passes."""
        current("cuda.nanosleep").machine.spin(sys._getframe(1))

    @staticmethod
    def selp(condition: object, a: Value, b: Value) -> Value:
        """Return `a` if the condition is true, otherwise `b`."""
        return a if condition else b

    @staticmethod
    def popc(value: SupportsInt) -> int:
        """Count the bits that are set."""
        return unsigned_bits(value)[0].bit_count()

    @staticmethod
    def clz(value: SupportsInt) -> int:
        """Count the leading zero bits."""
        number, bits = unsigned_bits(value)
        return bits - number.bit_length()

    @staticmethod
    def ffs(value: SupportsInt) -> int:
        """Return the position of the lowest set bit, counted from 1, or 0 if no bit is set."""
        number = int(value)
        return (number & -number).bit_length()

    @staticmethod
    def brev(value: SupportsInt) -> int:
        """Reverse the order of the bits."""
        number, bits = unsigned_bits(value)
        return int(f"{number:0{bits}b}"[::-1], 2)

    fma = staticmethod(fma)
    cbrt = staticmethod(cbrt)

    def __getattr__(self, name: str) -> ScalarFunction:
        kind = DTYPE_ALIASES.get(name, name)
        if kind in CASTS:
            return CASTS[kind]
        if name.startswith("__") or getattr(getcurrent(), "lane", None) is None:
            raise AttributeError(f"minifuse.simt does not support cuda.{name}")
        return raise_unknown(f"cuda.{name}")


def record_fence(kind: str) -> None:
    """Record a memory fence. A fence waits for no other lane."""
    lane = current(f"cuda.{kind}")
    frame = kernel_frame(sys._getframe(1))
    lane.machine.record_fence(lane, kind, frame)
    lane.machine.spin(frame)


cuda = CudaNamespace()
