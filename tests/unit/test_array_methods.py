"""ir.array_methods: views, reductions and protocols that tensors and graph nodes share, against NumPy, eager and traced."""

import math

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler.plan import Plan
from minifuse.core.errors import ShapeError
from minifuse.ir.array_methods import MAX_CACHED_CALLS, reduction, reshape_view

ARRAY = np.arange(120.0).reshape(4, 5, 6)


def captured(function, *inputs):
    """The result of a function that is captured whole, so that its methods are those of nodes."""
    return Plan(function, inputs).run(*inputs)


# Views

VIEWS = {
    "permute": (lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "permute, a tuple": (lambda x: x.permute((1, -1, 0)), lambda a: a.transpose(1, 2, 0)),
    "permute, a list": (lambda x: x.permute([0, 2, 1]), lambda a: a.transpose(0, 2, 1)),
    "transpose": (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    "transpose of itself": (lambda x: x.transpose(1, 1), lambda a: a),
    "T": (lambda x: x.T, lambda a: a.T),
    "mT": (lambda x: x.mT, lambda a: a.swapaxes(-1, -2)),
    "flatten": (lambda x: x.flatten(), lambda a: a.ravel()),
    "flatten some": (lambda x: x.flatten(1), lambda a: a.reshape(4, 30)),
    "flatten others": (lambda x: x.flatten(0, -2), lambda a: a.reshape(20, 6)),
    "squeeze": (lambda x: x[:1, :, :1].squeeze(), lambda a: a[0, :, 0]),
    "squeeze one": (lambda x: x[:1, :, :1].squeeze(0), lambda a: a[0, :, :1]),
    "squeeze what is larger": (lambda x: x.squeeze(1), lambda a: a),
    "squeeze two": (lambda x: x[:1, :, :1].squeeze((0, -1)), lambda a: a[0, :, 0]),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    "unsqueeze at the end": (lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "flip": (lambda x: x.flip(0), lambda a: a[::-1]),
    "flip two": (lambda x: x.flip(0, -1), lambda a: a[::-1, :, ::-1]),
    "flip a tuple": (lambda x: x.flip((1, 2)), lambda a: a[:, ::-1, ::-1]),
    "expand": (lambda x: x[:, :1].expand(4, 3, 6), lambda a: np.broadcast_to(a[:, :1], (4, 3, 6))),
    "expand, -1": (lambda x: x[:, :1].expand(2, -1, 3, -1), lambda a: np.broadcast_to(a[:, :1], (2, 4, 3, 6))),
    "expand, a tuple": (lambda x: x.expand((2, 4, 5, 6)), lambda a: np.broadcast_to(a, (2, 4, 5, 6))),
    "reshape": (lambda x: x.reshape(2, -1, 3), lambda a: a.reshape(2, -1, 3)),
    "reshape, a list": (lambda x: x.reshape([20, 6]), lambda a: a.reshape(20, 6)),
    "reshape after T": (lambda x: x.T.reshape(-1), lambda a: a.T.ravel()),
    "integer": (lambda x: x[1], lambda a: a[1]),
    "negative": (lambda x: x[-1, -2], lambda a: a[-1, -2]),
    "NumPy integer": (lambda x: x[np.int64(2)], lambda a: a[2]),
    "slices": (lambda x: x[1:3, ::-2, :-1], lambda a: a[1:3, ::-2, :-1]),
    "ellipsis": (lambda x: x[..., 2], lambda a: a[..., 2]),
    "None": (lambda x: x[None, :, 1, None], lambda a: a[None, :, 1, None]),
    "all": (lambda x: x[...], lambda a: a),
    "nothing": (lambda x: x[2:2, 1:], lambda a: a[2:2, 1:]),
    "element": (lambda x: x[1, 2, 3], lambda a: a[1, 2, 3]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_numpys(name):
    function, expected = VIEWS[name]
    x, wanted = mf.tensor(ARRAY), np.asarray(expected(ARRAY))
    y = function(x)
    assert y.shape == wanted.shape
    np.testing.assert_array_equal(y.numpy(), wanted)
    if name != "reshape after T":
        assert y.buffer is x.buffer
    z = captured(lambda x: function(x) + 1, x)
    assert z.shape == wanted.shape
    np.testing.assert_array_equal(z.numpy(), wanted + 1)


def test_identity_views_return_the_same_tensor():
    x = mf.tensor(ARRAY)
    assert x.reshape(4, 5, 6) is x.expand(4, 5, 6) is x[...] is x[:] is x.to(mf.float64) is x
    zero = mf.tensor(1.0)
    assert zero.flatten().shape == (1,)
    assert zero.unsqueeze(0).shape == (1,)
    assert zero.T.shape == zero.permute().shape == zero.squeeze().shape == ()


# Folds

FOLDS = ["sum", "prod", "max", "min", "mean", "any", "all"]
DIMS = [None, 0, -1, (0, 1), (2, 0), [1, 2], (0, 1, 2), ()]


@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.parametrize("name", FOLDS)
def test_reductions_equal_numpy(name, dim):
    array = (ARRAY % 7 - 3) / 2
    axis = tuple(dim) if isinstance(dim, list) else dim
    for keepdim in (False, True):
        y = getattr(mf.tensor(array), name)(dim, keepdim)
        expected = getattr(array, name)(axis=axis, keepdims=keepdim)
        assert y.shape == expected.shape
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("correction", [0, 1, 2])
def test_variance_and_deviation(correction):
    x = mf.tensor(ARRAY)
    np.testing.assert_allclose(x.var(1, correction), ARRAY.var(1, ddof=correction), rtol=1e-12)
    np.testing.assert_allclose(
        x.std((0, 2), correction, keepdim=True), ARRAY.std((0, 2), ddof=correction, keepdims=True), rtol=1e-12
    )
    np.testing.assert_allclose(x.var(), ARRAY.var(ddof=1), rtol=1e-12)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_positions_are_the_first(name, dim):
    array = ARRAY.copy() % 4  # many ties
    x = mf.tensor(array)
    expected = getattr(array, name)(axis=dim)
    y = getattr(x, name)(dim)
    assert y.dtype is mf.int64
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(getattr(x, name)(dim, keepdim=True), getattr(array, name)(axis=dim, keepdims=True))
    array[2, 3, 1:] = np.nan
    np.testing.assert_array_equal(getattr(mf.tensor(array), name)(dim), getattr(array, name)(axis=dim))


def test_a_position_of_integers_and_bools():
    assert mf.tensor([3, 9, 9, 1]).argmax().item() == 1
    assert mf.tensor([False, True, True]).argmax().item() == 1
    assert mf.tensor([True, False]).argmin().item() == 1


@pytest.mark.parametrize(
    ("dtype", "sum_dtype", "mean_dtype"),
    [
        ("bool", "int64", "float64"),
        ("int32", "int64", "float64"),
        ("int64", "int64", "float64"),
        ("float32", "float32", "float32"),
        ("float64", "float64", "float64"),
    ],
)
def test_dtypes_of_reductions(dtype, sum_dtype, mean_dtype):
    x = mf.ones(3, dtype=dtype)
    assert (x.sum().dtype.name, x.prod().dtype.name, x.mean().dtype.name) == (sum_dtype, sum_dtype, mean_dtype)
    assert (x.max().dtype.name, x.any().dtype.name) == (dtype, "bool")
    assert (x.sum().item(), x.mean().item(), x.max().item()) == (3, 1, 1)


def test_reductions_of_empty_arrays():
    x = mf.zeros(3, 0)
    assert x.sum().item() == 0
    assert x.prod(1).tolist() == [1, 1, 1]
    assert (x.any().item(), x.all().item()) == (False, True)
    assert math.isnan(x.mean().item())
    assert math.isnan(mf.ones(1).var().item())
    assert x.sum(0).shape == (0,)
    assert x.max(0).shape == (0,)
    assert x.softmax(1).shape == (3, 0)
    assert x.logsumexp(1).tolist() == [-math.inf] * 3


def test_softmax_and_its_kin_do_not_overflow():
    array = np.array([[1000.0, 1001.0, 999.0], [-1000.0, -1001.0, -np.inf], [0.0, 1.0, 2.0]])
    x, largest = mf.tensor(array), array.max(1, keepdims=True)
    e = np.exp(array - largest)
    np.testing.assert_allclose(x.softmax(1), e / e.sum(1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(x.log_softmax(-1), array - largest - np.log(e.sum(1, keepdims=True)), rtol=1e-12)
    np.testing.assert_allclose(x.logsumexp(1), (largest + np.log(e.sum(1, keepdims=True)))[:, 0], rtol=1e-12)
    assert x.logsumexp().item() == pytest.approx(1001 + math.log(1 + math.exp(-1) + math.exp(-2)))
    assert mf.tensor([math.inf, 1.0]).logsumexp().item() == math.inf
    assert mf.tensor([-math.inf, -math.inf]).logsumexp().item() == -math.inf


def test_reductions_propagate_nan():
    x = mf.tensor([[1.0, math.nan], [2.0, 3.0]])
    for y in (x.sum(1), x.max(1), x.min(1), x.mean(1), x.prod(1)):
        assert np.isnan(y.numpy()).tolist() == [True, False]


def test_ties_share_the_gradient_of_an_extreme():
    x = mf.tensor([[1.0, 3.0, 3.0], [2.0, 1.0, 0.0]], requires_grad=True)
    x.max(1).sum().backward()
    assert x.grad.tolist() == [[0, 0.5, 0.5], [1, 0, 0]]
    x.grad = None
    x.min().backward()
    assert x.grad.tolist() == [[0, 0, 0], [0, 0, 1]]


# Python's protocols


def test_length_iteration_and_membership():
    x = mf.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[1, 2], [3, 4], [5, 6]]
    _, _, last = x
    assert last.tolist() == [5, 6]
    assert 4 in x
    assert 7 not in x
    assert 1.0 not in mf.zeros(0)
    with pytest.raises(ShapeError, match=r"len: a 0-d array"):
        len(x[0, 0])


@pytest.mark.parametrize("exponent", [2, 2.0, 3, 0.5, -1, -1.0, -2, 0, 1, 1.5])
def test_powers_by_the_cheaper_operators(exponent):
    array = np.array([0.25, 1.0, 2.5, 9.0])
    x = mf.tensor(array, requires_grad=True)
    y = x**exponent
    np.testing.assert_allclose(y.detach(), array**exponent, rtol=1e-12)
    y.sum().backward()
    np.testing.assert_allclose(x.grad, exponent * array ** (exponent - 1), rtol=1e-12)


def test_which_powers_are_cheaper():
    x = mf.ones(3)
    texts = {e: mf.source(lambda x, e=e: x**e, x) for e in (2, 3, 0.5, -1, 5)}
    assert [("pow(" in texts[e]) for e in texts] == [False, False, False, False, True]
    assert "sqrt(" in texts[0.5]
    assert " / " in texts[-1]


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, 1.5])
@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "float32"])
def test_powers_have_numpys_dtypes(dtype, exponent):
    array = np.array([1, 0, 1]).astype(dtype)
    y = mf.tensor(array) ** exponent
    assert y.tolist() == (array**exponent).tolist()
    assert y.dtype.numpy == np.result_type(array, exponent)


def test_comparisons_are_elementwise_and_tensors_are_keys():
    x, y = mf.tensor([1.0, 2.0, 3.0]), mf.tensor([1.0, 5.0, 2.0])
    for symbol in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
        for other in (y, 2, 2.0):
            expected = getattr(x.numpy(), symbol)(other.numpy() if isinstance(other, mf.Tensor) else other)
            assert getattr(x, symbol)(other).tolist() == expected.tolist()
    assert (2 < x).tolist() == [False, False, True]  # noqa: SIM300  # the number stands on the left
    assert {x: "x", y: "y"}[x] == "x"


# Keys that are remembered


def test_the_composite_of_a_call_is_remembered():
    x = mf.ones(2, 3)
    before = reduction.cache_info().misses
    for _ in range(5):
        x.sum(1)
        x.mean((0, 1))
    assert reduction.cache_info().misses - before <= 2
    assert reduction.cache_info().maxsize == reshape_view.cache_info().maxsize == MAX_CACHED_CALLS


def test_equal_keys_of_other_types_are_not_mixed_up():
    x = mf.ones(2, 3)
    x.sum(1)
    x.reshape(1, 6)
    with pytest.raises(ShapeError, match="a dim is an integer, got True"):
        x.sum(True)
    with pytest.raises(ShapeError, match=r"a dim is an integer, got 1\.0"):
        x.sum(1.0)
    with pytest.raises(ShapeError, match="sizes are integers"):
        x.reshape(True, 6)
    with pytest.raises(ShapeError, match="sizes are integers"):
        x.reshape(1.0, 6.0)
    assert x.sum(dim=1, keepdim=1).shape == (2, 1)
