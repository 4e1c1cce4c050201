"""Zeros with their sign, infinities, NaN and the ends of domains; errors in units in the last place."""

import numpy as np
import pytest
from scipy import special

import minifuse as mf

VALUES = np.array([0.0, -0.0, 0.5, -0.5, 1, -1, 2, -2, np.inf, -np.inf, np.nan, 1e-30, -3e30])
UFUNCS = (np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.signbit, np.trunc)
PAIRS = (np.arctan2, np.copysign, np.nextafter, np.fmod)
SPECIAL = {"erfc": special.erfc, "erfinv": special.erfinv, "i0": special.i0, "i1": special.i1, "digamma": special.digamma}
DOMAINS = {"asin": (-1, 1), "acos": (-1, 1), "atan": (-9, 9), "asinh": (-9, 9), "acosh": (1, 9), "atanh": (-1, 1)}
LIMIT_ULP = 3  # as `trigonometry` says


def assert_same(y: mf.Tensor, expected: np.ndarray, rtol: float = 1e-6) -> None:
    """Compare values, and the signs of all but NaN."""
    np.testing.assert_allclose(y, expected, rtol)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(np.asarray(y))[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", UFUNCS, ids=lambda f: f.__name__)
def test_special_values_of_ufuncs(function, dtype):
    values = VALUES.astype(dtype)
    with np.errstate(all="ignore"):
        expected = function(values)
    assert_same(function(mf.tensor(values, backend="python")), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", PAIRS, ids=lambda f: f.__name__)
def test_special_values_of_ufuncs_of_two_arrays(function, dtype):
    x, y = (part.copy() for part in np.meshgrid(VALUES.astype(dtype), VALUES.astype(dtype)))
    with np.errstate(all="ignore"):
        expected = function(x, y)
    assert_same(function(mf.tensor(x, backend="python"), mf.tensor(y, backend="python")), expected)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_of_special_functions(name):
    values = VALUES[np.signbit(VALUES) <= (VALUES != 0)]  # SciPy and PyTorch differ in digamma(-0.0)
    with np.errstate(all="ignore"):
        expected = SPECIAL[name](values)
    np.testing.assert_allclose(getattr(mf, name)(mf.tensor(values, backend="python")), expected, 1e-12)


def test_lgamma_is_infinite_at_the_poles_and_at_infinity():
    x = mf.tensor([0.0, -1.0, -2.0, np.inf, -np.inf, np.nan], backend="python")
    assert mf.lgamma(x).tolist()[:-1] == [np.inf] * 5
    assert mf.lgamma(x)[-1].isnan()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", DOMAINS)
def test_errors_of_inverse_functions_are_a_few_units(name, dtype):
    x = np.random.default_rng(0).uniform(*DOMAINS[name], 500).astype(dtype)
    exact = getattr(np, name)(x.astype(np.longdouble))
    y = np.asarray(getattr(mf, name)(mf.tensor(x, backend="python")))
    assert y.dtype == dtype
    assert (abs(y - exact) / np.spacing(abs(exact).astype(dtype))).max() < LIMIT_ULP


def test_frexp_and_ldexp_are_exact_for_subnormal_and_large_numbers():
    x = np.array([5e-324, 1e-310, 3.7, -1.7e308, 0.0, np.inf])
    m, e = mf.frexp(mf.tensor(x, backend="python"))
    expected_m, expected_e = np.frexp(x)
    np.testing.assert_array_equal(m, expected_m)
    np.testing.assert_array_equal(e, expected_e)
    np.testing.assert_array_equal(m.ldexp(e), x)


def test_questions_about_whole_tensors_return_python_bools():
    with mf.use_backend("python"):
        x, y = mf.tensor([1.0, 2.0]), mf.tensor([1.0, 2.0 + 1e-6])
        assert mf.equal(x, x.clone()) is True
        assert x.equal(y) is False
        assert x.equal(mf.tensor([1.0])) is False
        assert mf.allclose(x, y) is True
        assert x.allclose(y, rtol=1e-9) is False
        assert mf.is_nonzero(mf.tensor([0.5])) is True


def test_a_wrong_rounding_mode_is_refused():
    with pytest.raises(mf.DTypeError, match='expected None, "floor" or "trunc"'):
        mf.div(mf.tensor([1.0]), 2, rounding_mode="up")
    with pytest.raises(TypeError, match="unexpected keyword argument 'base'"):
        mf.pow(mf.tensor([1.0]), base=2)


def test_one_element_is_joined_with_an_empty_array():
    x = mf.ones(1, 1, backend="parallel")
    assert mf.cat([x, x[:0]]).tolist() == [[1]]
