"""The optimizers beside SGD and Adam against PyTorch's recorded numbers, their states, flags, and Lion's formula."""

import json

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import FuseError
from tests.nn.record_optim import PULL, SHAPES, first, has_gradient, noise
from tests.nn.record_optimizers import CASES, CHECKED, HALF, STEPS, has_state
from tests.nn.recorded import load

TABLE = load("optimizers")
STORED_AS_FLOAT32 = {"NAdam", "ASGD", "Rprop"}  # PyTorch keeps some of their numbers as float32
WITH_STATE = [name for name in CASES if has_state(name)]


def limit_of(name):
    return 1e-7 if CASES[name][0] in STORED_AS_FLOAT32 else 1e-14


def step_of(optimizer, params):
    def step(noises):
        optimizer.zero_grad()
        for p, x in zip(params, noises, strict=True):
            if x is not None:
                (p * x + PULL / 2 * p * p).sum().backward()
        optimizer.step()

    return step


class Run:
    """The steps of a case."""

    def __init__(self, name, dtype="float64", backend="python", is_fused=False):
        kind, settings = CASES[name]
        self.params = [mf.tensor(first(k), dtype, backend, requires_grad=True) for k in range(len(SHAPES))]
        self.optimizer = getattr(mf.optim, kind)(self.params, **settings)
        step = step_of(self.optimizer, self.params)
        self.take = mf.fuse(step) if is_fused else step
        self.dtype, self.backend, self.rows = dtype, backend, {}

    def go(self, begin, end):
        for step in range(begin, end):
            self.take([self.noise(k, step) for k in range(len(SHAPES))])
            self.rows[step] = np.concatenate([p.detach().numpy().reshape(-1) for p in self.params])
        return self

    def noise(self, k, step):
        return mf.tensor(noise(k, step), self.dtype, self.backend) if has_gradient(k, step) else None

    def check(self, name, limit, steps=CHECKED):
        expected = [TABLE[f"{name}/params"][CHECKED.index(step)] for step in steps]
        np.testing.assert_allclose([self.rows[step] for step in steps], expected, rtol=limit, atol=limit)


@pytest.mark.sampled(1, each="name")
@pytest.mark.parametrize("is_fused", [False, True], ids=["eager", "fused"])
@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_pytorch(name, is_fused):
    Run(name, is_fused=is_fused).go(0, STEPS).check(name, limit_of(name))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", WITH_STATE)
def test_steps_on_the_parallel_backend(name):
    Run(name, "float32", "parallel").go(0, 2).check(name, 1e-5, CHECKED[:2])


def state_of(name):
    """Return PyTorch's state after HALF of the steps."""
    state = {}
    for key, x in TABLE.items():
        case, *way = key.split("/")
        if case == name and way[0] == "state":
            state.setdefault(int(way[1]), {})[way[2]] = x
    return {"state": state, "param_groups": json.loads(str(TABLE[f"{name}/groups"]))}


@pytest.mark.parametrize("name", WITH_STATE)
def test_a_state_of_pytorch_or_of_ours_goes_on(name):
    before, run = Run(name).go(0, HALF), Run(name)
    for state in (state_of(name), before.optimizer.state_dict()):
        run.optimizer.load_state_dict(state)
        for p, x in zip(run.params, before.params, strict=True):
            with mf.no_grad():
                p.copy_(x)
        run.go(HALF, STEPS).check(name, limit_of(name), CHECKED[3:])


def one_step(kind, **settings):
    p = mf.tensor([1.0, -2.0], dtype="float64", backend="python", requires_grad=True)
    p.grad = mf.tensor([0.5, -3.0], dtype="float64", backend="python")
    optimizer = getattr(mf.optim, kind)([p], **settings)
    optimizer.step()
    return p, optimizer


def test_lion_steps_along_the_sign_of_its_mean():
    p, optimizer = one_step("Lion", lr=0.1, betas=(0.9, 0.5), weight_decay=0.5)
    assert p.tolist() == pytest.approx([0.95 - 0.1, -1.9 + 0.1])
    p.grad = mf.tensor([-1.0, 0.0], dtype="float64", backend="python")
    optimizer.step()
    assert p.tolist() == pytest.approx([0.95 * 0.85 - 0.1, -0.95 * 1.8 + 0.1])  # 0.9 * 0.25 - 0.1 > 0
    assert optimizer.state[p]["exp_avg"].tolist() == pytest.approx([-0.375, -0.75])


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("RMSprop", {"alpha": -1}, "got alpha=-1, expected at least 0"),
        ("Lion", {"betas": (0.9, 1.0)}, "got betas="),
        ("Rprop", {"etas": (1.5, 1.2)}, "expected 0 < etas"),
        ("Adafactor", {"beta2_decay": 0.5}, "expected at most 0"),
        ("SGD", {"dampening": 0.5}, "dampening=0.5, which is not supported; write dampening=0"),
        ("Adagrad", {"differentiable": True}, "differentiable=True is not supported"),
    ],
)
def test_settings_out_of_range_are_errors(kind, settings, words):
    with pytest.raises(ValueError, match=words):
        one_step(kind, **settings)


