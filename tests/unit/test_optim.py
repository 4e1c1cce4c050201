"""optim: PyTorch's numbers step by step, one call per step, and errors."""

import copy
import json

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from minifuse.compiler.plan import plans
from minifuse.core.errors import DTypeError, GradientError, ShapeError
from minifuse.optim import SGD, Adam, Optimizer
from tests.unit.make_torch_table import BATCHES, CASES, SIZES, TABLE, batches, first_weights

TORCH = json.loads(TABLE.read_text(encoding="utf-8"))

# Of losses and weights, after up to 100 steps. Measured: 5e-12 (the table has 12 digits) and 4e-7. The error of a step does
# not grow, since all ways lead to one minimum.
FOLLOWS = {"float64": 1e-10, "float32": 1e-5}

OPTIMIZERS = {
    "SGD": lambda params, **settings: SGD(params, **{"lr": 0.1, **settings}),
    "momentum": lambda params, **settings: SGD(params, **{"lr": 0.1, "momentum": 0.5, "weight_decay": 0.1, **settings}),
    "Adam": lambda params, **settings: Adam(params, **{"lr": 0.1, **settings}),
}
each = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


def parameter(*values, **named):
    return mf.tensor(values, requires_grad=True, dtype=named.pop("dtype", "float32"), **named)


def descend(p, optimizer, steps=1):
    """Steps down the squares of the elements, which have different slopes."""
    for _ in range(steps):
        optimizer.zero_grad()
        (p * p * (1 + p)).sum().backward()
        optimizer.step()


def train(case, dtype, steps, backend):
    """The losses of each step, and the model, from the first weights of the table."""
    kind, settings = CASES[case]
    model = nn.Sequential(nn.Linear(*SIZES[:2]), nn.ReLU(), nn.Linear(*SIZES[1:])).to(dtype, backend=backend)
    model.load_state_dict(first_weights())
    optimizer = getattr(mf.optim, kind)(model.parameters(), **settings)
    data = [(mf.tensor(x, dtype=dtype, backend=backend), mf.tensor(y, backend=backend)) for x, y in batches()]
    losses = []
    for step in range(steps):
        x, y = data[step % BATCHES]
        loss = nn.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


@pytest.mark.parametrize("dtype", FOLLOWS)
@pytest.mark.parametrize("case", CASES)
def test_a_hundred_steps_follow_pytorch(case, dtype):
    losses, model = train(case, dtype, len(TORCH[case]["losses"]), "parallel")
    np.testing.assert_allclose(losses, TORCH[case]["losses"], rtol=FOLLOWS[dtype])
    for name, p in model.named_parameters():
        np.testing.assert_allclose(p.detach().numpy(), TORCH[case]["weights"][name], atol=FOLLOWS[dtype], err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_the_python_backend_follows_too(case):
    losses, _ = train(case, "float64", 5, "python")
    np.testing.assert_allclose(losses, TORCH[case]["losses"][:5], rtol=FOLLOWS["float64"])


# A step


@each
def test_a_step_is_one_call_whatever_the_settings(make):
    params = [parameter(*range(n)) for n in (41, 42, 43)]
    optimizer = make(params)
    for p in params:
        p.grad = p.detach() + 1
    before = set(plans)
    optimizer.step()
    (plan,) = [plans[key] for key in set(plans) - before]
    assert plan.text.count("launch") == 1
    assert "allocate" not in plan.text
    for settings in optimizer.param_groups:
        settings["lr"], settings["weight_decay"] = 0.03, 0.2
    count = len(plans)
    optimizer.step()
    assert len(plans) == count, "new settings made a new plan"


@each
def test_a_parameter_without_a_gradient_stays(make):
    a, b = parameter(1.0, 2.0), parameter(3.0)
    optimizer = make([a, b])
    descend(a, optimizer)
    assert b.tolist() == [3.0]
    assert b not in optimizer.state
    assert a.tolist() != [1.0, 2.0]


@each
def test_a_parameter_that_joins_late_takes_its_own_steps(make):
    """Adam corrects by the number of steps that a parameter has taken itself."""
    early, late, alone = parameter(1.0), parameter(0.7), parameter(0.7)
    optimizer, other = make([early, late]), make([alone])
    for step in range(4):
        optimizer.zero_grad()
        other.zero_grad()
        (early * early + (late * late if step >= 2 else 0)).sum().backward()
        optimizer.step()
        if step >= 2:
            (alone * alone).sum().backward()
            other.step()
    assert late.tolist() == pytest.approx(alone.tolist(), rel=1e-6)
    assert early.item() < 1


@each
def test_a_step_changes_memory_and_records_nothing(make):
    p = parameter(1.0, 2.0)
    seen, address = p.detach(), p.address
    descend(p, make([p]), 3)
    assert p.address == address
    assert seen.tolist() == p.tolist()
    assert p.is_leaf
    assert p.requires_grad


@each
def test_a_graph_from_before_a_step_is_not_differentiated_after_it(make):
    p = parameter(1.0, 2.0)
    optimizer = make([p])
    y = (p * p).sum()
    p.grad = mf.ones(2)
    optimizer.step()
    with pytest.raises(GradientError, match="modified in place"):
        y.backward()


@each
@pytest.mark.parametrize(
    ("backend", "size"),
    [("python", 1), ("python", 33), ("parallel", 1), ("parallel", 31), ("parallel", 33), ("parallel", 1025)],
)
def test_any_layout_and_mixed_dtypes(backend, size, make):
    array = np.sin(np.arange(2 * size)).reshape(2, size)
    plain, across = (mf.tensor(x, backend=backend) for x in (array, array.T))
    across = across.T  # the same elements, columns first
    double = mf.tensor(array, dtype="float64", backend=backend)
    plain, across = plain.to(mf.float32), across.to(mf.float32)
    params = [x.detach().requires_grad_() for x in (plain, across, double)]
    optimizer = make(params)
    for _ in range(2):
        params[0].grad = mf.tensor(np.cos(array), dtype="float32", backend=backend)
        params[1].grad = mf.tensor(np.cos(array).T, dtype="float32", backend=backend).T
        params[2].grad = mf.tensor(np.cos(array), dtype="float64", backend=backend)
        optimizer.step()
    one, other, exact = (p.detach().numpy() for p in params)
    np.testing.assert_allclose(one, exact, atol=1e-6)
    np.testing.assert_array_equal(one, other)


def test_many_parameters_of_one_shape():
    params = [parameter(*np.sin(np.arange(7) + k)) for k in range(40)]
    optimizer, wanted = Adam(params, lr=0.1), [p.numpy() - 0.1 * np.sign(p.numpy()) for p in params]
    for p in params:
        p.grad = p.detach() * 2
    optimizer.step()
    for p, x in zip(params, wanted, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), x, atol=1e-6)


