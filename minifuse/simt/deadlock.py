"""Errors of lanes that cannot continue: which lanes wait, where the other lanes are, the source lines, and a fix."""

import dis
from collections.abc import Iterable
from types import CodeType, FrameType

from ..core.errors import BarrierError, DivergenceError, LoopLimitError, SimtError, UnknownWordError, short_file
from .bytecode_locations import Line
from .lanes import Lane, Wait, frame_line
from .loops import is_polling_loop, loop_line
from .numba_syntax import describe_result


def barrier_mismatch_error(lanes: list[Lane]) -> SimtError:
    """Return the error for a barrier of a block that some lanes wait at and others do not."""
    waiting = next(lane for lane in lanes if lane.wait is not None)
    wait = wait_of(waiting)
    ended = [lane for lane in lanes if lane.wait is None]
    others = ended or [lane for lane in lanes if wait_of(lane).key != wait.key]
    sentence, lines = describe_position(others[0], wait)
    return make_error(
        BarrierError,
        f"{waiting.position} waits at {format_wait(wait)}, but {sentence}{format_others(others)}; every thread of the "
        f"block must reach the same barrier: {'skip the work, not the barrier' if ended else 'move it out of the branch'}",
        [waiting, others[0]],
        [wait.line, *lines],
    )


def grid_barrier_error(waiting: list[list[Lane]], blocks: list[list[Lane]]) -> SimtError:
    """Return the error for a barrier of the grid that some blocks wait at while others have ended."""
    lane = waiting[0][0]
    ended = next(lanes[0] for lanes in blocks if lanes[0].is_done)
    wait = wait_of(lane)
    sentence, lines = describe_position(ended, wait)
    return make_error(
        BarrierError,
        f"{lane.position} waits at {format_wait(wait)}, but {sentence}; every thread of the grid must reach it",
        [lane, ended],
        [wait.line, *lines],
    )


def warp_mismatch_error(warp: list[Lane], group: list[Lane]) -> SimtError:
    """Return the error for a warp operation that not all lanes of its mask reach."""
    wait = wait_of(group[0])
    arrived_lanes = {lane.laneid for lane in group}
    missing = [lane for lane in warp if wait.mask >> lane.laneid & 1 and lane.laneid not in arrived_lanes]
    other = missing[0]
    sentence, lines = describe_position(other, wait)
    is_at_other_warp_operation = other.wait is not None and other.wait.mask
    kind = DivergenceError if is_at_other_warp_operation else BarrierError
    if is_at_other_warp_operation and wait_of(other).key == wait.key:
        sentence += f" with the mask {wait_of(other).mask:#010x}"
    return make_error(
        kind,
        f"{group[0].position} waits at {format_wait(wait)} with the mask {wait.mask:#010x}, but {sentence}"
        f"{format_others(missing)}; every lane of the mask must reach the same instruction: use a mask of the lanes that "
        "do, or move it out of the branch",
        [group[0], other],
        [wait.line, *lines],
    )


def inactive_source_error(lanes: list[Lane], reader: int, source: int) -> SimtError:
    """Return the error for a shuffle that reads from a lane that does not take part."""
    lane = next(lane for lane in lanes if lane.laneid == reader)
    wait = wait_of(lane)
    return make_error(
        BarrierError,
        f"{lane.position}, lane {reader} of its warp, reads in {format_wait(wait)} from lane {source}, which does not take "
        f"part (mask {wait.mask:#010x}): the value is undefined; add the lane to the mask, or read only from lanes in it",
        [lane],
        [wait.line],
    )


def shuffle_type_error(lane: Lane, kind: str) -> SimtError:
    """Return the error for a shuffle of a value whose type shuffles do not support."""
    wait = wait_of(lane)
    return make_error(
        UnknownWordError,
        f"{lane.position} passes a {kind} to {format_wait(wait)}, which takes integers and floats of 32 and 64 bits",
        [lane],
        [wait.line],
    )


def spin_error(lane: Lane, frame: FrameType) -> SimtError:
    """Return the error for a lane that polls for a change that never happens."""
    line = frame_line(frame)
    return make_error(
        BarrierError,
        f"deadlock: {lane.position} polls at {short_file(line[0])}:{line[1]}, and no thread makes progress; the thread that "
        "it waits for is at a barrier, has ended, or belongs to a later block",
        [lane],
        [line],
    )