def test_flags_that_choose_an_implementation_have_no_effect():
    p, optimizer = one_step("RAdam", foreach=True, fused=False, capturable=True)
    assert p.tolist() == one_step("RAdam")[0].tolist()
    assert "foreach" not in repr(optimizer)
    with pytest.raises(TypeError, match=r"unexpected argument 'learning_rate'; expected one of lr, .*, foreach"):
        one_step("RAdam", learning_rate=0.1)
    with pytest.raises(TypeError, match="unexpected argument 'foreac'; did you mean foreach"):
        one_step("RAdam", foreac=True)


@pytest.mark.parametrize("name", ["SparseAdam"])
def test_an_optimizer_that_is_missing_names_another(name):
    with pytest.raises(AttributeError, match=r"use mf\.optim\.Adam"):
        getattr(mf.optim, name)


def test_each_group_has_its_settings_and_a_closure_returns_its_loss():
    a, b = (mf.tensor([1.0], dtype="float64", backend="python", requires_grad=True) for _ in range(2))
    optimizer = mf.optim.RMSprop([{"params": [a]}, {"params": [b], "lr": 0.5, "maximize": True}], lr=0.1, eps=0.0)

    def closure():
        optimizer.zero_grad()
        loss = (a + b).sum()
        loss.backward()
        return loss

    with mf.no_grad():
        assert optimizer.step(closure).item() == 2
    assert [*a.tolist(), *b.tolist()] == pytest.approx([1 - 0.1 / 0.1, 1 + 0.5 / 0.1])
    optimizer.zero_grad(set_to_none=False)
    assert (a.grad.tolist(), b.grad.tolist()) == ([0], [0])


LBFGS_SETTINGS = [{}, {"lr": 0.1, "max_iter": 3}, {"history_size": 2, "max_eval": 9}]
LBFGS_STEPS = [  # PyTorch's: the loss before each of two steps, and the parameters after it
    [[1.65, -0.5192889986, 0.2805499113, 0.07852444973], [0.02837707569, 0.4553408772, 0.2071708479, 0.04904047372]],
    [[1.65, -0.5802873767, 0.6617176886, 1.353041918], [0.9692712856, -0.7652523291, 0.8745190311, 1.235210993]],
    [[1.65, -0.9367285813, 0.8805817941, 0.7762445393], [0.03766219874, -0.5479476883, 0.3036373961, 0.1160774777]],
]


def rosenbrock(p):
    return (100 * (p[1:] - p[:-1] * p[:-1]) ** 2 + (1 - p[:-1]) ** 2).sum() * 0.01


@pytest.mark.parametrize(("settings", "expected"), [*zip(LBFGS_SETTINGS, LBFGS_STEPS, strict=True)])
def test_lbfgs_takes_the_steps_of_pytorch(settings, expected):
    p = mf.tensor([-0.5, 0.5, 1.5], dtype="float64", backend="python", requires_grad=True)
    optimizer = mf.optim.LBFGS([p], **settings)

    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(p)
        loss.backward()
        return loss

    for row in expected:
        loss = optimizer.step(closure)
        np.testing.assert_allclose([loss.item(), *p.tolist()], row, rtol=1e-6, atol=1e-9)
    with pytest.raises(TypeError, match=r"write step\(closure\)"):
        optimizer.step()
    with pytest.raises(FuseError, match="use it outside of"):
        mf.fuse(lambda: optimizer.step(closure))()
    with pytest.raises(ValueError, match="use a smaller lr"):
        mf.optim.LBFGS([p], line_search_fn="strong_wolfe")


# Muon: the parameters that torch.optim.Muon of PyTorch 2.13 has after three steps.
MUON = {
    (2, 3): ({"lr": 0.1}, [-1.073826, -0.377089, -0.143836, 0.08807, 0.449791, 1.111588]),
    (3, 2): (
        {
            "lr": 0.1, "nesterov": False, "momentum": 0.5, "weight_decay": 0.5, "ns_steps": 3,
            "adjust_lr_fn": "match_rms_adamw",
        },
        [-0.914718, -0.511992, -0.154801, 0.141876, 0.539722, 0.91203],
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", MUON)
def test_muon_takes_the_steps_of_pytorch(shape):
    settings, expected = MUON[shape]
    p = mf.linspace(-1, 1, 6).reshape(shape).clone().to(backend="python").requires_grad_()
    optimizer = mf.optim.Muon([p], **settings)
    for k in range(3):
        p.grad = mf.tensor(np.cos(np.arange(6) * 1.7 + k).reshape(shape), "float32", "python")
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
    assert p.detach().reshape(-1).tolist() == pytest.approx(expected, abs=2e-6)


def test_muon_accepts_only_matrices_and_known_rates():
    with pytest.raises(mf.ShapeError, match="expected a matrix"):
        one_step("Muon")
    with pytest.raises(ValueError, match="expected original or match_rms_adamw"):
        mf.optim.Muon([mf.ones(2, 2, requires_grad=True)], adjust_lr_fn="none")
