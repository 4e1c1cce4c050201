"""data.split: complete random parts and standardized columns, equal for equal seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.core.errors import DTypeError, ShapeError
from minifuse.data import split, standardize


def rows(n, *shape, **named):
    """n different rows, the first element of which is their index."""
    array = np.arange(n).reshape(-1, *[1] * len(shape)) + np.zeros((n, *shape))
    return mf.tensor(array, **{"dtype": "float32", **named})


def indices(tensors):
    return [int(i) for x in tensors for i in x.numpy().reshape(len(x), -1)[:, 0]]


@given(n=st.integers(2, 60), fraction=st.floats(0.01, 0.99), seed=st.integers(0, 5), classes=st.integers(0, 7))
def test_each_example_goes_to_one_part_with_all_that_belongs_to_it(n, fraction, seed, classes):
    x, y = rows(n, 3), rows(n, dtype="int64")
    labels = mf.tensor(np.arange(n) ** 2 % classes) if classes else None
    first = round(fraction * n)
    if not 0 < first < n:
        with pytest.raises(ShapeError, match="leaves a part empty"):
            split(x, y, fraction=fraction, seed=seed, stratify=labels)
        return
    parts = split(x, y, fraction=fraction, seed=seed, stratify=labels)
    assert [len(x) for x, _ in parts] == [first, n - first]
    assert sorted(indices(x for x, _ in parts)) == list(range(n))
    for a, b in parts:
        assert indices([a]) == indices([b])
        assert a.shape[1:] == (3,)
        assert (a.dtype, b.dtype) == (mf.float32, mf.int64)
    if classes:
        mine = labels.numpy()[indices([parts[0][0]])]
        for label in range(classes):
            assert abs((mine == label).sum() - first / n * (labels.numpy() == label).sum()) < 1


@pytest.mark.parametrize("stratify", [None, mf.arange(100) % 3])
def test_splits_are_random_by_seed(stratify):
    def first(seed):
        (x,), _ = split(rows(100), fraction=0.5, seed=seed, stratify=stratify)
        return indices([x])

    assert first(1) == first(1)
    assert first(1) != first(2)
    assert sorted(first(1)) != sorted(first(2))
    assert first(1) != sorted(first(1))


def test_splits_are_copies_on_the_same_backend():
    x = rows(10, 2, backend="python", dtype="float64")
    (a,), (b,) = split(x, fraction=0.5)
    assert a.backend == b.backend == "python"
    a *= 0
    assert x.sum().item() == 90


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: split(rows(5), rows(4)), r"got tensors of shapes \(5,\), \(4,\), expected .* the same first dim"),
        (lambda: split(rows(5), stratify=rows(4)), r"split: got tensors of shapes \(5,\), \(4,\)"),
        (lambda: split(), "shapes none"),
        (lambda: split(mf.tensor(1.0)), r"shapes \(\)"),
        (lambda: split(rows(5), fraction=1.0), "fraction=1.0 of 5 examples, which leaves a part empty"),
        (lambda: split(rows(5), fraction=-0.5), "leaves a part empty"),
        (lambda: split(rows(1)), "leaves a part empty"),
        (lambda: standardize(mf.ones(0, 3)), "got no examples"),
        (lambda: standardize(mf.tensor(1.0)), r"standardize: got tensors of shapes \(\)"),
        (lambda: standardize(mf.ones(4, 3), mf.ones(4, 2)), r"features of shapes \(3,\) and \(2,\), expected the same"),
    ],
)
def test_sizes_that_do_not_fit(call, words):
    with pytest.raises(ShapeError, match=words):
        call()


@pytest.mark.parametrize("make", [split, standardize])
def test_data_are_tensors(make):
    with pytest.raises(DTypeError, match="expected tensors, got ndarray; write mf"):
        make(np.ones(3))


# One scale


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(7,), (7, 3), (70, 2, 3)])
def test_the_first_gets_mean_0_and_deviation_1_and_the_others_follow(shape, dtype):
    random = np.random.default_rng(0)
    a = (random.normal(50, 9, shape)).astype(dtype)
    b = (random.normal(50, 9, (3, *shape[1:]))).astype(dtype)
    x, y = standardize(mf.tensor(a), mf.tensor(b, backend="python"))
    np.testing.assert_allclose(x.numpy().mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(x.numpy().std(0), 1, rtol=1e-6)
    mean, deviation = a.astype(np.float64).mean(0), a.astype(np.float64).std(0)
    np.testing.assert_allclose(y.numpy(), (b - mean) / deviation, rtol=1e-6)
    assert (x.dtype.name, y.dtype.name, y.backend) == (dtype, dtype, "python")
    np.testing.assert_array_equal(mf.tensor(a).numpy(), a)


def test_large_close_numbers_keep_their_differences():
    (x,) = standardize(mf.tensor([16777216.0, 16777218.0]))
    assert x.tolist() == [-1, 1]


def test_a_feature_that_never_changes_is_only_shifted():
    x, y = standardize(mf.tensor([[3.0, 1.0], [3.0, 2.0]]), mf.tensor([[4.0, 1.5]]))
    assert x.tolist() == [[0, -1], [0, 1]]
    assert y.tolist() == [[1, 0]]


def test_only_floats_have_a_scale():
    with pytest.raises(DTypeError, match="got dtype int64, expected floats"):
        standardize(mf.arange(3))
