"""core.indexing: indices, dims and shapes as in NumPy, and the messages of errors."""

import re
from enum import IntEnum
from math import nan, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse.core.errors import IndexingError, MinifuseError, ShapeError
from minifuse.core.indexing import infer_shape, normalize_dim, normalize_dims, parse_index, shape_of, sizes_of
from minifuse.core.layout import row_major
from tests.examples import share


class Size(IntEnum):
    TWO = 2


class Three:
    def __index__(self):
        return 3


def numpy_view(array, index):
    """`array[index]` as a view also where all dims are taken away."""
    entries = index if isinstance(index, tuple) else (index,)
    return array[index] if any(e is Ellipsis for e in entries) else array[(*entries, ...)]


def bounds(size):
    return st.none() | st.integers(-size - 2, size + 2) | st.sampled_from([10**30, -(10**30), np.int64(1), Three()])


@st.composite
def shapes_and_indices(draw):
    """A shape, and an index that is right often enough; each kind of mistake of basic indexing is among them."""
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 5]), max_size=8).filter(lambda s: prod(s) <= 400)))
    entries = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        entries += [None] * draw(st.sampled_from([0, 0, 0, 1, 2]))
        entries.append(
            draw(
                st.builds(slice, bounds(size), bounds(size), st.sampled_from([None, 1, 2, -1, -2, -3, 7, -(10**30)]))
                | st.integers(-size - (not size), max(size - 1, 0))
                | st.just(slice(None))
            )
        )
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), ...)
    mistake = draw(st.sampled_from([None] * 9 + [..., 0, 10**30, -6, slice(None, None, 0), slice(2)]))
    if mistake is not None:
        entries.insert(draw(st.integers(0, len(entries))), mistake)
    return shape, entries[0] if len(entries) == 1 and draw(st.booleans()) else tuple(entries)


@share(8)
@given(shapes_and_indices())
def test_an_index_selects_or_fails_as_in_numpy(case):
    shape, index = case
    array = np.arange(prod(shape)).reshape(shape)
    try:
        expected = numpy_view(array, index)
    except (IndexError, ValueError):  # a step of 0 is a ValueError of NumPy
        with pytest.raises(IndexingError):
            parse_index(shape, index)
        return
    ranges, after = parse_index(shape, index)
    assert after == expected.shape
    assert all(type(n) is int for part in (*ranges, after) for n in part)
    view = row_major(shape).slice(*ranges).reshape(*after)
    assert [view.position(i) for i in np.ndindex(after)] == expected.ravel().tolist()


def test_ranges_of_fewer_than_two_elements_are_the_same_whatever_the_step():
    assert parse_index((5,), slice(4, None, 10**30))[0] == ((4, 1, 1),)
    assert parse_index((5,), slice(3, 3, -2))[0] == parse_index((5,), slice(4, 1))[0] == ((0, 1, 0),)


@pytest.mark.parametrize("three", [3, -2, np.int32(3), np.array(3), Three()])
def test_anything_with_index_is_an_integer(three):
    assert parse_index((5,), three) == (((3, 1, 1),), ())
    assert parse_index((5,), slice(three, None)) == (((3, 1, 2),), (2,))


NO_INDEX = [
    1.0,
    nan,
    np.float32(1),
    1j,
    True,
    np.True_,
    np.array(True),
    "a",
    b"a",
    [0],
    [],
    (0,),
    {0},
    range(2),
    np.array([1]),
]


@pytest.mark.parametrize("entry", NO_INDEX, ids=repr)
def test_an_object_that_is_no_index_is_an_error(entry):
    with pytest.raises(IndexingError, match=r"only integers, slices, None and \.\.\. select; "):
        parse_index((2, 3), (entry, 0))
    if not isinstance(entry, tuple):
        with pytest.raises(IndexingError, match="only integers"):
            parse_index((2, 3), entry)
    for part in (slice(entry, None), slice(None, entry), slice(None, None, entry)):
        with pytest.raises(IndexingError, match="bounds and step are integers or None, got"):
            parse_index((2, 3), (0, part))


@pytest.mark.parametrize("ndim", [0, 1, 2, 7])
def test_dims_are_counted_as_numpy_counts_them(ndim):
    assert normalize_dims(None, ndim) == tuple(range(ndim))
    for dim in range(-ndim - 2, ndim + 2):
        try:
            expected = np.lib.array_utils.normalize_axis_index(dim, ndim)
        except np.exceptions.AxisError:
            with pytest.raises(ShapeError, match=f"dim {dim} is out of range"):
                normalize_dim(dim, ndim)
        else:
            assert normalize_dim(dim, ndim) == expected
            assert normalize_dims(dim, ndim) == normalize_dims([np.int64(dim)], ndim) == (expected,)


def test_dims_keep_their_order():
    assert normalize_dims((-1, 0, -2), 4) == normalize_dims(((-1, 0, 2),), 4) == (3, 0, 2)
    assert normalize_dims((), 4) == normalize_dims(((),), 4) == ()


@pytest.mark.parametrize(
    "sizes", [(2, 3), ((2, 3),), ([2, 3],), (np.int64(2), 3), (np.array([2, 3]),), [Size.TWO, 3]], ids=repr
)
def test_a_shape_is_one_argument_or_several(sizes):
    assert shape_of(sizes) == sizes_of(sizes) == infer_shape(6, sizes) == (2, 3)
    assert all(type(n) is int for n in shape_of(sizes))


