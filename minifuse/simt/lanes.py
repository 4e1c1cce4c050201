"""Lanes: the threads of a launch, one greenlet each, and where in the kernel a lane is.

The machine makes and resumes them; words and arrays ask for the current one. Greenlets belong to one thread of the operating
system, so two launches in two threads do not meet.
"""

import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from ..core.errors import MissingPartError, SimtError, UnknownWordError
from .columnar import WARP_SIZE as WARP_SIZE

try:
    from greenlet import getcurrent as getcurrent  # type: ignore[import-untyped]
    from greenlet import greenlet
except ImportError as error:
    raise MissingPartError('minifuse.simt runs each lane as a greenlet: pip install "minifuse[simt]"') from error

if TYPE_CHECKING:
    from .machine import Machine

KERNEL_BUILTINS: Final[
    dict[str, Any]
] = {}  # of functions of kernels alone, so that a frame shows whether it is the kernel's; see arithmetic


class Dim3(NamedTuple):
    """Three sizes or positions along x, y and z."""

    x: int
    y: int
    z: int


class Wait(NamedTuple):
    """What a lane waits for."""

    operation: str
    key: tuple[int, ...]  # equal for lanes at the same instruction
    mask: int  # lanes of the warp that must meet; 0 for barriers
    operands: tuple[Any, ...]
    frame: FrameType  # the kernel's

    @property
    def line(self) -> tuple[str, int]:
        """File and line."""
        return self.frame.f_code.co_filename, self.frame.f_lineno


class Lane:
    """One thread of a launch."""

    __slots__ = (
        *("result", "blockIdx", "block", "copies", "epoch", "is_done", "laneid", "locals", "machine", "runner"),
        *("thread", "threadIdx", "wait", "warp", "warp_epoch"),
    )

    def __init__(self, machine: "Machine", block: int, thread: int, block_idx: Dim3, thread_idx: Dim3) -> None:
        self.machine = machine
        self.block, self.thread = block, thread  # linear
        self.blockIdx, self.threadIdx = block_idx, thread_idx
        self.laneid, self.warp = thread % WARP_SIZE, thread // WARP_SIZE
        self.epoch = self.warp_epoch = 0
        self.is_done = False
        self.runner: LaneRunner | None = None
        self.wait: Wait | None = None
        self.result: Any = None  # of the last barrier
        self.locals: dict[tuple[int, ...], Any] | None = None  # its local arrays, by the place of their making
        self.copies: list[list[tuple[Any, int, int]]] | None = None  # on their way: array, index, width; in groups

    def pause(self, wait: Wait) -> Any:
        """Let other lanes run until the machine has an answer."""
        self.wait = wait
        return self.machine.home.switch()

    @property
    def position(self) -> str:
        """Where it is in the launch, in words."""
        machine = self.machine
        thread = format_position(self.threadIdx, machine.block_rank)
        return f"thread {thread} of block {format_position(self.blockIdx, machine.grid_rank)}"


class LaneRunner(greenlet):  # type: ignore[misc]
    """A greenlet that runs lanes: many, one after the other, as long as none of them pauses.

    To begin a greenlet costs 8 us, to switch to one 0.7 us.
    """

    lane: Lane | None = None

    def run(self, kernel: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Run the kernel once for each lane that is set."""
        home = self.parent
        while True:
            kernel(*arguments)
            self.lane.is_done = True  # type: ignore[union-attr]
            home.switch()


def current(word: str = "this word") -> Lane:
    """The lane that runs; an error outside a launch."""
    lane = getattr(getcurrent(), "lane", None)
    if lane is None:
        raise SimtError(
            f"{word} means something only inside a kernel; launch it with simt.run(kernel, grid, block, ...) or simt.trace"
        )
    return lane  # type: ignore[no-any-return]


def format_position(position: tuple[int, ...], rank: int) -> str:
    """A position as the launch counts: `5` along one dimension, `(5, 0)` along two."""
    return str(position[0]) if rank == 1 else str(tuple(position[:rank]))


def kernel_frame(frame: FrameType | None) -> FrameType:
    """The innermost frame of the kernel, or of a function that it calls, from here outwards."""
    while frame is not None and frame.f_builtins is not KERNEL_BUILTINS:
        frame = frame.f_back
    if frame is None:
        raise SimtError("an array of a launch is used outside its kernel; use the NumPy array that was passed in")
    return frame


def frame_line(frame: FrameType) -> tuple[str, int]:
    """File and line at which a frame is."""
    return frame.f_code.co_filename, frame.f_lineno


def traceback_line(traceback: TracebackType | None) -> tuple[str, int] | None:
    """File and line of the kernel at which an exception arose; None where the kernel was not entered."""
    found = None
    while traceback is not None:
        if traceback.tb_frame.f_builtins is KERNEL_BUILTINS:
            found = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
    return found


def lane_error(kind: type[SimtError], what: str, advice: str, **details: Any) -> SimtError:
    """An error of the current lane: `what, by thread (4, 3) of block (0, 0) at matmul.py:41; advice`."""
    lane = current()
    file, line = frame_line(kernel_frame(sys._getframe(1)))
    machine = lane.machine
    return kind(
        f"{what}, by {lane.position} at {file_name(file)}:{line}; {advice}",
        lines=((file, line),),
        block=tuple(lane.blockIdx[: machine.grid_rank]),
        threads=(tuple(lane.threadIdx[: machine.block_rank]),),
        epoch=lane.epoch,
        **details,
    )


def file_name(file: str) -> str:
    """The last part of a path."""
    return file.replace("\\", "/").rsplit("/", 1)[-1]


def raise_unknown(name: str) -> NoReturn:
    """Raise the error for a name that kernels here do not have, with the kernel's line where there is one."""
    lane = getattr(getcurrent(), "lane", None)
    if lane is None:
        raise UnknownWordError(f"{name} is unknown to minifuse.simt")
    file, line = frame_line(kernel_frame(sys._getframe(1)))
    raise UnknownWordError(f"{name} at {file_name(file)}:{line} is unknown to minifuse.simt", lines=((file, line),))
