"""Wrong solutions of task 5.7 that were written to get past its checks. Each is appended to the reference."""


# %% always_a_warp_along_the_last_dim: no search: a warp along the last dim
# promise: at most 1.25 times the time of the best schedule
def choose(nest, machine):
    count = len(nest.sizes)
    ones = (1,) * count
    threads = tuple(machine.warp if d == count - 1 else 1 for d in range(count))
    schedule = Schedule(count - 1, threads, ones)
    return schedule if is_legal(nest, schedule, machine) else Schedule(count - 1, ones, ones)


# %% listed_nests_by_heart: the nests of the page are known by their sizes, others get a warp
# promise: drawn nests too
def choose(nest, machine):
    dims = range(len(nest.sizes))
    if nest.sizes not in ((64, 512), (512, 64), (20000,), (96, 160), (1500, 9), (3, 4001), (32, 48, 40), (6, 40, 50)):
        ones = (1,) * len(nest.sizes)
        return Schedule(0, ones, ones)

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


# %% machine_by_heart: the machine is always the usual one
# promise: for any machine
def cost(nest, schedule, machine):
    machine = type(machine)()
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


# %% choice_remembered: a schedule is remembered by the sizes of its nest
# promise: strides and machine decide too
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
            near = [(cost(nest, other, machine), other) for other in neighbors(at) if is_legal(nest, other, machine)]
            is_better = min(near)[0] < time
            if is_better:
                time, at = min(near)
        if best is None or time < best[0]:
            best = time, at
    return choose.__dict__.setdefault(nest.sizes, best[1])


# %% sectors_by_stride: sectors are computed from the stride of the lanes alone
# promise: the other dims of a warp
def request_sectors(strides, nest, schedule, machine):
    threads = min(machine.warp, schedule.threads[schedule.lanes], nest.sizes[schedule.lanes])
    return len({k * strides[schedule.lanes] // machine.sector for k in range(threads)})


# %% whole_block: the sectors of the whole block are counted
# promise: the first warp
def request_sectors(strides, nest, schedule, machine):
    order = [schedule.lanes, *[d for d in reversed(range(len(nest.sizes))) if d != schedule.lanes]]
    found = set()
    for thread in range(prod(schedule.threads)):
        position, is_inside = 0, True
        for d in order:
            thread, index = divmod(thread, schedule.threads[d])
            position += index * strides[d]
            is_inside = is_inside and index < nest.sizes[d]
        if is_inside:
            found.add(position // machine.sector)
    return len(found)


# %% warp_of_32: a warp has 32 threads
# promise: machine.warp
def request_sectors(strides, nest, schedule, machine):
    order = [schedule.lanes, *[d for d in reversed(range(len(nest.sizes))) if d != schedule.lanes]]
    found = set()
    for thread in range(min(32, prod(schedule.threads))):
        position, is_inside = 0, True
        for d in order:
            thread, index = divmod(thread, schedule.threads[d])
            position += index * strides[d]
            is_inside = is_inside and index < nest.sizes[d]
        if is_inside:
            found.add(position // machine.sector)
    return len(found)


# %% dims_forward: the other dims are numbered from the first to the last
# promise: from the last to the first
def request_sectors(strides, nest, schedule, machine):
    order = [schedule.lanes, *[d for d in range(len(nest.sizes)) if d != schedule.lanes]]
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


# %% waves_in_part: a wave that is not full counts in part
# promise: blocks run in waves
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
    time = blocks / machine.multiprocessors * max(work, machine.latency * (steps + 1))
    if schedule.split > 1:
        time += machine.launch + ceil(2 * schedule.split * outputs / (machine.sector * machine.multiprocessors))
    return ceil(time)


# %% split_of_every_dim: each reduced dim is split
# promise: the first reduced dim
def cost(nest, schedule, machine):
    dims, warps, steps, blocks = range(len(nest.sizes)), ceil(prod(schedule.threads) / machine.warp), 1, schedule.split
    outputs, split = 1, schedule.split
    for d in dims:
        if nest.is_reduced[d]:
            steps *= ceil(ceil(nest.sizes[d] / split) / schedule.threads[d])
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


# %% cost_is_a_float: a time is a float
# promise: an int
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
    if schedule.split > 1:
        time += machine.launch + ceil(2 * schedule.split * outputs / (machine.sector * machine.multiprocessors))
    return float(time)


# %% split_unlimited: a reduction is split into more chunks than it has elements
# promise: at most as many chunks as the first reduced dim has elements
def is_legal(nest, schedule, machine):
    threads, tile = prod(schedule.threads), prod(schedule.tile)
    if min(*schedule.threads, *schedule.tile, schedule.split) < 1:
        return False
    if threads > machine.max_threads or tile > machine.registers:
        return False
    reduced = [d for d, is_reduced in enumerate(nest.is_reduced) if is_reduced]
    if any(schedule.tile[d] > 1 for d in reduced):
        return False
    if schedule.split > 1 and not reduced:
        return False
    return threads * tile <= machine.shared or all(schedule.threads[d] == 1 for d in reduced)


# %% threads_of_each_dim: the limit of threads holds for each dim alone
# promise: a block has at most max_threads threads
def is_legal(nest, schedule, machine):
    threads, tile = prod(schedule.threads), prod(schedule.tile)
    if min(*schedule.threads, *schedule.tile, schedule.split) < 1:
        return False
    if max(schedule.threads) > machine.max_threads or tile > machine.registers:
        return False
    reduced = [d for d, is_reduced in enumerate(nest.is_reduced) if is_reduced]
    if any(schedule.tile[d] > 1 for d in reduced):
        return False
    if schedule.split > (nest.sizes[reduced[0]] if reduced else 1):
        return False
    return threads * tile <= machine.shared or all(schedule.threads[d] == 1 for d in reduced)


# %% zero_is_legal: 0 threads are legal
# promise: at least 1
def is_legal(nest, schedule, machine):
    threads, tile = prod(schedule.threads), prod(schedule.tile)
    if threads > machine.max_threads or tile > machine.registers:
        return False
    reduced = [d for d, is_reduced in enumerate(nest.is_reduced) if is_reduced]
    if any(schedule.tile[d] > 1 for d in reduced):
        return False
    if schedule.split > (nest.sizes[reduced[0]] if reduced else 1):
        return False
    return threads * tile <= machine.shared or all(schedule.threads[d] == 1 for d in reduced)


# %% no_tiles: the search never changes the tile
# promise: at most 1.25 times the time of the best schedule
def choose(nest, machine):
    dims = range(len(nest.sizes))

    def neighbors(schedule):
        """Generate schedules in which a number is doubled or halved, or threads are moved to another dim."""
        threads, tile = schedule.threads, schedule.tile
        for d in dims:
            for value in (threads[d] * 2, threads[d] // 2):
                yield schedule._replace(threads=(*threads[:d], value, *threads[d + 1 :]))
            for value in ():
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


# %% stuck_at_the_start: the search stops after one step
# promise: at most 1.25 times the time of the best schedule
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
            near = [(cost(nest, other, machine), other) for other in neighbors(at) if is_legal(nest, other, machine)]
            is_better = min(near)[0] < time
            if is_better:
                time, at = min(near)
                is_better = False
        if best is None or time < best[0]:
            best = time, at
    return best[1]


# %% plain_tuple: the choice is a plain tuple
# promise: returns a Schedule
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
            near = [(cost(nest, other, machine), other) for other in neighbors(at) if is_legal(nest, other, machine)]
            is_better = min(near)[0] < time
            if is_better:
                time, at = min(near)
        if best is None or time < best[0]:
            best = time, at
    return tuple(best[1])
