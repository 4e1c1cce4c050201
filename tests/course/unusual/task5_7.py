"""Right solutions of task 5.7 in ways that a naive check might refuse. Each is appended to the reference."""


# %% sectors_by_product: positions are built dim by dim with itertools.
def request_sectors(strides, nest, schedule, machine):
    from itertools import islice, product

    dims = [d for d in range(len(nest.sizes)) if d != schedule.lanes] + [schedule.lanes]
    places = islice(product(*[range(schedule.threads[d]) for d in dims]), machine.warp)
    inside = [p for p in places if all(i < nest.sizes[d] for i, d in zip(p, dims))]
    return len({sum(i * strides[d] for i, d in zip(p, dims)) // machine.sector for p in inside})


# %% one_descent_with_lanes: one descent, in which the lanes are a choice too, from a single thread.
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
        for d in dims:
            yield schedule._replace(lanes=d)
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


# %% legal_by_cases: limits in one expression; counts are ints.
def is_legal(nest, schedule, machine):
    kept = [d for d in range(len(nest.sizes)) if not nest.is_reduced[d]]
    reduced = [d for d in range(len(nest.sizes)) if nest.is_reduced[d]]
    most = nest.sizes[reduced[0]] if reduced else 1
    size = prod(schedule.threads)
    needs = size * prod(schedule.tile) if any(schedule.threads[d] != 1 for d in reduced) else 0
    return (
        all(n > 0 for n in schedule.threads)
        and all(n > 0 for n in schedule.tile)
        and 0 < schedule.split <= most
        and size <= machine.max_threads
        and prod(schedule.tile[d] for d in kept) <= machine.registers
        and prod(schedule.tile[d] for d in reduced) == 1
        and needs <= machine.shared
    )
