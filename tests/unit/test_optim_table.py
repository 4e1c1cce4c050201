"""Optimizers, schedules and clipping against PyTorch's recorded numbers, on every backend, eager and fused."""

import json
import math

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import ShapeError
from tests.nn.record_optim import CASES, HALF, MINIMUM, PULL, SHAPES, STEPS, WARMUP, first, has_gradient, noise
from tests.nn.recorded import load

TABLE = load("optim")
FOLLOWS = {"float64": 1e-12, "float32": 1e-5}  # of numbers around 1; measured: 9e-16 and 8e-7 after 20 steps
SIMULATED = 5  # steps in the interpreter, two of which one parameter misses

each_case = pytest.mark.parametrize("name", CASES)


class Run:
    """The steps of a case."""

    def __init__(self, name, dtype="float64", backend="parallel", is_fused=False, begin=0):
        self.case, self.dtype, self.backend = CASES[name], dtype, backend
        values = [first(k) for k in range(len(SHAPES))]
        if begin:
            sizes = np.cumsum([x.size for x in values])[:-1]
            parts = np.split(TABLE[f"{name}/params"][begin - 1], sizes)
            values = [x.reshape(shape) for x, shape in zip(parts, SHAPES, strict=True)]
        self.params = [mf.tensor(x, dtype, backend, requires_grad=True) for x in values]
        self.optimizer = getattr(mf.optim, self.case["kind"])(self.params, **self.case["settings"])
        self.schedule = schedule_of(self.optimizer, self.case.get("schedule"))
        step = step_of(self.optimizer, self.params, self.case)
        self.step = mf.fuse(step) if is_fused else step
        self.norms, self.rates, self.rows = [], [], []

    def go(self, begin, end):
        for k in range(begin, end):
            noises = [
                mf.tensor(noise(j, k), self.dtype, self.backend) if has_gradient(j, k) else None for j in range(len(SHAPES))
            ]
            self.rates.append(self.optimizer.param_groups[0]["lr"])
            norm = self.step(noises)
            if norm is not None:
                self.norms.append(norm.item())
            if self.schedule is not None:
                self.schedule.step()
            self.rows.append(np.concatenate([p.detach().numpy().reshape(-1) for p in self.params]))
        return self

    def check(self, name, begin, end):
        limits = {"rtol": FOLLOWS[self.dtype], "atol": FOLLOWS[self.dtype]}
        np.testing.assert_allclose(self.rows, TABLE[f"{name}/params"][begin:end], **limits)
        np.testing.assert_allclose(self.rates, TABLE[f"{name}/rates"][begin:end], rtol=1e-14)
        if len(TABLE[f"{name}/norms"]):
            np.testing.assert_allclose(self.norms, TABLE[f"{name}/norms"][begin:end], **limits)


def step_of(optimizer, params, case):
    """Losses whose gradients are those of the table, and what follows."""

    def step(noises):
        optimizer.zero_grad()
        for p, x in zip(params, noises, strict=True):
            if x is not None:
                (p * x + PULL / 2 * p * p).sum().backward()
        norm = clipped(params, case.get("clip"), case.get("limit"))
        optimizer.step()
        return norm

    return step


def clipped(params, clip, limit):
    if clip == "value":
        return mf.optim.clip_grad_value_(params, limit)
    if clip is not None:
        return mf.optim.clip_grad_norm_(params, limit, math.inf if clip == "largest" else 2.0)
    return None


def schedule_of(optimizer, kind):
    if kind == "cosine":
        return mf.optim.CosineSchedule(optimizer, STEPS, minimum=MINIMUM)
    return mf.optim.CosineSchedule(optimizer, STEPS - 4, WARMUP, MINIMUM) if kind == "warmup" else None


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("dtype", FOLLOWS)
@each_case
def test_steps_follow_pytorch(name, dtype):
    Run(name, dtype).go(0, STEPS).check(name, 0, STEPS)


@each_case
def test_fused_steps_follow_pytorch(name):
    Run(name, is_fused=True).go(0, STEPS).check(name, 0, STEPS)


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("is_fused", [False, True], ids=["eager", "fused"])
@pytest.mark.parametrize(("backend", "dtype"), [("python", "float64"), ("cuda", "float32")])
@pytest.mark.parametrize("name", ["nesterov", "warmup", "largest", "value"])
def test_other_backends_follow_too(name, backend, dtype, is_fused):
    Run(name, dtype, backend, is_fused).go(0, SIMULATED).check(name, 0, SIMULATED)


