"""The machine: run the lanes of a launch, synchronize them at barriers and in warps, and report lanes that cannot continue.

Blocks run one after another, except in a cooperative launch, where all blocks run concurrently. Between two barriers, the
warps of a block run one after another, and each lane of a warp runs until it waits or ends. Seed 0 runs them in the order of
their indices; any other seed shuffles blocks, warps and lanes. `launch` checks the arguments of a call.
"""

import random
from collections.abc import Iterable
from contextvars import copy_context
from types import FrameType, FunctionType
from typing import Final, TypeVar

import numpy as np

from ..core.errors import LimitError, SimtError, short_file
from .address_spaces import AddressSpaces
from .bytecode_locations import InstructionKey
from .collectives import InactiveSourceError, UnsupportedShuffleError, barrier_result, collective_results
from .deadlock import (
    barrier_mismatch_error,
    grid_barrier_error,
    inactive_source_error,
    integer_growth_error,
    loop_limit_error,
    recursion_error,
    result_error,
    shuffle_type_error,
    spin_error,
    warp_mismatch_error,
)
from .diagnostics import count_dims
from .lanes import WARP_SIZE, Dim3, Lane, LaneRunner, Wait, getcurrent, kernel_frame, traceback_line
from .loops import CHUNKS
from .record import Recorder

Item = TypeVar("Item")
MAX_THREADS_PER_BLOCK: Final = 1024
MAX_SPINS: Final = 100_000  # polls without progress before a deadlock is reported; about 0.3 s
SPINS_PER_TURN: Final = 256  # polls after which other lanes run
LOOP_LIMIT: Final = 3_000_000  # iterations and calls until a thread ends: 0.1 s for an empty loop, 3 s with accesses
MAX_INTEGER_BITS: Final = 4096  # integers of GPUs have 64; an exact integer that grows would use all time and memory
SPIN_WAIT: Final = "spin"  # the operation of a lane that is suspended while it polls


