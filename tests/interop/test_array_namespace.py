"""Test what libraries expect of the array API namespace beyond the tests of the standard."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import NoDimsError

xp = mf.zeros(()).__array_namespace__()


def tensor(array):
    return mf.tensor(array, backend="python")


def test_unique_values_are_in_ascending_order():
    assert xp.unique_values(tensor([30, 1, 20, 1, 30, 500])).tolist() == [1, 20, 30, 500]


def test_where_of_a_condition_alone_returns_indices():
    (index,) = xp.where(tensor([False, True, True]))
    assert index.tolist() == [1, 2]


def test_diff_accepts_its_order_by_position():
    assert xp.diff(tensor([1, 2, 4, 8]), 2).tolist() == [1, 2]


def test_the_namespace_has_numpys_functions_that_minifuse_computes():
    x = tensor([[1.0, 2.0]])
    assert xp.einsum("ij->j", x).tolist() == [1, 2]
    assert not hasattr(xp, "float16")
    assert not hasattr(xp, "convolve")
    assert not hasattr(xp, "fft")


def test_no_array_without_dims_is_iterable():
    assert not np.iterable(tensor(1.0))
    with pytest.raises(NoDimsError, match=r"write|use x\.item"):
        iter(tensor(1.0))


def test_a_tensor_of_one_element_is_formatted_as_its_number():
    assert f"{tensor(1.25):.1f} {tensor(3):>3}" == f"{1.25:.1f}   3"
    with pytest.raises(TypeError):
        format(tensor([1.0]), ".1f")


def test_a_dtype_has_the_kind_of_numpy():
    assert [x.kind for x in (mf.float32, mf.int8, mf.uint8, mf.bool_)] == ["f", "i", "u", "b"]
