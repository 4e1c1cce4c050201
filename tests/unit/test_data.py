"""Data: real digits, parts and batches that are complete, at random, and the same for the same seed."""

import gc
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.data import Loader, digits, split
from minifuse.errors import DTypeError, MissingPartError, ShapeError


def rows(n, *shape, **named):
    """n different rows, the first element of which is their index."""
    array = np.arange(n).reshape(-1, *[1] * len(shape)) + np.zeros((n, *shape))
    return mf.tensor(array, **{"dtype": "float32", **named})


def indices(tensors):
    return [int(i) for x in tensors for i in x.numpy().reshape(len(x), -1)[:, 0]]


# Digits


def test_the_digits_are_scikit_learns():
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn brings the digits")
    known = datasets.load_digits()
    x, y = digits()
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((1797, 64), mf.float32, (1797,), mf.int64)
    np.testing.assert_array_equal(x.numpy() * 16, known.data)
    np.testing.assert_array_equal(y.numpy(), known.target)
    assert (x.min().item(), x.max().item()) == (0, 1)


def test_the_digits_as_images_on_a_backend():
    pytest.importorskip("sklearn.datasets", reason="scikit-learn brings the digits")
    x, y = digits(images=True, backend="python")
    assert x.shape == (1797, 8, 8)
    assert x.backend == y.backend == "python"
    np.testing.assert_array_equal(x.numpy().reshape(1797, 64), digits()[0].numpy())


@pytest.mark.parametrize("missing", ["sklearn", "sklearn.datasets"])
def test_without_scikit_learn_the_install_line_is_named(missing, monkeypatch):
    for name in {"sklearn.datasets", missing}:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPartError, match=r'pip install "minifuse\[cli\]"'):
        digits()


# Parts


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
def test_parts_are_random_by_seed(stratify):
    def first(seed):
        (x,), _ = split(rows(100), fraction=0.5, seed=seed, stratify=stratify)
        return indices([x])

    assert first(1) == first(1)
    assert first(1) != first(2)
    assert sorted(first(1)) != sorted(first(2))
    assert first(1) != sorted(first(1))


def test_parts_are_copies_on_the_same_backend():
    x = rows(10, 2, backend="python", dtype="float64")
    (a,), (b,) = split(x, fraction=0.5)
    assert a.backend == b.backend == "python"
    a *= 0
    assert x.sum().item() == 90


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: split(rows(5), rows(4)), r"got tensors of shapes \(5,\), \(4,\), expected .* the same first size"),
        (lambda: split(rows(5), stratify=rows(4)), r"split: got tensors of shapes \(5,\), \(4,\)"),
        (lambda: split(), "shapes none"),
        (lambda: split(mf.tensor(1.0)), r"shapes \(\)"),
        (lambda: split(rows(5), fraction=1.0), "fraction=1.0 of 5 examples leaves a part empty"),
        (lambda: split(rows(5), fraction=-0.5), "leaves a part empty"),
        (lambda: split(rows(1)), "leaves a part empty"),
        (lambda: Loader(rows(5), rows(4)), r"Loader: got tensors of shapes \(5,\), \(4,\)"),
        (lambda: Loader(), "shapes none"),
        (lambda: Loader(rows(5), batch_size=0), "batch_size is 0, expected at least 1"),
        (lambda: Loader(rows(5), batch_size=-1), "batch_size is -1"),
    ],
)
def test_sizes_that_do_not_fit(call, words):
    with pytest.raises(ShapeError, match=words):
        call()


@pytest.mark.parametrize("make", [split, Loader])
def test_data_are_tensors(make):
    with pytest.raises(DTypeError, match="expected tensors, got ndarray; wrap it"):
        make(np.ones(3))


# Batches


@given(n=st.integers(0, 70), size=st.integers(1, 33), shuffle=st.booleans(), drop_last=st.booleans())
def test_batches_hold_each_example_once(n, size, shuffle, drop_last):
    loader = Loader(rows(n, 2, 3), rows(n, dtype="int32"), batch_size=size, shuffle=shuffle, drop_last=drop_last)
    batches = [(x.clone(), y.clone()) for x, y in loader]
    assert len(batches) == len(loader)
    assert [len(y) for _, y in batches[:-1]] == [size] * (len(batches) - 1)
    assert all(x.shape == (len(y), 2, 3) and x.dtype is mf.float32 and y.dtype is mf.int32 for x, y in batches)
    found = indices(x for x, _ in batches)
    assert found == indices(y for _, y in batches)
    assert len(found) == (n - n % size if drop_last else n)
    assert len(set(found)) == len(found)
    assert shuffle or found == list(range(len(found)))


def test_each_epoch_has_its_own_order_by_seed():
    def epochs(loader, count=3):
        return [indices(x for (x,) in [(x.clone(),) for (x,) in loader]) for _ in range(count)]

    loader = Loader(rows(50), batch_size=8, seed=1)
    first, second, third = epochs(loader)
    assert first != second != third != first
    assert first != list(range(50))
    assert epochs(Loader(rows(50), batch_size=8, seed=1)) == [first, second, third]
    assert epochs(Loader(rows(50), batch_size=5, seed=1), 1) == [first]
    assert epochs(Loader(rows(50), batch_size=8, seed=2), 1) != [first]
    assert loader.epoch == 3
    loader.epoch = 1
    assert epochs(loader, 2) == [second, third]


def test_walks_side_by_side_do_not_disturb_each_other():
    loader = Loader(rows(6), batch_size=2, shuffle=False)
    assert [(indices([a]), indices([b])) for (a,), (b,) in zip(loader, loader, strict=True)] == [
        ([0, 1], [0, 1]),
        ([2, 3], [2, 3]),
        ([4, 5], [4, 5]),
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.T, lambda x: x[::-1, ::2], lambda x: x[:1].expand(5, 5)])
def test_batches_of_any_layout_and_dtype(view, dtype):
    x = view(mf.tensor(np.arange(25).reshape(5, 5) % 7, dtype=dtype))
    (batch,) = next(iter(Loader(x, batch_size=5, seed=3)))
    order = Loader(x, seed=3).order(0)
    np.testing.assert_array_equal(batch.numpy(), x.numpy()[order])
    assert batch.dtype is x.dtype
    assert batch.is_contiguous()


def test_batches_are_copies_that_use_the_same_memory_again():
    gc.collect()
    mf.memory.trim()  # what other tests left would be used too
    x = rows(64, 1000)
    loader = Loader(x, batch_size=8)
    for (batch,) in loader:
        batch *= 0
    assert x.sum().item() == 1000 * 63 * 32
    del batch
    before = mf.memory.stats().new
    addresses = {batch.address for (batch,) in loader}
    assert mf.memory.stats().new == before
    assert len(addresses) <= 2
