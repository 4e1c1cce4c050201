"""Values at the corners of every operator, fold and NumPy function: signed zeros, infinities and NaN. NumPy is the judge."""

import warnings

import numpy as np
import pytest

import minifuse as mf
from minifuse.ir.numpy_api import UFUNCS

from .meanings import EITHER_ZERO, OPERATORS, is_condition, judge, numpy_dtype

FLOATS = ["float32", "float64"]
CORNERS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -1e-3, 3e-40, -1e-30, np.inf, -np.inf, np.nan]
FEW = [0.0, -0.0, 1.5, -np.inf, np.nan]  # for operators of three operands
ON_FLOATS = [entry for entry in OPERATORS if entry.accepts_floats]
IS_ONE_OF_TWO = {np.fmax, np.fmin, np.maximum, np.minimum}  # of equal zeros either
ROUNDINGS = {
    "round": np.round,
    "round to tenths": lambda x: np.round(x, 1),
    "round to tens": lambda x: np.round(x, -1),
    "nan_to_num": np.nan_to_num,
}
ON_NUMBERS = [f for f in UFUNCS if any(kind[0] == "d" for kind in f.types) and f not in {np.matmul, *IS_ONE_OF_TWO}]
UNARY = {f.__name__: f for f in ON_NUMBERS if f.nin == 1} | ROUNDINGS
BINARY = {f.__name__: f for f in ON_NUMBERS if f.nin == 2 and f is not np.ldexp}  # ldexp takes integers, too


def corners(dtype, count, conditions=()):
    """All combinations of corners, an array for each operand; a condition is made of every other value."""
    values = np.array(FEW if count == 3 else CORNERS, dtype)
    arrays = [a.reshape(-1) for a in np.meshgrid(*[values] * count)]
    return [np.ascontiguousarray(a > 0 if k in conditions else a) for k, a in enumerate(arrays)]


def assert_corners(got, expected, inputs, any_zero=False):
    """Compare what no rounding explains: where NaN, infinities and zeros are, and the signs of those that have one."""
    with np.errstate(all="ignore"):
        expected = np.asarray(expected).astype(got.dtype)
    kinds = [np.isnan, np.isposinf, np.isneginf]
    if got.dtype.kind == "f":
        is_wrong = np.any([kind(got) != kind(expected) for kind in kinds], axis=0)
        is_wrong |= ((got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))) * (not any_zero)
    else:
        is_wrong = got != expected
    first = int(np.argmax(is_wrong))
    assert not is_wrong.any(), f"of {[a.reshape(-1)[first] for a in inputs]}: got {got[first]}, expected {expected[first]}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("entry", ON_FLOATS, ids=repr)
@pytest.mark.parametrize("dtype", FLOATS)
def test_operators_at_signed_zeros_and_infinities(entry, dtype, backend):
    arrays = corners(dtype, entry.arity, [k for k in range(entry.arity) if is_condition(entry.name, k)])
    got = entry(*[mf.tensor(a) for a in arrays])
    assert got.dtype.numpy == numpy_dtype(entry.name, *arrays)
    assert_corners(got.numpy(), judge(entry.name, *arrays), arrays, entry.name in EITHER_ZERO)


@pytest.mark.parametrize("entry", ON_FLOATS, ids=repr)
def test_scalars_at_signed_zeros_and_infinities(entry):
    arrays = corners("float64", entry.arity, [k for k in range(entry.arity) if is_condition(entry.name, k)])
    got = np.array([float(entry(*map(mf.Scalar, numbers))) for numbers in zip(*arrays, strict=True)])
    assert_corners(got, judge(entry.name, *arrays), arrays, entry.name in EITHER_ZERO)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.parametrize("dtype", FLOATS)
def test_numpy_functions_at_signed_zeros_and_infinities(name, dtype, backend):
    function = UNARY.get(name) or BINARY[name]
    arrays = corners(dtype, 1 + (name in BINARY))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = function(*arrays)
    for call in (function, mf.fuse(function)):
        got = call(*map(mf.tensor, arrays))
        pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
        for y, e in pairs:
            assert_corners(y.numpy(), e, arrays)


@pytest.mark.parametrize("dtype", FLOATS)
def test_halves_are_rounded_to_even(dtype, backend):
    x = np.arange(-4.5, 5, dtype=dtype)
    for function in (np.rint, np.round, lambda x: np.round(x / 10, 1) * 10, lambda x: np.round(x * 10, -1) / 10):
        np.testing.assert_array_equal(function(mf.tensor(x)).numpy(), function(x))


PROGRAMS = {
    "-(x - y)": lambda x, y: -(x - y),
    "-(x - x)": lambda x, y: -(x - x),
    "0 - x": lambda x, y: 0 - x,
    "x + 0": lambda x, y: x + 0.0,
    "1 / (x + 0)": lambda x, y: 1 / (x + 0.0),
    "1 - (1 - x)": lambda x, y: 1 - (1 - x),
    "x * -1 + y": lambda x, y: x * -1.0 + y,
    "(x + y) - y": lambda x, y: (x + y) - y,
    "x * 0": lambda x, y: x * 0,
}


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_fused_arithmetic_keeps_the_sign_of_zero(name, dtype, backend):
    """An optimizer that may forget the sign of a zero also turns 1 / (x + 0) from inf into -inf."""
    function, arrays = PROGRAMS[name], corners(dtype, 2)
    with np.errstate(all="ignore"):
        expected = function(*arrays)
    assert_corners(mf.fuse(function)(*map(mf.tensor, arrays)).numpy(), expected, arrays)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean"])
@pytest.mark.parametrize("count", [1, 5, 70])
@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions_of_negative_zeros(name, count, dtype, backend):
    a = np.full((2, count), -0.0, dtype)
    for dim in (0, 1):
        expected = getattr(np, name)(a, axis=dim)
        assert_corners(getattr(mf.tensor(a), name)(dim).numpy(), expected, [a[:, 0] if dim else a[0]])
