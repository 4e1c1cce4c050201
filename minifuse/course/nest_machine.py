"""Count the time of a schedule of task 5.7 exactly: every request of every warp, with the sectors that it touches."""

from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .nests import Machine, Nest, Schedule

Ints = npt.NDArray[np.int64]


class Points(NamedTuple):
    """All iterations of a launch, as columns: which thread runs them, and at which index of the nest."""

    block: Ints
    thread: Ints
    step: Ints
    indices: list[Ints]
    """Of each dim."""
    register: list[Ints]
    """The place in the tile along each dim; 0 along reduced dims."""
    lane: list[Ints]
    """The thread's index along each dim."""
    is_inside: npt.NDArray[np.bool_]


def place_threads(nest: Nest, schedule: Schedule) -> Points:
    """Return all iterations of all threads, those outside of the nest included."""
    dims = range(len(nest.sizes))
    reduced = [d for d in dims if nest.is_reduced[d]]
    length = {d: -(-nest.sizes[d] // (schedule.split if d == reduced[0] else 1)) for d in reduced}
    whole = [schedule.threads[d] * schedule.tile[d] for d in dims]
    blocks = [1 if d in length else -(-nest.sizes[d] // whole[d]) for d in dims]
    steps = [-(-length[d] // schedule.threads[d]) if d in length else 1 for d in dims]
    counts = (schedule.split, *blocks, prod(schedule.threads), *schedule.tile, *steps)
    chunk, *rest = np.indices(counts, dtype=np.int64).reshape(len(counts), -1)
    count = len(dims)
    at, thread, register, step = rest[:count], rest[count], rest[count + 1 : 2 * count + 1], rest[2 * count + 1 :]
    left, lane = thread, [thread] * count
    for d in (schedule.lanes, *[d for d in reversed(dims) if d != schedule.lanes]):
        left, lane[d] = np.divmod(left, schedule.threads[d])
    index, is_inside = [], np.ones(len(thread), bool)
    for d in dims:
        if d in length:
            within = step[d] * schedule.threads[d] + lane[d]
            is_inside &= within < length[d]
            within = within + (chunk * length[d] if d == reduced[0] else 0)
        else:
            within = (at[d] * schedule.tile[d] + register[d]) * schedule.threads[d] + lane[d]
        is_inside &= within < nest.sizes[d]
        index.append(within)
    block = np.ravel_multi_index((chunk, *at), counts[: count + 1])
    return Points(block, thread, np.ravel_multi_index(tuple(step), tuple(steps)), index, register, lane, is_inside)


def measure(nest: Nest, schedule: Schedule, machine: Machine) -> int:
    """Return the time of a legal schedule.

    In contrast to the model, the last blocks may have idle threads, requests begin anywhere in a sector, and results that
    were added up are stored by one thread along each reduced dim. Blocks run in the order of their numbers, as many at a
    time as there are multiprocessors; the slowest of them decides.
    """
    points = place_threads(nest, schedule)
    warps = -(-prod(schedule.threads) // machine.warp)
    warp = points.block * warps + points.thread // machine.warp
    blocks, steps = int(points.block.max()) + 1, int(points.step.max()) + 1
    work = np.zeros(blocks, np.int64)
    for strides in (*nest.loads, nest.store):
        is_active, number = points.is_inside.copy(), points.step
        for d, is_reduced in enumerate(nest.is_reduced):
            if strides is nest.store and is_reduced:
                is_active &= (points.lane[d] == 0) & (points.step == 0)
            elif strides[d] or strides is nest.store:
                number = number * schedule.tile[d] + points.register[d]
            else:
                is_active &= points.register[d] == 0  # the element is in a register already
        position = sum(i * s for i, s in zip(points.indices, strides, strict=True))
        requests = combined(warp[is_active], number[is_active])
        sectors = combined(requests, np.asarray(position, np.int64)[is_active] // machine.sector)
        for keys in (requests, sectors):
            _, first = np.unique(keys, return_index=True)
            work += np.bincount(points.block[is_active][first], minlength=blocks)
    times = np.maximum(work, machine.latency * (steps + 1))
    time = sum(int(times[k : k + machine.multiprocessors].max()) for k in range(0, blocks, machine.multiprocessors))
    return time + time_of_split(nest, schedule, machine)


def combined(major: Ints, minor: Ints) -> Ints:
    """Return one number for each pair of numbers."""
    low = minor - minor.min(initial=0)
    number: Ints = major * (int(low.max(initial=0)) + 1) + low
    return number


def time_of_split(nest: Nest, schedule: Schedule, machine: Machine) -> int:
    """Return the time of the second kernel, which adds up the chunks; 0 if the reduction is not split."""
    if schedule.split == 1:
        return 0
    outputs = prod(n for n, is_reduced in zip(nest.sizes, nest.is_reduced, strict=True) if not is_reduced)
    return machine.launch + -(-2 * schedule.split * outputs // (machine.sector * machine.multiprocessors))
