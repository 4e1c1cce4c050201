"""backends.cuda.codegen.transpose in the interpreter: results, hazards, memory sectors per request."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import minifuse as mf
from minifuse import simt
from minifuse.backends.cuda.codegen import select
from minifuse.inspect.dry_run import launches_of
from minifuse.testing import assert_close
from tests.examples import share

from ..cuda.simulated import simulated

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True, scope="module")
def small_tiles():
    """Matrices of any size have tiles: the interpreter takes long for large ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "schedule_by_closed_form", lambda *operands, **options: None)
        yield


def normal(*shape, dtype="float32"):
    return RANDOM.standard_normal(shape).astype(dtype)


def turned(x, *order):
    return x.transpose(order) if isinstance(x, np.ndarray) else x.permute(*order)


def traced(function, *inputs):
    """The trace of the only launch of a function, which has the form of tiles, and the output as it lies in memory."""
    (plan,) = launches_of(function, *inputs)
    assert "copy_tile" in plan.kernel.__code__.co_names
    trace = simt.trace(plan)
    return trace, trace.outputs["out0"]


def check(function, *inputs):
    """The result is that of NumPy; gives the trace, which has no hazard."""
    trace, out = traced(function, *inputs)
    right = function(*inputs)
    assert_close(out.reshape(right.shape), right)
    assert trace.hazards() == []
    return trace


def requests(trace, space):
    """Sectors or wavefronts of all requests to a kind of memory, and how many they would be at best."""
    r = trace.requests()
    mine = np.array([info.space == space for info in trace.arrays])[r.array]
    found, ideal = (r.sectors, r.ideal_sectors) if space == "global" else (r.wavefronts, r.ideal_wavefronts)
    return int(found[mine].sum()), int(ideal[mine].sum())


SEARCH = [Phase.explicit, Phase.generate]  # to shrink would take minutes in the interpreter
edges = st.sampled_from([16, 17, 20, 31, 32, 33, 60, 63, 64, 65, 68, 96, 129])


@settings(share(0.32), phases=SEARCH)
@given(edges, edges)
def test_sizes_past_all_edges(a, b):
    trace = check(lambda x, y: x * 2 + y.T, normal(a, b), normal(b, a))
    stores = trace.events.address[(trace.events.kind == 1) & (trace.events.array == 0)]
    assert len(np.unique(stores)) == len(stores)  # every element once


@settings(share(0.12), phases=SEARCH)
@given(st.integers(1, 3), st.integers(1, 3), st.sampled_from([16, 33, 68]), st.sampled_from([17, 64, 72]))
def test_batches(a, b, m, n):
    """Batch dims lie before the matrix, between its dims, and on both sides."""
    check(lambda x, y: x + turned(y, 0, 1, 3, 2), normal(a, b, m, n), normal(a, b, n, m))
    check(lambda x, y: x + turned(y, 2, 1, 0), normal(m, a, n), normal(n, a, m))
    check(lambda x, y: x + turned(y, 0, 3, 2, 1), normal(b, m, a, n), normal(b, n, a, m))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(64, 96), (33, 70)], ids=str)
def test_every_element_type(dtype, shape):
    a, b = (RANDOM.integers(0, 2 if dtype == "bool" else 100, s).astype(dtype) for s in (shape, shape[::-1]))
    check(lambda x, y: x | y.T if dtype == "bool" else x + y.T, a, b)


def test_several_operands_have_a_tile_each():
    check(lambda x, y, z: x * y.T - z.T * y.T, normal(40, 68), normal(68, 40), normal(68, 40))
    doubles = [normal(*s, dtype="float64") for s in ((40, 68), (68, 40), (68, 40))]
    check(lambda x, y, z: x * y.T - z.T, *doubles)  # for the third there is no room: it is read in steps


def test_operands_that_are_repeated():
    check(lambda x, y, row, column: x * row + y.T + column, normal(40, 68), normal(68, 40), normal(68), normal(40, 1))


