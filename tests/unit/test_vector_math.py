"""backends.parallel.vector_math: errors in units of the last place, against higher precision."""

import ctypes
import math
import platform
import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import cfunc

from minifuse.backends.parallel import vector_math
from minifuse.core.operators import TABLE

from ..equivalence.meanings import meaning

FLAGS = {"reassoc", "contract", "arcp", "afn"}  # of generated kernels
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "bool_": np.bool_}
SHORT = {np.dtype(dtype): short for short, dtype in DTYPES.items()}
FLOATS = ["f32", "f64"]
OF_ONE_NUMBER = [name for name in vector_math.ULP if TABLE[name].arity == 1]
EXTENDED = np.longdouble
needs_extended = pytest.mark.skipif(np.finfo(EXTENDED).nmant < 63, reason="the reference needs 80-bit floats")


@cache
def compile_text(text):
    """The body of a kernel, as the emitter prints it, compiled in memory."""
    namespace = {name: getattr(vector_math, name) for name in vector_math.__all__}
    lines = "\n".join(f"    {line}" for line in text.splitlines())
    exec(f"def kernel(start, stop, args):\n{lines}\n", namespace)
    return cfunc("void(int64, int64, CPointer(int64))", fastmath=FLAGS, error_model="numpy")(namespace["kernel"])


def compile_expression(expression, shorts, result):
    """A kernel that stores an expression of x, y, z: elements of inputs with these types."""
    lines = [f"in{k} = pointer_{short}(args[{k + 1}])" for k, short in enumerate(shorts)]
    lines += [f"out0 = pointer_{result}(args[0])", "for i0 in range(start, stop):"]
    lines += [
        f"    {name} = in{k}[i0]" + " != 0" * (short == "bool_")
        for k, (name, short) in enumerate(zip("xyz", shorts, strict=False))
    ]
    return compile_text("\n".join([*lines, f"    out0[i0] = {expression}"]))


def launch(kernel, count, *arrays):
    addresses = np.array([a.ctypes.data for a in arrays], np.int64)
    kernel.ctypes(0, count, addresses.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)))


def evaluate(expression, *inputs, result=None):
    """The values of an expression of x, y, z over arrays; of the dtype `result`, or of x."""
    arrays = [np.ascontiguousarray(x) for x in inputs]
    out = np.empty(arrays[0].shape, result or arrays[0].dtype)
    launch(compile_expression(expression, tuple(SHORT[x.dtype] for x in arrays), SHORT[out.dtype]), out.size, out, *arrays)
    return out


def pairs(values):
    x, y = np.meshgrid(values, values)
    return x.ravel(), y.ravel()


def assert_same(got, expected):
    """The same numbers and the same signs of zeros; any NaN is NaN."""
    np.testing.assert_array_equal(got, expected)
    if expected.dtype.kind == "f":
        is_number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(expected)[is_number])


# Errors.


def errors_in_ulp(got, exact):
    """|got - exact| in units in the last place of exact, which has more digits; infinity counts as a power of two."""
    info = np.finfo(got.dtype)
    assert np.array_equal(np.isnan(got), np.isnan(exact))
    end = np.ldexp(exact.dtype.type(1), info.maxexp)
    x, y = np.clip(got.astype(exact.dtype), -end, end), np.clip(exact, -end, end)
    _, exponent = np.frexp(y)
    unit = np.ldexp(exact.dtype.type(1), np.maximum(exponent, info.minexp + 1) - info.nmant - 1)
    return np.nan_to_num(np.abs(x - y) / unit)


def exact_values(name, x, dtype):
    """Return the reference, computed with the digits of dtype: more than x has."""
    with np.errstate(all="ignore"):
        exact = meaning(name)(x.astype(dtype))
    assert exact.dtype == dtype, f"MEANINGS[{name!r}] returns {exact.dtype} for {np.dtype(dtype)}; compute in the dtype of x"
    return exact


@pytest.mark.parametrize("name", OF_ONE_NUMBER)
def test_float32_error_over_all_exponents(name):
    x = np.arange(0, 2**32, 1031, dtype=np.uint64).astype(np.uint32).view(np.float32)
    errors = errors_in_ulp(evaluate(f"{name}(x)", x), exact_values(name, x, np.float64))
    assert errors.max() <= vector_math.ULP[name][0], x[errors.argmax()]


