"""backends.python: promises of the specification backend alone. Common ones are in `test_backends_base`."""

import sys

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.base import Operand
from minifuse.backends.python import PythonBackend, iter_indices
from minifuse.core import operators
from minifuse.core.dtypes import bool_, float32, int32, int64

backend = PythonBackend()


def test_indices_run_with_the_last_dim_fastest():
    assert list(iter_indices((2, 3))) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert list(iter_indices(())) == [()]
    assert list(iter_indices((2, 0))) == []


def test_a_function_sees_numpys_scalars_and_any_python_runs():
    seen = []

    def spy(x):
        seen.append((type(x), float(x)))
        return {1.0: 10, 2.0: 20}[float(x)]

    out = Operand.empty((2,), float32)
    backend.map(spy, Operand.from_array(np.array([1, 2], np.float32)), out)
    assert seen == [(np.float32, 1), (np.float32, 2)]
    assert out.data.tolist() == [10, 20]


def test_float32_is_reduced_and_multiplied_in_float64():
    """In float32, 2**24 + 1 is 2**24: sixteen million ones would be lost one by one."""
    a = np.array([2.0**24, *[1.0] * 64], np.float32)
    out = Operand.empty((1,), float32)
    backend.reduce(operators.add, Operand.from_array(a), out, (0,))
    assert out.data[0] == 2**24 + 64
    product = Operand.empty((1, 1), float32)
    backend.matmul(Operand.from_array(a[None]), Operand.from_array(np.ones((65, 1), np.float32)), product)
    assert product.data[0] == 2**24 + 64


def test_integers_wrap_around_without_a_warning():
    a = np.array([2**31 - 1, -(2**31)], np.int32)
    out = Operand.empty((2,), int32)
    backend.zip(operators.add, Operand.from_array(a), Operand.from_array(np.array([1, -1], np.int32)), out)
    assert out.data.tolist() == [-(2**31), 2**31 - 1]
    backend.map(operators.abs, Operand.from_array(a), out)
    assert out.data.tolist() == [2**31 - 1, -(2**31)]


def test_a_product_of_bools_is_logic():
    a = np.array([[True, False], [False, False]])
    out = Operand.empty((2, 2), bool_)
    backend.matmul(Operand.from_array(a), Operand.from_array(~a), out)
    assert out.array().tolist() == (a @ ~a).tolist()


def test_reduce_goes_along_dims_with_the_last_fastest():
    order = []

    def note(total, x):
        order.append(int(x))
        return x

    out = Operand.empty((1, 2, 1), int64)
    backend.reduce(note, Operand.from_array(np.arange(12).reshape(2, 2, 3)), out, (0, 2))
    assert order == [1, 2, 6, 7, 8, 4, 5, 9, 10, 11]


def test_it_compiles_nothing():
    before = mf.cache.stats().in_memory
    with mf.use_backend("python"):
        x = mf.tensor([[1.0, 2.5], [3.0, 4.0]], requires_grad=True)
        (x.softmax(1) @ x.T).log().sum().backward()
    assert mf.cache.stats().in_memory == before


def test_errors_in_a_function_are_passed_on():
    def fail(x):
        raise LookupError("as it is")

    with pytest.raises(LookupError, match="as it is"):
        backend.map(fail, Operand.from_array(np.ones(1)), Operand.from_array(np.ones(1)))


def test_its_module_needs_no_compiler():
    assert "numba" not in vars(sys.modules[PythonBackend.__module__])
