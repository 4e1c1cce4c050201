"""backends.cuda.intrinsics.gemm in the interpreter: results, and arguments that are rejected."""

import numpy as np
import pytest

from minifuse import simt
from minifuse.backends.cuda.intrinsics.base import cuda, device, f32
from minifuse.backends.cuda.intrinsics.gemm import (
    commit,
    copy_async,
    interleave_columns,
    interleaved_indices,
    lane_indices,
    outer_products,
    store_tile,
    wait,
    zeros,
)
from minifuse.core.errors import OutOfBoundsError, RaceError, UninitializedReadError

ROWS, COLUMNS = lane_indices(4, 2), lane_indices(8, 2)  # a lane of four, two by two


def test_swizzled_indices_keep_groups_of_four():
    assert lane_indices(4, 8) == (0, 1, 2, 3)
    assert lane_indices(8, 8) == (0, 1, 2, 3, 32, 33, 34, 35)
    taken = [place + 4 * lane for lane in range(8) for place in lane_indices(8, 8)]
    assert sorted(taken) == list(range(64))


def copier(width, waits=0, count=1):
    """A kernel in which each lane copies `count` groups and reads the first back."""
    copy, wait_for = copy_async(width), wait(waits)

    def kernel(out, source, n):
        tile = cuda.shared.array(256, f32, 16)
        i = cuda.threadIdx.x * width
        for group in range(count):
            copy(tile, i + 64 * group, source, i + 64 * group, i < n)
            commit()
        wait_for()
        for e in range(width):
            out[i + e] = tile[i + e]

    return kernel


