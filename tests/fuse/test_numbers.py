"""Numbers among the arguments of a fused function, in the hands of NumPy and of Python: as if the function ran by itself."""

import operator

import numpy as np
import pytest

import minifuse as mf

X = mf.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
ARRAYS = {  # of a size n and a number a
    "np.arange(n)": lambda x, n, a: np.arange(n),
    "np.arange(1, a, 0.5)": lambda x, n, a: np.arange(1, a, 0.5),
    "np.linspace": lambda x, n, a: np.linspace(0, a, n),
    "np.logspace": lambda x, n, a: np.logspace(0, a, n),
    "np.geomspace": lambda x, n, a: np.geomspace(1, a, n),
    "np.full": lambda x, n, a: np.full(n, a),
    "np.full of int32": lambda x, n, a: np.full((n, 2), n, np.int32),
    "np.array": lambda x, n, a: np.array([n]),
    "np.array of both": lambda x, n, a: np.array([[n, a], [1, 2]]),
    "np.asarray": lambda x, n, a: np.asarray(a),
    "np.mgrid": lambda x, n, a: np.mgrid[0:n, 0:n],
    "np.mgrid of floats": lambda x, n, a: np.mgrid[0:a:3j],
    "np.ogrid": lambda x, n, a: list(np.ogrid[0:n, 1:n]),
    "np.r_": lambda x, n, a: np.r_[a, 0:n],
    "np.c_": lambda x, n, a: np.c_[[a, 1], [2, n]],
    "np.eye": lambda x, n, a: np.eye(n, dtype=x.dtype),
    "np.zeros": lambda x, n, a: np.zeros((n, 2), x.dtype),
    "np.diag": lambda x, n, a: np.diag([a, n]),
    "np.append": lambda x, n, a: np.append([1, 2], a),
    "np.concatenate": lambda x, n, a: np.concatenate([[n], [a]]),
    "np.stack": lambda x, n, a: np.stack([n, a]),
    "np.meshgrid": lambda x, n, a: np.meshgrid(np.arange(n), [a])[1],
    "np.where": lambda x, n, a: np.where(np.array([True, False]), a, 1.5),
    "np.where of float32": lambda x, n, a: np.where([True, False], a, np.float32(1.5)),
    "np.clip": lambda x, n, a: np.clip(np.arange(9), 1, n),
    "np.dot": lambda x, n, a: np.dot(np.ones(2), a),
    "np.outer": lambda x, n, a: np.outer([a, 1], [2, n]),
    "np.kron": lambda x, n, a: np.kron([1, a], [1, 1]),
    "np.cumsum": lambda x, n, a: np.cumsum([a, n]),
    "np.broadcast_to": lambda x, n, a: np.broadcast_to(a, (2, 2)),
    "np.repeat": lambda x, n, a: np.repeat([1, 2], n),
    "np.hamming": lambda x, n, a: np.hamming(n),
    "float32 * a": lambda x, n, a: np.ones(2, np.float32) * a,
    "a * float32": lambda x, n, a: a * np.ones(2, np.float32),
}
NUMBERS = {
    "np.round": lambda n, a: np.round(a, 1),
    "np.clip": lambda n, a: np.clip(a, 0, 1),
    "np.sum": lambda n, a: np.sum([a, n]),
    "np.result_type": lambda n, a: np.result_type(n, np.float32).itemsize,
    "np.float64 + a": lambda n, a: np.float64(3) + a,
    "n ^ 3": lambda n, a: n ^ 3,
    "3 ^ n": lambda n, a: 3 ^ n,
    "1 << n": lambda n, a: 1 << n,
    "64 >> n": lambda n, a: 64 >> n,
    "6 & n": lambda n, a: 6 & n,
    "8 | n": lambda n, a: 8 | n,
    "np.int64 ^ n": lambda n, a: np.int64(3) ^ n,
    "divmod(n, 2)": lambda n, a: divmod(n, 2)[1],
    "divmod(7, n)": lambda n, a: divmod(7, n)[0],
}


def alike(found, expected):
    """Whether two results are the same, types and dtypes too."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(alike, found, expected))
    same = type(found) is type(expected) and np.shape(found) == np.shape(expected)
    return same and np.asarray(found).dtype == np.asarray(expected).dtype and np.array_equal(found, expected)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_made_of_numbers_are_numpys(name):
    function = ARRAYS[name]
    fused = mf.fuse(function)
    for n, a in ((3, 3.5), (4, 4.5), (3, 4.5), (3, 3.5)):  # another number is another array
        assert alike(fused(X, n, a), function(X, n, a)), (n, a)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_made_of_numbers_compute_with_tensors(name):
    def function(x, n, a):
        made = ARRAYS[name](x, n, a)
        return x.sum() + mf.tensor(np.asarray(made[0] if isinstance(made, list) else made, np.float64)).sum()

    fused = mf.fuse(function)
    for n, a in ((3, 3.5), (4, 4.5)):
        assert fused(X, n, a).item() == pytest.approx(function(X, n, a).item())


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_made_of_numbers_are_pythons(name):
    fused = mf.fuse(lambda x, n, a: x * NUMBERS[name](n, a))
    for n, a in ((3, 3.5), (4, 4.5)):
        np.testing.assert_allclose(fused(X, n, a).numpy(), X.numpy() * np.float32(NUMBERS[name](n, a)), rtol=1e-6)


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_bits_of_a_number_and_a_tensor_are_captured_once(name):
    function, x = getattr(operator, name), mf.tensor([1, 2, 3])
    fused = mf.fuse(lambda x, n: (function(x, n), function(n, x)))
    for n in (3, 5):
        for found, expected in zip(fused(x, n), (function(x, n), function(n, x)), strict=True):
            assert found.tolist() == expected.tolist()
    assert fused.stats().calls == 1


def test_a_number_beside_a_tensor_in_a_function_of_numpy_is_captured_once():
    fused = mf.fuse(lambda x, a: np.where(x > 2, a, 0) + np.clip(x, 0, a) + np.full_like(x, a))
    for a in (3.5, 4.5):
        expected = np.where(X.numpy() > 2, a, 0) + np.clip(X.numpy(), 0, a) + a
        np.testing.assert_allclose(fused(X, a).numpy(), expected, rtol=1e-6)
    assert fused.stats().calls == 1


def test_a_tensor_made_of_numbers_has_their_values():
    fused = mf.fuse(lambda x, n, a: x * mf.tensor([n, a, 2 * a]) + mf.tensor(n))
    for n, a in ((3, 3.5), (4, 4.5)):
        np.testing.assert_allclose(fused(X, n, a).numpy(), X.numpy() * np.array([n, a, 2 * a]) + n, rtol=1e-6)


def test_an_array_of_objects_does_not_bring_symbols_out():
    with pytest.raises(mf.FuseError, match="the function returned a ndarray; return tensors"):
        mf.fuse(lambda x, n: np.array([n, None], dtype=object))(X, 3)


def test_the_size_of_a_tensor_computes_with_a_traced_number():
    function = mf.fuse(lambda x, number: (x * (x.size * number), x * (number + x.size)))
    for number in (2.0, 3.0):
        times, plus = function(mf.ones(4), number)
        assert (times.tolist(), plus.tolist()) == ([4 * number] * 4, [4 + number] * 4)
    assert function.stats().captures == 1
