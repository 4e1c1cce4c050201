"""backends.codegen.schedule_search: which neighbors a schedule has, and which one a search with made-up times finds."""

from functools import partial

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.backends.codegen.gpu_facts import Facts
from minifuse.backends.codegen.schedule import LoopSchedule, Tile
from minifuse.backends.codegen.schedule_search import neighbors, search
from minifuse.backends.cuda.codegen.select import describe_nest
from minifuse.backends.cuda.launcher import CudaKernelLauncher
from minifuse.compiler.plan import Plan

from ..cuda.simulated import simulated

FUNCTIONS = {
    "points": (lambda x: mf.exp(x) * 2, [(9, 68)]),
    "points of odd rows": (lambda x: mf.exp(x) * 2, [(9, 67)]),
    "points of an odd length": (lambda x: x * 3, [(1027,)]),
    "sum of an odd length": (lambda x: x.sum(), [(1027,)]),
    "row sum": (lambda x: x.sum(1), [(5, 260)]),
    "row softmax": (lambda x: x.softmax(1), [(5, 129)]),
    "row variance": (lambda x: x.var(1), [(6, 128)]),
    "column sum": (lambda x: x.sum(0), [(40, 36)]),
    "column any": (lambda x: (x > 0.9).any(0), [(12, 512)]),
    "argmax": (lambda x: x.argmax(1), [(6, 130)]),
    "sum of two axes": (lambda x: x.sum((0, 2)), [(4, 3, 68)]),
    "transposed operand": (lambda x, y: x.T + y, [(36, 20), (20, 36)]),
    "transposed rows": (lambda x: x.T.softmax(1), [(40, 36)]),
    "distances": (lambda x, y: ((x.unsqueeze(1) - y) ** 2).sum(2), [(33, 18), (64, 18)]),
}


def prepare(name):
    """Return the tensors, the plan, its launcher and the facts of the kernel of a function."""
    function, shapes = FUNCTIONS[name]
    random = np.random.default_rng(0)
    tensors = [mf.tensor(random.random(shape, np.float32), backend=simulated()) for shape in shapes]
    plan, launchers = Plan(function, tensors), []
    plan.host.compile_function(lambda _, launch: launchers.append(launch) or launch)
    (launcher,) = launchers
    assert isinstance(launcher, CudaKernelLauncher)
    kernel, nest, raws, is_aligned, _, has_constants = launcher.generation
    return tensors, plan, launcher, Facts(describe_nest(kernel, nest, raws), 4 * is_aligned, has_constants)


def reachable(launcher, facts, steps):
    """Return the schedules that are at most some steps away from the first one, without that one."""
    found = [launcher.text.schedule._replace(why="")]
    for _ in range(steps):
        found = list(dict.fromkeys([*found, *[x for schedule in found for x in neighbors(schedule, facts)]]))
    return found[1:]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_neighbor_computes_the_same_without_a_race(name):
    tensors, plan, launcher, facts = prepare(name)
    values = []
    result = plan.host.compile_function(lambda _, launch: lambda *x: values.extend(x) or launch(*x))(*tensors)
    expected = result.numpy().copy()
    near = reachable(launcher, facts, 1)
    assert near
    for schedule in near[::2]:
        result[...] = 0
        launch = launcher.variant(True, lambda *_, schedule=schedule: schedule).plans(*values)[0]
        assert not simt.trace(launch).hazards(), schedule
        simt.run(launch)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, err_msg=f"{schedule}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_neighbors_are_within_the_limits_of_the_hardware(name):
    _, _, launcher, facts = prepare(name)
    for schedule in reachable(launcher, facts, 2):
        assert schedule.threads <= 1024
        assert len(schedule.order) <= 2
        assert {a for a, tile in enumerate(schedule.tiles) if tile.threads > 1} == {*schedule.order}
        for a, tile in enumerate(schedule.tiles):
            if a in facts.nest.reduced and not tile.serial:
                assert tile.length >= facts.sizes[a]
            if tile.vector > 1 and a not in (facts.nest.reduced | {schedule.tail}) and not schedule.staged:
                assert facts.sizes[a] % tile.vector == 0


def test_vectors_are_chosen_only_where_addresses_are_aligned():
    _, _, launcher, facts = prepare("row sum")
    scalar = launcher.text.schedule._replace(tiles=(Tile(), Tile(32, serial=True)), order=(1,), vectors=())
    assert any(x.vectors for x in neighbors(scalar, facts))
    facts = Facts(facts.nest, 1)
    assert not any(x.vectors or x.tiles[1].vector > 1 for x in neighbors(scalar, facts))


# The search. A schedule of these tests has one axis, and its time is a function of its threads.

FIRST = LoopSchedule((Tile(32),), (0,), why="it is the first")


def halves_and_doubles(schedule):
    """Yield schedules with half and twice as many threads."""
    for threads in (schedule.threads // 2, schedule.threads * 2):
        if 1 <= threads <= 1024:
            yield LoopSchedule((Tile(threads),), (0,))


class Timer:
    """Made-up times by the number of threads; all schedules that were timed, batch by batch."""

    def __init__(self, time_of):
        self.time_of, self.batches = time_of, []

    def __call__(self, schedules):
        self.batches.append([x.threads for x in schedules])
        return [self.time_of(x.threads) for x in schedules]


def test_the_search_goes_to_faster_neighbors_until_there_is_none():
    timer = Timer(lambda threads: 10 + abs(threads - 256))
    found = search(FIRST, halves_and_doubles, timer)
    assert found.schedule.threads == 256
    assert (found.us, found.first_us, found.candidates) == (10, 234, 6)
    assert timer.batches == [[32, 16, 64], [64, 128], [128, 256], [256, 512], [32, 256]]
    assert found.schedule.why == "found by timing 6 schedules: 0.04 of the time of the closed form's"
    assert found == search(FIRST, halves_and_doubles, timer)


def test_the_first_schedule_stays_if_no_neighbor_is_faster_than_noise():
    for time_of in (lambda threads: 10 + abs(threads - 32), lambda threads: 10 - 0.001 * threads):
        found = search(FIRST, halves_and_doubles, Timer(time_of))
        assert found.schedule == FIRST._replace(why="it is the first; of 3 timed schedules none is faster")
        assert found.us == found.first_us


def test_a_winner_must_win_again():
    times = iter([[9.0, 9.0, 3.0], [3.0, 9.0], [9.0, 9.5]])
    found = search(FIRST, halves_and_doubles, lambda schedules: next(times))
    assert found.schedule.tiles == FIRST.tiles


def test_the_number_of_candidates_is_limited():
    timer = Timer(lambda threads: 1000 - threads)
    found = search(FIRST, halves_and_doubles, timer, limit=4)
    assert found.candidates == 4
    assert found.schedule.threads == 128


def test_a_schedule_without_a_kernel_is_not_chosen():
    timer = Timer(lambda threads: float("inf") if threads > 64 else 100 - threads)
    assert search(FIRST, halves_and_doubles, timer).schedule.threads == 64


def test_a_search_among_the_neighbors_of_a_kernel_is_deterministic():
    _, _, launcher, facts = prepare("row sum")

    def time(schedules):
        return [1000 / x.threads + sum(tile.registers for tile in x.tiles) for x in schedules]

    first = launcher.text.schedule
    results = {search(first, partial(neighbors, facts=facts), time) for _ in range(3)}
    assert len(results) == 1
    assert results.pop().us < time([first])[0]
