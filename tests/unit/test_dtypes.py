"""core.dtypes: names of dtypes, and promotion as in NumPy."""

import copy
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.dtypes import BY_NAME, BY_NUMPY, DTYPES, as_dtype, promote, weak_type_of
from minifuse.core.errors import DTypeError


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dtype_is_known_by_all_its_names(dtype):
    for name in (dtype, dtype.name, dtype.numpy, dtype.numpy.type):
        assert as_dtype(name) is dtype
    assert repr(dtype) == dtype.name
    assert dtype.itemsize == np.dtype(dtype.name).itemsize
    assert (dtype.is_float, dtype.is_integer) == (
        np.issubdtype(dtype.numpy, np.floating),
        np.issubdtype(dtype.numpy, np.integer),
    )


def test_python_types_name_a_dtype():
    assert [as_dtype(t) for t in (float, int, bool)] == [mf.float32, mf.int64, mf.bool_]


@pytest.mark.parametrize("name", ["float16", "uint16", complex, np.complex64, "nonsense", "M8[D]", "U3", object, 3, ">f4"])
def test_others_are_refused(name):
    with pytest.raises(DTypeError, match="use one of float32, float64, int8, int16, int32, int64, uint8, bool"):
        as_dtype(name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_and_pickles_are_the_same_object(dtype):
    assert copy.deepcopy(dtype) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_promotion_is_numpys():
    for a, b in product(DTYPES, repeat=2):
        assert promote(a, b).numpy == np.result_type(a.numpy, b.numpy), (a, b)


def test_python_numbers_are_weak():
    for dtype, kind in product(DTYPES, (bool, int, float)):
        expected = np.result_type(dtype.numpy, kind(1))
        assert promote(dtype, kind).numpy == promote(kind, dtype).numpy == expected, (dtype, kind)


def test_three_operands_promote_to_one_dtype():
    assert promote(mf.int32, mf.float32, float) is mf.float64
    assert promote(mf.bool_, int, mf.int32) is mf.int32


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (True, bool),
        (np.True_, bool),
        (3, int),
        (np.int32(3), int),
        (np.uint8(3), int),
        (2.5, float),
        (np.float32(2.5), float),
        (np.float64(2.5), float),
        (Fraction(1, 2), float),
    ],
)
def test_numbers_of_python_and_numpy_are_numbers(x, kind):
    assert weak_type_of(x) is kind


@pytest.mark.parametrize("x", [1j, "1", None, [1], np.ones(2), object()])
def test_other_objects_are_named_in_the_error(x):
    with pytest.raises(DTypeError, match=f"expected a tensor or a real number, got {type(x).__name__}"):
        weak_type_of(x)


def test_tables_are_of_the_same_dtypes():
    assert set(BY_NAME.values()) == set(BY_NUMPY.values()) == set(DTYPES)
    assert len({dtype.short for dtype in DTYPES}) == len(DTYPES)


# NumPy takes our dtypes.


@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_numpy_makes_arrays_of_our_dtypes(dtype):
    """Wherever NumPy takes a dtype it takes ours."""
    made = [
        np.zeros(3, dtype), np.empty((2, 2), dtype=dtype), np.ones(3, dtype), np.eye(3, dtype=dtype), np.full(3, 1, dtype),
        np.array([1, 0], dtype), np.asarray([1], dtype=dtype), np.arange(2).astype(dtype), np.zeros_like([1], dtype=dtype),
        np.identity(2, dtype), np.frombuffer(bytes(8), dtype), np.array([1, 0, 1]).astype(dtype=dtype, copy=False),
    ]  # fmt: skip
    assert {a.dtype for a in made} == {dtype.numpy}
    assert np.dtype(dtype) is dtype.numpy
    assert np.result_type(dtype, dtype) == np.promote_types(dtype, dtype) == dtype.numpy
    assert np.can_cast(dtype, np.complex128)
    assert np.issubdtype(dtype, np.floating) == dtype.is_float
    assert np.issubdtype(dtype, np.integer) == dtype.is_integer
    limits = np.finfo if dtype.is_float else np.iinfo
    if dtype is not mf.bool_:
        assert limits(dtype).max == limits(dtype.numpy).max
