"""Views on every backend: what is seen, what its gradient is, and what a kernel makes of it. NumPy is the judge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.compiler.plan import call
from minifuse.testing import assert_close, layouts, shapes
from tests.examples import share

from .meanings import BACKENDS, collected

every_backend = pytest.mark.parametrize("backend", BACKENDS)

INDICES = [
    1,
    -1,
    (2, 1),
    (1, 2, 3),
    slice(None),
    slice(1, 3),
    slice(None, None, -1),
    slice(None, None, 2),
    slice(4, 0, -3),
    slice(7, 2),
    (slice(None), 2),
    (..., 0),
    (0, ..., -1),
    (None, 1),
    (slice(1, None), None, slice(None, None, -2), None, slice(0, 0)),
    (..., None),
    (None, slice(None, None, -2), 3, ..., slice(1, 4, 2)),
]
# A method, and the same with NumPy.
METHODS = {
    "permute(2, 0, 1)": (lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "permute(-1, 0, -2)": (lambda x: x.permute(-1, 0, -2), lambda a: a.transpose(2, 0, 1)),
    "transpose(0, -1)": (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, -1)),
    "T": (lambda x: x.T, lambda a: a.T),
    "mT": (lambda x: x.mT, lambda a: a.swapaxes(-1, -2)),
    "expand(2, 5, -1, 6)": (lambda x: x.expand(2, 5, -1, 6), lambda a: np.broadcast_to(a, (2, 5, 4, 6))),
    "reshape(20, -1)": (lambda x: x.reshape(20, -1), lambda a: a.reshape(20, -1)),
    "reshape(3, 2, 20)": (lambda x: x.reshape(3, 2, 20), lambda a: a.reshape(3, 2, 20)),
    "flatten()": (lambda x: x.flatten(), lambda a: a.reshape(-1)),
    "flatten(1)": (lambda x: x.flatten(1), lambda a: a.reshape(5, 24)),
    "flatten(0, 1)": (lambda x: x.flatten(0, 1), lambda a: a.reshape(20, 6)),
    "unsqueeze(-2)": (lambda x: x.unsqueeze(-2), lambda a: np.expand_dims(a, 2)),
    "squeeze": (lambda x: x[:, :1].squeeze(), lambda a: a[:, 0]),
    "squeeze(1)": (lambda x: x[:1, :1].squeeze(1), lambda a: a[:1, 0]),
    "flip(0, 2)": (lambda x: x.flip(0, 2), lambda a: np.flip(a, (0, 2))),
    "T.reshape": (lambda x: x.T.reshape(8, 15), lambda a: a.T.reshape(8, 15)),
    "flip.flatten": (lambda x: x.flip(1).flatten(), lambda a: np.flip(a, 1).reshape(-1)),
    "expand.reshape": (lambda x: x[:, :1].expand(5, 3, 6).reshape(15, 6), lambda a: a[:, [0, 0, 0]].reshape(15, 6)),
    "contiguous": (lambda x: x.T.contiguous(), lambda a: a.T),
    "clone": (lambda x: x[::-2].clone(), lambda a: a[::-2]),
}


def check(see, see_with_numpy, shape, backend):
    """The values, and their gradient; seen by the user, in a captured function, and of what is not in memory yet."""
    a = np.random.default_rng(0).uniform(0.5, 2.0, shape)
    places = see_with_numpy(np.arange(a.size).reshape(shape))
    for function, value, slope in [
        (see, lambda v: v, lambda v: v * 0 + 1),
        (lambda x: see(x * x), lambda v: v * v, lambda v: 2 * v),
    ]:
        for run in (lambda f, x: f(x), call):
            x = mf.tensor(a, backend=backend, requires_grad=True)
            y = run(function, x)
            assert y.shape == places.shape
            assert_close(y, value(a).reshape(-1)[places], "exact")
            weights = np.random.default_rng(1).uniform(0.5, 1.5, y.shape)
            y.backward(mf.tensor(weights, backend=backend))
            assert_close(x.grad, collected(places, weights, shape) * slope(a), "composed")


@pytest.mark.sampled(2, each="index")
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing(index, backend):
    entries = index if isinstance(index, tuple) else (index,)
    whole = entries if Ellipsis in entries else (*entries, ...)
    check(lambda x: x[index], lambda a: a[whole], (5, 4, 6), backend)


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", METHODS)
def test_methods(name, backend):
    check(*METHODS[name], (5, 4, 6), backend)


@every_backend
@share(0.3)
@given(st.data())
def test_chains_of_views(backend, data):
    recipe = data.draw(shapes(max_dims=3).flatmap(layouts))
    check(recipe, recipe, recipe.base, backend)


@share(6)
@given(shapes().flatmap(layouts))
def test_views_equal_numpys(recipe):
    """Without kernels, and so of many more."""
    a = np.arange(int(np.prod(recipe.base))).reshape(recipe.base)
    x = recipe(mf.tensor(a))
    np.testing.assert_array_equal(x.numpy(), recipe(a))
    strides = [s // 8 for n, s in zip(x.shape, recipe(a).strides, strict=True) if n > 1]
    assert x.size == 0 or strides == [s for n, s in zip(x.shape, x.strides, strict=True) if n > 1]


@every_backend
@share(0.3)
@given(st.data())
def test_second_derivatives_through_views(backend, data):
    """Of the sum of cubes of what is seen: 6 x, as often as it is seen."""
    recipe = data.draw(shapes(max_dims=3).flatmap(layouts))
    a = np.random.default_rng(0).uniform(0.5, 2.0, recipe.base)
    places = recipe(np.arange(a.size).reshape(a.shape))
    cubes = lambda x: (recipe(x) * recipe(x) * recipe(x)).sum()  # noqa: E731
    first = mf.grad(cubes)
    found = mf.grad(lambda x: first(x).sum())(mf.tensor(a, backend=backend))
    assert_close(found, 6 * a * collected(places, np.ones(places.shape), a.shape), "composed")
