"""backends.cuda.geometry: one thread computes each element, within the hardware's limits for grids and blocks.

Generated kernels run here thread by thread as plain Python, and arrays only record the indices that are read and written.
"""

from collections import Counter
from types import FunctionType, SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minifuse as mf
from minifuse.backends.codegen.gpu_facts import MAX_GRID_YZ
from minifuse.backends.cuda.codegen.base import MAX_COLUMN_THREADS, MAX_ROW_THREADS, WARP
from minifuse.backends.cuda.geometry import (
    THREADS,
    clamp,
    geometry_of,
)
from minifuse.compiler.plan import Plan
from minifuse.core.rounding import ceil_div, power_of_two
from minifuse.simt import Pointer

from ..cuda.simulated import simulated

MOST_THREADS, MOST_X = 1024, 2**31 - 1  # of a block; blocks along x


class Memory:
    """Counts the elements that are loaded and stored."""

    def __init__(self, low, high):
        self.low, self.high, self.loads, self.stores = low, high, Counter(), Counter()

    def inside(self, i):
        assert self.low <= i < self.high
        return i

    def __getitem__(self, i):
        self.loads[self.inside(i)] += 1
        return 1

    def __setitem__(self, i, value):
        self.stores[self.inside(i)] += 1


def load4(memory, i):
    assert (i + getattr(memory, "start", 0)) % 4 == 0
    return [memory[i + k] for k in range(4)]


def store4(memory, i, values):
    assert i % 4 == 0
    for k, value in enumerate(values):
        memory[i + k] = value


def put4(row, i, values):
    row[i : i + 4] = values


def run(plan):
    """Run every thread of a launch, one after the other; gives the record of each operand."""
    cuda = SimpleNamespace(blockIdx=SimpleNamespace(), threadIdx=SimpleNamespace(), shared=SimpleNamespace())
    cuda.shared.array = lambda size, dtype: None
    names = {"cuda": cuda, "load4": load4, "store4": store4, "f32": float}
    names |= dict.fromkeys(("fold_along_x", "fold_along_y"), lambda op, x, *parts: x)
    cuda.local = SimpleNamespace(array=lambda size, dtype: [None] * size)
    names |= {"put4": put4, "beside4": lambda row, i: row[i : i + 4]}
    kernel = FunctionType(plan.kernel.__code__, {**plan.kernel.__globals__, **names})
    memories = [Memory(p.low, p.high) if isinstance(p, Pointer) else p for p in plan.arguments]
    (gx, gy, gz), (bx, by, bz) = plan.grid, plan.block
    assert bz == 1
    cuda.gridDim, cuda.blockDim = SimpleNamespace(x=gx, y=gy, z=gz), SimpleNamespace(x=bx, y=by, z=1)
    for block in range(gx * gy * gz):
        cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockIdx.z = block % gx, block // gx % gy, block // gx // gy
        for thread in range(bx * by):
            cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z = thread % bx, thread // bx, 0
            kernel(*memories)
    return [m for m in memories if isinstance(m, Memory)]


def launch(function, *inputs, misaligned=False):
    """The launch of the only kernel of a function."""
    plan = Plan(function, inputs)
    (step,) = plan.steps
    bound = simulated().compile(step).load()
    count = len(step.outputs) + len(step.inputs)
    addresses = [(k + 1) << 20 | 4 * misaligned for k in range(count)]  # nobody looks what is there
    return bound.plans(*addresses)[0]


def check(function, *inputs, times=1, misaligned=False):
    """Every element of the output is stored once, and every one of the inputs is loaded `times` times.

    If blocks share a column, each stores partial sums, which the next launch adds.
    A thread past the last row, which must reach the barriers, loads the last row again.
    """
    plan = launch(function, *inputs, misaligned=misaligned)
    out, *operands = run(plan)
    assert set(out.stores.values()) == {1}
    assert len(out.stores) == out.high - out.low
    assert len(out.stores) % Plan(function, inputs).outputs[0].size == 0
    for memory, x in zip(operands, inputs, strict=True):
        assert len(memory.loads) == x.size
        if 1 not in x.shape:  # what is the same all along a row is loaded by each thread of the row
            assert min(memory.loads.values()) == times
            if not {"fold_along_x", "fold_along_y"} & set(plan.kernel.__code__.co_names):
                assert set(memory.loads.values()) == {times}


def zeros(*shape):
    return mf.zeros(*shape, backend=simulated())


sizes = st.sampled_from([1, 2, 3, 4, 5, 31, 32, 33, 127, 129, 255, 257, 300])
few = st.integers(1, 9)
some = settings(max_examples=25)


@some
@given(st.integers(1, 3000), st.booleans())
def test_elements_of_one_axis(n, misaligned):
    check(lambda x: x * 2, zeros(n), misaligned=misaligned)


@some
@given(few, sizes, st.booleans())
def test_elements_of_rows(rows, n, misaligned):
    """Parts of rows that are, or are not, multiples of four apart."""
    for pitch in (n + 3, ceil_div(n, 4) * 4 + 4):
        check(lambda x: x * 2, zeros(rows, pitch)[:, :n], misaligned=misaligned)


@some
@given(few, few, sizes)
def test_elements_of_strided_operands(a, b, n):
    check(lambda x: x * 2, zeros(2 * a, b, 2 * n)[::2, :, ::2])
    check(lambda x: x * 2, zeros(n, b, a).permute(2, 1, 0))


@some
@given(few, sizes, st.booleans())
def test_rows(rows, n, misaligned):
    check(lambda x: x.sum(1), zeros(rows, n), misaligned=misaligned)
    check(lambda x: x.sum(1), zeros(rows, 2 * n)[:, ::2], misaligned=misaligned)


