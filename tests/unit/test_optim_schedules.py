"""optim.schedules: learning rates by step. Equality with PyTorch is in test_optim_table."""

import json
import math
from itertools import pairwise

import pytest

import minifuse as mf
from minifuse.core.errors import FuseError
from minifuse.optim import SGD, ConstantSchedule, CosineSchedule, Schedule


def parameter():
    p = mf.tensor([1.0], requires_grad=True)
    p.grad = mf.ones(1)
    return p


def optimizer(*rates):
    return SGD([{"params": [parameter()], "lr": lr} for lr in rates or (1.0,)])


def rates(schedule, steps):
    found = []
    for _ in range(steps):
        found.append(schedule.last_lrs())
        schedule.optimizer.step()
        schedule.step()
    return found


def flat(found):
    return [x for (x,) in found]


@pytest.mark.parametrize(
    ("steps", "warmup", "minimum", "wanted"),
    [
        (4, 0, 0.0, [1, 0.5 + math.sqrt(0.125), 0.5, 0.5 - math.sqrt(0.125), 0, 0, 0]),
        (2, 0, 0.5, [1, 0.75, 0.5, 0.5]),
        (6, 4, 0.0, [0.2, 0.4, 0.6, 0.8, 1, 0.5, 0, 0]),
        (3, 2, 1.0, [1 / 3, 2 / 3, 1, 1, 1]),
        (1, 0, 0.25, [1, 0.25, 0.25]),
    ],
)
def test_the_cosine(steps, warmup, minimum, wanted):
    assert flat(rates(CosineSchedule(optimizer(), steps, warmup, minimum), len(wanted))) == pytest.approx(wanted, abs=1e-15)


@pytest.mark.parametrize(("warmup", "wanted"), [(0, [1, 1, 1]), (1, [0.5, 1, 1]), (3, [0.25, 0.5, 0.75, 1, 1, 1])])
def test_a_constant_rate(warmup, wanted):
    assert flat(rates(ConstantSchedule(optimizer(), warmup), len(wanted))) == wanted


def test_each_group_has_a_rate_of_its_own():
    one = optimizer(1.0, 0.1)
    schedule = CosineSchedule(one, steps=2, minimum=0.5)
    assert rates(schedule, 1) == [[1.0, 0.1]]
    one.add_param_group({"params": [parameter()], "lr": 8.0})  # from its own rate, as soon as the next step is over
    assert schedule.last_lrs() == pytest.approx([0.75, 0.075, 8.0])
    schedule.step()
    assert schedule.last_lrs() == pytest.approx([0.5, 0.05, 4.0])
    assert repr(schedule) == "CosineSchedule(last_step=2, lr=[0.5, 0.05, 4.0])"


def test_steps_use_the_rate():
    one = optimizer()
    (p,) = one.param_groups[0]["params"]
    rates(CosineSchedule(one, steps=2), 4)
    assert p.item() == pytest.approx(1 - 1 - 0.5)


def test_a_fused_step_reads_the_rate_and_is_captured_once():
    p = mf.tensor([1.0], requires_grad=True)
    one = SGD([p], lr=1.0)
    schedule = CosineSchedule(one, steps=4, warmup=1)

    @mf.fuse
    def step():
        one.zero_grad()
        p.sum().backward()
        one.step()

    seen, rated = [p.item()], []
    for _ in range(6):
        rated += schedule.last_lrs()
        step()
        schedule.step()
        seen.append(p.item())
    assert [a - b for a, b in pairwise(seen)] == pytest.approx(rated, abs=1e-6)
    assert rated[-1] == 0
    assert step.stats().captures == 2  # once without a gradient from before, once with one


def test_a_schedule_does_not_step_inside_a_fused_function():
    one = optimizer()
    schedule = CosineSchedule(one, steps=4)
    with pytest.raises(FuseError, match=r"CosineSchedule\.step: .* call it after the fused function"):
        mf.fuse(lambda x: (x, schedule.step())[0])(mf.ones(1))
    assert (schedule.last_step, schedule.last_lrs()) == (0, [1.0])


def test_a_state_goes_on():
    schedule = CosineSchedule(optimizer(0.3), steps=7, warmup=2, minimum=0.1)
    wanted = flat(rates(CosineSchedule(optimizer(0.3), steps=7, warmup=2, minimum=0.1), 9))
    assert flat(rates(schedule, 4)) == wanted[:4]
    other = CosineSchedule(optimizer(77.0), steps=7, warmup=2, minimum=0.1)
    other.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    assert flat(rates(other, 5)) == wanted[4:]


def test_an_optimizer_that_was_loaded_in_the_middle_keeps_its_first_rate():
    schedule = CosineSchedule(optimizer(0.3), steps=4)
    rates(schedule, 2)
    one = optimizer(5.0)
    one.load_state_dict(schedule.optimizer.state_dict())
    other = CosineSchedule(one, steps=4)
    other.load_state_dict(schedule.state_dict())
    assert other.last_lrs() == schedule.last_lrs() == pytest.approx([0.15])


def test_a_schedule_of_ones_own():
    class Halves(Schedule):
        def factor(self, step):
            return 0.5**step

    assert flat(rates(Halves(optimizer()), 4)) == [1, 0.5, 0.25, 0.125]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CosineSchedule(optimizer(), 0), "got steps=0, expected more than warmup=0"),
        (lambda: CosineSchedule(optimizer(), 5, 5), "got steps=5, expected more than warmup=5"),
        (lambda: CosineSchedule(optimizer(), 5, -1), "got warmup=-1"),
        (lambda: CosineSchedule(optimizer(), 5, 0.5), "got warmup=0.5, expected a whole number of steps"),
        (lambda: CosineSchedule(optimizer(), 5, 0, 1.5), "got minimum=1.5, expected a fraction"),
        (lambda: CosineSchedule(optimizer(), 5, 0, -0.1), "got minimum=-0.1"),
        (lambda: CosineSchedule(optimizer(), 5, 0, math.nan), "got minimum=nan"),
        (lambda: ConstantSchedule(optimizer(), -2), "ConstantSchedule: got warmup=-2"),
    ],
)
def test_settings_out_of_their_range(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_objects_that_are_no_optimizers_are_errors():
    with pytest.raises(TypeError, match="CosineSchedule: got list, expected an optimizer"):
        CosineSchedule([parameter()], 5)


@pytest.mark.parametrize("state", [{}, {"last_step": 3}, {"last_step": 3, "base_lrs": [1.0, 2.0]}, [3]])
def test_invalid_states_are_errors(state):
    schedule = CosineSchedule(optimizer(), 5)
    with pytest.raises(ValueError, match="expected a dict with last_step, and base_lrs of 1 groups"):
        schedule.load_state_dict(state)
    assert schedule.last_step == 0
