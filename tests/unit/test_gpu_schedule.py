"""backends.codegen.gpu_schedule: which schedule a loop nest has, and why."""

import pytest

import minifuse as mf
from minifuse.backends.codegen.gpu_schedule import choose_schedule, choose_split
from minifuse.backends.codegen.nest import KernelNest
from minifuse.compiler.plan import Plan
from minifuse.core.rounding import ceil_div, power_of_two
from minifuse.ir.kernel_ir import LoopNest

from ..cuda.simulated import simulated

BACKEND = simulated()


def nest_of(function, *tensors):
    (step,) = Plan(function, tensors).steps
    outputs, inputs = step.layouts()
    return KernelNest(step.kernel, LoopNest(step.shape, step.dims, [*outputs, *inputs]))


def zeros(*shape):
    return mf.zeros(*shape, backend=BACKEND)


@pytest.mark.parametrize(
    ("function", "shapes", "why"),
    [
        (lambda x: x * 2, [(64, 80)], "each thread computes its points alone"),
        (lambda x: x.sum(1), [(64, 800)], "adjacent threads share a row"),
        (lambda x: x.softmax(1), [(64, 800)], "keep it in registers"),
        (lambda x, w: x.softmax((1, 2)) * w, [(64, 48, 49), (48, 1)], "threads along both axes of a row keep it"),
        (lambda x: x.sum(0), [(300, 40)], "each thread reduces its own columns"),
        (lambda x, y: ((x.unsqueeze(1) - y) ** 2).sum(2), [(64, 40), (96, 40)], "a small matrix of results"),
        (lambda x: x + 1, [(1,)], "there is one point"),
    ],
)
def test_each_choice_has_a_reason_in_words(function, shapes, why):
    assert why in choose_schedule(nest_of(function, *[zeros(*s) for s in shapes])).why


def test_lanes_are_along_the_axis_where_memory_is_adjacent():
    for function, lanes in ((lambda x: x.sum(1), 1), (lambda x: x.sum(0), 0)):
        nest = nest_of(function, zeros(300, 400))
        assert choose_schedule(nest).order[0] == lanes


def test_vectors_need_rows_that_begin_at_their_multiples():
    for n, wide in ((64, ("out0", "in0", "in1")), (66, ()), (67, ())):
        nest = nest_of(lambda x, y: x + y, zeros(8, n), zeros(n))
        assert choose_schedule(nest).vectors == wide
        assert choose_schedule(nest, width=1).vectors == ()


@pytest.mark.parametrize("n", [2, 31, 33, 1000, 1001, 4096, 10_007])
@pytest.mark.parametrize("rows", [1, 5, 3000])
@pytest.mark.parametrize("function", [lambda x: x.sum(1), lambda x: x.softmax(1), lambda x: x.sum(0), lambda x: x * 2])
def test_blocks_are_within_the_limits_of_the_hardware(function, rows, n):
    nest = nest_of(function, zeros(rows, n))
    schedule = choose_schedule(nest)
    assert 1 <= schedule.threads <= 1024
    assert len(schedule.order) <= 3
    assert schedule.block()[2] <= 64
    for a, tile in enumerate(schedule.tiles):
        assert tile.threads == power_of_two(tile.threads)
        assert tile.threads == 1 or a in schedule.order
        if a in nest.reduced and not tile.serial:
            assert tile.length >= nest.sizes[a]


def test_odd_rows_that_several_stages_need_stay_in_registers():
    for shape in ((1, 31), (1, 1001), (3000, 1001)):
        schedule = choose_schedule(nest_of(lambda x: x.softmax(1), zeros(*shape)))
        assert not any(tile.serial for tile in schedule.tiles)


@pytest.mark.parametrize(("rows", "size"), [(4, (40, 49)), (4, (64, 36)), (2000, (32, 256)), (64, (16, 81))])
def test_rows_of_two_axes_stay_in_registers_of_all_threads(rows, size):
    schedule = choose_schedule(nest_of(lambda x, w: x.softmax((1, 2)) * w, zeros(rows, *size), zeros(size[0], 1)))
    tiles = schedule.tiles[1:]
    assert not any(tile.serial for tile in tiles)
    assert all(tile.length >= n for tile, n in zip(tiles, size, strict=True))
    assert schedule.threads <= 512
    assert tiles[0].elements * tiles[1].elements <= 32


def test_long_rows_of_two_axes_are_read_again():
    schedule = choose_schedule(nest_of(lambda x, w: x.softmax((1, 2)) * w, zeros(64, 300, 900), zeros(300, 1)))
    assert any(tile.serial for tile in schedule.tiles)


def test_few_rows_are_split_and_many_are_not():
    for shape, is_split in (((1, 1_000_003), True), ((3, 300_007), True), ((5000, 1000), False), ((1, 5000), False)):
        nest = nest_of(lambda x: x.sum(1), zeros(*shape))
        split = choose_split(nest, choose_schedule(nest), 132)
        assert (split is not None) == is_split
        if split:
            for axis, chunks, length in split.parts:
                assert (chunks - 1) * length < nest.sizes[axis] <= chunks * length


def test_helpers():
    assert [power_of_two(n) for n in (0, 1, 2, 3, 256, 257, 2.5)] == [1, 1, 2, 4, 256, 512, 4]
    assert [ceil_div(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_a_block_has_threads_along_both_axes_of_a_transposed_operand():
    for shape in ((64, 151, 153, 16), (4096, 30)):
        dims = (len(shape) - 1, *range(len(shape) - 1))
        nest = nest_of(lambda x, y, dims=dims: x.permute(*dims) + y, zeros(*shape), zeros(*[shape[d] for d in dims]))
        schedule = choose_schedule(nest)
        lanes, turned = schedule.order
        assert {nest.strides["in0"][lanes], nest.strides["in1"][turned]} == {1}
        assert schedule.tiles[lanes].threads >= 16
        assert (schedule.tiles[turned].threads, schedule.tiles[turned].registers) == (8, 4)


def test_columns_that_stay_in_registers_leave_room_for_two_blocks():
    nest = nest_of(lambda x: x.softmax(1), zeros(128, 1000, 600))
    schedule = choose_schedule(nest)
    (row,) = nest.reduced
    assert (schedule.threads, schedule.tiles[row].registers) == (512, 32)


def test_threads_share_long_columns_only_if_the_axis_is_not_split():
    threads = [choose_schedule(nest_of(lambda x: x.sum(0), zeros(rows, 8192))).tiles[1].threads for rows in (8192, 512)]
    assert threads == [1, 4]


def test_few_nested_rows_are_shared_by_more_threads():
    def forces(p):
        d = p[None] - p[:, None]
        r = (d * d).sum(2)[:, :, None] + 1e-2
        return (d / (r * r.sqrt())).sum(1)

    nests = [nest_of(forces, zeros(n, 3)) for n in (4096, 400_000)]
    shares = [max(choose_schedule(nest).tiles[a].threads for a in nest.reduced) for nest in nests]
    assert shares == [32, 1]


def test_a_thread_computes_dear_work_once_for_several_points():
    def scaled(x, w):
        for _ in range(4):
            w = w.tanh()
        return x * w

    registers = [
        choose_schedule(nest_of(function, zeros(4096, 1001), zeros(1001))).tiles[0].registers
        for function in (scaled, lambda x, w: x * w)
    ]
    assert registers == [4, 1]