def test_shapes_of_one_dim_and_of_none():
    assert shape_of(5) == shape_of((5,)) == shape_of(((5,),)) == shape_of(np.array(5)) == shape_of(np.array([5])) == (5,)
    assert shape_of(()) == shape_of(((),)) == shape_of([]) == ()
    assert shape_of((0, 2)) == (0, 2)
    assert sizes_of((-1, 4)) == (-1, 4)


sizes = st.sampled_from([-2, -1, -1, 0, 1, 2, 3, 4, 6])


@share(6)
@given(st.sampled_from([0, 1, 6, 24, 25]), st.lists(sizes, max_size=5))
def test_minus_one_is_inferred_as_in_numpy(size, shape):
    try:
        expected = np.empty(size).reshape(shape).shape
    except ValueError:
        expected = None
    if expected is None or min(shape, default=0) < -1:  # NumPy takes any negative size for -1
        with pytest.raises(ShapeError):
            infer_shape(size, shape)
    else:
        assert infer_shape(size, shape) == expected
        assert infer_shape(size, (tuple(shape),)) == expected


ERRORS = """
parse_index((5,), 7)
    IndexingError: index 7 is out of range for dim 0 of size 5; valid are -5 to 4
parse_index((5, 2), (..., -3))
    IndexingError: index -3 is out of range for dim 1 of size 2; valid are -2 to 1
parse_index((0,), 0)
    IndexingError: index 0 is out of range for dim 0 of size 0; it has no elements
parse_index((2, 3), (0, 1, None, 2))
    IndexingError: too many indices: 3 for shape (2, 3) of 2 dims; None and ... do not count
parse_index((2, 3), (..., ...))
    IndexingError: got 2 `...` in an index, expected at most one; write `:` for each dim instead
parse_index((2, 3), (0, 1.5))
    IndexingError: index 1.5 (float) for dim 1: only integers, slices, None and ... select; convert it with int() first
parse_index((2, 3), nan)
    IndexingError: index nan (float) for dim 0: only integers, slices, None and ... select; convert it with int() first
parse_index((2, 3), np.float32(1.5))
    IndexingError: index np.float32(1.5) (float32) for dim 0: only integers, slices, None and ... select;
    convert it with int() first
parse_index((2, 3), True)
    IndexingError: index True (bool) for dim 0: only integers, slices, None and ... select; for a mask use where(mask, x, y)
parse_index((2, 3), "rows")
    IndexingError: index 'rows' (str) for dim 0: only integers, slices, None and ... select; dims have no names
parse_index((2, 3), [0, 1])
    IndexingError: index [0, 1] (list) for dim 0: only integers, slices, None and ... select; for a mask use
    where(mask, x, y), for positions x.index_select(dim, index)
parse_index((2, 3), np.eye(9))
    IndexingError: index array([[1., 0., 0., 0., 0., 0., 0., 0... (ndarray) for dim 0: only integers, slices, None and ...
    select; for a mask use where(mask, x, y), for positions x.index_select(dim, index)
parse_index((2, 3), slice(None, None, 0))
    IndexingError: slice of dim 0: got step 0, expected a positive or a negative step
parse_index((2, 3), (0, slice(0, 2.0)))
    IndexingError: slice of dim 1: bounds and step are integers or None, got 2.0 (float)
normalize_dim(3, 2)
    ShapeError: dim 3 is out of range for a tensor of 2 dims; valid are -2 to 1
normalize_dim(0, 0)
    ShapeError: dim 0 is out of range for a tensor of 0 dims; a 0-d tensor has no dims
normalize_dim(1.0, 2)
    ShapeError: a dim is an integer, got 1.0 (float)
normalize_dims((0, "x"), 2)
    ShapeError: a dim is an integer, got 'x' (str)
normalize_dims(True, 2)
    ShapeError: a dim is an integer, got True (bool)
normalize_dims((0, 1, -2), 2)
    ShapeError: dims (0, 1, -2) name dim 0 twice; name each dim once
shape_of((2, -3))
    ShapeError: shape (2, -3) has a negative size; sizes are 0 or more
shape_of((2, 2.5))
    ShapeError: sizes are integers, got 2.5 (float); write a shape as 2, 3 or as (2, 3)
shape_of((2, (3,)))
    ShapeError: sizes are integers, got (3,) (tuple); write a shape as 2, 3 or as (2, 3)
shape_of("2")
    ShapeError: sizes are integers, got '2' (str); write a shape as 2, 3 or as (2, 3)
shape_of(None)
    ShapeError: sizes are integers, got None (NoneType); write a shape as 2, 3 or as (2, 3)
shape_of((False, 2))
    ShapeError: sizes are integers, got False (bool); write a shape as 2, 3 or as (2, 3)
infer_shape(24, (5, 5))
    ShapeError: reshape: 24 elements do not fit (5, 5), which has 25
infer_shape(24, (5, -1))
    ShapeError: reshape: 24 elements do not fit (5, -1): 24 is not a multiple of 5
infer_shape(24, (-1, 2, -1))
    ShapeError: reshape: (-1, 2, -1) has 2 sizes of -1; only one may be -1
infer_shape(24, (-2, -12))
    ShapeError: reshape: (-2, -12) has a negative size; sizes are 0 or more, and one may be -1
infer_shape(0, (0, -1))
    ShapeError: reshape: the -1 in (0, -1) is ambiguous, since another size is 0; write the size
"""


@pytest.mark.parametrize(("call", "message"), re.findall(r"^(\S.*)\n((?: +.*\n)+)", ERRORS, re.MULTILINE))
def test_an_error_names_the_value_and_a_remedy(call, message):
    with pytest.raises(MinifuseError) as info:
        eval(call)
    assert f"{info.typename}: {info.value}" == " ".join(message.split())