class Machine:
    """One launch.

    Parameters
    ----------
    kernel : function
        A function returned by `rebind`, whose globals are the functions of `simt`.
    grid, block : tuple of int
        One to three sizes.
    arguments : sequence of (name, value)
    shared : int
        Bytes of dynamic shared memory.
    seed : int
        0 for the order of the indices. Every other seed is a reproducible shuffled order.
    recorder : Recorder, optional
        Records the events. Without one, nothing is recorded and the first finding is raised.
    is_cooperative : bool
        True if all blocks run concurrently.
    loop_limit : int or None
        Raise LoopLimitError after this many loop iterations and calls, counted over all threads, without a thread ending.
        None for no limit.
    """

    def __init__(
        self,
        kernel: FunctionType,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: Iterable[tuple[str, object]],
        *,
        shared: int = 0,
        seed: int = 0,
        recorder: Recorder | None = None,
        is_cooperative: bool = False,
        loop_limit: int | None = LOOP_LIMIT,
    ) -> None:
        self.grid: Dim3 = Dim3(*grid, *(1,) * (3 - len(grid)))
        self.block: Dim3 = Dim3(*block, *(1,) * (3 - len(block)))
        self.grid_rank, self.block_rank = count_dims(self.grid), count_dims(self.block)
        self.recorder, self.findings = recorder, list[SimtError]()
        self.spaces = AddressSpaces(self, shared)
        self._kernel, self._is_cooperative = kernel, is_cooperative
        self._arguments = tuple(self.spaces.bind_argument(name, value) for name, value in arguments)
        self._shuffle = random.Random(seed).shuffle if seed else None
        self._thread_positions = all_positions(self.block)
        self._runners: list[LaneRunner] = []
        self._idle: list[LaneRunner] = []
        self._running: Lane | None = None
        self.spins = 0  # consecutive atomics that changed nothing, fences and calls of nanosleep
        self._loop_limit = self._loops_left = loop_limit
        self.home = getcurrent()

    def run(self) -> None:
        """Run every lane to its end. Raise SimtError if that is impossible."""
        with np.errstate(all="ignore"):
            self._context = copy_context()  # a greenlet has its own context, which contains NumPy's error state
        CHUNKS.drain()
        try:
            blocks = self._in_seed_order(list(enumerate(all_positions(self.grid))))
            if self._is_cooperative:
                self._run_cooperative([self._make_lanes(*block) for block in blocks])
            else:
                for block_number, position in blocks:
                    lanes = self._make_lanes(block_number, position)
                    while self._run_to_barrier(lanes):
                        self._pass_barrier(lanes, "syncthreads")
                    self.spaces.end_block(block_number)
        except LimitError as error:
            raise self._with_location(error) from None
        except SimtError:
            raise
        except Exception as error:
            raise self._as_simt_error(error) from error
        finally:
            for runner in self._runners:
                if not runner.dead:
                    runner.throw()

    def report_hazard(self, error: SimtError) -> None:
        """Record a hazard that does not end the launch, once for each line.

        Without a recorder, raise it.
        """
        if self.recorder is None:
            raise error
        if not any(type(error) is type(finding) and error.lines == finding.lines for finding in self.findings):
            self.findings.append(error)

    def spin(self, frame: FrameType) -> None:
        """Count a poll of the running lane, which may be waiting for another lane.

        Suspend it every SPINS_PER_TURN polls, so that other lanes make progress.
        """
        lane: Lane = getcurrent().lane
        self.spins += 1
        if self.spins > MAX_SPINS:
            raise spin_error(lane, kernel_frame(frame))
        if self.spins % SPINS_PER_TURN == 0:
            lane.pause(Wait(SPIN_WAIT, (), 0, (), kernel_frame(frame)))

    def next_chunk(self, requested: int, frame: FrameType) -> int:
        """Return the number of loop iterations until the next check of the limit, at most `requested`.

        Raises
        ------
        LimitError
            The launch has reached its limit.
        SimtError
            An integer of the running function has more than MAX_INTEGER_BITS bits.
        """
        if any(type(value) is int and value.bit_length() > MAX_INTEGER_BITS for value in frame.f_locals.values()):
            raise integer_growth_error(getcurrent().lane, frame, MAX_INTEGER_BITS)
        if self._loops_left is None:
            return requested
        if self._loops_left == 0:
            raise loop_limit_error(getcurrent().lane, self._kernel.__name__, frame, self._loop_limit or 0)
        count = min(requested, self._loops_left)
        self._loops_left -= count
        return count

    def record_fence(self, lane: Lane, kind: str, frame: FrameType) -> None:
        """Record a memory fence of a lane."""
        self._record_collective([lane], kind, frame, 1 << lane.laneid)

    def _in_seed_order(self, items: list[Item]) -> list[Item]:
        """Return the items in their order, or in the order of the seed."""
        if self._shuffle is not None:
            items = items[:]
            self._shuffle(items)
        return items

    def _make_lanes(self, block_number: int, position: Dim3) -> list[Lane]:
        return [Lane(self, block_number, thread, position, index) for thread, index in enumerate(self._thread_positions)]

    def _run_cooperative(self, blocks: list[list[Lane]]) -> None:
        """Run concurrent blocks, from one barrier of the grid to the next."""
        waiting_blocks = blocks
        while waiting_blocks:
            for lanes in self._in_seed_order(waiting_blocks):
                while self._run_to_barrier(lanes):
                    if all(lane.wait is not None and lane.wait.operation == "grid.sync" for lane in lanes):
                        break
                    self._pass_barrier(lanes, "syncthreads")
            waiting_blocks = [lanes for lanes in blocks if not lanes[0].is_done]
            if waiting_blocks and len(waiting_blocks) < len(blocks):
                raise grid_barrier_error(waiting_blocks, blocks)
            for lanes in waiting_blocks:
                self._pass_barrier(lanes, "grid")

    def _run_to_barrier(self, lanes: list[Lane]) -> bool:
        """Run the lanes of a block until each has ended or waits at a barrier. Return whether any lane waits."""
        spinning_lanes = lanes
        while spinning_lanes:
            for warp in self._in_seed_order([lanes[first : first + WARP_SIZE] for first in range(0, len(lanes), WARP_SIZE)]):
                ready: list[tuple[Lane, object]] = [
                    (lane, lane.result) for lane in warp if lane.wait is None and not lane.is_done
                ]
                while ready:
                    for lane, result in self._in_seed_order(ready):
                        self._resume(lane, result)
                    ready = self._complete_collectives(warp)
            spinning_lanes = [lane for lane in lanes if lane.wait is not None and lane.wait.operation == SPIN_WAIT]
            for lane in spinning_lanes:
                lane.wait = lane.result = None
        return not all(lane.is_done for lane in lanes)

    def _resume(self, lane: Lane, result: object) -> None:
        """Run a lane until it waits or ends."""
        if self.recorder is not None:
            self.recorder.begin_segment(lane.block, lane.thread, lane.epoch, lane.warp_epoch)
        self._running = lane
        runner = lane.runner
        if runner is not None:
            lane.wait = None
            returned = runner.switch(result)
        elif self._idle:
            lane.runner = runner = self._idle.pop()
            runner.lane = lane
            returned = runner.switch()
        else:
            lane.runner = runner = LaneRunner(parent=self.home)
            runner.lane, runner.gr_context = lane, self._context
            self._runners.append(runner)
            returned = runner.switch(self._kernel, self._arguments)
        if lane.wait is None or lane.wait.operation != SPIN_WAIT:
            self.spins = 0
        if lane.is_done:
            self._loops_left = self._loop_limit
            lane.runner = runner.lane = None
            self._idle.append(runner)
            if returned is not None:
                raise result_error(lane, returned, self._kernel.__code__)

    def _complete_collectives(self, warp: list[Lane]) -> list[tuple[Lane, object]]:
        """Return the lanes of a warp whose collective is complete, each with its result.

        Raise if lanes wait for a collective and none can be completed.
        """
        groups: dict[tuple[InstructionKey, str, int], list[Lane]] = {}
        for lane in warp:
            if lane.wait is not None and lane.wait.mask:
                groups.setdefault((lane.wait.key, lane.wait.operation, lane.wait.mask), []).append(lane)
        if not groups:
            return []
        present_mask = sum(1 << lane.laneid for lane in warp)
        ready: list[tuple[Lane, object]] = []
        for (_, operation, mask), lanes in groups.items():
            if operation != "activemask" and sum(1 << lane.laneid for lane in lanes) == mask & present_mask:
                ready += self._complete_group(lanes, operation, mask)
        if ready:
            return ready
        by_instruction: dict[InstructionKey, list[Lane]] = {}
        for (key, operation, _), lanes in groups.items():
            if operation == "activemask":
                by_instruction.setdefault(key, []).extend(lanes)
        for lanes in by_instruction.values():
            ready += self._complete_group(lanes, "activemask", sum(1 << lane.laneid for lane in lanes))
        if not ready and not any(lane.wait is not None and lane.wait.operation == SPIN_WAIT for lane in warp):
            raise warp_mismatch_error(warp, next(iter(groups.values())))
        return ready

    def _complete_group(self, lanes: list[Lane], operation: str, mask: int) -> list[tuple[Lane, object]]:
        waits = [lane.wait for lane in lanes if lane.wait is not None]
        try:
            results = collective_results(
                operation, {lane.laneid: wait.operands for lane, wait in zip(lanes, waits, strict=True)}
            )
        except InactiveSourceError as error:
            raise inactive_source_error(lanes, error.reader, error.source) from None
        except UnsupportedShuffleError as error:
            raise shuffle_type_error(lanes[0], str(error)) from None
        self._record_collective(lanes, operation, waits[0].frame, mask)
        if operation == "syncwarp":
            for lane in lanes:
                lane.warp_epoch += 1
        return [(lane, results[lane.laneid]) for lane in lanes]

    def _record_collective(self, lanes: list[Lane], operation: str, frame: FrameType, mask: int) -> None:
        recorder, lane = self.recorder, lanes[0]
        if recorder is not None:
            code_offset = (frame.f_code, frame.f_lasti)
            recorder.collectives.append((lane.block, lane.warp, code_offset, operation, mask, lane.epoch, recorder.position))

    def _pass_barrier(self, lanes: list[Lane], kind: str) -> None:
        """Let the lanes of a block pass the barrier at which they wait. Raise if not all of them wait at the same one."""
        waits = [lane.wait for lane in lanes]
        first_wait = waits[0]
        if first_wait is None or any(wait is None or wait.key != first_wait.key for wait in waits):
            raise barrier_mismatch_error(lanes)
        value = barrier_result(first_wait.operation, [wait.operands for wait in waits if wait is not None])
        if self.recorder is not None:
            code_offset = (first_wait.frame.f_code, first_wait.frame.f_lasti)
            operation = "grid" if kind == "grid" else first_wait.operation
            self.recorder.barriers.append((lanes[0].block, lanes[0].epoch, code_offset, operation, value))
        for lane in lanes:
            lane.epoch += 1
            lane.wait, lane.result = None, value

    def _with_location(self, error: LimitError) -> LimitError:
        """Add the thread that exceeded a limit, and its line, to the error."""
        location, lane = traceback_line(error.__traceback__), self._running
        if error.lines or location is None or lane is None:
            return error
        return LimitError(
            f"kernel {self._kernel.__name__}: {error}; {lane.position} was at {short_file(location[0])}:{location[1]}",
            lines=(location,),
            block=tuple(lane.blockIdx[: self.grid_rank]),
            threads=(tuple(lane.threadIdx[: self.block_rank]),),
            epoch=lane.epoch,
        )

    def _as_simt_error(self, error: Exception) -> SimtError:
        """Convert a Python exception of a kernel to an error with its location."""
        location, lane = traceback_line(error.__traceback__), self._running
        location_text = f" at {short_file(location[0])}:{location[1]}" if location else ""
        if lane is None:
            return SimtError(f"{type(error).__name__}: {error}")
        if isinstance(error, RecursionError) and location:
            return recursion_error(lane, self._kernel.__name__, location)
        return SimtError(
            f"{type(error).__name__} in {lane.position}{location_text}: {error}",
            lines=(location,) if location else (),
            block=tuple(lane.blockIdx[: self.grid_rank]),
            threads=(tuple(lane.threadIdx[: self.block_rank]),),
            epoch=lane.epoch,
        )


def all_positions(sizes: Dim3) -> list[Dim3]:
    """Return all positions in a grid or block. x varies fastest."""
    return [Dim3(x, y, z) for z in range(sizes.z) for y in range(sizes.y) for x in range(sizes.x)]