def float64_samples(count=40_000):
    """Bit patterns of every kind, and what the functions are used on."""
    draw = np.random.default_rng(0)
    near_zero = np.exp(draw.uniform(-50, 3, count)) * draw.choice([-1, 1], count)
    ranges = [(-750, 715), (-40, 40), (-6, 6), (-1, 1), (0.5, 2)]
    dense = [draw.uniform(low, high, count) for low, high in ranges]
    return np.concatenate([draw.integers(0, 2**64, count, np.uint64).view(np.float64), near_zero, *dense])


@needs_extended
@pytest.mark.parametrize("name", [name for name in OF_ONE_NUMBER if vector_math.ULP[name][1]])
def test_float64_error(name):
    x = float64_samples()
    errors = errors_in_ulp(evaluate(f"{name}(x)", x), exact_values(name, x, EXTENDED))
    assert errors.max() <= vector_math.ULP[name][1], x[errors.argmax()]


def test_float32_error_of_pow():
    draw = np.random.default_rng(0)
    x = np.exp(draw.uniform(-103, 88, 300_000)).astype(np.float32)  # numbers below the normal ones too
    y = (draw.uniform(-105, 90, x.size) / np.log(x)).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    assert errors_in_ulp(evaluate("pow(x, y)", x, y), exact).max() <= vector_math.ULP["pow"][0]


def test_corrections_survive_the_flags_of_the_kernel():
    """With sums and products of the kernel around them, which may be regrouped."""
    x = np.exp(np.random.default_rng(0).uniform(-40, 3, 10_000)).astype(np.float32)
    wide = x.astype(np.float64)
    assert errors_in_ulp(evaluate("log1p(x * f32(0.5)) * f32(2.0)", x), 2 * np.log1p(wide / 2)).max() <= 1.5
    assert errors_in_ulp(evaluate("f32(4.0) * exp(x * f32(-0.25) * f32(0.5))", x), 4 * np.exp(wide / -8)).max() <= 1.5


@pytest.mark.parametrize("name", vector_math.ULP)
def test_docstrings_state_the_bounds(name):
    single, double = vector_math.ULP[name]
    assert f"Error at most {single:g} ULP in float32" in getattr(vector_math, name).__doc__
    assert (f"{double:g} ULP in float64" if double else "float64 uses libm") in getattr(vector_math, name).__doc__


# Special values.

