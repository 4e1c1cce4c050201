"""nn losses between numbers as in PyTorch, forward and backward."""

import math

import pytest

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError, ShapeError
from minifuse.testing import gradcheck
from tests.nn.agreement import BACKENDS, near, smooth, ways
from tests.nn.cases import COMPARED, NUMBERS
from tests.nn.recorded import load

LOSSES = {
    "mse": nn.mse_loss,
    "l1": nn.l1_loss,
    "huber": lambda x, y, **named: nn.huber_loss(x, y, delta=0.4, **named),
    "smooth_l1": lambda x, y, **named: nn.smooth_l1_loss(x, y, beta=0.4, **named),
}


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [name for name in NUMBERS if "bce" not in name])
def test_losses_are_those_of_torch(name, backend):
    kind, settings = NUMBERS[name]
    table = {key.removeprefix(f"{name}/"): x for key, x in load("losses").items() if key.startswith(f"{name}/")}
    for run in ways(getattr(nn, kind)(**settings).forward):
        x, y = (mf.tensor(table[key], backend=backend, requires_grad=True) for key in "xy")
        loss = run(x, y)
        near(loss, table["loss"], math.prod(COMPARED))
        loss.backward(mf.tensor(table["g"], backend=backend))
        near(x.grad, table["gx"], math.prod(COMPARED))
        near(y.grad, -table["gx"], math.prod(COMPARED))


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_first_and_second_order(name):
    for reduction in ("mean", "none"):
        function = lambda x, y, reduction=reduction: LOSSES[name](x, y, reduction=reduction)  # noqa: E731
        assert gradcheck(function, smooth(3, 5), smooth(3, 5, phase=0.27), second=reduction == "none")


@pytest.mark.parametrize("name", LOSSES)
def test_a_difference_far_away_does_not_overflow(name):
    x = mf.tensor([1e30], requires_grad=True)
    loss = LOSSES[name](x, mf.tensor([0.0]))
    loss.backward()
    assert math.isfinite(x.grad.item())
    assert math.isfinite(loss.item()) == (name != "mse")


@pytest.mark.parametrize(("name", "slope"), [("l1", 1), ("huber", 0.4), ("smooth_l1", 1)])
def test_an_infinite_difference_has_the_slope_of_the_line(name, slope):
    x = mf.tensor([math.inf, -math.inf], requires_grad=True)
    loss = LOSSES[name](x, mf.zeros(2), reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [math.inf] * 2
    assert x.grad.tolist() == pytest.approx([slope, -slope])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("y", [mf.zeros(3), mf.zeros(1, 3), 0.0])
def test_nothing_is_broadcast(name, y):
    with pytest.raises(ShapeError, match=rf"{name}_loss: got shapes \(3, 1\) and"):
        LOSSES[name](mf.zeros(3, 1), y)


@pytest.mark.parametrize("name", LOSSES)
def test_mismatched_shapes_are_errors(name):
    loss = LOSSES[name]
    with pytest.raises(DTypeError, match="got dtypes float32 and float64, expected one float dtype"):
        loss(mf.zeros(3), mf.zeros(3, dtype="float64"))
    with pytest.raises(DTypeError, match="got dtypes int64 and int64"):
        loss(mf.arange(3), mf.arange(3))
    with pytest.raises(DTypeError, match=f"{name}_loss: expected a tensor, got float"):
        loss(1.0, mf.zeros(3))
    with pytest.raises(ValueError, match="reduction='avg', expected"):
        loss(mf.zeros(4), mf.zeros(4), reduction="avg")


def test_widths_out_of_range():
    for delta in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=r"got delta=.*, expected greater than 0"):
            nn.huber_loss(mf.zeros(1), mf.zeros(1), delta=delta)
    for beta in (-1.0, math.nan):
        with pytest.raises(ValueError, match=r"got beta=.*, expected at least 0"):
            nn.smooth_l1_loss(mf.zeros(1), mf.zeros(1), beta=beta)
