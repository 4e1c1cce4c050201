"""data.digits and data.bundled: data sets in our dtypes and shapes, and the names of their columns."""

import hashlib
import sys

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import MinifuseError, MissingPartError
from minifuse.data import bundled, digits
from minifuse.data.digits import load_arrays

DIGITS_SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"
REASON = "scikit-learn brings the data"
CLASSES = {"iris": (150, 4, 3), "wine": (178, 13, 3), "breast_cancer": (569, 30, 2)}
MEASURES = {"diabetes": (442, 10, 1), "linnerud": (20, 3, 3)}


def test_the_digits_are_those_that_were_published():
    pixels, labels = load_arrays()
    assert (pixels.shape, pixels.dtype, labels.shape, labels.dtype) == ((1797, 64), np.uint8, (1797,), np.uint8)
    assert hashlib.sha256(pixels.tobytes() + labels.tobytes()).hexdigest() == DIGITS_SHA256


def test_the_digits_are_scikit_learns():
    known = pytest.importorskip("sklearn.datasets", reason=REASON).load_digits()
    np.testing.assert_array_equal(load_arrays()[0], known.data)
    np.testing.assert_array_equal(load_arrays()[1], known.target)
    assert mf.data.names("digits") == (tuple(known.feature_names), tuple(map(str, known.target_names)))


def test_the_digits_are_tensors_from_0_to_1():
    x, y = digits()
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((1797, 64), mf.float32, (1797,), mf.int64)
    np.testing.assert_array_equal(x.numpy() * 16, load_arrays()[0])
    np.testing.assert_array_equal(y.numpy(), load_arrays()[1])
    assert (x.min().item(), x.max().item()) == (0, 1)


def test_the_digits_as_images_on_a_backend():
    x, y = digits(images=True, backend="python")
    assert x.shape == (1797, 8, 8)
    assert x.backend == y.backend == "python"
    np.testing.assert_array_equal(x.numpy().reshape(1797, 64), digits()[0].numpy())


@pytest.mark.parametrize("name", CLASSES)
def test_sets_with_classes(name):
    known = getattr(pytest.importorskip("sklearn.datasets", reason=REASON), f"load_{name}")()
    n, features, classes = CLASSES[name]
    x, y = getattr(mf.data, name)(backend="python")
    assert (x.shape, x.dtype, x.backend) == ((n, features), mf.float32, "python")
    assert (y.shape, y.dtype, y.backend) == ((n,), mf.int64, "python")
    np.testing.assert_array_equal(x.numpy(), known.data.astype(np.float32))
    np.testing.assert_array_equal(y.numpy(), known.target)
    assert set(y.tolist()) == set(range(classes))
    found = mf.data.names(name)
    assert (list(found.features), list(found.targets)) == (list(known.feature_names), list(known.target_names))
    assert (len(found.features), len(found.targets)) == (features, classes)


@pytest.mark.parametrize("name", MEASURES)
def test_sets_of_measures(name):
    datasets = pytest.importorskip("sklearn.datasets", reason=REASON)
    known = datasets.load_linnerud() if name == "linnerud" else datasets.load_diabetes(scaled=False)
    n, features, columns = MEASURES[name]
    x, y = getattr(mf.data, name)()
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((n, features), mf.float32, (n, columns), mf.float32)
    np.testing.assert_array_equal(x.numpy(), known.data.astype(np.float32))
    np.testing.assert_array_equal(y.numpy(), known.target.reshape(n, columns).astype(np.float32))
    found = mf.data.names(name)
    assert (len(found.features), len(found.targets)) == (features, columns)


def test_names_are_plain_strings():
    pytest.importorskip("sklearn.datasets", reason=REASON)
    for name in bundled.LOADERS:
        assert all(type(word) is str for part in mf.data.names(name) for word in part)


def test_no_such_set():
    with pytest.raises(MinifuseError, match="unknown data set 'mnist'; expected one of digits, iris"):
        mf.data.names("mnist")


@pytest.mark.parametrize("missing", ["sklearn", "sklearn.datasets"])
@pytest.mark.parametrize("name", bundled.LOADERS)
def test_without_scikit_learn_the_install_line_is_named(name, missing, monkeypatch):
    for module in {"sklearn.datasets", missing}:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPartError, match=rf'^{name}: .*pip install "minifuse\[data\]"'):
        getattr(mf.data, name)()
    with pytest.raises(MissingPartError, match="pip install"):
        mf.data.names(name)