INF, NAN = math.inf, math.nan
SPECIAL = {
    "exp(x)": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (1e4, INF), (-1e4, 0)],
    "log(x)": [(1, 0), (0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (-INF, NAN), (NAN, NAN)],
    "log1p(x)": [(0, 0), (-0.0, -0.0), (-1, -INF), (-1.5, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "tanh(x)": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (50, 1), (-50, -1), (NAN, NAN)],
    "sigmoid(x)": [(0, 0.5), (INF, 1), (-INF, 0), (1e4, 1), (-1e4, 0), (NAN, NAN)],
    "erf(x)": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (7, 1), (-7, -1), (NAN, NAN)],
    "sin(x)": [(0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cos(x)": [(0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "sqrt(x)": [(0, 0), (-0.0, -0.0), (4, 2), (INF, INF), (-1, NAN), (-INF, NAN), (NAN, NAN)],
    "rsqrt(x)": [(0, INF), (4, 0.5), (INF, 0), (-1, NAN), (NAN, NAN)],
    "y / sqrt(x)": [(0, INF), (INF, 0), (-1, NAN), (NAN, NAN), (4, 0.5)],
    "floor(x)": [(-0.5, -1), (-0.0, -0.0), (1.5, 1), (-2, -2), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "abs(x)": [(-0.0, 0), (-1.5, 1.5), (-INF, INF), (NAN, NAN)],
}


@pytest.mark.parametrize("short", FLOATS)
@pytest.mark.parametrize("expression", SPECIAL)
def test_special_values(expression, short):
    x, expected = np.array(SPECIAL[expression], DTYPES[short]).T
    repeats = 40  # past every vector length, so that vectors and single elements are both seen
    got = evaluate(expression, np.repeat(x, repeats), *([np.ones(x.size * repeats, x.dtype)] if "y" in expression else []))
    assert_same(got, np.repeat(expected, repeats))


@pytest.mark.parametrize("short", FLOATS)
@pytest.mark.parametrize("name", ["log1p", "tanh", "sin"])
def test_tiny_numbers_are_their_own_image(name, short):
    info = np.finfo(DTYPES[short])
    x = info.smallest_subnormal * np.array([1, -1, 2, -3, 1001], info.dtype)
    assert_same(evaluate(f"{name}(x)", x), x)


@pytest.mark.parametrize("short", FLOATS)
def test_isnan_survives_fast_math(short):
    x = np.array([NAN, -NAN, INF, -INF, 0, 1, 1e-40], DTYPES[short])
    np.testing.assert_array_equal(evaluate("isnan(x)", x, result=np.bool_), np.isnan(x))
    np.testing.assert_array_equal(evaluate("isnan(x - x)", x, result=np.bool_), ~np.isfinite(x))


FLOAT_EDGES = [0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 2.5, -2.5, 1e-40, -1e-40, 3e38, -3e38, 1e10, INF, -INF, NAN]


@pytest.mark.parametrize("short", FLOATS)
def test_pow_of_special_floats(short):
    values = [*FLOAT_EDGES, 2**24 - 1, 1 - 2**-24, 1 + 2**-23]
    x, y = pairs(np.array(values, DTYPES[short]))
    got = evaluate("pow(x, y)", x, y)
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    is_special = (expected == 0) | ~np.isfinite(expected)
    assert_same(got[is_special], expected[is_special])
    np.testing.assert_allclose(got[~is_special], expected[~is_special], rtol=2 * np.finfo(x.dtype).eps)


@pytest.mark.parametrize("short", FLOATS)
@pytest.mark.parametrize(("name", "reference"), [("floordiv", np.floor_divide), ("mod", np.remainder)])
def test_division_of_floats(name, reference, short):
    draw = np.random.default_rng(0)
    x, y = pairs(np.concatenate([FLOAT_EDGES, draw.normal(size=30), 1000 * draw.normal(size=30)]).astype(DTYPES[short]))
    with np.errstate(all="ignore"):
        assert_same(evaluate(f"{name}(x, y)", x, y), reference(x, y))


@pytest.mark.parametrize("short", DTYPES)
@pytest.mark.parametrize(("name", "reference"), [("maximum", np.maximum), ("minimum", np.minimum)])
def test_the_larger_and_the_smaller(name, reference, short):
    values = FLOAT_EDGES if short in FLOATS else [0, 1, -1, 5, -(2**31), 2**31 - 1]
    x, y = pairs(np.array(values, DTYPES[short]))
    np.testing.assert_array_equal(evaluate(f"{name}(x, y)", x, y), reference(x, y))


# Integers, bools, types.


def integer_edges(dtype):
    info = np.iinfo(dtype)
    return np.array([*range(-9, 10), info.min, info.min + 1, info.max, info.max - 1, 65537, -65536, 1 << 20], dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("name", "reference"), [("floordiv", np.floor_divide), ("mod", np.remainder)])
def test_division_of_integers(name, reference, dtype):
    x, y = pairs(integer_edges(dtype))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate(f"{name}(x, y)", x, y), reference(x, y))


@given(st.data())
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_division_of_any_integers(dtype, data):
    info = np.iinfo(dtype)
    numbers = st.lists(st.integers(info.min, info.max) | st.integers(-300, 300), min_size=20, max_size=20)
    x, y = np.array([data.draw(numbers), data.draw(numbers)], dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate("floordiv(x, y)", x, y), np.floor_divide(x, y))
        np.testing.assert_array_equal(evaluate("mod(x, y)", x, y), np.remainder(x, y))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_power_of_integers_wraps(dtype):
    x, y = pairs(integer_edges(dtype))
    x, y = x[y >= 0], y[y >= 0]
    np.testing.assert_array_equal(evaluate("pow(x, y)", x, y), np.power(x, y))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_to_negative_powers_are_cut_to_zero(dtype):
    x, y = np.array([[1, -1, -1, 2, -2, 0, 7], [-3, -3, -2, -1, -1, -1, -2]], dtype)
    np.testing.assert_array_equal(evaluate("pow(x, y)", x, y), [1, -1, 1, 0, 0, 0, 0])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_functions_of_one_integer(dtype):
    x = integer_edges(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate("abs(x)", x), np.abs(x))
    np.testing.assert_array_equal(evaluate("floor(x)", x), x)
    np.testing.assert_array_equal(evaluate("invert(x)", x), ~x)
    np.testing.assert_array_equal(evaluate("isnan(x)", x, result=np.bool_), np.zeros(x.size, np.bool_))


def test_functions_of_bools():
    x, y = pairs(np.array([False, True]))
    np.testing.assert_array_equal(evaluate("invert(x)", x), ~x)
    np.testing.assert_array_equal(evaluate("abs(x)", x), x)
    np.testing.assert_array_equal(evaluate("where(x, y, not y)", x, y), np.where(x, y, ~y))


@pytest.mark.parametrize("short", DTYPES)
def test_where_of_any_type(short):
    condition, x = np.arange(77) % 3 == 0, (np.arange(77) % 5 - 2).astype(DTYPES[short])
    expected = np.where(condition, x, np.flip(x))
    np.testing.assert_array_equal(evaluate("where(z, x, y)", x, np.flip(x), condition), expected)


def test_arguments_meet_in_their_common_type():
    small, large = np.array([3], np.int32), np.array([2**40], np.int64)
    assert evaluate("maximum(x, y)", small, large, result=np.int64) == 2**40
    assert evaluate("maximum(x, y)", small, np.array([2.5]), result=np.float64) == 3.0
    assert evaluate("exp(x)", small, result=np.float64) == pytest.approx(math.exp(3), rel=1e-15)
    assert evaluate("floordiv(x, y)", np.array([-7], np.int32), np.array([2], np.int64), result=np.int64) == -4


# Memory.


@pytest.mark.parametrize("short", DTYPES)
def test_pointers_and_blocks(short):
    """Values wait in a block, in reverse, as the accumulators of columns do."""
    kernel = compile_text(
        f"out0 = pointer_{short}(args[0])\nin0 = pointer_{short}(args[1])\nblock = block_of_{short}()\n"
        "for i0 in range(start, stop):\n    block[255 - i0] = in0[i0]\n"
        "for i0 in range(start, stop):\n    out0[i0] = block[255 - i0]"
    )
    x = (np.arange(256) % 7 - 3).astype(DTYPES[short])
    out = np.zeros_like(x)
    launch(kernel, 256, out, x)
    np.testing.assert_array_equal(out, x)


def test_arguments_can_be_read_as_floats():
    kernel = compile_text("out0 = pointer_f64(args[0])\nnumbers = pointer_f64(args)\nout0[0] = numbers[1]")
    out = np.zeros(1)
    args = np.array([out.ctypes.data, np.float64(2.5).view(np.int64)], np.int64)
    kernel.ctypes(0, 1, args.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)))
    assert out[0] == 2.5


