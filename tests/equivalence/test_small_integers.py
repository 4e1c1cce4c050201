"""int8, int16 and uint8 on every backend, eager and fused. NumPy is the judge: results wrap around, sums are int64."""

import numpy as np
import pytest

import minifuse as mf

DTYPES = ["int8", "int16", "uint8"]
PROGRAMS = {  # on three arrays of one dtype: x and y of shape (5, 36), z of shape (36, 5)
    "arithmetic": lambda x, y, z: (x * y + x - z.T) * 3 // (y | 1) % 7,
    "comparison": lambda x, y, z: (x < y) & (x * 2 != z.T),
    "shifts": lambda x, y, z: (x << (y & 15)) ^ (~x >> (y & 7)),
    "extremes of rows": lambda x, y, z: (x * y).max(1) + (x - y).min(1),
    "columns of a difference": lambda x, y, z: (x - y).max(0) - z.min(1),
    "matmul with an epilogue": lambda x, y, z: (x @ z) * 2 + 1,
    "matmul of computed operands": lambda x, y, z: (x + y) @ (z * 2),
    "reversed": lambda x, y, z: x[::-1] + y[:, ::-1],
    "magnitudes": lambda x, y, z: abs(x) + abs(-x),
    "quotients": lambda x, y, z: x / 4 + y,
}


def random(dtype, shape, seed):
    """All values of a dtype, its ends included."""
    limits = np.iinfo(dtype)
    array = np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype, endpoint=True)
    array.flat[:2] = limits.min, limits.max
    return array


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_equal_numpy_eager_and_fused(name, dtype, backend):
    arrays = [random(dtype, (5, 36), 1), random(dtype, (5, 36), 2), random(dtype, (36, 5), 3)]
    with np.errstate(all="ignore"):
        expected = PROGRAMS[name](*arrays)
    for run in (PROGRAMS[name], mf.fuse(PROGRAMS[name])):
        got = run(*map(mf.tensor, arrays)).numpy()
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


@pytest.mark.sampled(2, each="dtype")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_sums_and_products_are_int64(name, dtype, backend):
    x = random(dtype, (7, 6), 1)
    got = getattr(mf.tensor(x), name)(1)
    assert got.dtype is mf.int64
    assert got.tolist() == getattr(x, name)(1, dtype=np.int64).tolist()


@pytest.mark.sampled(2, each="dtype")
@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_keep_the_lowest_bits(dtype, backend):
    x = random("int16", (3, 8), 1)
    for other in ("int16", "int32", "int64", "float32", "float64"):
        expected = x.astype(other).astype(np.int32).astype(dtype)
        np.testing.assert_array_equal(mf.tensor(x.astype(other)).to(dtype).numpy(), expected)
        np.testing.assert_array_equal(mf.tensor(expected).to(other).numpy(), expected.astype(other))
    assert mf.tensor(x).to("bool").tolist() == (x != 0).tolist()


@pytest.mark.sampled(2, each="dtype")
@pytest.mark.parametrize("dtype", DTYPES)
def test_updates_in_place_wrap_around(dtype, backend):
    x = random(dtype, (5, 4), 1)
    y = mf.tensor(x)
    y[::2] *= 3
    y[1] = 7
    y += mf.tensor(x)
    expected = x.copy()
    expected[::2] *= np.array(3, dtype)
    expected[1] = 7
    np.testing.assert_array_equal(y.numpy(), expected + x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_that_do_not_fit_are_refused(dtype, backend):
    x, limits = mf.ones(3, dtype=dtype), np.iinfo(dtype)
    assert (x * limits.max).tolist() == [limits.max] * 3
    for number in (int(limits.max) + 1, int(limits.min) - 1):
        with pytest.raises(mf.DTypeError, match=f"{number} does not fit {dtype}"):
            x + number
        with pytest.raises(mf.DTypeError, match=f"{number} does not fit {dtype}"):
            mf.fuse(lambda x, n: x * n)(x, number)
        with pytest.raises(mf.DTypeError, match=f"full: {number} does not fit {dtype}"):
            mf.full(3, number, dtype=dtype)


@pytest.mark.sampled(2, each="dtype")
@pytest.mark.parametrize("dtype", DTYPES)
def test_own_kernels_and_batches_of_small_integers(dtype, backend):
    x = random(dtype, (5, 4), 1)
    largest = mf.reduction(identity=int(np.iinfo(dtype).min), combine=lambda a, b: mf.where(a > b, a, b))
    np.testing.assert_array_equal(largest(mf.tensor(x), dim=1).numpy(), x.max(1))
    np.testing.assert_array_equal(mf.elementwise(lambda a: a * 3 + 1)(mf.tensor(x)).numpy(), x * np.array(3, dtype) + 1)

    @mf.elementwise(raw=("out", "x"))
    def reverse(k, out, x):
        out[3 - k] = x[k] * 2

    y = mf.zeros(4, dtype=dtype)
    reverse(mf.arange(4), y, mf.tensor(x[0]))
    np.testing.assert_array_equal(y.numpy(), x[0, ::-1] * np.array(2, dtype))
    doubled = mf.fuse(lambda *xs: [x * 2 for x in xs])(*[mf.ones(n, dtype=dtype) for n in (3, 4, 5)])
    assert [z.tolist() for z in doubled] == [[2] * 3, [2] * 4, [2] * 5]


def test_small_integers_are_no_indices(backend):
    x, index = mf.ones(3, 2), mf.tensor([0, 1], dtype=mf.uint8)
    with pytest.raises(mf.DTypeError, match="index_select: got an index of uint8, expected a tensor of int64 or int32"):
        x.index_select(0, index)
    with pytest.raises(mf.DTypeError, match="targets of dtype uint8, expected floats and class indices of int64 or int32"):
        mf.nn.functional.cross_entropy(x[:2], index)


def test_atomic_additions_of_small_integers_are_refused():
    @mf.elementwise(raw=("bins",))
    def count(x, bins):
        mf.atomic_add(bins, x, 1)

    with pytest.raises(mf.DTypeError, match="atomic_add: got an array of int8; use int32"):
        count(mf.arange(3), mf.zeros(3, dtype=mf.int8))