@pytest.mark.parametrize("start", [1, 2, 4])
def test_slices_that_begin_anywhere(start):
    """Addresses that are no multiples of 16 bytes, and rows that are, or are not, multiples of four apart."""
    for pitch in (72, 71):
        x, y = normal(64, pitch), normal(64, pitch)
        check(lambda x, y, s=start: x[:, s : s + 64] + y[:, s : s + 64].T, x, y)


def test_copies_to_contiguous_layouts():
    x = normal(70, 100)
    y = mf.tensor(x, backend=simulated()).T.contiguous()
    assert y.strides == (70, 1)
    np.testing.assert_array_equal(y.numpy(), x.T)


def test_in_place_reads_before_it_stores():
    x, y = normal(64, 40), normal(40, 64)
    target = mf.tensor(x.copy(), backend=simulated())
    target += mf.tensor(y, backend=simulated()).T
    assert_close(target, x + y.T)
    target[:, ::2] += mf.tensor(y, backend=simulated()).T[:, 1::2]
    right = (x + y.T).astype("float64")
    right[:, ::2] += y.T[:, 1::2]
    assert_close(target, right)


@pytest.mark.parametrize("width", [64, 66])
def test_rows_that_are_a_multiple_of_four_apart_but_not_as_long(width):
    """Nothing is stored into the gap behind a row."""
    x, y = normal(40, 72), normal(68, 40)
    target = mf.tensor(x.copy(), backend=simulated())
    target[:, :width] += mf.tensor(y, backend=simulated())[:width].T
    x[:, :width] += y[:width].T
    np.testing.assert_array_equal(target.numpy(), x)


@pytest.mark.parametrize("shape", [(70, 40), (3, 70, 40), (2, 3, 20, 70)], ids=str)
def test_blocks_past_the_last_tile_do_nothing(shape):
    """A grid that is filled up along y and z has some."""
    order = (*range(len(shape) - 2), -1, -2)
    x, y = normal(*shape), normal(*np.empty(shape).transpose(order).shape)
    order = tuple(d % len(shape) for d in order)
    (plan,) = launches_of(lambda x, y: x + turned(y, *order), x, y)
    trace = simt.trace(plan._replace(grid=(plan.grid[0], plan.grid[1] + 1, 2)))
    assert trace.hazards() == []
    assert_close(trace.outputs["out0"].reshape(shape), x + y.transpose(order))
    assert (trace.events.kind == 1).sum() == (simt.trace(plan).events.kind == 1).sum()


@pytest.mark.parametrize("seed", [1, 2])
def test_no_order_of_the_threads_is_a_race(seed):
    for shape in ((64, 64), (33, 65)):
        (plan,) = launches_of(lambda x, y: x + y.T, normal(*shape), normal(*shape[::-1]))
        assert simt.trace(plan, seed=seed).hazards() == []


# What requests cost


def test_requests_fill_sectors_without_bank_conflicts():
    for dtype in ("float32", "int32"):
        x, y = (RANDOM.integers(0, 9, (128, 64)).astype(dtype), RANDOM.integers(0, 9, (64, 128)).astype(dtype))
        trace = check(lambda x, y: x + y.T, x, y)
        sectors, ideal = requests(trace, "global")
        assert sectors == ideal == 3 * 128 * 64 * 4 // 32
        wavefronts, ideal = requests(trace, "shared")
        assert wavefronts == ideal == 2 * 128 * 64 * 4 // 128


def test_one_at_a_time_there_is_no_conflict_either():
    """And 32 neighbours that begin anywhere touch five sectors, not four."""
    trace = check(lambda x, y: x + y.T, normal(65, 67), normal(67, 65))
    wavefronts, ideal = requests(trace, "shared")
    assert wavefronts == ideal
    sectors, ideal = requests(trace, "global")
    assert sectors <= ideal * 5 / 4


def test_doubles_take_twice_the_wavefronts():
    """The price of a pitch that suits 4 bytes: 16 lanes share a wavefront of 8 bytes each, and meet in pairs."""
    trace = check(lambda x, y: x + y.T, normal(64, 64, dtype="float64"), normal(64, 64, dtype="float64"))
    wavefronts, ideal = requests(trace, "shared")
    assert wavefronts == 2 * ideal
    sectors, ideal = requests(trace, "global")
    assert sectors == ideal