# Machine code.


def assembly(kernel):
    """The text of the kernel itself, without the wrapper that C calls."""
    functions = re.split(r"(?=\t\.globl)", kernel._library.get_asm_str())
    return next(text for text in functions if text.startswith("\t.globl") and "cfunc." not in text.splitlines()[0])


LOOPS = [(f"{name}(x)", (short,)) for k, short in enumerate(FLOATS) for name in OF_ONE_NUMBER if vector_math.ULP[name][k]]
LOOPS += [(f"{name}(x)", (short,)) for name in ("sqrt", "floor", "abs") for short in FLOATS]
LOOPS += [("pow(x, y)", ("f32", "f32"))]
LOOPS += [("floordiv(x, y)", ("i32", "i32")), ("mod(x, y)", ("i32", "i32"))]
LOOPS += [(f"{name}(x, y)", (short, short)) for name in ("maximum", "minimum") for short in ("f32", "f64", "i32", "i64")]
LOOPS += [("where(x < y, x, exp(y))", ("f32", "f32")), ("where(isnan(x), f64(0.0), x)", ("f64",))]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads the assembly of x86")
@pytest.mark.parametrize(("expression", "shorts"), LOOPS)
def test_loops_become_vectors(expression, shorts):
    text = assembly(compile_expression(expression, shorts, shorts[0]))
    loops = re.split(r"\n(?=\.L)", text)
    vectors = [loop for loop in loops if re.search(r"\tv?mov\w+\t%[xyz]mm\d+, \([^)]*,[48]\)", loop) and "j" in loop]
    assert any(re.search(r"%[yz]mm|\t\w+p[sd]\t|\tp\w+d\t", loop) for loop in vectors)
    assert "call" not in text


@pytest.mark.parametrize("guard", ["x", "where(x == 0, 1, x)", "where(abs(x) < inf, x, 1)", "where(x != x, 1, x)"])
@pytest.mark.parametrize("short", FLOATS)
def test_quotients_by_a_root_are_right_at_the_ends(guard, short):
    """LLVM's estimate of 1 / sqrt(x) is NaN at 0 and at infinity, also where it knows that x is not one of them."""
    x = np.array([0.0, np.inf, 4.0, 1.0] * 8, DTYPES[short])
    with np.errstate(all="ignore"):
        inside = eval(guard, {"x": x, "where": np.where, "abs": np.abs, "inf": np.inf})
        expected = 3 / (2 * np.sqrt(inside))
    np.testing.assert_allclose(evaluate(f"{short}(3) / ({short}(2) * sqrt({short}({guard})))", x), expected, 1e-6)
