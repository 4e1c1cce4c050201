"""core.scalar: the operator table and backpropagation on one number."""

import gc
import math
import operator
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.core.errors import GradientError
from minifuse.core.operators import TABLE
from minifuse.core.scalar import Scalar

DIFFERENTIABLE = [e for e in TABLE.values() if (e.vjp or not e.is_primitive) and e.name not in ("isnan", "detach", "where")]


@pytest.mark.parametrize("entry", DIFFERENTIABLE)
def test_every_operator_has_the_gradient_of_a_tensor(entry):
    numbers = [0.7, 1.3, 0.9][: entry.arity] if entry.name != "clip" else [0.7, 0.1, 0.9]
    scalars = [Scalar(x) for x in numbers]
    tensors = [mf.tensor(x, dtype="float64", backend="python", requires_grad=True) for x in numbers]
    y, z = entry(*scalars), entry(*tensors)
    y.backward()
    z.backward()
    assert y.item() == pytest.approx(z.item(), rel=1e-14)
    for x, t in zip(scalars, tensors, strict=True):
        assert (x.grad or 0) == pytest.approx(t.grad.item() if t.grad is not None else 0, rel=1e-14)


@given(st.floats(-3, 3), st.floats(0.1, 3))
def test_gradients_are_slopes(a, b):
    def f(a, b):
        return mf.sigmoid(a * b) + mf.log1p(mf.exp(-a)) / b - mf.tanh(a) ** 2

    x, y = Scalar(a), Scalar(b)
    f(x, y).backward()
    h = 1e-6
    assert x.grad == pytest.approx((f(a + h, b) - f(a - h, b)) / (2 * h), rel=1e-5, abs=1e-8)
    assert y.grad == pytest.approx((f(a, b + h) - f(a, b - h)) / (2 * h), rel=1e-5, abs=1e-8)


def test_numbers_are_allowed_on_either_side():
    x = Scalar(4.0)
    for y, value, slope in (
        (2 * x, 8, 2),
        (1 / x, 0.25, -1 / 16),
        (3 - x, -1, -1),
        (2**x, 16, 16 * math.log(2)),
        (x**0.5, 2, 0.25),
    ):
        x.grad = None
        y.backward()
        assert (y.item(), x.grad) == (pytest.approx(value), pytest.approx(slope))


def test_a_scalar_is_a_number():
    x = Scalar(2)
    assert (x.data, x.item(), float(x), bool(x), bool(Scalar(0.0))) == (2.0, 2.0, 2.0, True, False)
    assert type(x.data) is float
    assert repr(x) == "Scalar(2.0)"
    assert repr(x * 1.5) == "Scalar(3.0)"
    assert [bool(v) for v in (x < 3, x > 3, x <= 2, x >= 2)] == [True, False, True, True]
    assert max(Scalar(1.0), Scalar(5.0), Scalar(3.0)).item() == 5
    assert mf.where(x > 1, x, 0).item() == 2


@pytest.mark.parametrize("two", [2, 2.0, True + 1, np.float32(2), np.float64(2), np.int64(2), Scalar(2.0)])
def test_equality_compares_the_values(two):
    x = Scalar(2.0)
    for y, expected in ((x == two, 1.0), (two == x, 1.0), (x != two, 0.0), (two != x, 0.0)):
        assert type(y) is Scalar
        assert (y.data, bool(y), y.requires_grad) == (expected, bool(expected), False)
    assert (x + 1 == two).data == 0
    assert (x + 1 != two).data == 1


def test_equality_follows_ieee_754():
    nan = Scalar(math.nan)
    assert (nan == nan).data == 0
    assert (nan != nan).data == 1
    assert Scalar(0.0) == Scalar(-0.0)
    assert Scalar(math.inf) == math.inf
    assert Scalar(1.0) == True  # noqa: E712
    assert Scalar(1.0) == np.True_


