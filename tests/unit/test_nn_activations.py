"""nn activations as in PyTorch, forward and backward, and finite derivatives at poles of their formulas."""

import math

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError
from minifuse.testing import gradcheck
from tests.nn.agreement import BACKENDS, near, smooth, ways
from tests.nn.cases import ACTIVATIONS
from tests.nn.recorded import load

FUNCTIONS = {
    "leaky_relu": lambda x: nn.leaky_relu(x, 0.3),
    "gelu": nn.gelu,
    "gelu by tanh": lambda x: nn.gelu(x, "tanh"),
    "silu": nn.silu,
    "softplus": lambda x: nn.softplus(x, 1.5),
    "elu": lambda x: nn.elu(x, 1.5),
    "softmax": lambda x: nn.softmax(x, 0),
    "log_softmax": lambda x: nn.log_softmax(x, 1),
}


def made(name):
    kind, settings = ACTIVATIONS[name]
    return getattr(nn, kind)(**settings)


@pytest.mark.sampled(3, each="name")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_torch(name, backend):
    table = load("layers")
    for run in ways(made(name).forward):
        x = mf.tensor(table["activations/x"], backend=backend, requires_grad=True)
        y = run(x)
        assert y.dtype is mf.float32
        near(y, table[f"{name}/y"])
        y.backward(mf.tensor(table["activations/g"], backend=backend))
        near(x.grad, table[f"{name}/gx"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_first_and_second_order(name):
    for run in ways(FUNCTIONS[name]):
        assert gradcheck(run, smooth(3, 5), second=True)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"log_softmax", "softmax"}))
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_arrays_in_any_order(name, order):
    """Past the edges of blocks; elements are judged by the same of few."""
    x = np.sin(np.arange(70_001.0)).astype(np.float32)[:70_000].reshape(700, 100, order=order)
    y = FUNCTIONS[name](mf.from_numpy(x))
    near(y[-1:], FUNCTIONS[name](mf.tensor(x[-1:])).numpy())
    assert y.strides == mf.from_numpy(x).strides


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", ["leaky", "gelu", "gelu by tanh", "silu", "softplus", "softplus sharp", "elu", "elu deep"])
@pytest.mark.parametrize("x", [-1e30, -1e4, -200.0, 200.0, 1e4, 1e12, 1e30])
def test_nothing_overflows(name, x):
    at = mf.tensor([x], requires_grad=True)
    y = made(name)(at)
    y.backward(mf.ones(1))
    assert math.isfinite(y.item())
    assert math.isfinite(at.grad.item())
    if x > 0:
        assert (y.item(), at.grad.item()) == (pytest.approx(x), pytest.approx(1))
    if x < 0 and name != "leaky":
        assert abs(at.grad.item()) < 1e-30


@pytest.mark.parametrize(
    ("function", "value", "first", "second"),
    [
        (nn.softplus, math.log(2), 0.5, 0.25),
        (lambda x: nn.softplus(x, 3.0), math.log(2) / 3, 0.5, 0.75),
        (lambda x: nn.elu(x, 2.0), 0, 2, 2),
        (nn.silu, 0, 0.5, 0.5),
        (lambda x: nn.leaky_relu(x, 0.25), 0, 0.25, 0),
    ],
)
def test_derivatives_at_zero_are_those_of_one_side(function, value, first, second):
    x = mf.tensor(0.0, dtype="float64")
    assert function(x).item() == pytest.approx(value)
    assert mf.grad(function)(x).item() == pytest.approx(first)
    assert mf.grad(mf.grad(function))(x).item() == pytest.approx(second)


def test_elu_keeps_all_digits_near_zero():
    x = -np.logspace(-30, 0, 31)
    np.testing.assert_allclose(nn.elu(mf.tensor(x, "float32")).numpy(), np.expm1(x), rtol=1e-6)
    np.testing.assert_allclose(nn.elu(mf.tensor(x)).numpy(), np.expm1(x), rtol=4e-15)


def test_nan_stays_nan():
    x = mf.tensor([math.nan])
    assert all(np.isnan(made(name)(x).item()) for name in ACTIVATIONS if "softmax" not in name)


def test_parameters_of_activations_may_be_arguments_of_a_fused_call():
    run = mf.fuse(lambda x, slope: nn.leaky_relu(x, slope) + nn.softplus(x, slope + 1) + nn.elu(x, slope))
    for slope in (0.1, 0.2, 0.7):
        near(run(mf.tensor([-2.0, 2.0]), slope), run.function(mf.tensor([-2.0, 2.0]), slope).numpy())
    assert run.stats().calls == 1


def test_an_activation_is_one_kernel():
    for name, function in FUNCTIONS.items():
        assert mf.fuse(function).explain(mf.ones(3, 5)).unfused.launches == 1, name


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"gelu", "softmax", "log_softmax"}))
def test_integers_are_refused(name):
    with pytest.raises(DTypeError, match="got dtype int64, expected floats"):
        FUNCTIONS[name](mf.arange(4).reshape(2, 2))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_things_than_tensors_are_refused(name):
    with pytest.raises(DTypeError, match="expected a tensor, got list"):
        FUNCTIONS[name]([1.0])


def test_an_unknown_form_of_gelu():
    with pytest.raises(ValueError, match=r"approximate='erf', expected \"none\" or \"tanh\""):
        nn.gelu(mf.ones(1), "erf")


def test_representations_are_those_of_torch():
    words = "ReLU() Tanh() Sigmoid() LeakyReLU(negative_slope=0.01) GELU(approximate='none') SiLU() ELU(alpha=1.0)"
    modules = [nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.LeakyReLU(), nn.GELU(), nn.SiLU(), nn.ELU()]
    assert " ".join(map(repr, modules)) == words
    assert [repr(m) for m in (nn.Softmax(1), nn.LogSoftmax(-1))] == ["Softmax(dim=1)", "LogSoftmax(dim=-1)"]
    assert repr(nn.Softplus()) == "Softplus(beta=1.0)"