def test_zero_grad_forgets():
    p = parameter(1.0)
    optimizer = SGD([p])
    (p * p).sum().backward()
    assert p.grad is not None
    optimizer.zero_grad()
    assert p.grad is None
    optimizer.step()
    assert p.item() == 1.0


# Groups


def test_groups_have_settings_of_their_own():
    a, b = parameter(1.0), parameter(1.0)
    optimizer = SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.25)
    a.grad, b.grad = mf.ones(1), mf.ones(1)
    optimizer.step()
    assert (a.item(), b.item()) == (0.75, 0.5)
    optimizer.add_param_group({"params": [c := parameter(1.0)], "lr": 1})
    c.grad = mf.ones(1)
    optimizer.step()
    assert (a.item(), b.item(), c.item()) == (0.5, 0.0, 0.0)
    assert repr(optimizer).count("1 parameters: lr=") == 3


def test_a_setting_may_be_changed_at_any_time():
    p = parameter(1.0)
    optimizer = SGD([p], lr=0.5)
    p.grad = mf.ones(1)
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.125
    optimizer.step()
    assert p.item() == 0.375


# States


@each
def test_training_resumes_from_a_state(make):
    p = parameter(1.0, -2.0, 0.5)
    optimizer = make([p])
    descend(p, optimizer, 3)
    q = p.detach().clone().requires_grad_()
    other = make([q], lr=77.0)
    other.load_state_dict(copy.deepcopy(jsonable(optimizer.state_dict())))
    descend(p, optimizer, 3)
    descend(q, other, 3)
    assert q.tolist() == p.tolist()


def jsonable(state):
    """A state as it may come back from a file: arrays in the place of tensors."""
    arrays = {
        k: {name: x.numpy().copy() if isinstance(x, mf.Tensor) else x for name, x in values.items()}
        for k, values in state["state"].items()
    }
    return {**state, "state": arrays}


