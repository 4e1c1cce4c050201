"""backends.parallel.gemm: every micro-kernel and blocking against NumPy, threads, and memory that must not be read."""

import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse.backends.parallel.gemm import ARGUMENT_NAMES, bind_matmul, gemm_text, plan_matmul
from minifuse.backends.parallel.gemm_config import (
    BLOCK_BYTES,
    BLOCK_M,
    BLOCK_N,
    DOT,
    OUTER,
    ROW,
    ROWS,
    SET_BYTES,
    VECTORS,
    lanes_of,
)
from minifuse.core.dtypes import BY_NUMPY, DTYPES, bool_, float32, float64
from minifuse.core.layout import Layout, row_major
from minifuse.testing.tolerances import tolerance_for

GUARD = 77  # what lies around the elements of an operand; True of bools
FLOATS = [float32, float64]
MATMUL_DTYPES = [dtype for dtype in DTYPES if not dtype.is_small]  # small integers are multiplied as int32


def layout_of(array):
    return Layout(array.shape, tuple(s // array.itemsize for s in array.strides), 0)


def plan_of(out, a, b, threads=1):
    return plan_matmul(BY_NUMPY[out.dtype], layout_of(out), layout_of(a), layout_of(b), threads)


def multiply(out, a, b, threads=1):
    """out = a @ b through a launch; gives out."""
    launch = bind_matmul(BY_NUMPY[out.dtype], layout_of(out), layout_of(a), layout_of(b), threads)
    launch(*[x.__array_interface__["data"][0] for x in (out, a, b)])
    return out


def output_of(a, b):
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.full((*batch, a.shape[-2], b.shape[-1]), GUARD, a.dtype)


def random(rng, shape, dtype):
    """Integers come from the whole range of their type, so that products wrap around."""
    if dtype is bool_:
        return rng.random(shape) < 0.2
    if dtype.is_integer:
        return rng.integers(np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max, shape, dtype.numpy)
    return rng.standard_normal(shape).astype(dtype.numpy)


def spread(array, order, steps):
    """(view, memory): the elements with dims laid out in this order, gaps between, backwards where a step is negative."""
    memory = np.full([array.shape[d] * abs(steps[d]) + 1 for d in order], GUARD, array.dtype)
    view = memory[tuple(slice(1, None, abs(steps[d])) for d in order)].transpose(np.argsort(order))
    view = view[tuple(slice(None, None, 1 if step > 0 else -1) for step in steps)]
    view[...] = array
    return view, memory


def check(out, a, b):
    """Compare with NumPy: bit by bit where nothing is rounded, else within the tolerance of a product."""
    if out.dtype.kind != "f":
        expected = np.broadcast_to(a @ b, out.shape)
        assert out.tobytes() == expected.tobytes()  # a bool may have more bits than one
        return
    a, b = a.astype(np.float64), b.astype(np.float64)
    scale = float(np.max(np.abs(a) @ np.abs(b), initial=0))
    limit = tolerance_for("product", BY_NUMPY[out.dtype], a.shape[-1], scale)
    np.testing.assert_allclose(out, np.broadcast_to(a @ b, out.shape), limit.rtol, limit.atol)


@st.composite
def products(draw):
    """(out, a, b, memory of out): sizes from 0 to past a panel, and all strides that views make."""
    dtype, batch = draw(st.sampled_from(MATMUL_DTYPES)), draw(st.sampled_from([(), (3,), (2, 3)]))
    rows, columns, depth = [draw(st.integers(0, 9) | st.integers(0, 70)) for _ in range(3)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def operand(*shape, may_repeat=True):
        own = [1 if may_repeat and n and draw(st.integers(0, 5)) == 0 else n for n in shape]
        steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in own]
        view, memory = spread(random(rng, own, dtype), draw(st.permutations(range(len(own)))), steps)
        return (np.broadcast_to(view, shape), memory) if may_repeat else (view, memory)

    a, _ = operand(*batch[draw(st.integers(0, len(batch))) :], rows, depth)
    b, _ = operand(*batch[draw(st.integers(0, len(batch))) :], depth, columns)
    out, memory = operand(*batch, rows, columns, may_repeat=False)
    return out, a, b, memory


@given(products())
def test_any_strides_equal_numpy_and_nothing_else_is_written(case):
    out, a, b, memory = case
    check(multiply(out, a, b), a, b)
    out[...] = GUARD
    assert (memory == memory.dtype.type(GUARD)).all()


@pytest.mark.sampled(2, each="transposed")
@pytest.mark.parametrize("dtype", MATMUL_DTYPES)
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab", "out", "a b out"])
def test_sizes_around_the_edges_of_panels_and_blocks(dtype, transposed):
    rng = np.random.default_rng(0)
    panel, block_k = VECTORS * lanes_of(dtype), BLOCK_BYTES // dtype.itemsize
    for rows, columns, depth in [
        (ROWS - 1, panel - 1, block_k + 1),
        (ROWS + 1, panel + 1, block_k - 1),
        (3 * ROWS, 2 * panel, 2 * block_k),
        (BLOCK_M + 1, BLOCK_N + 1, 31),
        (5, 1023, 33),
        (1025, 7, 9),
        (300, 2 * BLOCK_N - 1, 2 * block_k + 1),
    ]:
        a, b = random(rng, (rows, depth), dtype), random(rng, (depth, columns), dtype)
        out = output_of(a, b)
        a, b, out = [np.asfortranarray(x) if name in transposed else x for name, x in (("a", a), ("b", b), ("out", out))]
        check(multiply(out, a, b, threads=2), a, b)


WAYS = {  # the sizes M, N, K; how a and b are stored; which micro-kernel then runs, and what is packed
    "matrices": ((70, 130, 90), "C", "C", OUTER, ""),
    "many rows": ((400, 130, 90), "C", "C", OUTER, "b"),
    "a linear layer": ((64, 10, 64), "C", "F", OUTER, "b"),
    "a gradient of weights": ((64, 32, 64), "F", "C", OUTER, ""),
    "rows one page apart": ((SET_BYTES // 4, 200, 65), "F", "C", OUTER, "a b"),
    "few rows by rows": ((4, 300, 200), "C", "F", DOT, ""),
    "few columns": ((300, 3, 200), "C", "C", DOT, ""),
    "a matrix by a vector": ((300, 1, 201), "C", "C", DOT, ""),
    "a vector by a matrix": ((1, 300, 201), "C", "C", ROW, ""),
    "a transposed matrix by a vector": ((300, 1, 201), "F", "C", ROW, ""),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_configuration_is_chosen_for_its_shapes(way):
    (rows, columns, depth), a_order, b_order, kind, packed = WAYS[way]
    rng = np.random.default_rng(1)
    a = np.asarray(random(rng, (rows, depth), float32), order=a_order)
    b = np.asarray(random(rng, (depth, columns), float32), order=b_order)
    found = plan_of(output_of(a, b), a, b).config
    assert (found.kind, found.packs_a, found.packs_b) == (kind, "a" in packed, "b" in packed)
    check(multiply(output_of(a, b), a, b), a, b)


def test_rows_past_the_last_full_panel_of_a_packed_block():
    rng = np.random.default_rng(6)
    a = np.asarray(random(rng, (SET_BYTES // 4, 65), float32), order="F")[: 2 * BLOCK_M + ROWS + 3]
    b = random(rng, (65, 200), float32)
    assert plan_of(output_of(a, b), a, b).config.packs_a
    check(multiply(output_of(a, b), a, b), a, b)


def test_a_batch_of_several_axes_that_do_not_merge():
    rng = np.random.default_rng(7)
    a = random(rng, (4, 5, 2, 3, 6), float32).transpose(3, 2, 0, 1, 4)
    b = random(rng, (2, 3, 4, 6, 7), float32).swapaxes(0, 1)
    assert plan_of(output_of(a, b), a, b).problem.batch == (3, 2, 4)
    check(multiply(output_of(a, b), a, b), a, b)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("way", WAYS)
def test_nan_and_infinity_reach_their_row_and_column_and_no_further(way, dtype):
    (rows, columns, depth), a_order, b_order, *_ = WAYS[way]
    a, b = np.ones((rows, depth), dtype.numpy, a_order), np.ones((depth, columns), dtype.numpy, b_order)
    a[-1, -1], b[0, -1], b[-1, 0] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = a @ b
    np.testing.assert_array_equal(multiply(output_of(a, b), a, b), expected)


LANES = 16  # floats in a vector of 512 bits
LARGE = {  # M, N, K past the work from where on threads are used, for each micro-kernel, and a batch
    "outer": ((), (205, 190, 301), "C", OUTER),
    "dot": ((), (3, 1100, 1901), "F", DOT),
    "row": ((), (1, 1003, 1901), "C", ROW),
    "batch": ((3,), (61, 190, 301), "C", OUTER),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", LARGE)
def test_the_bits_depend_neither_on_the_number_of_threads_nor_on_the_run(case, dtype):
    batch, (rows, columns, depth), b_order, kind = LARGE[case]
    rng = np.random.default_rng(2)
    a = random(rng, (*batch, rows, depth), dtype)
    b = np.asarray(random(rng, (depth, columns), dtype), order=b_order) + np.zeros((*batch, 1, 1), dtype.numpy)
    plans = [plan_of(output_of(a, b), a, b, threads) for threads in (1, 2, 7)]
    if lanes_of(float32) == LANES:  # shorter vectors may prefer another micro-kernel
        assert [plan.config.kind for plan in plans] == [kind] * 3
    assert plans[0].chunks == 1
    assert len({plan.tiles for plan in plans}) > 1
    results = [multiply(output_of(a, b), a, b, threads).tobytes() for threads in (1, 1, 2, 7)]
    assert len(set(results)) == 1


def test_launches_from_several_threads_of_python_do_not_share_memory():
    rng = np.random.default_rng(3)
    pairs = [(random(rng, (300, 400), float32), random(rng, (200, 400), float32).T) for _ in range(4)]
    expected = [multiply(output_of(a, b), a, b) for a, b in pairs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pair: multiply(output_of(*pair), *pair, threads=2), pairs * 5))
    for one, other in zip(found, expected * 5, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", MATMUL_DTYPES)
def test_a_sum_of_nothing_is_zero(dtype):
    for rows, columns in [(1, 1), (1, 50), (50, 1), (9, 50)]:
        a, b = np.empty((2, rows, 0), dtype.numpy), np.empty((2, 0, columns), dtype.numpy)
        assert not multiply(output_of(a, b), a, b).any()


@pytest.mark.parametrize("shapes", [((0, 3), (3, 2)), ((2, 3), (3, 0)), ((0, 2, 3), (3, 2)), ((0, 0), (0, 0))])
def test_an_empty_output_needs_no_launch(shapes):
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    assert multiply(output_of(a, b), a, b).shape == (a @ b).shape


def test_batch_dims_along_which_b_does_not_move_are_rows():
    out, a, b = row_major((4, 5, 6, 2)), row_major((4, 5, 6, 3)), row_major((3, 2))
    rows = plan_matmul(float32, out, a, b).problem
    assert (rows.batch, rows.M, rows.N, rows.K) == ((), 120, 2, 3)
    sliced = a.slice((0, 1, 4), (0, 1, 5), (0, 2, 3), (0, 1, 3))
    assert plan_matmul(float32, row_major((4, 5, 3, 2)), sliced, b).problem.M == 60
    own = row_major((5, 3, 2))
    p = plan_matmul(float32, out, a, own).problem
    assert (p.batch, p.out.batch, p.a.batch, p.b.batch) == ((4, 5), (60, 12), (90, 18), (0, 6))


def test_out_that_is_stored_by_columns_swaps_the_operands():
    square = row_major((64, 64))
    assert not plan_matmul(float32, square, square, square).problem.is_transposed
    assert plan_matmul(float32, square.transpose(0, 1), square, square).problem.is_transposed


@pytest.mark.parametrize("dtype", MATMUL_DTYPES)
def test_the_loops_know_each_number_of_a_plan_by_name(dtype):
    plan = plan_matmul(dtype, row_major((3, 2, 2)), row_major((3, 2, 2)), row_major((3, 2, 2)))
    assert len(plan.numbers()) == len(ARGUMENT_NAMES) + 4 * len(plan.problem.batch)
    assert all(f"{name} = args[" in gemm_text(dtype) for name in ARGUMENT_NAMES)
    assert "{" not in gemm_text(dtype)


def run(program, *arguments):
    """Run a program in a process of its own: what it does may not be undone, or end it."""
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr}"


NARROWER = """
import sys
from llvmlite import binding
features = binding.get_host_cpu_features()
features.update({name: False for name in features if name.startswith(tuple(sys.argv[2:]))})
binding.get_host_cpu_features = lambda: features

from minifuse.backends.parallel import gemm_config
from tests.unit.test_parallel_gemm import WAYS, check, float32, multiply, np, output_of, random
assert gemm_config.VECTOR_BYTES == int(sys.argv[1])
for (rows, columns, depth), a_order, b_order, *_ in WAYS.values():
    rng = np.random.default_rng(4)
    a = np.asarray(random(rng, (rows, depth), float32), order=a_order)
    b = np.asarray(random(rng, (depth, columns), float32), order=b_order)
    check(multiply(output_of(a, b), a, b), a, b)
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the names of the features are those of x86")
@pytest.mark.parametrize(("nbytes", "without"), [("32", ["avx512"]), ("16", ["avx", "fma", "f16c"])])
def test_processors_with_narrower_vectors(nbytes, without):
    run(NARROWER, nbytes, *without)


FENCED = """
import ctypes, mmap
from tests.unit.test_parallel_gemm import WAYS, check, float32, multiply, np, output_of, random

def fence(array, at_end):
    nbytes = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, nbytes + 2 * mmap.PAGESIZE), np.uint8)
    for page in (0, nbytes + mmap.PAGESIZE):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(memory.ctypes.data + page), mmap.PAGESIZE, 0) == 0
    start = mmap.PAGESIZE + (nbytes - array.nbytes) * at_end
    inside = np.ndarray(array.shape, array.dtype, memory, start, array.strides)
    inside[...] = array
    return inside

rng = np.random.default_rng(5)
for (rows, columns, depth), a_order, b_order, *_ in WAYS.values():
    for more in range(3):
        a = np.asarray(random(rng, (rows + more * (rows > 1), depth + more), float32), order=a_order)
        b = np.asarray(random(rng, (depth + more, columns + more * (columns > 1)), float32), order=b_order)
        for at_end in (False, True):
            x, y, out = [fence(array, at_end) for array in (a, b, output_of(a, b))]
            check(multiply(out, x, y), a, b)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="memory is protected by mprotect")
def test_no_memory_outside_the_operands_is_read_or_written():
    run(FENCED)
