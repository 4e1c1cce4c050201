"""Wrong solutions of task 5.7, one a cell: `# %% name: the mistake that the check must name`."""


# %% shared_unlimited: the tiles in shared memory are not counted
def is_legal(nest, schedule, machine):
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
    return threads * tile <= machine.max_threads * machine.registers


# %% tile_unlimited: a tile has no limit
def is_legal(nest, schedule, machine):
    threads, tile = prod(schedule.threads), prod(schedule.tile)
    if min(*schedule.threads, *schedule.tile, schedule.split) < 1:
        return False
    if threads > machine.max_threads:
        return False
    reduced = [d for d, is_reduced in enumerate(nest.is_reduced) if is_reduced]
    if any(schedule.tile[d] > 1 for d in reduced):
        return False
    if schedule.split > (nest.sizes[reduced[0]] if reduced else 1):
        return False
    return threads * tile <= machine.shared or all(schedule.threads[d] == 1 for d in reduced)


# %% elements_counted: elements are counted instead of sectors
def request_sectors(strides, nest, schedule, machine):
    order = [schedule.lanes, *[d for d in reversed(range(len(nest.sizes))) if d != schedule.lanes]]
    found = set()
    for thread in range(min(machine.warp, prod(schedule.threads))):
        position, is_inside = 0, True
        for d in order:
            thread, index = divmod(thread, schedule.threads[d])
            position += index * strides[d]
            is_inside = is_inside and index < nest.sizes[d]
        if is_inside:
            found.add(position)
    return len(found)


# %% idle_threads_counted: threads outside of the nest are counted
def request_sectors(strides, nest, schedule, machine):
    order = [schedule.lanes, *[d for d in reversed(range(len(nest.sizes))) if d != schedule.lanes]]
    found = set()
    for thread in range(min(machine.warp, prod(schedule.threads))):
        position, is_inside = 0, True
        for d in order:
            thread, index = divmod(thread, schedule.threads[d])
            position += index * strides[d]
            is_inside = is_inside and index < nest.sizes[d]
        found.add(position // machine.sector)
    return len(found)


# %% last_dim_first: the threads of the last dim are always numbered first
def request_sectors(strides, nest, schedule, machine):
    order = list(reversed(range(len(nest.sizes))))
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


# %% no_latency: the latency is forgotten
def cost(nest, schedule, machine):
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
    time = ceil(blocks / machine.multiprocessors) * work
    if schedule.split > 1:
        time += machine.launch + ceil(2 * schedule.split * outputs / (machine.sector * machine.multiprocessors))
    return time


# %% no_second_kernel: the second kernel is forgotten
def cost(nest, schedule, machine):
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
    if schedule.split > 10**9:
        time += machine.launch + ceil(2 * schedule.split * outputs / (machine.sector * machine.multiprocessors))
    return time


# %% no_reuse: an operand is loaded for each element of a tile
def cost(nest, schedule, machine):
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
        requests = prod(schedule.tile[d] for d in dims)
        work += warps * steps * requests * (1 + request_sectors(strides, nest, schedule, machine))
    time = ceil(blocks / machine.multiprocessors) * max(work, machine.latency * (steps + 1))
    if schedule.split > 1:
        time += machine.launch + ceil(2 * schedule.split * outputs / (machine.sector * machine.multiprocessors))
    return time


# %% all_tried: too many schedules are tried
def choose(nest, machine):
    from itertools import product

    powers = [2**k for k in range(9)]
    best, count = None, len(nest.sizes)
    for lanes in range(count):
        for threads in product(powers, repeat=count):
            for tile in product(powers[:4], repeat=count):
                for split in powers:
                    schedule = Schedule(lanes, threads, tile, split)
                    if is_legal(nest, schedule, machine):
                        time = cost(nest, schedule, machine)
                        if best is None or time < best[0]:
                            best = time, schedule
    return best[1]


# %% limits_not_asked: the choice is not legal
def choose(nest, machine):
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
            near = [
                (cost(nest, other, machine), other)
                for other in neighbors(at)
                if is_legal(nest, other, machine._replace(registers=64))
            ]
            is_better = min(near)[0] < time
            if is_better:
                time, at = min(near)
        if best is None or time < best[0]:
            best = time, at
    return best[1]


# %% never_split: a long reduction with few results is not split
def choose(nest, machine):
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


# %% from_one_thread: the search ends where no neighbor is better, far from the best schedule
def choose(nest, machine):
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


# %% from_a_full_block: the search ends where no neighbor is better, far from the best schedule
def choose(nest, machine):
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
        at = Schedule(lanes, tuple(machine.max_threads if d == lanes else 1 for d in dims), ones)
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


# %% halves_of_one: a number of a neighbor is 0
def choose(nest, machine):
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
            near = [(cost(nest, other, machine), other) for other in neighbors(at)]
            is_better = min(near)[0] < time
            if is_better:
                time, at = min(near)
        if best is None or time < best[0]:
            best = time, at
    return best[1]
