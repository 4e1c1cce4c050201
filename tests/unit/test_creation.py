"""tensors.creation: tensors from data, from numbers, and at random."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.dtypes import DTYPES
from minifuse.core.errors import DTypeError, ShapeError


@pytest.fixture(params=["python", "parallel"])
def backend(request):
    return request.param


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1.5, "float32", ()),
        (2, "int64", ()),
        (True, "bool", ()),
        ([1, 2.5], "float32", (2,)),
        ([[1, 2], [3, 4]], "int64", (2, 2)),
        ([True, 2], "int64", (2,)),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        ((1.0, 2.0), "float32", (2,)),
        (range(3), "int64", (3,)),
        (np.float64(1.5), "float64", ()),
        (np.int32(2), "int32", ()),
        (np.ones((2, 3)), "float64", (2, 3)),
        (np.ones((2, 3), "f4").T, "float32", (3, 2)),
        (np.ones(3, np.int32), "int32", (3,)),
        ([np.ones(2), np.zeros(2)], "float32", (2, 2)),
    ],
)
def test_the_dtype_of_data(data, dtype, shape, backend):
    x = mf.tensor(data, backend=backend)
    assert (x.dtype.name, x.shape, x.backend) == (dtype, shape, backend)
    assert x.is_contiguous()
    np.testing.assert_array_equal(x, np.array(data))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dtype_that_is_named(dtype, backend):
    for name in (dtype, dtype.name, dtype.numpy):
        x = mf.tensor([0, 1, 2.0], dtype=name, backend=backend)
        assert x.dtype is dtype
        assert x.tolist() == np.array([0, 1, 2]).astype(dtype.numpy).tolist()


@pytest.mark.parametrize("dtype", ["uint16", "float16", "uint32", "uint64"])
def test_an_array_of_another_dtype_is_converted_if_one_is_named(dtype):
    array = np.array([1, 2, 3], dtype)
    with pytest.raises(DTypeError, match=f"{dtype}.*pass dtype="):
        mf.tensor(array)
    assert mf.tensor(array, dtype="int64").tolist() == [1, 2, 3]


def test_data_is_copied():
    array = np.ones(3, np.float32)
    x = mf.tensor(array)
    y = mf.tensor(x)
    array[0] = 5
    x += 1
    assert x.tolist() == [2, 2, 2]
    assert y.tolist() == [1, 1, 1]


def test_tensors_are_data_too():
    x = mf.arange(6).reshape(2, 3)
    assert mf.tensor(x.T, dtype="float64").tolist() == [[0, 3], [1, 4], [2, 5]]
    assert mf.tensor([x[0], x[1]]).tolist() == x.tolist()
    assert mf.tensor([x[0, 0], 2.5]).tolist() == [0, 2.5]
    y = mf.tensor(mf.ones(2, requires_grad=True))
    assert not y.requires_grad


def test_a_gradient_may_be_wanted_from_the_start():
    for x in (
        mf.tensor([1.0], requires_grad=True),
        mf.zeros(1, requires_grad=True),
        mf.ones(1, requires_grad=True),
        mf.full((1,), 2.0, requires_grad=True),
        mf.rand(1, requires_grad=True),
        mf.randn(1, requires_grad=True),
        mf.zeros_like(mf.ones(1), requires_grad=True),
        mf.ones_like(mf.ones(1), requires_grad=True),
        mf.empty_like(mf.ones(1), requires_grad=True),
        mf.from_numpy(np.ones(1), requires_grad=True),
    ):
        assert x.requires_grad
        assert x.is_leaf
    for x in (mf.tensor([1.0]), mf.zeros(1), mf.ones_like(mf.ones(1, requires_grad=True))):
        assert not x.requires_grad


@pytest.mark.parametrize(("make", "value"), [(mf.zeros, 0), (mf.ones, 1)])
def test_zeros_and_ones(make, value, backend):
    for x in (make(2, 3, backend=backend), make((2, 3), backend=backend), make([2, 3], backend=backend)):
        assert (x.shape, x.dtype, x.backend) == ((2, 3), mf.float32, backend)
        assert x.tolist() == [[value] * 3] * 2
    assert make().shape == make(()).shape == ()
    assert make(0, 3).shape == (0, 3)
    assert make(np.int64(2)).shape == (2,)
    assert [make(2, dtype=d).dtype for d in DTYPES] == list(DTYPES)


def test_full_takes_the_dtype_of_its_number():
    assert [mf.full((2,), v).dtype for v in (1.5, 7, True, np.float64(1))] == [mf.float32, mf.int64, mf.bool_, mf.float64]
    assert mf.full((2, 2), 7, dtype="float64").tolist() == [[7, 7], [7, 7]]
    assert mf.full(3, 1.5).tolist() == [1.5] * 3
    assert mf.full((), 1.5).item() == 1.5


def test_likes_follow_their_model(backend):
    x = mf.ones(3, 4, dtype="int32", backend=backend).T
    for y in (mf.zeros_like(x), mf.ones_like(x), mf.empty_like(x)):
        assert (y.shape, y.dtype, y.backend) == ((4, 3), mf.int32, backend)
        assert y.is_contiguous()
    other = "python" if backend == "parallel" else "parallel"
    assert mf.zeros_like(x, dtype="float64", backend=other).dtype is mf.float64
    assert mf.empty_like(x, backend=other).backend == other


@pytest.mark.parametrize(
    "arguments",
    [(5,), (2, 7), (2, 7, 2), (7, 2, -2), (0,), (-3,), (3, 1), (0, 1, 0.25), (2.5,), (1, 2, 0.3), (np.int64(4),), (0.0, 3)],
)
def test_arange_is_numpys(arguments):
    x, expected = mf.arange(*arguments), np.arange(*arguments)
    assert x.shape == expected.shape
    assert x.dtype is (mf.int64 if expected.dtype == np.int64 else mf.float32)
    np.testing.assert_allclose(x, expected, rtol=1e-6)


def test_arange_of_a_dtype(backend):
    x = mf.arange(4, dtype="float64", backend=backend)
    assert (x.dtype, x.backend, x.tolist()) == (mf.float64, backend, [0, 1, 2, 3])


# Random numbers


def test_equal_seeds_give_equal_numbers(backend):
    def draw():
        mf.manual_seed(7)
        return mf.rand(3, 4, backend=backend).tolist(), mf.randn(5, backend=backend).tolist()

    assert draw() == draw()
    mf.manual_seed(8)
    assert mf.rand(3, 4).tolist() != draw()[0]


def test_the_backends_draw_the_same():
    drawn = []
    for name in ("python", "parallel"):
        mf.manual_seed(0)
        drawn.append(mf.randn(100, backend=name).tolist())
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distributions(dtype):
    mf.manual_seed(0)
    u, n = mf.rand(100_000, dtype=dtype).numpy(), mf.randn(100_000, dtype=dtype).numpy()
    assert u.dtype == n.dtype == dtype
    assert 0 <= u.min() < 1e-4
    assert 1 - 1e-4 < u.max() < 1
    assert abs(u.mean() - 0.5) < 0.01
    assert abs(n.mean()) < 0.02
    assert abs(n.std() - 1) < 0.02


def test_shapes_of_random_tensors():
    assert mf.rand().shape == ()
    assert mf.rand(2, 3).shape == mf.randn((2, 3)).shape == (2, 3)
    assert mf.randn(0, 3).shape == (0, 3)


def test_random_integers_are_not_made():
    with pytest.raises(DTypeError, match="randn: got dtype int64, expected a float type"):
        mf.randn(2, dtype=int)
    with pytest.raises(ShapeError, match="negative size"):
        mf.rand(-1)
