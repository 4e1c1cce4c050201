"""Reference answers of task 5.7: schedules of loop nests."""

from collections.abc import Iterator, Sequence
from math import ceil, prod

import numpy as np

from ..nest_machine import time_of_split
from ..nests import Machine, Nest, Schedule
from . import answers


def reduced_dims(nest: Nest) -> list[int]:
    """Return the reduced dims, in order."""
    return [d for d, is_reduced in enumerate(nest.is_reduced) if is_reduced]


@answers
def is_legal(nest: Nest, schedule: Schedule, machine: Machine) -> bool:
    """Return whether a machine can run a schedule."""
    reduced, threads, tile = reduced_dims(nest), prod(schedule.threads), prod(schedule.tile)
    has_partial_sums = any(schedule.threads[d] > 1 for d in reduced)
    return (
        min(*schedule.threads, *schedule.tile, schedule.split) >= 1
        and threads <= machine.max_threads
        and tile <= machine.registers
        and all(schedule.tile[d] == 1 for d in reduced)
        and schedule.split <= (nest.sizes[reduced[0]] if reduced else 1)
        and (not has_partial_sums or threads * tile <= machine.shared)
    )


@answers
def request_sectors(strides: Sequence[int], nest: Nest, schedule: Schedule, machine: Machine) -> int:
    """Return how many sectors a warp touches."""
    dims = [*[d for d in range(len(nest.sizes)) if d != schedule.lanes], schedule.lanes]
    lanes = np.arange(min(machine.warp, prod(schedule.threads)))
    index = np.array(np.unravel_index(lanes, [schedule.threads[d] for d in dims]))
    is_inside = (index < np.array([nest.sizes[d] for d in dims])[:, None]).all(0)
    positions = np.array([strides[d] for d in dims]) @ index
    return len(np.unique(positions[is_inside] // machine.sector))


def steps_of(nest: Nest, schedule: Schedule) -> int:
    """Return the steps of a thread along the reduced dims."""
    reduced = reduced_dims(nest)
    lengths = [ceil(n / schedule.split) if d in reduced[:1] else n for d, n in enumerate(nest.sizes)]
    return prod(ceil(lengths[d] / schedule.threads[d]) for d in reduced)


def model_work(nest: Nest, schedule: Schedule, machine: Machine, is_reused: bool = True) -> int:
    """Return the work of a block. Unless `is_reused`, all operands are loaded for each element of a tile."""
    dims, steps, warps = range(len(nest.sizes)), steps_of(nest, schedule), ceil(prod(schedule.threads) / machine.warp)

    def requests(strides: Sequence[int], counted: Sequence[int]) -> int:
        return prod(schedule.tile[d] for d in counted) * (1 + request_sectors(strides, nest, schedule, machine))

    loads = [requests(strides, [d for d in dims if strides[d] or not is_reused]) for strides in nest.loads]
    return warps * (steps * sum(loads) + requests(nest.store, dims))


def model_time(nest: Nest, schedule: Schedule, machine: Machine, is_reused: bool = True) -> int:
    """Return the time of the model. Unless `is_reused`, all operands are loaded for each element of a tile."""
    reduced, work = reduced_dims(nest), model_work(nest, schedule, machine, is_reused)
    dims, steps = range(len(nest.sizes)), steps_of(nest, schedule)
    blocks = [ceil(nest.sizes[d] / (schedule.threads[d] * schedule.tile[d])) for d in dims if d not in reduced]
    waves = ceil(schedule.split * prod(blocks) / machine.multiprocessors)
    return waves * max(work, machine.latency * (steps + 1)) + time_of_split(nest, schedule, machine)


@answers
def cost(nest: Nest, schedule: Schedule, machine: Machine) -> int:
    """Return the time of the model."""
    return model_time(nest, schedule, machine)


def neighbors(nest: Nest, schedule: Schedule) -> Iterator[Schedule]:
    """Generate the schedules that differ by factors of two in one number, or in two numbers of threads."""
    count = len(nest.sizes)
    factors = np.concatenate([np.eye(2 * count + 1), -np.eye(2 * count + 1)])
    moved = [a - b for a in np.eye(2 * count + 1)[:count] for b in np.eye(2 * count + 1)[:count] if (a != b).any()]
    numbers = np.array([*schedule.threads, *schedule.tile, schedule.split])
    for factor in (*factors, *moved):
        threads_tile_split = np.floor(numbers * 2.0**factor).astype(int).tolist()
        threads, tile = threads_tile_split[:count], threads_tile_split[count:-1]
        yield Schedule(schedule.lanes, tuple(threads), tuple(tile), threads_tile_split[-1])


@answers
def choose(nest: Nest, machine: Machine) -> Schedule:
    """Return the best schedule that a descent finds from any choice of the lanes."""
    count, found = len(nest.sizes), []
    for lanes in range(count):
        at = Schedule(lanes, (1,) * count, (1,) * count)
        wide = at._replace(threads=tuple(machine.warp if d == lanes else 1 for d in range(count)))
        time, at = min((model_time(nest, s, machine), s) for s in (at, wide) if is_legal(nest, s, machine))
        while True:
            near = [(model_time(nest, s, machine), s) for s in neighbors(nest, at) if is_legal(nest, s, machine)]
            if min(near)[0] >= time:
                break
            time, at = min(near)
        found.append((time, at))
    return min(found)[1]
