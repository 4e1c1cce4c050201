"""minifuse among NumPy: the same promotion of dtypes, and NumPy's functions on tensors."""

import warnings

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.registry import get_backend
from minifuse.core.dtypes import BY_NUMPY, DTYPES
from minifuse.core.operators import TABLE, Operator
from minifuse.ir.numpy_api import UFUNCS
from minifuse.testing import assert_close

from .meanings import OPERATORS, accepted, judge, kind_of, numpy_dtype, operands, refuses, view

NAMES = [dtype.name for dtype in DTYPES]
BINARY = [entry for entry in OPERATORS if entry.arity == 2]


@pytest.mark.sampled(4, each="entry")
@pytest.mark.parametrize("entry", BINARY, ids=repr)
@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize("b", NAMES)
def test_operators_promote_as_numpy(entry, a, b):
    x, y = np.ones(1, a), np.ones(1, b)
    if refuses(entry, a, b):
        with pytest.raises(mf.DTypeError, match=entry.name):
            entry.result_dtype(BY_NUMPY[x.dtype], BY_NUMPY[y.dtype])
    else:
        assert entry.result_dtype(BY_NUMPY[x.dtype], BY_NUMPY[y.dtype])[1].numpy == numpy_dtype(entry.name, x, y)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize("b", NAMES)
def test_values_of_mixed_dtypes(a, b, backend):
    x, y = np.array([3, 0, 1]).astype(a), np.array([2, 2, 0]).astype(b)
    got = mf.tensor(x) + mf.tensor(y)
    assert got.dtype.numpy == (x + y).dtype
    np.testing.assert_array_equal(got.numpy(), x + y)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [True, 3, 2.5, np.float64(2.5), np.int32(3)], ids=lambda x: f"{type(x).__name__}")
def test_numbers_take_the_dtype_of_the_array_beside_them(name, number, backend):
    x = np.array([0, 1, 5]).astype(name)
    weak = number.item() if isinstance(number, np.generic) else number  # NumPy's numbers are as weak as Python's
    for got, expected in [(mf.tensor(x) * number, x * weak), (number + mf.tensor(x), weak + x)]:
        assert got.dtype.numpy == expected.dtype
        np.testing.assert_array_equal(got.numpy(), expected)


def test_a_choice_promotes_its_values_alone(backend):
    condition = np.array([True, False, True])
    for x, y in [(np.arange(3, dtype=np.int32), np.ones(3, np.float32)), (np.arange(3), np.zeros(3, bool))]:
        got = mf.where(mf.tensor(condition), mf.tensor(x), mf.tensor(y))
        assert got.dtype.numpy == np.where(condition, x, y).dtype
        np.testing.assert_array_equal(got.numpy(), np.where(condition, x, y))


@pytest.mark.sampled(2, each="ufunc")
@pytest.mark.parametrize(
    "ufunc", [f for f, entry in UFUNCS.items() if isinstance(entry, Operator)], ids=lambda f: f.__name__
)
def test_numpy_functions_are_operators(ufunc, backend):
    """On tensors, and on a tensor and an array, in both orders."""
    entry = UFUNCS[ufunc]
    arrays = operands(entry.name, accepted(entry), [view((2, 3)), view((3,))][: entry.arity])
    expected = judge(entry.name, *arrays)
    given = [[mf.tensor(a) for a in arrays]]
    given += [[mf.tensor(a) if k == j else a for k, a in enumerate(arrays)] for j in range(entry.arity)]
    for tensors in given:
        got = ufunc(*tensors)
        assert isinstance(got, mf.Tensor)
        assert got.backend == backend
        assert_close(got, expected, kind_of(entry.name), what=f"np.{ufunc.__name__}")


def test_every_operator_that_numpy_has_is_found():
    named = {name for name in TABLE if isinstance(getattr(np, name, None), np.ufunc)}
    missing = named - {entry.name for entry in UFUNCS.values() if isinstance(entry, Operator)}
    assert not missing


def test_python_operators_take_arrays_on_both_sides(backend):
    x, a = mf.arange(6).reshape(2, 3), np.array([1, 2, 4])
    for got, expected in [
        (x - a, x.numpy() - a),
        (a - x, a - x.numpy()),
        (a < x, a < x.numpy()),
        (a @ x.T, a @ x.numpy().T),
    ]:
        assert isinstance(got, mf.Tensor)
        np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize(
    "call",
    [np.spacing, np.subtract.accumulate, lambda x: np.add(x, x, out=np.zeros(3)), lambda x: np.add(x, x, where=[True] * 3)],
    ids=["no operator", "method", "out", "where"],
)
def test_unsupported_protocol_arguments_are_errors(call):
    x = mf.tensor([1.0, 2.0, 3.0])
    with pytest.raises(mf.DTypeError, match=r"np\.\w+"):
        call(x)


def test_arrays_are_made_without_warnings_and_on_the_host_without_a_copy(backend):
    x = mf.arange(6).reshape(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a = np.asarray(x.T)
    assert np.shares_memory(a, x.numpy()) == get_backend(backend).is_host  # of a device it is a copy
    np.testing.assert_array_equal(a, np.arange(6).reshape(2, 3).T)
    assert np.asarray(x, dtype=np.float32).dtype == np.float32