@pytest.mark.parametrize("other", [None, "2.0", 2j, (2.0,), [2.0], object()], ids=lambda x: type(x).__name__)
def test_a_scalar_never_equals_an_object_that_is_no_number(other):
    x = Scalar(2.0)
    assert (x == other, other == x, x != other, other != x) == (False, False, True, True)


def test_equality_with_an_array_compares_each_element():
    assert (np.array([1.0, 2.0]) == Scalar(2.0)).tolist() == [False, True]
    assert (Scalar(2.0) == np.array([1.0, 2.0])).tolist() == [False, True]


@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt])
def test_a_comparison_with_a_tensor_is_an_error(compare):
    with pytest.raises(mf.DTypeError, match="Scalar"):
        compare(Scalar(2.0), mf.tensor(2.0))
    with pytest.raises(mf.DTypeError, match="Scalar"):
        compare(mf.tensor(2.0), Scalar(2.0))


def test_scalars_are_keys_by_identity():
    a, b = Scalar(2.0), Scalar(2.0)
    found = {a: "a", b: "b"}
    assert (found[a], found[b], len({a, b})) == ("a", "b", 2)
    assert hash(a) == object.__hash__(a)


def test_equal_leaves_receive_their_own_gradients():
    a, b = Scalar(2.0), Scalar(2.0)
    (a * 3 + b * 5).backward()
    assert (a.grad, b.grad) == (3, 5)


def test_branches_in_python_follow_the_values():
    def collatz_like(x):
        while x > 1:
            x = x / 2 if x > 3 else x - 1
        return x

    x = Scalar(9.0)
    collatz_like(x).backward()  # 9 / 2 / 2 - 1 - 1
    assert x.grad == 0.25


def test_gradients_add_up():
    x = Scalar(3.0)
    (x * x).backward()
    (x * 2).backward()
    assert x.grad == 8
    assert type(x.grad) is float


def test_a_second_backward_explains_itself():
    x = Scalar(3.0)
    y = x * x
    y.backward()
    with pytest.raises(GradientError, match="freed its saved values"):
        y.backward()
    z = x * x
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad == 18


def test_derivatives_of_derivatives():
    x = Scalar(0.7)
    y = mf.exp(x) * mf.sin(x)
    y.backward(create_graph=True)
    for expected in (2 * math.exp(0.7) * math.cos(0.7), 2 * math.exp(0.7) * (math.cos(0.7) - math.sin(0.7))):
        g, x.grad = x.grad, None
        assert isinstance(g, Scalar)
        g.backward(create_graph=True)
        assert x.grad.item() == pytest.approx(expected)


def test_scalars_without_requires_grad_get_no_gradient():
    x, c = Scalar(3.0), Scalar(4.0, requires_grad=False)
    y = x * c
    y.backward()
    assert (x.grad, c.grad) == (4, None)
    with mf.no_grad():
        assert not (x * 2).requires_grad
    assert not (x > 2).requires_grad
    assert not (c * 2).requires_grad


def test_poles_are_infinities_and_not_errors():
    with np.errstate(all="raise"):  # it does not depend on the caller's state
        assert (1 / Scalar(0.0)).item() == math.inf
        assert math.isnan(mf.log(Scalar(-1.0)).item())
        assert mf.exp(Scalar(1000.0)).item() == math.inf


@pytest.mark.parametrize("function", [mf.sqrt, mf.log, lambda x: 1 - 1 / x])
@pytest.mark.parametrize("create_graph", [False, True])
def test_slopes_at_poles_are_infinities_and_not_errors(function, create_graph):
    x = Scalar(0.0)
    function(x).backward(create_graph=create_graph)
    assert float(x.grad) == math.inf


def test_a_graph_holds_no_circle_after_backward():
    gc.collect()
    gc.disable()
    try:
        x = Scalar(2.0)
        y = mf.exp(x) * x
        seen = weakref.ref(y)
        y.backward()
        del y
        assert seen() is None
    finally:
        gc.enable()
