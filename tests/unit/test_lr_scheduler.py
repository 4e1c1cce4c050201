"""optim.lr_scheduler against the rates that PyTorch sets, states, errors; and averages of models."""

import json

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import FuseError
from tests.nn.record_schedulers import CASES, STEPS, metric, rows
from tests.nn.recorded import load

TABLE = load("schedulers")
SCHEDULERS = mf.optim.lr_scheduler


@pytest.fixture(autouse=True)
def on_the_python_backend():
    with mf.use_backend("python"):
        yield


def optimizer(kind="SGD", **settings):
    return getattr(mf.optim, kind)([{"params": [mf.ones(1, requires_grad=True)], "lr": lr} for lr in (1.0, 0.1)], **settings)


@pytest.mark.parametrize("name", CASES)
def test_rates_and_momenta_are_those_of_pytorch(name):
    found = rows(SCHEDULERS, optimizer(momentum=0.9), CASES[name])
    np.testing.assert_allclose(found, TABLE[name], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", [name for name in CASES if name != "lambda"])
def test_a_state_goes_on(name):
    def step(scheduler, k):
        is_plateau = isinstance(scheduler, SCHEDULERS.ReduceLROnPlateau)
        scheduler.step(*[metric(k)] if is_plateau else [])

    before, after = (optimizer(momentum=0.9) for _ in range(2))
    one, other = CASES[name](SCHEDULERS, before), CASES[name](SCHEDULERS, after)
    for k in range(4):
        step(one, k)
    after.load_state_dict(before.state_dict())
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    for k in range(4, STEPS):
        assert [group["lr"] for group in after.param_groups] == pytest.approx(TABLE[name][k][::2])
        step(other, k)


def test_a_momentum_may_be_that_of_betas():
    one = optimizer("Adam")
    scheduler = SCHEDULERS.OneCycleLR(one, 0.5, 10)
    scheduler.step()
    assert one.param_groups[0]["betas"][0] < 0.95
    assert one.param_groups[0]["betas"][1] == 0.999
    with pytest.raises(ValueError, match="has no momentum; write cycle_momentum=False"):
        SCHEDULERS.CyclicLR(optimizer("Adagrad"), 0.1, 0.5)


def test_a_group_may_be_added_and_a_step_repeated():
    one = optimizer()
    scheduler = SCHEDULERS.ExponentialLR(one, 0.5)
    scheduler.step()
    one.add_param_group({"params": [mf.ones(1, requires_grad=True)], "lr": 8.0})
    scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([0.25, 0.025, 2.0])
    scheduler.step(1)
    assert (scheduler.get_last_lr(), scheduler.last_epoch) == (pytest.approx([0.5, 0.05, 4.0]), 1)
    assert repr(scheduler) == "ExponentialLR(last_epoch=1, lr=[0.5, 0.05, 4.0])"


def test_a_rate_that_was_changed_by_hand_is_multiplied():
    one = optimizer()
    scheduler = SCHEDULERS.ExponentialLR(one, 0.5)
    one.param_groups[0]["lr"] = 3.0
    scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([1.5, 0.05])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda o: SCHEDULERS.LambdaLR(o, [len]), "got 1 values, expected 2"),
        (lambda o: SCHEDULERS.ConstantLR(o, 2.0), "got factor=2.0"),
        (lambda o: SCHEDULERS.LinearLR(o, 0.0), "got factors 0.0 and 1.0"),
        (lambda o: SCHEDULERS.CosineAnnealingWarmRestarts(o, 0), "got T_0=0"),
        (lambda o: SCHEDULERS.CyclicLR(o, 0.1, 0.5, mode="round"), "got mode='round'"),
        (lambda o: SCHEDULERS.OneCycleLR(o, 0.5), "expected total_steps, or both"),
        (lambda o: SCHEDULERS.OneCycleLR(o, 0.5, 3, anneal_strategy="x"), "expected cos or linear"),
        (lambda o: SCHEDULERS.ReduceLROnPlateau(o, factor=1.0), "got factor=1.0, expected less than 1"),
        (lambda o: SCHEDULERS.ReduceLROnPlateau(o, "most"), "expected min or max"),
        (lambda o: SCHEDULERS.SequentialLR(o, [SCHEDULERS.LinearLR(o)], [3]), "got 1 milestones for 1 schedulers"),
        (lambda o: SCHEDULERS.ChainedScheduler([]), "got no schedulers"),
        (lambda o: SCHEDULERS.ChainedScheduler([SCHEDULERS.LinearLR(o), SCHEDULERS.LinearLR(optimizer())]), "several"),
        (lambda o: SCHEDULERS.StepLR(o, 3, last_epoch=2), 'and a group has no "initial_lr"'),
        (lambda o: mf.optim.swa_utils.SWALR(o, 0.1, anneal_strategy="x"), "expected cos or linear"),
    ],
)
def test_settings_out_of_range_are_errors(make, words):
    with pytest.raises(ValueError, match=words):
        make(optimizer(momentum=0.9))


def test_a_scheduler_does_not_step_inside_a_fused_function():
    for make in (CASES["step"], CASES["plateau"], CASES["sequential"]):
        scheduler = make(SCHEDULERS, optimizer())
        arguments = [1.0] if isinstance(scheduler, SCHEDULERS.ReduceLROnPlateau) else []
        with pytest.raises(FuseError, match="call it after the fused function"):
            mf.fuse(lambda x: (x, scheduler.step(*arguments))[0])(mf.ones(1))  # noqa: B023


def test_averages_of_a_model():
    model = mf.nn.Linear(1, 1, bias=False)
    averages = mf.optim.swa_utils.AveragedModel(model)
    moving = mf.optim.swa_utils.AveragedModel(model, avg_fn=mf.optim.swa_utils.get_ema_avg_fn(0.75))
    for value in (1.0, 2.0, 6.0):
        with mf.no_grad():
            model.weight.fill_(value)
        averages.update_parameters(model)
        moving.update_parameters(model)
    assert (averages.n_averaged, averages(mf.ones(1, 1)).item()) == (3, 3.0)
    assert moving.module.weight.item() == pytest.approx(0.75 * (0.75 + 0.5) + 1.5)


def test_swalr_ends_at_its_rate():
    one = optimizer()
    scheduler = mf.optim.swa_utils.SWALR(one, 0.5, anneal_epochs=2, anneal_strategy="linear")
    found = []
    for _ in range(4):
        found.append(one.param_groups[0]["lr"])
        scheduler.step()
    assert found == [1.0, 0.75, 0.5, 0.5]