@pytest.mark.parametrize("width", [1, 4])
def test_an_async_copy_fills_invalid_elements_with_zero(width):
    source, out = np.arange(1, 257, dtype=np.float32), np.full(64, np.nan, np.float32)
    trace = simt.trace(copier(width), 1, 64 // width, out, source, 40)
    assert out.tolist() == [*range(1, 41), *[0] * 24]
    assert trace.hazards() == []
    loads = trace.events.nbytes[trace.events.array == [x.name for x in trace.arrays].index("source")]
    assert loads.tolist() == [4 * width] * (40 // width)  # nothing is read where it is not valid


def test_only_the_last_groups_of_copies_may_be_pending():
    source = np.arange(256, dtype=np.float32)
    for waits, count in ((0, 1), (1, 2), (2, 3), (0, 3)):
        out = np.zeros(64, np.float32)
        simt.run(copier(4, waits, count), 1, 16, out, source, 64)
        assert out.tolist() == list(range(64))
    for waits, count in ((1, 1), (2, 2), (3, 1)):
        with pytest.raises(UninitializedReadError, match="tile"):
            simt.run(copier(4, waits, count), 1, 16, np.zeros(64, np.float32), source, 64)


def test_a_copy_outside_a_committed_group_is_not_awaited():
    copy, wait_for = copy_async(1), wait(0)

    def kernel(out, source):
        tile = cuda.shared.array(32, f32)
        copy(tile, cuda.threadIdx.x, source, cuda.threadIdx.x, True)
        wait_for()
        out[cuda.threadIdx.x] = tile[cuda.threadIdx.x]

    with pytest.raises(UninitializedReadError):
        simt.run(kernel, 1, 32, np.zeros(32, np.float32), np.ones(32, np.float32))


def test_a_copy_of_another_lane_needs_a_barrier():
    copy, wait_for = copy_async(1), wait(0)

    def kernel(out, source, has_barrier):
        tile = cuda.shared.array(64, f32)
        t = cuda.threadIdx.x
        copy(tile, t, source, t, True)
        commit()
        wait_for()
        if has_barrier:
            cuda.syncthreads()
        out[t] = tile[63 - t]

    source = np.arange(64, dtype=np.float32)
    out = np.zeros(64, np.float32)
    assert simt.trace(kernel, 1, 64, out, source, True).hazards() == []
    assert out.tolist() == list(range(63, -1, -1))
    found = [type(error) for error in simt.trace(kernel, 1, 64, out, source, False).hazards()]
    assert RaceError in found


def test_vector_accesses_need_16_byte_alignment():
    with pytest.raises(OutOfBoundsError, match="misaligned"):
        simt.run(copier(4), 1, 16, np.zeros(64, np.float32), np.zeros(257, np.float32)[1:], 64)


def test_products_wait_for_the_copy_that_overwrites_their_tile():
    """And sums that were handed on are what they were."""
    copy, wait_for, zero = copy_async(4), wait(0), zeros(4, 4)
    multiply = outer_products(lane_indices(4, 1), lane_indices(4, 1), 1, 4, 4)

    def kernel(out, source, is_patient):
        tile = cuda.shared.array(4, f32, 16)
        copy(tile, 0, source, 0, True)
        commit()
        wait_for()
        before = multiply(zero(), tile, 0, tile, 0)
        copy(tile, 0, source, 4, True)
        commit()
        if is_patient:
            wait_for()
        after = multiply(before, tile, 0, tile, 0)
        out[0] = before[1, 2]
        out[1] = after[1, 2]

    source, out = np.arange(8, dtype=np.float32), np.zeros(2, np.float32)
    simt.run(kernel, 1, 1, out, source, True)
    assert out.tolist() == [1 * 2, 1 * 2 + 5 * 6]
    with pytest.raises(UninitializedReadError, match="tile"):
        simt.run(kernel, 1, 1, out, source, False)


def test_outer_products_of_a_tile():
    steps, pitch_a, pitch_b = 3, 12, 20
    zero, multiply = zeros(4, 8), outer_products(ROWS, COLUMNS, steps, pitch_a, pitch_b)
    store = store_tile(ROWS, COLUMNS, False)

    @device
    def half(value, i, j, bias):
        return value * f32(0.5) + bias[j]

    @device
    def half_four(v, i, j, bias):
        return half(v[0], i, j, bias), half(v[1], i, j + 1, bias), half(v[2], i, j + 2, bias), half(v[3], i, j + 3, bias)

    def kernel(out, a, b, bias, alpha, wide):
        i, j = cuda.threadIdx.x // 2 * 4, cuda.threadIdx.x % 2 * 4
        acc = multiply(multiply(zero(), a, i, b, j), a, i, b, j)
        store(out, 0, i, j, 0, 0, 8, 16, 16, 1, wide, acc, alpha, half, half_four, bias)

    random = np.random.default_rng(0)
    a, b = random.standard_normal((steps, pitch_a)), random.standard_normal((steps, pitch_b))
    bias = np.arange(16, dtype=np.float32)
    exact = 0.5 * 3 * 2 * np.einsum("km,kn->mn", a[:, :8], b[:, :16]) + bias
    flat = [x.astype(np.float32).reshape(-1) for x in (a, b)]
    for wide in (False, True):
        out = np.full((8, 16), np.nan, np.float32)
        trace = simt.trace(kernel, 1, 4, out.reshape(-1), *flat, bias, 3.0, wide)
        np.testing.assert_allclose(out, exact, rtol=2e-5, atol=1e-5)
        stores = trace.events.nbytes[trace.events.kind == 1]
        assert stores.tolist() == ([16] * 32 if wide else [4] * 128)


@pytest.mark.parametrize("wide", [False, True])
def test_a_store_writes_only_its_own_elements(wide):
    zero = zeros(4, 8)

    @device
    def place(value, i, j, at):
        return value + i * 100 + j

    @device
    def place_four(values, i, j, at):
        return place(values[0], i, j, at), place(values[1], i, j + 1, at), place(0, i, j + 2, at), place(0, i, j + 3, at)

    expected = np.array([[100 * i + j for j in range(24)] for i in range(6)], np.float32)
    for guarded, (top, left, M, N) in (
        (False, (0, 0, 1, 4)),
        (False, (2, 4, 1, 4)),
        (True, (1, 4, 3, 16)),
        (True, (0, 0, 4, 8)),
    ):
        out = np.full(6 * 24 + 16, -1, np.float32)
        store = store_tile(ROWS, COLUMNS, guarded)

        def launch(out, store=store, top=top, left=left, M=M, N=N):
            store(out, 0, 0, 0, top, left, M, N, 24, 1, wide, zero(), 1.0, place, place_four, 0)

        simt.run(launch, 1, 1, out)
        mine = np.zeros((6, 24), bool)
        mine[np.ix_(ROWS, COLUMNS)] = True
        mine[:top] = mine[:, :left] = False
        if guarded:
            mine[M:] = mine[:, N:] = False
        assert np.array_equal(out[: 6 * 24].reshape(6, 24), np.where(mine, expected, -1))
        assert (out[6 * 24 :] == -1).all()


@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
def test_interleaved_columns_are_adjacent_among_lanes(lanes):
    rows, columns = 3, 8
    places = interleaved_indices(columns, lanes)

    @simt.word
    def interleaved(lane):
        mine = [[100 * i + 4 * lane + j for j in lane_indices(columns, lanes)] for i in range(rows)]
        return interleave_columns(np.array(mine, np.float32), lanes, lane)

    def kernel(out):
        sums = interleaved(cuda.threadIdx.x % lanes)
        for i in range(rows):
            for j in range(columns):
                out[(cuda.threadIdx.x * rows + i) * columns + j] = sums[i, j]

    out = np.zeros((32, rows, columns), np.float32)
    simt.run(kernel, 1, 32, out.reshape(-1))
    lane = np.arange(32) % lanes
    expected = 100 * np.arange(rows)[None, :, None] + lane[:, None, None] + np.array(places)[None, None]
    np.testing.assert_array_equal(out, expected)
