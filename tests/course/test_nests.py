"""Schedules of task 5.7: the exact time against the CUDA interpreter, and the best times of the listed nests."""

from itertools import product

import numpy as np
import pytest

from minifuse import simt
from minifuse.course import oracle
from minifuse.course.drawn_nests import LARGE, MACHINE, NESTS
from minifuse.course.nest_machine import measure
from minifuse.course.nests import Nest, Schedule
from minifuse.simt import cuda

MAP = Nest((24, 64), (False, False), ((1, 24),), (64, 1))
SUM = Nest((16, 96), (False, True), ((96, 1),), (1, 0))


def copying_kernel(nest, schedule):
    (m, n), (t0, t1), (tile0, tile1) = nest.sizes, schedule.threads, schedule.tile
    across = n // (t1 * tile1)
    loaded, stored = nest.loads[0], nest.store

    def kernel(out, a):
        thread = cuda.threadIdx.x
        x, y = (thread % t0, thread // t0) if schedule.lanes == 0 else (thread // t1, thread % t1)
        for r in range(tile0):
            for s in range(tile1):
                i = (cuda.blockIdx.x // across * tile0 + r) * t0 + x
                j = (cuda.blockIdx.x % across * tile1 + s) * t1 + y
                out[i * stored[0] + j * stored[1]] = a[i * loaded[0] + j * loaded[1]]

    return kernel, m // (t0 * tile0) * across


def summing_kernel(nest, schedule):
    (m, n), (t0, t1), (tile, _) = nest.sizes, schedule.threads, schedule.tile
    loaded = nest.loads[0]

    def kernel(out, a):
        thread = cuda.threadIdx.x
        x, y = (thread % t0, thread // t0) if schedule.lanes == 0 else (thread // t1, thread % t1)
        for r in range(tile):
            i = (cuda.blockIdx.x * tile + r) * t0 + x
            total = 0.0
            for k in range(y, n, t1):
                total += a[i * loaded[0] + k * loaded[1]]
            if y == 0:
                out[i] = total

    return kernel, m // (t0 * tile)


@pytest.mark.parametrize(
    ("nest", "kernel_of", "schedule"),
    [
        (MAP, copying_kernel, Schedule(0, (8, 4), (1, 4))),
        (MAP, copying_kernel, Schedule(1, (2, 32), (3, 1))),
        (MAP, copying_kernel, Schedule(1, (8, 8), (1, 2))),
        (SUM, summing_kernel, Schedule(1, (2, 32), (2, 1))),
        (SUM, summing_kernel, Schedule(0, (16, 4), (1, 1))),
    ],
)
def test_exact_time_is_that_of_the_interpreter(nest, kernel_of, schedule):
    kernel, blocks = kernel_of(nest, schedule)
    out, a = np.zeros(2000, np.float32), np.zeros(2000, np.float32)
    trace = simt.trace(kernel, blocks, int(np.prod(schedule.threads)), out, a)
    requests = trace.requests()
    work = np.bincount(requests.block, 1 + requests.sectors, blocks)
    machine = MACHINE._replace(latency=0)
    waves = [work[k : k + machine.multiprocessors].max() for k in range(0, blocks, machine.multiprocessors)]
    assert measure(nest, schedule, machine) == sum(waves)


def powers(limit):
    """The powers of two up to a limit."""
    return [2**k for k in range(limit.bit_length()) if 2**k <= limit]


def legal_schedules(nest):
    """All legal schedules whose numbers are powers of two."""
    tiles = [[1] if is_reduced else powers(MACHINE.registers) for is_reduced in nest.is_reduced]
    splits = powers(64) if any(nest.is_reduced) else [1]
    for lanes in range(len(nest.sizes)):
        for threads in product(powers(MACHINE.max_threads), repeat=len(nest.sizes)):
            for tile in product(*tiles):
                for split in splits:
                    schedule = Schedule(lanes, threads, tile, split)
                    if oracle.function("is_legal")(nest, schedule, MACHINE):
                        yield schedule


@pytest.mark.parametrize("named", [pytest.param(named, id=named.name) for named in NESTS if len(named.nest.sizes) < 3])
def test_best_times_of_nests_are_those_of_all_schedules(named):
    ranked = sorted((oracle.function("cost")(named.nest, s, MACHINE), s) for s in legal_schedules(named.nest))
    assert min(measure(named.nest, s, MACHINE) for _, s in ranked[:25]) == named.best


@pytest.mark.parametrize("named", [pytest.param(named, id=named.name) for named in NESTS])
def test_the_descent_finds_nearly_the_best_schedules(named):
    chosen = oracle.function("choose")(named.nest, MACHINE)
    assert named.best <= measure(named.nest, chosen, MACHINE) <= 1.1 * named.best
    assert named.is_split or chosen.split == 1


@pytest.mark.parametrize("named", [pytest.param(named, id=named.name) for named in LARGE])
def test_best_times_of_large_nests_are_those_of_the_model(named):
    chosen = oracle.function("choose")(named.nest, MACHINE)
    assert oracle.function("cost")(named.nest, chosen, MACHINE) == named.best
