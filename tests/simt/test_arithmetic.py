"""Numbers in kernels: types of loads, casts, math, NumPy's functions, builtins, stores."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minifuse import simt
from minifuse.core.errors import SimtError, UnknownWordError
from minifuse.simt import cuda
from minifuse.simt.arithmetic import CASTS, KERNEL_BUILTINS, MATH, NUMPY, fma, wrap_integer

f32 = np.float32
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NOT_UNARY = "acosh atan2 copysign fmod frexp gcd hypot inf isfinite isinf isnan ldexp modf nan nextafter pow remainder tau"


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("f4", np.float32), ("f8", np.float64), ("f2", np.float16), ("u8", np.uint64), ("?", bool)]
    + [(name, int) for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4")],
)
def test_loads_return_kernel_number_types(dtype, kind):
    seen = []

    @simt.word
    def note(value):
        seen.append(type(value))

    def kernel(a, b, tile, x):
        mine = cuda.local.array(1, b.dtype)
        mine[0] = 1
        note(a[0])
        note(b[0, 0])
        note(mine[0])
        note(x)

    simt.run(kernel, 1, 1, np.ones(1, dtype), np.ones((1, 1), dtype), 0, np.ones(1, dtype)[0])
    assert seen == [kind] * 4


def test_number_arguments_keep_their_types():
    seen = []

    @simt.word
    def note(value):
        seen.append((type(value), value))

    def kernel(*values):
        for value in values:
            note(value)

    simt.run(kernel, 1, 1, 1.5, 2, True, np.int32(3), np.bool_(False), np.float32(4), (5, 0.5))
    assert seen == [
        (np.float64, 1.5),
        (int, 2),
        (bool, True),
        (int, 3),
        (bool, False),
        (np.float32, 4),
        (tuple, (5, 0.5)),
    ]


@settings(derandomize=True, max_examples=100, deadline=None)
@given(
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from(INTEGERS),
)
@example(-(2**63), "int64")
@example(2**64 - 1, "int64")
@example(128, "int8")
def test_integers_wrap_in_casts_and_stores(value, name):
    expected = int(np.array([value & (2**64 - 1)], np.uint64).astype(name)[0])
    assert CASTS[name](value) == expected
    assert wrap_integer(value, np.dtype(name)) == expected
    a = np.zeros(1, name)
    simt.run(store, 1, 1, a, value)
    assert a[0] == expected


def store(a, x):
    a[0] = x


def square_often(a, x):
    for _ in range(7):
        x *= x
    a[0] = x


def test_integer_past_64_bits_is_an_error():
    with pytest.raises(SimtError, match=r"does not fit in 64 bits; .* write int64"):
        simt.run(square_often, 1, 1, np.zeros(1, np.int32), 3)


@pytest.mark.parametrize(("x", "expected"), [(2.9, 2), (-2.9, -2), (f32(7), 7), (True, 1), (2**31 + 5, -(2**31) + 5)])
def test_casts_truncate_and_wrap(x, expected):
    assert CASTS["int32"](x) == expected
    assert type(CASTS["int32"](x)) is int


def division(out, a, b):
    i = cuda.threadIdx.x
    out[i] = a[i] / b[i]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_float_division_by_zero_is_inf_or_nan(dtype):
    out = np.zeros(3, dtype)
    simt.run(division, 1, 3, out, np.array([1, -1, 0], dtype), np.zeros(3, dtype))
    assert np.array_equal(out, np.array([np.inf, -np.inf, np.nan], dtype), equal_nan=True)


def test_integer_division_by_zero_is_an_error():
    with pytest.raises(SimtError, match="ZeroDivisionError in thread 0 of block 0"):
        simt.run(division, 1, 1, np.zeros(1), np.ones(1, int), np.zeros(1, int))


def test_float32_stays_float32_and_float_literals_are_weak():
    types = []

    @simt.word
    def note(value):
        types.append(type(value))

    def kernel(a):
        x = a[0]
        note(x * 0.5 + 1)
        note(math.sqrt(x))
        note(np.exp(x))
        note(max(x, 0))
        note(x**2)
        note(float(x))
        note(math.exp(1))
        note(np.float32(2) * x)
        note(abs(x))

    simt.run(kernel, 1, 1, np.ones(1, f32))
    assert types == [f32, f32, f32, f32, f32, np.float64, np.float64, f32, f32]


UNARY = [name for name in MATH if name in dir(math) and len(name) > 2 and name not in NOT_UNARY]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("x", [0.25, 0.75])
def test_math_agrees_with_python(name, x):
    expected = getattr(math, name)(x)
    single, double = MATH[name](f32(x)), MATH[name](x)
    assert (type(single), type(double)) == (f32, np.float64)
    assert double == pytest.approx(expected, rel=1e-14)
    assert single == pytest.approx(expected, rel=3e-7)
    assert type(MATH[name](1 if name != "atanh" else 0)) is np.float64


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("acosh", (2.0,), math.acosh(2)),
        ("atan2", (1.0, -2.0), math.atan2(1, -2)),
        ("hypot", (3.0, 4.0), 5),
        ("pow", (2.0, 0.5), math.sqrt(2)),
        ("pow", (2.0, -1), 0.5),
        ("fmod", (-7.0, 3.0), -1),
        ("remainder", (7.0, 4.0), -1),
        ("copysign", (3.0, -0.0), -3),
        ("ldexp", (0.75, 3), 6),
        ("nextafter", (0.0, 1.0), math.nextafter(0, 1)),
        ("sqrt", (-1.0,), math.nan),
        ("log", (0.0,), -math.inf),
        ("gamma", (-1.0,), math.nan),
        ("gamma", (200.0,), math.inf),
        ("lgamma", (0.0,), math.inf),
        ("exp", (1000.0,), math.inf),
        ("remainder", (1.0, 0.0), math.nan),
    ],
)
def test_binary_math_and_special_values_match_c(name, operands, expected):
    with np.errstate(all="ignore"):
        found = MATH[name](*operands)
    assert type(found) is np.float64
    assert found == pytest.approx(expected, nan_ok=True)


def test_math_functions_return_tuples_bools_and_floats():
    mantissa, exponent = MATH["frexp"](f32(6))
    assert (mantissa, exponent, type(mantissa), type(exponent)) == (0.75, 3, f32, int)
    assert MATH["modf"](-1.25) == (-0.25, -1)
    assert MATH["isnan"](f32(math.nan)) is True
    assert MATH["isinf"](3) is False
    assert MATH["isfinite"](math.inf) is False
    assert type(MATH["floor"](2.5)) is np.float64, "as in Numba on a GPU"


def test_min_and_max_ignore_nan():
    least, greatest = KERNEL_BUILTINS["min"], KERNEL_BUILTINS["max"]
    nan = f32(math.nan)
    assert (least(nan, f32(2)), greatest(f32(2), nan), greatest(nan, 1)) == (2, 2, 1)
    assert (least(3, 2, 5), greatest(3, 2, 5), greatest((4, 9, 2))) == (2, 5, 9)
    assert type(greatest(1, f32(0.5))) is f32
    assert type(greatest(1, 2)) is int


def test_round_is_half_to_even_and_int_truncates():
    assert [KERNEL_BUILTINS["round"](f32(x)) for x in (0.5, 1.5, -2.5)] == [0, 2, -2]
    assert KERNEL_BUILTINS["round"](np.float64(2.347), 2) == 2.35
    assert (KERNEL_BUILTINS["int"](f32(-2.7)), KERNEL_BUILTINS["bool"](0.0)) == (-2, False)


def test_numpy_functions_return_kernel_number_types():
    assert type(NUMPY["add"](2**62, 2**60)) is int
    assert NUMPY["isnan"](1.0) is False
    assert NUMPY["sign"](-3) == -1
    assert type(NUMPY["sqrt"](4)) is np.float64
    assert type(NUMPY["exp"](True)) is np.float64
    assert (NUMPY["int32"](2**31), NUMPY["pi"], NUMPY["float32"]) == (-(2**31), math.pi, f32)


def nearest_fma(a, b, c, kind):
    """Return the number of this type that is nearest to the exact a * b + c."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    guess = kind(float(exact))
    with np.errstate(all="ignore"):
        near = [guess, np.nextafter(guess, kind(np.inf)), np.nextafter(guess, kind(-np.inf))]
    even = [x for x in near if np.isfinite(x)]
    bits = {np.float32: np.int32, np.float64: np.int64}[kind]
    return min(even, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(bits)) & 1))


