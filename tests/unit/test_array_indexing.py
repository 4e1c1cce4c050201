"""Indexing by arrays and masks: reads and writes, as NumPy does them."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import DTypeError, FuseError, GradientError, IndexingError, ShapeError

X = np.random.default_rng(0).normal(size=(3, 4, 5))
I, J, M = np.array([2, 0, -1]), np.array([[1], [2]]), X > 0  # noqa: E741
ROWS, ALL = np.array([True, False, True]), slice(None)
INTEGERS = [I, [0, 2], (I, I), (J, I), (ALL, I), (ALL, J, I), (I, ALL, I), (0, ALL, I), (ALL, 0, I), (I, 0), (..., I)]
INTEGERS += [
    (None, I),
    (I, None, I),
    (slice(0, 2), slice(None, None, -2), I),
    (..., I, slice(1, 3)),
    ([0, 1], [1, 2], 3),
    [],
]
MASKS = [M, ROWS, M[:, :, 0], (ROWS, 0), (ALL, [True, False, True, True]), (ROWS, ..., I[:2]), (..., M[0])]


@pytest.fixture(autouse=True)
def python():
    with mf.use_backend("python"):
        yield


def as_tensors(index):
    """Return an index with tensors in place of NumPy arrays."""
    if isinstance(index, tuple):
        return tuple(map(as_tensors, index))
    return mf.tensor(index) if isinstance(index, np.ndarray) else index


def written(index, value):
    """Return NumPy's result of an assignment."""
    expected = X.copy()
    expected[index] = value
    return expected


@pytest.mark.parametrize("index", INTEGERS + MASKS, ids=repr)
def test_reads_and_writes_are_those_of_numpy(index):
    expected = X[index]
    for used in (index, as_tensors(index)):
        assert np.array_equal(mf.tensor(X)[used].numpy(), expected)
        for value in (np.array(7.0), np.arange(expected.size).reshape(expected.shape) / 2):
            x = mf.tensor(X.copy())
            x[used] = mf.tensor(value)
            assert np.array_equal(x.numpy(), written(index, value))
            x = mf.tensor(X.copy())
            x[used] += value
            assert np.allclose(x.numpy(), written(index, X[index] + value))


@pytest.mark.parametrize("index", INTEGERS[::4], ids=repr)
def test_a_fused_function_reads_and_writes_at_integers(index):
    def update(x, *arrays):
        y = x * 1
        y[index] = 5.0
        return x[index], y

    got = mf.fuse(update)(mf.tensor(X))
    assert np.array_equal(got[0].numpy(), X[index])
    assert np.array_equal(got[1].numpy(), written(index, 5.0))


def test_a_fused_function_stores_at_a_mask_and_does_not_read_at_one():
    def fill(x, mask):
        y = x * 1
        y[mask] = 2.0
        return y

    assert np.array_equal(mf.fuse(fill)(mf.tensor(X), mf.tensor(M)).numpy(), np.where(M, 2, X))
    with pytest.raises(FuseError, match=r"the shape of x\[mask\] depends on values.* use mf\.where"):
        mf.fuse(lambda x, mask: x[mask])(mf.tensor(X), mf.tensor(M))


def test_the_last_of_repeated_indices_is_stored_and_all_are_added():
    x = mf.zeros(4)
    x[[1, 1, 3, 1]] = mf.tensor([1.0, 2.0, 3.0, 4.0])
    assert x.tolist() == [0, 4, 0, 3]
    np.add.at(x, [1, 1, 0], 1.0)
    assert x.tolist() == [1, 6, 0, 3]


@pytest.mark.parametrize(
    ("index", "value", "error", "message"),
    [
        ([0, 3], 1.0, IndexingError, r"index 3 at \[1\] is out of range for dim 0 of size 3"),
        ([0.5], 1.0, DTypeError, "got an index of float64"),
        ((I, [0, 1]), 1.0, IndexingError, r"shapes \(3,\) and \(2,\) do not broadcast"),
        ((I, I, I, I), 1.0, IndexingError, "too many indices: 4"),
        ([True, False], 1.0, IndexingError, r"got a mask of shape \(2,\), expected \(3,\)"),
        (I, np.zeros(2), ShapeError, r"a value of shape \(2,\) does not broadcast to \(3, 4, 5\)"),
    ],
)
def test_a_wrong_index_or_value_is_explained(index, value, error, message):
    x = mf.tensor(X.copy())
    with pytest.raises(error, match=message):
        x[index] = value
    assert np.array_equal(x.numpy(), X)
    with pytest.raises(DTypeError, match="cannot store floats"):
        mf.tensor([1, 2])[[0]] = 0.5
    with pytest.raises(GradientError, match="in-place"):
        mf.tensor(X).requires_grad_()[[0]] = 0.5