@some
@given(few, few, sizes)
def test_rows_of_several_axes(a, b, n):
    check(lambda x: x.sum((0, 2)), zeros(a, b, n))
    check(lambda x: x.sum(2), zeros(a, 2 * b, n)[:, ::2])


@some
@given(sizes, sizes)
def test_columns(rows, n):
    if rows > 1 < n:
        check(lambda x: x.sum(0), zeros(rows, n))


def test_columns_that_several_blocks_share():
    check(lambda x: x.sum(0), zeros(255, 300))


@some
@given(few, st.sampled_from([2, 5, 33]), sizes)
def test_columns_of_several_axes(a, b, n):
    if n > 1:
        check(lambda x: x.sum(1), zeros(a, b, n))


@some
@given(few, sizes, st.booleans())
def test_a_row_is_loaded_once_for_all_its_sweeps(rows, n, misaligned):
    if n > 1:
        check(lambda x: x - x.sum(1, True), zeros(rows, n), misaligned=misaligned)
        check(lambda x: (x - x.max(1, True)) * x.sum(1, True), zeros(rows, n), misaligned=misaligned)


def test_a_long_column_is_loaded_in_each_sweep():
    check(lambda x: x - x.sum(0, True), zeros(50, 70), times=2)


# Limits

large = st.one_of(st.integers(1, 40), st.integers(1, 2**31))


@settings(max_examples=300)
@given(
    st.sampled_from(["points", "rows", "columns"]),
    st.lists(large, min_size=1, max_size=3),
    large,
    st.sampled_from([1, 4, 8]),
)
def test_no_grid_is_larger_than_the_hardware_allows(form, counted, last, each):
    count = 1
    for size in counted:
        count *= size
    if count > MOST_X:  # of rows, more than any memory holds
        counted, count = [MOST_X], MOST_X
    shape = [*counted, 100, last] if form == "columns" else [*counted, last]
    geometry = geometry_of(form, shape, len(shape) - 1, len(counted), each)
    (gx, gy, gz), (x, y, z) = geometry
    assert min(*geometry.grid, *geometry.block) >= 1
    assert x * y <= (MAX_ROW_THREADS if form == "rows" else min(THREADS, MAX_COLUMN_THREADS)) <= MOST_THREADS
    assert z == 1
    assert gx <= MOST_X
    assert max(gy, gz) <= MAX_GRID_YZ
    assert x == power_of_two(x)
    assert y == power_of_two(y)
    assert x * y % WARP == 0  # all lanes of a warp take part in shuffles
    if form == "points":
        assert gx * x * each >= last
        assert gy * gz * y >= count
    elif form == "rows":
        assert gx * y >= count
        assert x <= WARP or y == 1  # a row of several warps has the barriers for itself
    else:
        assert gx * x >= 100
        assert gy * gz >= count


def test_short_rows_share_a_block_and_long_ones_have_one():
    assert geometry_of("rows", [1000, 8], 1, 1, 1) == ((32, 1, 1), (8, 32, 1))
    assert geometry_of("rows", [1000, 8], 1, 1, 4) == ((8, 1, 1), (2, 128, 1))
    assert geometry_of("rows", [4000, 128], 1, 1, 4) == ((125, 1, 1), (8, 32, 1))
    assert geometry_of("rows", [4000, 127], 1, 1, 4) == ((500, 1, 1), (32, 8, 1))  # one at a time
    assert geometry_of("rows", [4000, 10000], 1, 1, 4) == ((4000, 1, 1), (256, 1, 1))
    assert geometry_of("rows", [4000, 60000], 1, 1, 4) == ((4000, 1, 1), (512, 1, 1))


def test_where_rows_are_few_more_threads_share_one():
    assert geometry_of("rows", [4000, 1000], 1, 1, 4).block == (32, 8, 1)
    assert geometry_of("rows", [40, 1000], 1, 1, 4).block == (128, 1, 1)


def test_more_rows_than_blocks_along_y_go_on_along_z():
    grid, block = geometry_of("points", [10_000_000, 300], 1, 1, 4)
    assert grid[1] == MAX_GRID_YZ
    assert grid[2] > 1
    assert block[0] * block[1] == THREADS


def test_many_columns_of_many_rows_fill_two_axes_of_the_grid():
    grid, _ = geometry_of("columns", [100_000, 64, 8], 2, 1, 1)
    assert grid[1] * grid[2] >= 100_000


def test_tiles_of_many_matrices_fill_two_axes_of_the_grid():
    assert geometry_of("tiles", [130, 65], 1, 0, 1, 0) == ((2, 3, 1), (8, 32, 1))
    assert geometry_of("tiles", [65, 7, 130], 2, 0, 1, 0) == ((3, 14, 1), (8, 32, 1))
    assert geometry_of("tiles", [7, 65, 130], 2, 0, 1, 1) == ((3, 14, 1), (8, 32, 1))
    grid, _ = geometry_of("tiles", [10_000_000, 64], 1, 0, 1, 0)
    assert grid[1] <= MAX_GRID_YZ >= grid[2]
    assert grid[1] * grid[2] * 64 >= 10_000_000


@pytest.mark.parametrize(("n", "expected"), [(0, 1), (1, 1), (2, 2), (3, 4), (256, 256), (257, 512), (2**31 - 1, 2**31)])
def test_powers_of_two(n, expected):
    assert power_of_two(n) == expected


def test_bounds_and_steps():
    assert [clamp(n, 2, 5) for n in (1, 2, 4, 9)] == [2, 2, 4, 5]
    assert [ceil_div(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
