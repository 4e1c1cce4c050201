"""Known answers for whole kernels: traffic of textbook access patterns, and the hazards of broken matmuls."""

from types import SimpleNamespace

import numpy as np
import pytest

from minifuse import simt
from minifuse.core.errors import OutOfBoundsError, RaceError, UninitializedReadError, UnwrittenOutputError
from minifuse.simt import cuda
from minifuse.simt.record import LOAD, STORE

HERE = __file__
TILE = 8


def line_of(text):
    """Return the number of the line of this file that ends with the comment."""
    with open(HERE) as file:  # noqa: PTH123
        [number] = [number for number, line in enumerate(file, 1) if line.rstrip().endswith(f"# {text}")]
    return number


def unwritten_memory(data):
    """Return device memory whose elements count as unwritten."""
    return SimpleNamespace(data=data, written=np.zeros(data.shape, bool))


def kinds(trace):
    return [type(error) for error in trace.hazards()]


def of_array(trace, name):
    [found] = [entry for entry in trace.summary()["arrays"] if entry["name"] == name]
    return found["DERIVED"]


# Traffic


@pytest.mark.parametrize(
    ("dtype", "stride", "offset", "sectors"),
    [
        (np.float32, 1, 0, 4),
        (np.float32, 1, 1, 5),
        (np.float32, 2, 0, 8),
        (np.float32, 32, 0, 32),
        (np.float64, 1, 0, 8),
        (np.uint8, 1, 0, 1),
    ],
)
def test_strided_load_fetches_the_expected_sectors(dtype, stride, offset, sectors):
    def copy(out, a):
        i = cuda.grid(1)
        out[i] = a[stride * i + offset]

    out = np.zeros(128, dtype)
    trace = simt.trace(copy, 2, 64, out, np.arange(128 * stride + offset).astype(dtype))
    found = trace.requests()
    is_load = found.kind == LOAD
    assert is_load.sum() == 4
    assert found.sectors[is_load].tolist() == [sectors] * 4
    assert found.lanes.tolist() == [32] * 8
    assert of_array(trace, "a")["efficiency"] == found.ideal_sectors[is_load].sum() / (4 * sectors)
    assert trace.hazards() == []


def test_misaligned_view_fetches_one_more_sector():
    def copy(out, a):
        i = cuda.grid(1)
        out[i] = a[i]

    data = np.arange(33, dtype=np.float32)
    assert of_array(simt.trace(copy, 1, 32, np.zeros(32, np.float32), data[:32]), "a")["sectors"] == 4
    assert of_array(simt.trace(copy, 1, 32, np.zeros(32, np.float32), data[1:]), "a")["sectors"] == 5


@simt.word
def load4(a, i):
    return a.load(i, 4)


@simt.word
def store4(a, i, values):
    a.store(i, values)


def test_vector_load_of_512_adjacent_bytes_is_one_request_of_16_sectors():
    def copy(out, a):
        i = 4 * cuda.grid(1)
        store4(out, i, load4(a, i))

    out = np.zeros(128, np.float32)
    trace = simt.trace(copy, 1, 32, out, np.arange(128, dtype=np.float32))
    found = trace.requests()
    assert len(trace.events.thread) == 64
    assert found.sectors.tolist() == found.ideal_sectors.tolist() == [16, 16]
    assert found.nbytes.tolist() == [512, 512]
    assert found.kind.tolist() == [LOAD, STORE]
    assert np.array_equal(out, np.arange(128))


