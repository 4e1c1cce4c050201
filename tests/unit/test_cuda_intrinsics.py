"""backends.cuda.intrinsics in the interpreter against NumPy, up to the smallest and largest value of every type.

tests/cuda compares Numba's code for them with NumPy on a GPU.
"""

from functools import reduce

import numpy as np
import pytest

from minifuse import simt
from minifuse.backends.cuda.compiler import kernel_from_text
from minifuse.backends.cuda.intrinsics import base
from minifuse.core.errors import OutOfBoundsError

from ..equivalence.meanings import power

FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, -7.0, 1e-3, 1e30, -1e-30]
MAP = """
def kernel(out, a, b, n):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        a, b = a[i], b[i]
        out[i] = {}
"""


def compute(expression, a, b, dtype=None):
    """An expression of a and b for each pair of elements, in a kernel."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    out = np.zeros(a.shape, dtype or a.dtype)
    simt.run(kernel_from_text(MAP.format(expression)), -(-a.size // 32), 32, out, a, b, a.size)
    return out


def pairs(values, dtype):
    """All elements with each other."""
    a, b = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    return np.ascontiguousarray(a.reshape(-1)), np.ascontiguousarray(b.reshape(-1))


def float_pairs(dtype):
    limits = np.finfo(dtype)
    return pairs([*FLOATS, limits.max, -limits.max, limits.tiny, -limits.smallest_subnormal, limits.tiny / 8], dtype)


def integer_pairs(dtype):
    limits = np.iinfo(dtype)
    return pairs([limits.min, limits.min + 1, limits.max, -8, -7, -3, -2, -1, 0, 1, 2, 3, 7, 10, 63], dtype)


# Numbers


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("expression", "numpy"),
    [
        ("mod(a, b)", np.remainder),
        ("floordiv(a, b)", np.floor_divide),
        ("maximum(a, b)", np.maximum),
        ("minimum(a, b)", np.minimum),
        ("where(a > b, a, b)", lambda a, b: np.where(a > b, a, b)),
        ("floor(a / b)", lambda a, b: np.floor(a / b)),
        ("cast_like(a, 3) * b", lambda a, b: np.array(3, a.dtype) * b),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_intrinsics_of_floats(expression, numpy, dtype):
    a, b = float_pairs(dtype)
    with np.errstate(all="ignore"):
        expected = numpy(a, b)
    assert expected.dtype == dtype
    np.testing.assert_array_equal(compute(expression, a, b), expected)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("expression", "numpy"),
    [
        ("integer_floordiv(a, b)", np.floor_divide),
        ("integer_mod(a, b)", np.remainder),
        ("integer_pow(a, b)", power),
        ("maximum(a, b)", np.maximum),
        ("minimum(a, b)", np.minimum),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_intrinsics_of_integers(expression, numpy, dtype):
    a, b = integer_pairs(dtype)
    with np.errstate(all="ignore"):
        expected = numpy(a, b)
    np.testing.assert_array_equal(compute(expression, a, b), expected)


def test_powers_wrap_around():
    a, b = np.array([3, 3, -3, 10, 2, 2, 2]), np.array([40, 41, 41, 20, 62, 63, 64])
    assert compute("integer_pow(a, b)", a, b).tolist() == (a**b).tolist()
    assert compute("integer_pow(a, b)", a, b)[-2:].tolist() == [-(2**63), 0]


def test_a_literal_takes_the_type_of_its_neighbour():
    a = np.full(3, 0.1, np.float32)
    assert compute("cast_like(a, 0.1) == a", a, a, np.uint8).tolist() == [1, 1, 1]  # in float64 the two would differ


def test_casts_wrap_and_cut():
    a = np.array([2**31, -(2**31) - 1, 300, -1, 5])
    for cast, dtype in (("i32", np.int32), ("u8", np.uint8), ("u32", np.uint32)):
        np.testing.assert_array_equal(compute(f"{cast}(a)", a, a), a.astype(dtype).astype(np.int64))
    b = np.array([2.7, -2.7, 0.5])
    assert compute("i32(a)", b, b).tolist() == [2, -2, 0]


@pytest.mark.parametrize("name", ["add", "mul", "and_", "or_"])
def test_intrinsics_of_reductions_are_the_operators(name):
    a, b = np.array([5, 6, -1]), np.array([3, 12, 7])
    numpy = {"add": np.add, "mul": np.multiply, "and_": np.bitwise_and, "or_": np.bitwise_or}[name]
    assert compute(f"{name}(a, b)", a, b).tolist() == numpy(a, b).tolist()


# Memory


@pytest.mark.parametrize(("nbytes", "expected"), [(1, 4), (4, 16), (8, 16)])
def test_four_elements_need_no_more_than_sixteen_bytes(nbytes, expected):
    assert base.vector_alignment(nbytes) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_four_neighbours_at_once(dtype):
    kernel = kernel_from_text("def kernel(out, a):\n    x, y, z, w = load4(a, 4)\n    store4(out, 0, (w, z, y, x))\n")
    a, out = np.arange(8).astype(dtype), np.zeros(4, dtype)
    trace = simt.trace(kernel, 1, 1, out, a)
    assert out.tolist() == [7, 6, 5, 4]
    assert trace.events.nbytes.tolist() == [4 * a.itemsize] * 2  # one access each
    assert [trace.instructions[k].line for k in trace.events.instruction] == [2, 3]  # at the lines of the kernel
    assert not trace.hazards()


def test_four_neighbours_that_are_not_aligned_are_an_error():
    kernel = kernel_from_text("def kernel(out, a):\n    x = load4(a, 1)\n    out[0] = x[0]\n")
    with pytest.raises(OutOfBoundsError, match="16"):
        simt.run(kernel, 1, 1, np.zeros(1, "f4"), np.arange(8, dtype="f4"))


def test_four_neighbours_past_the_end_are_an_error():
    kernel = kernel_from_text("def kernel(out, a):\n    store4(out, 4, load4(a, 0))\n")
    with pytest.raises(OutOfBoundsError, match="out of bounds"):
        simt.run(kernel, 1, 1, np.zeros(6, "f4"), np.arange(8, dtype="f4"))


# Threads that fold together

FOLD = """
def kernel(out, a):
    parts = cuda.shared.array({count}, f64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    i = y * cuda.blockDim.x + x
    out[i] = fold_along_{way}({op}, a[i], parts)
"""


@pytest.mark.parametrize(("x", "y"), [(1, 32), (2, 16), (8, 4), (32, 1), (32, 8), (64, 1), (128, 1), (256, 1)])
@pytest.mark.parametrize("op", ["add", "maximum"])
def test_threads_of_a_row_reduce_it(x, y, op):
    """Every thread gets the fold of its row; only rows of more than a warp meet in shared memory, and have a block each."""
    a = np.random.default_rng(x).uniform(-1, 1, (y, x))
    out = np.zeros_like(a).reshape(-1)
    trace = simt.trace(kernel_from_text(FOLD.format(count=32, way="x", op=op)), 1, (x, y), out, a.reshape(-1))
    assert not trace.hazards()
    expected = a.sum(1) if op == "add" else a.max(1)
    np.testing.assert_allclose(out.reshape(y, x), np.repeat(expected[:, None], x, 1), rtol=1e-12)
    assert (len(trace.barriers) > 0) == (x > 32)


@pytest.mark.parametrize(("x", "y"), [(32, 1), (32, 2), (32, 8), (64, 4)])
def test_threads_of_a_column_reduce_in_order(x, y):
    a = np.random.default_rng(y).uniform(-1, 1, (y, x)).astype(np.float64)
    out = np.zeros_like(a).reshape(-1)
    trace = simt.trace(kernel_from_text(FOLD.format(count=256, way="y", op="add")), 1, (x, y), out, a.reshape(-1))
    assert not trace.hazards()
    expected = reduce(np.add, a)  # bit by bit
    np.testing.assert_array_equal(out.reshape(y, x), np.repeat(expected[None], y, 0))


def test_the_order_of_lanes_does_not_change_a_reduction():
    kernel = kernel_from_text(FOLD.format(count=32, way="x", op="add"))
    a, found = np.random.default_rng(0).uniform(-1, 1, 256), []
    for seed in (0, 1, 2):
        out = np.zeros(256)
        simt.run(kernel, 1, 256, out, a, seed=seed)
        found.append(out)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


# Intrinsics as objects


def test_an_intrinsic_has_a_name_and_a_docstring():
    for name in ("load4", "store4", "cast_like", "floor"):
        found = getattr(base, name)
        assert isinstance(found, base.Intrinsic)
        assert found.__name__ == name
        assert found.__doc__
    assert base.f32.python_semantics is np.float32


def test_an_intrinsic_is_built_once_on_first_use():
    built = []
    found = base.Intrinsic(abs, lambda: built.append(1) or "numba's")
    assert not built
    assert (found.compiled, found.compiled) == ("numba's", "numba's")
    assert len(built) == 1
    assert found(-2) == 2
