"""Errors of lanes that cannot go on: who waits, who is elsewhere, both lines, and what would help."""

import dis
from collections.abc import Iterable
from types import CodeType, FrameType

from ..core.errors import BarrierError, DivergenceError, LoopLimitError, SimtError, UnknownWordError
from .lanes import Lane, Wait, base_name, place
from .loops import loop_line

Line = tuple[str, int]


def left_barrier(lanes: list[Lane]) -> SimtError:
    """A block's barrier that some lanes wait at and others do not."""
    waiting = next(lane for lane in lanes if lane.waits is not None)
    wait = awaited(waiting)
    gone = [lane for lane in lanes if lane.waits is None]
    others = gone or [lane for lane in lanes if awaited(lane).key != wait.key]
    sentence, lines = whereabouts(others[0], wait)
    return error(
        BarrierError,
        f"{waiting.position} waits at {named(wait)}, but {sentence}{and_others(others)}; every thread of the "
        f"block must come to the same barrier: {'skip the work, not the barrier' if gone else 'move it out of the branch'}",
        [waiting, others[0]],
        [wait.line, *lines],
    )


def left_grid(waiting: list[list[Lane]], blocks: list[list[Lane]]) -> SimtError:
    """A barrier of the grid that some blocks wait at while others have ended."""
    lane = waiting[0][0]
    ended = next(lanes[0] for lanes in blocks if lanes[0].is_done)
    wait = awaited(lane)
    sentence, lines = whereabouts(ended, wait)
    return error(
        BarrierError,
        f"{lane.position} waits at {named(wait)}, but {sentence}; every thread of the grid must come to it",
        [lane, ended],
        [wait.line, *lines],
    )


def stuck_warp(warp: list[Lane], group: list[Lane]) -> SimtError:
    """A warp operation that not all lanes of its mask come to."""
    wait = awaited(group[0])
    there = {lane.laneid for lane in group}
    missing = [lane for lane in warp if wait.mask >> lane.laneid & 1 and lane.laneid not in there]
    other = missing[0]
    sentence, lines = whereabouts(other, wait)
    diverged = other.waits is not None and other.waits.mask
    kind = DivergenceError if diverged else BarrierError
    if diverged and awaited(other).key == wait.key:
        sentence += f" with the mask {awaited(other).mask:#010x}"
    return error(
        kind,
        f"{group[0].position} waits at {named(wait)} with the mask {wait.mask:#010x}, but {sentence}"
        f"{and_others(missing)}; every lane of the mask must come to the same instruction: mask the lanes that do, or "
        "move it out of the branch",
        [group[0], other],
        [wait.line, *lines],
    )


def no_source(lanes: list[Lane], reader: int, source: int) -> SimtError:
    """A shuffle that reads from a lane that does not take part."""
    lane = next(lane for lane in lanes if lane.laneid == reader)
    wait = awaited(lane)
    return error(
        BarrierError,
        f"{lane.position}, lane {reader} of its warp, reads in {named(wait)} from lane {source}, which does not take part "
        f"(mask {wait.mask:#010x}): the value is undefined; take more lanes into the mask, or read only from lanes in it",
        [lane],
        [wait.line],
    )


def not_moved(lane: Lane, kind: str) -> SimtError:
    """A shuffle of a value that shuffles do not move."""
    wait = awaited(lane)
    return error(
        UnknownWordError,
        f"{lane.position} brings a {kind} to {named(wait)}, which moves integers and floats of 32 and 64 bits",
        [lane],
        [wait.line],
    )


def spins_for_ever(lane: Lane, frame: FrameType) -> SimtError:
    """A lane that polls for what does not come."""
    line = place(frame)
    return error(
        BarrierError,
        f"deadlock: {lane.position} polls at {base_name(line[0])}:{line[1]}, and nothing has changed for long; what it "
        "waits for is done by no thread that can run, but by one at a barrier, one that has ended, or one of a later block",
        [lane],
        [line],
    )


def loops_for_ever(lane: Lane, kernel: str, frame: FrameType, limit: int) -> SimtError:
    """Return the error for a launch whose threads loop, or call each other's functions, and do not end."""
    line = loop_line(frame)
    return error(
        LoopLimitError,
        f"kernel {kernel}: {limit:,} loop iterations and calls, and no thread has ended; {lane.position} is in the loop of "
        f"{frame.f_code.co_name} at {base_name(line[0])}:{line[1]}. Check what ends this loop. A loop that only takes long "
        "runs with a larger loop_limit= (--loop-limit)",
        [lane],
        [line],
    )


def recurses_for_ever(lane: Lane, kernel: str, line: Line) -> SimtError:
    """Return the error for a function that calls itself more often than Python's stack allows."""
    return error(
        LoopLimitError,
        f"kernel {kernel}: {lane.position} calls functions inside functions too deep, at {base_name(line[0])}:{line[1]}; "
        "check what ends the recursion, or write it as a loop: a thread of a GPU has a small stack",
        [lane],
        [line],
    )


def integer_grows(lane: Lane, frame: FrameType, bits: int) -> SimtError:
    """Return the error for an integer that a loop makes larger and larger."""
    line = loop_line(frame)
    names = [name for name, value in frame.f_locals.items() if type(value) is int and value.bit_length() > bits]
    return error(
        SimtError,
        f"'{names[0]}' has more than {bits:,} bits in the loop at {base_name(line[0])}:{line[1]}, in {lane.position}; "
        "kernels have exact integers here, and integers that wrap on a GPU: write int64(...) or uint64(...) for those",
        [lane],
        [line],
    )


def awaited(lane: Lane) -> Wait:
    """What a lane that is known to wait waits for."""
    if lane.waits is None:
        raise AssertionError(f"{lane.position} does not wait")
    return lane.waits


def named(wait: Wait) -> str:
    """A word with its line."""
    return f"cuda.{wait.word}() at {base_name(wait.line[0])}:{wait.line[1]}"


def whereabouts(lane: Lane, wait: Wait) -> tuple[str, list[Line]]:
    """Where a lane is that is not at `wait`, in words and as lines."""
    if lane.waits is not None:
        return f"{lane.position} is at {named(lane.waits)}", [lane.waits.line]
    code = wait.frame.f_code
    returns = [line for line in return_lines(code) if line < wait.line[1]]
    if not returns:
        return f"{lane.position} has left the kernel", []
    lines = [(code.co_filename, line) for line in returns]
    places = " or ".join(f"{base_name(file)}:{line}" for file, line in lines)
    return f"{lane.position} has left the kernel (return at {places})", lines


def return_lines(code: CodeType) -> list[int]:
    """The lines at which a function returns."""
    line, found = code.co_firstlineno, set()
    for step in dis.get_instructions(code):
        line = step.positions.lineno if step.positions and step.positions.lineno else line
        if step.opname.startswith("RETURN_"):
            found.add(line)
    return sorted(found - {code.co_firstlineno})


def and_others(lanes: list[Lane]) -> str:
    """How many more there are."""
    return (
        f", and so {'has' if len(lanes) == 2 else 'have'} {len(lanes) - 1} more"
        if len(lanes) > 1 and lanes[0].waits is None
        else ""
    )


def error(kind: type[SimtError], message: str, lanes: Iterable[Lane], lines: list[Line]) -> SimtError:
    """The error with all that the app draws."""
    lanes = list(lanes)
    machine = lanes[0].machine
    return kind(
        message,
        lines=tuple(lines),
        block=tuple(lanes[0].blockIdx[: machine.grid_rank]),
        threads=tuple(tuple(lane.threadIdx[: machine.block_rank]) for lane in lanes),
        epoch=lanes[0].epoch,
    )