def test_a_state_has_pytorchs_form():
    a, b = parameter(1.0), parameter(1.0, 2.0)
    optimizer = Adam([{"params": [a]}, {"params": [b], "lr": 0.5}])
    descend(b, optimizer)
    state = optimizer.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert [group["lr"] for group in state["param_groups"]] == [1e-3, 0.5]
    assert list(state["state"]) == [1]
    assert set(state["state"][1]) == {"step", "exp_avg", "exp_avg_sq"}
    assert state["state"][1]["step"] == 1
    assert set(SGD([a], momentum=0.5).state_dict()) == {"state", "param_groups"}
    descend(a, optimizer)
    assert list(optimizer.state_dict()["state"]) == [0, 1]  # by number, not in the order of the first steps


def test_a_loaded_state_is_a_copy():
    p = parameter(1.0)
    optimizer = SGD([p], momentum=0.5)
    descend(p, optimizer)
    state = optimizer.state_dict()
    other = SGD([parameter(1.0)], momentum=0.5)
    other.load_state_dict(state)
    with mf.no_grad():
        state["state"][0]["momentum_buffer"] *= 0
    (buffer,) = [values["momentum_buffer"] for values in other.state.values()]
    assert buffer.item() == 5


def test_a_state_of_others_is_an_error():
    optimizer = SGD([parameter(1.0)], momentum=0.5)
    descend(optimizer.param_groups[0]["params"][0], optimizer)
    state = optimizer.state_dict()
    two = SGD([parameter(1.0), parameter(2.0)], lr=0.5)
    with pytest.raises(ShapeError, match=r"groups of \[1\] parameters, expected \[2\]; nothing was loaded"):
        two.load_state_dict(state)
    longer = SGD([parameter(1.0, 2.0)], lr=0.5)
    with pytest.raises(ShapeError, match=r"got momentum_buffer of shape \(1,\) for parameter 0, expected \(2,\)"):
        longer.load_state_dict(state)
    assert longer.param_groups[0]["lr"] == 0.5


# Errors


@each
@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ([], ValueError, "got no parameters"),
        (iter([]), ValueError, "got no parameters"),
        (parameter(1.0), DTypeError, "expected a list of parameters, got a tensor"),
        (mf.nn.Linear(2, 2), DTypeError, r"expected a list of parameters, got Linear; write model.parameters\(\)"),
        ([1.0], DTypeError, "parameter 0 has type float, expected a tensor"),
        ([parameter(1.0), mf.ones(2)], GradientError, r"parameter 1, of shape \(2,\), does not require a gradient"),
        ([parameter(1.0) * 2], GradientError, "was computed from other tensors"),
        ([{"params": []}, {"params": [mf.ones(1)]}], GradientError, "does not require a gradient"),
        ([{"params": [parameter(1.0)], "lrr": 1}], ValueError, "unknown setting 'lrr'; did you mean lr?"),
        ([{"params": [parameter(1.0)], "frobnicate": 1}], ValueError, "unknown setting 'frobnicate'; expected one of .*lr"),
        ([parameter(1.0)] * 2, ValueError, ", twice; pass it once"),
    ],
)
def test_objects_that_are_no_parameters_are_errors(params, error, words, make):
    with pytest.raises(error, match=words):
        make(params)


def test_a_parameter_is_in_one_group_only():
    p = parameter(1.0)
    with pytest.raises(ValueError, match=r"parameter 0, of shape \(1,\), twice"):
        SGD([{"params": [p]}, {"params": [p]}])


@pytest.mark.parametrize(
    ("make", "settings", "words"),
    [
        (SGD, {"lr": -0.1}, "SGD: got lr=-0.1, expected at least 0"),
        (SGD, {"lr": float("nan")}, "SGD: got lr=nan"),
        (SGD, {"momentum": -1}, "got momentum=-1"),
        (SGD, {"weight_decay": -1}, "got weight_decay=-1"),
        (SGD, {"nesterov": True}, "got nesterov=True with momentum=0"),
        (Adam, {"lr": -1}, "Adam: got lr=-1"),
        (Adam, {"eps": -1}, "got eps=-1"),
        (Adam, {"betas": (0.9, 1.0)}, r"got betas=\(0.9, 1.0\)"),
        (Adam, {"betas": (-0.1, 0.9)}, "got betas="),
        (Adam, {"betas": (0.9,)}, "got betas="),
    ],
)
def test_settings_out_of_their_range(make, settings, words):
    with pytest.raises(ValueError, match=words):
        make([parameter(1.0)], **settings)
    with pytest.raises(ValueError, match=words):
        make([{"params": [parameter(1.0)], **settings}])


def test_an_optimizer_without_update_is_an_error():
    p = parameter(1.0)
    p.grad = mf.ones(1)
    with pytest.raises(NotImplementedError, match="Optimizer has no update"):
        Optimizer([p]).step()
