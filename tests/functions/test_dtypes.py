"""The questions about dtypes agree with NumPy; the names and the conversions are PyTorch's."""

from itertools import product

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.dtypes import DTYPES

NUMBERS = [True, 3, 2.5]


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype is not mf.bool_], ids=str)
def test_limits_of_dtypes_are_those_of_numpy(dtype):
    got, expected = (mf.finfo(dtype), np.finfo(dtype)) if dtype.is_float else (mf.iinfo(dtype), np.iinfo(dtype))
    for name in got._fields[1:]:
        assert getattr(got, name) == getattr(expected, name)
        assert type(getattr(got, name)) in (int, float)
    assert got.dtype is dtype
    assert (mf.finfo if dtype.is_float else mf.iinfo)(mf.ones(2, dtype=dtype)) == got


def test_limits_of_other_kinds_are_refused():
    with pytest.raises(mf.DTypeError, match=r"finfo: got int8, expected float32 or float64; use mf\.iinfo"):
        mf.finfo(mf.int8)
    with pytest.raises(mf.DTypeError, match=r"iinfo: got bool, expected an integer dtype"):
        mf.iinfo(mf.bool)


def test_dtypes_promote_and_cast_as_in_numpy():
    for a, b in product(DTYPES, repeat=2):
        assert mf.promote_types(a, b).numpy == np.promote_types(a, b)
        assert mf.can_cast(a, b) == np.can_cast(a.numpy, b.numpy)
        assert mf.result_type(mf.ones(2, dtype=a), b).numpy == np.result_type(a, b)
    for a, number in product(DTYPES, NUMBERS):
        assert mf.result_type(a, number).numpy == np.result_type(a.numpy, number)
    assert [mf.result_type(*x) for x in ([True], [1, True], [1, 2.5])] == [mf.bool, mf.int64, mf.float32]


def test_kinds_of_dtypes():
    kinds = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "numeric": "iuf"}
    for dtype, (kind, letters) in product(DTYPES, kinds.items()):
        assert mf.isdtype(dtype, kind) == (dtype.numpy.kind in letters)
    assert mf.isdtype(mf.uint8, ("bool", mf.uint8))
    with pytest.raises(mf.DTypeError, match="isdtype: got the kind 'whole', expected"):
        mf.isdtype(mf.uint8, "whole")
    x = mf.ones(2, dtype=mf.uint8)
    assert (x.is_floating_point(), x.is_signed(), mf.is_complex(x)) == (False, False, False)


def test_other_names_of_dtypes_are_those_of_pytorch():
    names = ["float", "double", "long", "int", "short", "bool"]
    assert [getattr(mf, name) for name in names] == [mf.float32, mf.float64, mf.int64, mf.int32, mf.int16, mf.bool_]
    x = mf.tensor([1.5, 0.0], backend="python")
    for name in [*names, "char", "byte"]:
        assert getattr(x, name)().dtype is (
            getattr(mf, name) if name in names else {"char": mf.int8, "byte": mf.uint8}[name]
        )
    assert (x.double().itemsize, x.nbytes, x.element_size()) == (8, 8, 4)