@settings(derandomize=True, max_examples=200, deadline=None)
@given(*[st.floats(-1e6, 1e6, width=32, allow_subnormal=False)] * 3)
@example(1 + 2**-12, 1 + 2**-12, 2.0**-60)
@example(1 + 2**-12, 1 - 2**-12, -1.0)
def test_fma_rounds_once(a, b, c):
    for kind in (np.float32, np.float64):
        found = fma(kind(a), kind(b), kind(c))
        assert type(found) is kind
        assert found == nearest_fma(float(kind(a)), float(kind(b)), float(kind(c)), kind)


def test_fma_handles_inf_nan_overflow_and_signed_zero():
    assert fma(f32(math.inf), f32(1), f32(2)) == math.inf
    with np.errstate(all="ignore"):
        assert math.isnan(fma(f32(math.inf), f32(0), f32(2)))
        assert fma(f32(3e38), f32(10), f32(0)) == math.inf
        assert fma(1e308, 1e10, 0.0) == math.inf
    assert math.copysign(1, fma(f32(-1), f32(0), f32(-0.0))) == -1


def use_sorted(a):
    a[0] = sorted((2, 1))[0]


def use_dict(a):
    a[0] = dict(x=2)["x"]  # noqa: C408


def use_math(a):
    a[0] = math.comb(4, 2)


def use_numpy(a):
    a[0] = np.dot(a[0], a[0])


@pytest.mark.parametrize(
    ("kernel", "name"), [(use_sorted, "sorted"), (use_dict, "dict"), (use_math, "math.comb"), (use_numpy, "np.dot")]
)
def test_unsupported_functions_are_errors_with_their_line(kernel, name):
    line = kernel.__code__.co_firstlineno + 1
    with pytest.raises(UnknownWordError, match=rf"^{name} at test_arithmetic.py:{line} is not supported"):
        simt.run(kernel, 1, 1, np.zeros(1))