def loop_limit_error(lane: Lane, kernel: str, frame: FrameType, limit: int) -> SimtError:
    """Return the error for a launch whose loops or recursive calls do not end."""
    line = loop_line(frame)
    advice = ""
    if is_polling_loop(frame):
        advice = ". Lanes run one after the other: to wait for another thread, poll with an atomic, such as cuda.atomic.cas"
    return make_error(
        LoopLimitError,
        f"kernel {kernel}: {limit:,} loop iterations and calls, and no thread has ended; {lane.position} is in the loop of "
        f"{frame.f_code.co_name} at {short_file(line[0])}:{line[1]}. Check the condition that ends this loop. If it is only "
        f"slow, raise loop_limit= (--loop-limit){advice}",
        [lane],
        [line],
    )


def recursion_error(lane: Lane, kernel: str, line: Line) -> SimtError:
    """Return the error for a recursion deeper than Python's stack allows."""
    return make_error(
        LoopLimitError,
        f"kernel {kernel}: {lane.position} calls functions too deeply, at {short_file(line[0])}:{line[1]}; "
        "check the condition that ends the recursion, or write a loop: a thread of a GPU has a small stack",
        [lane],
        [line],
    )


def result_error(lane: Lane, result: object, code: CodeType) -> SimtError:
    """Return the error for a kernel that returns a value."""
    lines = [(code.co_filename, line) for line in return_lines(code)]
    return make_error(
        UnknownWordError, f"{code.co_name}: {describe_result(repr(result))}, in {lane.position}", [lane], lines
    )


def integer_growth_error(lane: Lane, frame: FrameType, bits: int) -> SimtError:
    """Return the error for an integer that grows in a loop without limit."""
    line = loop_line(frame)
    names = [name for name, value in frame.f_locals.items() if type(value) is int and value.bit_length() > bits]
    return make_error(
        SimtError,
        f"'{names[0]}' has more than {bits:,} bits in the loop at {short_file(line[0])}:{line[1]}, in {lane.position}; "
        "integers in kernels are exact here, but wrap on a GPU: write int64(...) or uint64(...) where you want them to wrap",
        [lane],
        [line],
    )


def wait_of(lane: Lane) -> Wait:
    """Return the operation that a waiting lane waits for."""
    if lane.wait is None:
        raise AssertionError(f"{lane.position} does not wait")
    return lane.wait


def format_wait(wait: Wait) -> str:
    """Format an operation with its line."""
    return f"cuda.{wait.operation}() at {short_file(wait.line[0])}:{wait.line[1]}"


def describe_position(lane: Lane, wait: Wait) -> tuple[str, list[Line]]:
    """Describe where a lane is that is not at `wait`. Also return the source lines."""
    if lane.wait is not None:
        return f"{lane.position} is at {format_wait(lane.wait)}", [lane.wait.line]
    code = wait.frame.f_code
    earlier_returns = [line for line in return_lines(code) if line < wait.line[1]]
    if not earlier_returns:
        return f"{lane.position} has left the kernel", []
    lines = [(code.co_filename, line) for line in earlier_returns]
    locations = " or ".join(f"{short_file(file)}:{line}" for file, line in lines)
    return f"{lane.position} has left the kernel at {locations}", lines


def return_lines(code: CodeType) -> list[int]:
    """Return the lines at which a function returns."""
    line, lines = code.co_firstlineno, set()
    for step in dis.get_instructions(code):
        line = step.positions.lineno if step.positions and step.positions.lineno else line
        if step.opname.startswith("RETURN_"):
            lines.add(line)
    return sorted(lines - {code.co_firstlineno})


def format_others(lanes: list[Lane]) -> str:
    """Format how many lanes besides the first have ended, or nothing if the first waits."""
    return (
        f", and so {'has' if len(lanes) == 2 else 'have'} {len(lanes) - 1} more"
        if len(lanes) > 1 and lanes[0].wait is None
        else ""
    )


def make_error(kind: type[SimtError], message: str, lanes: Iterable[Lane], lines: list[Line]) -> SimtError:
    """Build an error with the lines, block, threads and epoch that the app displays."""
    lanes = list(lanes)
    machine = lanes[0].machine
    return kind(
        message,
        lines=tuple(lines),
        block=tuple(lanes[0].blockIdx[: machine.grid_rank]),
        threads=tuple(tuple(lane.threadIdx[: machine.block_rank]) for lane in lanes),
        epoch=lanes[0].epoch,
    )
