"""Module 5: schedules of loop nests.

The fields of `Nest`, `Machine` and `Schedule` are described in docs/course/5.7-schedules.md. Time is counted in cycles.
"""

from math import ceil, prod

from minifuse.course import todo
from minifuse.course.nests import Schedule

# Task 5.7


def is_legal(nest, schedule, machine):
    """Return whether a machine can run a schedule.

    All numbers of threads, of elements of a tile, and of chunks are at least 1. A block has at most `max_threads` threads. A
    tile is 1 along reduced dims, and has at most `registers` elements. A nest without reduced dims is not split, and others
    into at most as many chunks as the first reduced dim has elements. If a reduced dim has several threads, each thread
    stores its tile in shared memory, which has `shared` elements.
    """
    # begin 5.7a
    threads, tile = prod(schedule.threads), prod(schedule.tile)
    if min(*schedule.threads, *schedule.tile, schedule.split) < 1:
        return False
    if threads > machine.max_threads or tile > machine.registers:
        return False
    reduced = [d for d, is_reduced in enumerate(nest.is_reduced) if is_reduced]
    if any(schedule.tile[d] > 1 for d in reduced):
        return False
    if schedule.split > (nest.sizes[reduced[0]] if reduced else 1):
        return False
    return threads * tile <= machine.shared or all(schedule.threads[d] == 1 for d in reduced)
    # end


def request_sectors(strides, nest, schedule, machine):
    """Return how many sectors the first warp of the first block touches in its first request for an operand.

    The operand has these strides, and begins at a sector. Threads whose index is outside of the nest touch none. A thread
    whose index is past its chunk, but inside of the nest, is counted.
    """
    # begin 5.7b
    order = [schedule.lanes, *[d for d in reversed(range(len(nest.sizes))) if d != schedule.lanes]]
    found = set()
    for thread in range(min(machine.warp, prod(schedule.threads))):
        position, is_inside = 0, True
        for d in order:
            thread, index = divmod(thread, schedule.threads[d])
            position += index * strides[d]
            is_inside = is_inside and index < nest.sizes[d]
        if is_inside:
            found.add(position // machine.sector)
    return len(found)
    # end


def cost(nest, schedule, machine):
    """Return the time of a schedule, an int, by the model of the page."""
    # begin 5.7c
    dims, warps, steps, blocks = range(len(nest.sizes)), ceil(prod(schedule.threads) / machine.warp), 1, schedule.split
    outputs, split = 1, schedule.split
    for d in dims:
        if nest.is_reduced[d]:
            steps *= ceil(ceil(nest.sizes[d] / split) / schedule.threads[d])
            split = 1
        else:
            blocks *= ceil(nest.sizes[d] / (schedule.threads[d] * schedule.tile[d]))
            outputs *= nest.sizes[d]
    work = warps * prod(schedule.tile) * (1 + request_sectors(nest.store, nest, schedule, machine))
    for strides in nest.loads:
        requests = prod(schedule.tile[d] for d in dims if strides[d])
        work += warps * steps * requests * (1 + request_sectors(strides, nest, schedule, machine))
    time = ceil(blocks / machine.multiprocessors) * max(work, machine.latency * (steps + 1))
    if schedule.split > 1:
        time += machine.launch + ceil(2 * schedule.split * outputs / (machine.sector * machine.multiprocessors))
    return time
    # end


def choose(nest, machine):
    """Return a legal schedule whose time is near that of the best one, without trying all."""
    # begin 5.7d
    dims = range(len(nest.sizes))

    def neighbors(schedule):
        """Generate schedules in which a number is doubled or halved, or threads are moved to another dim."""
        threads, tile = schedule.threads, schedule.tile
        for d in dims:
            for value in (threads[d] * 2, threads[d] // 2):
                yield schedule._replace(threads=(*threads[:d], value, *threads[d + 1 :]))
            for value in (tile[d] * 2, tile[d] // 2):
                yield schedule._replace(tile=(*tile[:d], value, *tile[d + 1 :]))
            for e in dims:
                if d != e:
                    moved = list(threads)
                    moved[d], moved[e] = moved[d] * 2, moved[e] // 2
                    yield schedule._replace(threads=tuple(moved))
        yield schedule._replace(split=schedule.split * 2)
        yield schedule._replace(split=schedule.split // 2)

    best, ones = None, (1,) * len(nest.sizes)
    for lanes in dims:
        at = Schedule(lanes, tuple(machine.warp if d == lanes else 1 for d in dims), ones)
        if not is_legal(nest, at, machine):
            at = Schedule(lanes, ones, ones)
        time, is_better = cost(nest, at, machine), True
        while is_better:
            near = [(cost(nest, other, machine), other) for other in neighbors(at) if is_legal(nest, other, machine)]
            is_better = min(near)[0] < time
            if is_better:
                time, at = min(near)
        if best is None or time < best[0]:
            best = time, at
    return best[1]
    # end
