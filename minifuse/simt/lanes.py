"""Lanes: the threads of a launch, each run by a greenlet.

The machine creates and resumes lanes; functions of `cuda` and arrays look up the current one. A greenlet belongs to one
operating system thread, so launches in different threads are independent.
"""

import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from ..core.errors import MissingPartError, SimtError, UnknownWordError, short_file
from .bytecode_locations import InstructionKey, Line
from .columnar import WARP_SIZE as WARP_SIZE
from .record import Recorder

try:
    from greenlet import getcurrent as getcurrent  # type: ignore[import-untyped]  # ships no types
    from greenlet import greenlet
except ImportError as error:
    raise MissingPartError('minifuse.simt needs the package greenlet to run lanes: pip install "minifuse[simt]"') from error

KERNEL_BUILTINS: Final[dict[str, object]] = {}  # filled by `arithmetic`; a frame with these builtins runs kernel code


class Dim3(NamedTuple):
    """Three sizes or indices along x, y and z."""

    x: int
    y: int
    z: int


class LaunchState(Protocol):
    """The launch that lanes and arrays belong to: the part of `machine.Machine` that other modules use."""

    grid: Dim3
    block: Dim3
    grid_rank: int
    block_rank: int
    recorder: Recorder | None
    spins: int  # consecutive polls without progress
    home: greenlet  # the greenlet that resumes the lanes
    spaces: Any  # an AddressSpaces; that module imports this one

    def report_hazard(self, error: SimtError) -> None:
        """Record a hazard that does not end the launch."""

    def spin(self, frame: FrameType) -> None:
        """Count a poll of the running lane, which may be waiting for another lane."""

    def record_fence(self, lane: "Lane", kind: str, frame: FrameType) -> None:
        """Record a memory fence of a lane."""


class Wait(NamedTuple):
    """The operation that a lane waits for."""

    operation: str
    key: InstructionKey
    mask: int  # lanes of the warp that must arrive; 0 for barriers
    operands: tuple[Any, ...]  # of the types that `collectives` lists for the operation
    frame: FrameType  # of the kernel

    @property
    def line(self) -> Line:
        """The file and line of the kernel."""
        return self.frame.f_code.co_filename, self.frame.f_lineno


class WritableArray(Protocol):
    """An array that an asynchronous copy writes."""

    def mark(self, index: int, width: int, is_written: bool) -> None:
        """Mark `width` adjacent elements as written or not written."""


CopyInFlight = tuple[WritableArray, int, int]  # array, index, width


class Lane:
    """One thread of a launch."""

    __slots__ = (
        *("result", "blockIdx", "block", "copies", "epoch", "is_done", "laneid", "locals", "machine", "runner"),
        *("thread", "threadIdx", "wait", "warp", "warp_epoch"),
    )

    def __init__(self, machine: LaunchState, block: int, thread: int, block_idx: Dim3, thread_idx: Dim3) -> None:
        self.machine = machine
        self.block, self.thread = block, thread  # linear indices
        self.blockIdx, self.threadIdx = block_idx, thread_idx
        self.laneid, self.warp = thread % WARP_SIZE, thread // WARP_SIZE
        self.epoch = self.warp_epoch = 0
        self.is_done = False
        self.runner: LaneRunner | None = None
        self.wait: Wait | None = None
        self.result: int | None = None  # the result of the last barrier
        self.locals: dict[InstructionKey, Any] | None = None  # KernelArray values; that module imports this one
        self.copies: list[list[CopyInFlight]] | None = None  # groups of asynchronous copies in flight

    def pause(self, wait: Wait) -> Any:
        """Suspend this lane until the machine has a result for it, and return the result."""
        self.wait = wait
        return self.machine.home.switch()

    @property
    def position(self) -> str:
        """The thread and block in words, for messages."""
        machine = self.machine
        thread = format_position(self.threadIdx, machine.block_rank)
        return f"thread {thread} of block {format_position(self.blockIdx, machine.grid_rank)}"


class LaneRunner(greenlet):  # type: ignore[misc]  # greenlet ships no types
    """A greenlet that runs a lane to its end, then the next lane that the machine assigns.

    It is reused because starting a greenlet takes 8 us, and switching to one only 0.7 us.
    """

    lane: Lane | None = None

    def run(self, kernel: Callable[..., object], arguments: tuple[object, ...]) -> None:
        """Run the kernel once for each lane that the machine assigns, and pass its result to the machine."""
        home = self.parent
        while True:
            result = kernel(*arguments)
            self.lane.is_done = True  # type: ignore[union-attr]  # the machine has set it
            home.switch(result)


def current(name: str = "this function") -> Lane:
    """Return the lane that is running. Raise SimtError outside a launch."""
    lane: Lane | None = getattr(getcurrent(), "lane", None)
    if lane is None:
        raise SimtError(
            f"{name} works only inside a kernel; launch the kernel with simt.run(kernel, grid, block, ...) or simt.trace"
        )
    return lane


def format_position(position: tuple[int, ...], rank: int) -> str:
    """Format a position with as many dims as the launch has: `5` for one dim, `(5, 0)` for two."""
    return str(position[0]) if rank == 1 else str(tuple(position[:rank]))


def kernel_frame(frame: FrameType | None) -> FrameType:
    """Return the innermost frame, starting at `frame`, that runs the kernel or a function that it calls."""
    while frame is not None and frame.f_builtins is not KERNEL_BUILTINS:
        frame = frame.f_back
    if frame is None:
        raise SimtError("an array of a kernel was used outside the kernel; use the NumPy array that you passed in")
    return frame


def frame_line(frame: FrameType) -> Line:
    """Return the file and line that a frame is executing."""
    return frame.f_code.co_filename, frame.f_lineno


def traceback_line(traceback: TracebackType | None) -> Line | None:
    """Return the file and line of the kernel that raised an exception, or None if no kernel code ran."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_builtins is KERNEL_BUILTINS:
            line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def lane_error(
    kind: type[SimtError], problem: str, advice: str, array: str | None = None, element: tuple[Any, ...] | None = None
) -> SimtError:
    """Build an error of the current lane: `problem, by thread (4, 3) of block (0, 0) at matmul.py:41; advice`."""
    lane = current()
    file, line = frame_line(kernel_frame(sys._getframe(1)))
    machine = lane.machine
    return kind(
        f"{problem}, by {lane.position} at {short_file(file)}:{line}; {advice}",
        lines=((file, line),),
        block=tuple(lane.blockIdx[: machine.grid_rank]),
        threads=(tuple(lane.threadIdx[: machine.block_rank]),),
        array=array,
        element=element,
        epoch=lane.epoch,
    )


def raise_unknown(name: str) -> NoReturn:
    """Raise UnknownWordError for a name that kernels cannot use, with the kernel's line if a kernel is running."""
    lane = getattr(getcurrent(), "lane", None)
    if lane is None:
        raise UnknownWordError(f"{name} is not supported by minifuse.simt")
    file, line = frame_line(kernel_frame(sys._getframe(1)))
    raise UnknownWordError(f"{name} at {short_file(file)}:{line} is not supported by minifuse.simt", lines=((file, line),))