@pytest.mark.parametrize(("width", "wavefronts"), [(32, 32), (33, 1)])
def test_tile_column_has_bank_conflicts_unless_padded(width, wavefronts):
    def transpose(out, a):
        tile = cuda.shared.array((32, width), np.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        tile[y, x] = a[y, x]
        cuda.syncthreads()
        out[y, x] = tile[x, y]

    a = np.arange(1024, dtype=np.float32).reshape(32, 32)
    out = np.zeros_like(a)
    trace = simt.trace(transpose, 1, (32, 32), out, a)
    found = trace.requests()
    is_shared = found.wavefronts > 0
    loads, stores = (found.wavefronts[is_shared & (found.kind == kind)] for kind in (LOAD, STORE))
    assert loads.tolist() == [wavefronts] * 32
    assert stores.tolist() == [1] * 32
    assert of_array(trace, "tile")["bank_conflicts"] == 32 * (wavefronts - 1)
    assert np.array_equal(out, a.T)
    assert trace.hazards() == []


def test_guarded_copy_reads_each_element_once():
    def copy(out, a):
        i = cuda.grid(1)
        if i < a.size:
            out[i] = a[i]

    trace = simt.trace(copy, 2, 32, np.zeros(50), np.zeros(50))
    assert trace.reuse("a") == (50, 50, 1, 1, 1.0)
    lanes = trace.divergence()
    assert lanes.lanes.tolist() == [50, 50]
    assert lanes.possible.tolist() == [64, 64]
    assert lanes.partial.tolist() == [1, 1]


# Matmuls


def make_matmul(*, first_barrier=True, second_barrier=True, guard=True, swapped=False):
    def matmul(c, a, b):
        m, k, n = a.shape[0], a.shape[1], b.shape[1]
        left = cuda.shared.array((TILE, TILE), np.float32)
        right = cuda.shared.array((TILE, TILE), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
        total = np.float32(0)
        for start in range(0, k, TILE):
            is_in_a = not guard or (row < m and start + tx < k)
            is_in_b = not guard or (start + ty < k and col < n)
            left[ty, tx] = a[row, start + tx] if is_in_a else 0  # left
            right[ty, tx] = b[start + ty, col] if is_in_b else 0  # right
            if first_barrier:
                cuda.syncthreads()
            for i in range(TILE):
                total += left[ty, i] * right[i, tx]  # product
            if second_barrier:
                cuda.syncthreads()
        if not guard or (row < m and col < n):
            if swapped:
                c[col, row] = total  # swapped
            else:
                c[row, col] = total

    return matmul


def trace_matmul(m=11, k=20, n=19, seed=0, **parts):
    random = np.random.default_rng(3)
    a, b = random.random((m, k), np.float32), random.random((k, n), np.float32)
    c = np.zeros((m, n), np.float32)
    grid = -(-n // TILE), -(-m // TILE)
    trace = simt.trace(make_matmul(**parts), grid, (TILE, TILE), c, a, b, seed=seed)
    return trace, np.allclose(c, a @ b, rtol=1e-5)


def races_of(trace):
    return {(error.array, *(line for _, line in error.lines)) for error in trace.hazards() if isinstance(error, RaceError)}


@pytest.mark.parametrize("seed", [0, 5])
def test_correct_matmul_has_no_hazard(seed):
    trace, is_right = trace_matmul(seed=seed)
    assert trace.hazards() == []
    assert is_right
    assert trace.is_complete
    assert trace.summary()["TRACED"]["barriers"] == {"syncthreads": 6 * 3 * 2}
    assert trace.reuse("a").maximum == 3, "each block of a row reads it once"


@pytest.mark.parametrize("seed", [0, 5])
def test_missing_first_barrier_is_a_write_read_race(seed):
    trace, _ = trace_matmul(first_barrier=False, seed=seed)
    left, right, product = line_of("left"), line_of("right"), line_of("product")
    assert races_of(trace) == {("left", left, product), ("right", right, product)}
    assert {race.kind for race in trace.races()} == {"write-read"}
    assert {*kinds(trace)} <= {UninitializedReadError, RaceError}


@pytest.mark.parametrize("seed", [0, 5])
def test_missing_second_barrier_is_a_read_write_race(seed):
    trace, _ = trace_matmul(second_barrier=False, seed=seed)
    left, right, product = line_of("left"), line_of("right"), line_of("product")
    assert races_of(trace) == {("left", product, left), ("right", product, right)}
    assert {race.kind for race in trace.races()} == {"read-write"}
    assert kinds(trace) == [RaceError, RaceError]


def test_missing_barrier_message_names_threads_lines_and_fix():
    first, second = (trace_matmul(**{part: False})[0] for part in ("first_barrier", "second_barrier"))
    right, product = line_of("right"), line_of("product")
    [message] = [str(error) for error in first.hazards() if error.array == "right" and isinstance(error, RaceError)]
    assert message == (
        f"shared array 'right' element (4, 0): written by thread (0, 4) at test_known_answers.py:{right}, "
        f"read by thread (0, 0) at test_known_answers.py:{product}, both in epoch 0 of block (0, 0); "
        "a cuda.syncthreads() between the two lines would order them. In all, 384 elements are affected."
    )
    [message] = [str(error) for error in second.hazards() if error.array == "right"]
    assert message == (
        f"shared array 'right' element (0, 0): read by thread (0, 4) at test_known_answers.py:{product}, "
        f"written by thread (0, 0) at test_known_answers.py:{right}, both in epoch 1 of block (0, 0); "
        f"a cuda.syncthreads() after line {product}, before line {right} runs again, would order them. "
        "In all, 384 elements are affected."
    )


def test_missing_guard_is_reported_out_of_bounds():
    trace, _ = trace_matmul(guard=False)
    assert not trace.is_complete
    [error] = trace.hazards()
    assert isinstance(error, OutOfBoundsError)
    assert (error.array, error.element, error.lines) == ("a", (0, 20), ((HERE, line_of("left")),))


def test_swapped_indices_are_reported_out_of_bounds():
    trace, is_right = trace_matmul(swapped=True)
    [error] = trace.hazards()
    assert isinstance(error, OutOfBoundsError)
    assert (error.array, error.lines) == ("c", ((HERE, line_of("swapped")),))
    assert not is_right


def test_swapped_indices_in_bounds_give_wrong_results_and_strided_stores():
    right, is_right = trace_matmul(16, 16, 16)
    swapped, is_swapped_right = trace_matmul(16, 16, 16, swapped=True)
    assert (is_right, is_swapped_right) == (True, False)
    assert swapped.hazards() == []
    assert of_array(swapped, "c")["sectors"] > of_array(right, "c")["sectors"]


# Orders


def test_equal_seeds_save_equal_files(tmp_path):
    for name, seed in [("a", 3), ("b", 3), ("other", 4)]:
        trace_matmul(seed=seed)[0].save(tmp_path / name)
    a, b, other = ((tmp_path / name).read_bytes() for name in ("a", "b", "other"))
    assert a == b
    assert a != other


def test_loaded_trace_equals_the_saved_trace(tmp_path):
    for parts in ({}, {"first_barrier": False}, {"guard": False}):
        trace, _ = trace_matmul(**parts)
        trace.save(tmp_path / "trace.npz")
        again = simt.load(tmp_path / "trace.npz")
        assert again == trace
        assert [str(error) for error in again.hazards()] == [str(error) for error in trace.hazards()]


def test_summary_does_not_depend_on_the_seed():
    expected, _ = trace_matmul()
    for seed in (1, 2):
        found, _ = trace_matmul(seed=seed)
        assert found.summary()["spaces"] == expected.summary()["spaces"]
        assert found.summary()["lines"] == expected.summary()["lines"]


# What orders threads


def test_a_histogram_needs_atomics():
    def count(bins, a, is_atomic):
        i = cuda.grid(1)
        if is_atomic:
            cuda.atomic.add(bins, a[i], 1)
        else:
            bins[a[i]] += 1  # plain

    a = np.arange(128) % 5
    right = simt.trace(count, 2, 64, np.zeros(5, np.int64), a, True)
    assert right.hazards() == []
    wrong = simt.trace(count, 2, 64, np.zeros(5, np.int64), a, False)
    assert {*kinds(wrong)} == {RaceError}
    assert {line for error in wrong.hazards() for _, line in error.lines} == {line_of("plain")}
    assert all("cuda.atomic" in str(error) for error in wrong.hazards())


def test_last_block_sums_partial_results_behind_a_fence():
    def total(out, parts, tickets, a, has_fence, waits):
        is_last = cuda.shared.array(1, np.int32)
        i, block = cuda.threadIdx.x, cuda.blockIdx.x
        if i == 0:
            parts[block] = a[block]
            if has_fence:
                cuda.threadfence()
            is_last[0] = cuda.atomic.add(tickets, 0, 1) == cuda.gridDim.x - 1
        cuda.syncthreads()
        if i < cuda.gridDim.x and (is_last[0] or not waits):
            cuda.atomic.add(out, 0, parts[i])

    def hazards(has_fence, waits, seed):
        parts, tickets, out = np.zeros(4), np.zeros(1, np.int32), np.zeros(1)
        trace = simt.trace(total, 4, 40, out, parts, tickets, np.arange(4.0), has_fence, waits, seed=seed)
        assert not waits or out[0] == 6
        return [(type(error), error.array) for error in trace.hazards()]

    for seed in range(4):
        assert hazards(True, True, seed) == []
        assert hazards(False, True, seed) == [(RaceError, "parts")]
        assert (RaceError, "parts") in hazards(True, False, seed), "a block that does not wait for its turn"


def test_grid_sync_orders_blocks():
    def shift(out, a, has_barrier):
        i = cuda.grid(1)
        grid = cuda.cg.this_grid()
        a[i] = i
        if has_barrier:
            grid.sync()
        out[i] = a[(i + 40) % a.size]

    out = np.zeros(80)
    assert simt.trace(shift, 2, 40, out, np.zeros(80), True).hazards() == []
    assert np.array_equal(out, (np.arange(80) + 40) % 80)
    [error] = simt.trace(shift, 2, 40, out, np.zeros(80), False).hazards()
    assert isinstance(error, RaceError)
    assert (error.array, error.epoch) == ("a", None)


def test_syncwarp_orders_lanes_of_one_warp_only():
    def neighbour(out, has_sync, all_see):
        tile = cuda.shared.array(64, np.float32)
        i = cuda.threadIdx.x
        tile[i] = i
        if has_sync:
            cuda.syncwarp()
        out[i] = tile[i ^ (32 if all_see else 1)]

    out = np.zeros(64, np.float32)
    assert simt.trace(neighbour, 1, 64, out, True, False).hazards() == []
    assert RaceError in kinds(simt.trace(neighbour, 1, 64, out, False, False))
    assert RaceError in kinds(simt.trace(neighbour, 1, 64, out, True, True)), "lanes of two warps"


def test_shuffle_reduction_needs_no_barrier():
    def total(out, a):
        s = a[cuda.grid(1)]
        for offset in (16, 8, 4, 2, 1):
            s += cuda.shfl_down_sync(0xFFFFFFFF, s, offset)
        if cuda.laneid == 0:
            cuda.atomic.add(out, 0, s)

    out = np.zeros(1)
    trace = simt.trace(total, 2, 64, out, np.arange(128.0))
    assert trace.hazards() == []
    assert out[0] == 128 * 127 / 2
    assert trace.summary()["TRACED"]["collectives"] == {"shfl_down_sync": 20}


def test_partly_written_fresh_output_is_an_error():
    def double(out, a):
        i = cuda.grid(1)
        if i < a.size - 1:
            out[i] = 2 * a[i]

    trace = simt.trace(double, 2, 32, unwritten_memory(np.zeros(50)), np.zeros(50))
    [error] = trace.hazards()
    assert isinstance(error, UnwrittenOutputError)
    assert (error.array, error.element) == ("out", (49,))
    given = simt.trace(double, 2, 32, np.zeros(50), np.zeros(50))
    assert given.hazards() == []
    assert given.summary()["TRACED"]["elements_not_written"] == {"out": 1}


def test_errors_name_elements_of_views_by_the_kernel_index():
    def write(out):
        out[2, 1] = cuda.threadIdx.x

    for out in (np.zeros((3, 4)), np.zeros((4, 3)).T, np.zeros((6, 8))[::2, ::2], np.zeros((3, 4))[::-1, ::-1]):
        [error] = simt.trace(write, 1, 2, out).hazards()
        assert (error.array, error.element) == ("out", (2, 1))
