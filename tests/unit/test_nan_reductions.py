"""NumPy's reductions without NaN, and np.pad, against NumPy."""

import warnings

import numpy as np
import pytest

import minifuse as mf

NAMES = ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nancumsum", "nancumprod"]
ARRAYS = np.array([[1.0, np.nan, 3.0], [np.nan] * 3, [4.0, 5.0, -6.0]]), np.arange(-1, 5).reshape(2, 3)


@pytest.mark.parametrize("name", NAMES)
def test_reductions_leave_out_nan_as_in_numpy(name):
    function = getattr(np, name)
    for array in ARRAYS:
        for axis in (None, 0, 1):
            y = function(mf.tensor(array, backend="python"), axis=axis)
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # rows of NaN
                expected = function(array, axis=axis)
            assert y.numpy().dtype == expected.dtype
            np.testing.assert_allclose(y.numpy(), expected)


def test_indices_of_extremes_leave_out_nan():
    x = mf.tensor(ARRAYS[0][[0, 2]], backend="python")
    assert np.nanargmax(x, axis=1).tolist() == [2, 1]
    assert np.nanargmin(x, axis=1).tolist() == [0, 2]
    assert np.nanstd(x, axis=1, ddof=1).tolist() == pytest.approx(np.nanstd(x.numpy(), axis=1, ddof=1))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_pad_adds_elements_as_numpy_does(mode):
    array = np.arange(6).reshape(2, 3)
    x = mf.tensor(array, backend="python")
    for widths in (1, (2, 1), ((0, 1), (2, 0))):
        assert np.pad(x, widths, mode).tolist() == np.pad(array, widths, mode).tolist()


def test_pad_adds_a_constant_and_has_a_gradient():
    x = mf.tensor([[1.0, 2.0]], backend="python", requires_grad=True)
    y = np.pad(x, 1, constant_values=7)
    assert y.tolist() == [[7] * 4, [7, 1, 2, 7], [7] * 4]
    (y * y).sum().backward()
    assert x.grad.tolist() == [[2, 4]]


def test_trace_converts_to_a_dtype():
    assert np.trace(mf.tensor([[1, 2], [3, 4]], backend="python"), dtype=np.float64).dtype is mf.float64