def state_of(name):
    """PyTorch's state after HALF of the steps, in arrays, as it comes out of a file."""
    state = {}
    for key, x in TABLE.items():
        case, *way = key.split("/")
        if case == name and way[0] == "state":
            state.setdefault(int(way[1]), {})[way[2]] = x
    return {"state": state, "param_groups": json.loads(str(TABLE[f"{name}/groups"]))}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "schedule" not in case])
def test_a_state_of_pytorch_goes_on_here(name):
    run = Run(name, is_fused=name == "adam", begin=HALF)
    run.optimizer.load_state_dict(state_of(name))
    run.go(HALF, STEPS).check(name, HALF, STEPS)


@each_case
def test_a_state_of_ours_goes_on_in_another_optimizer(name):
    before = Run(name).go(0, HALF)
    run = Run(name, is_fused=name == "warmup", begin=HALF)
    run.optimizer.load_state_dict(before.optimizer.state_dict())
    if run.schedule is not None:
        run.schedule.load_state_dict(json.loads(json.dumps(before.schedule.state_dict())))
    run.go(HALF, STEPS).check(name, HALF, STEPS)


@pytest.mark.parametrize("name", ["adam_decay", "adamw", "nesterov", "sgd"])
def test_pytorch_goes_on_with_a_state_of_ours(name):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    run = Run(name).go(0, HALF)
    params = [torch.tensor(p.detach().numpy(), requires_grad=True) for p in run.params]
    optimizer = getattr(torch.optim, run.case["kind"])(params, **run.case["settings"])
    state = run.optimizer.state_dict()
    for values in state["state"].values():
        values |= {key: torch.tensor(x.numpy()) for key, x in values.items() if isinstance(x, mf.Tensor)}
    own = optimizer.state_dict()["param_groups"][0]
    optimizer.load_state_dict({**state, "param_groups": [{**own, **state["param_groups"][0]}]})
    for step in range(HALF, STEPS):
        for k, p in enumerate(params):
            p.grad = torch.tensor(noise(k, step)) + PULL * p.detach() if has_gradient(k, step) else None
        optimizer.step()
    found = np.concatenate([p.detach().numpy().reshape(-1) for p in params])
    np.testing.assert_allclose(found, TABLE[f"{name}/params"][-1], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("adam", {"decoupled_weight_decay": True}, "decoupled_weight_decay=True, which Adam does not support"),
        ("adamw", {"decoupled_weight_decay": False}, "decoupled_weight_decay=False, which AdamW does not support"),
        ("sgd", {"dampening": 0.5}, "dampening=0.5, which SGD does not support"),
        ("sgd", {"rho": 0.9}, "rho=0.9"),
        ("sgd", {"lr": -1}, "got lr=-1.0, expected at least 0"),
        ("adam", {"betas": [0.9]}, "got betas="),
        ("sgd", {"nesterov": True}, "got nesterov=True with momentum=0"),
    ],
)
def test_a_setting_that_means_something_else_is_refused(name, change, words):
    run, state = Run(name), state_of(name)
    before = repr(run.optimizer)
    state["param_groups"][0] |= {"lr": 0.5, **change}
    with pytest.raises(ValueError, match=words):
        run.optimizer.load_state_dict(state)
    assert repr(run.optimizer) == before
    assert not run.optimizer.state


@pytest.mark.parametrize("state", [None, {}, {"state": {}}, [1]])
def test_invalid_states_are_errors(state):
    with pytest.raises(ValueError, match='expected a dict with "state" and "param_groups"'):
        Run("adam").optimizer.load_state_dict(state)


def test_a_state_of_a_parameter_that_is_not_there():
    state = state_of("adam")
    state["state"][9] = state["state"].pop(0)
    with pytest.raises(ShapeError, match="got a state for parameter 9, which is in no group; nothing was loaded"):
        Run("adam").optimizer.load_state_dict(state)
    state["state"][0] = {**state["state"].pop(9), "step": np.zeros(2)}
    with pytest.raises(ShapeError, match=r"got step of shape \(2,\) for parameter 0, expected \(\)"):
        Run("adam").optimizer.load_state_dict(state)
