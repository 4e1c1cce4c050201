"""Modules, layers and losses: what they hold, what they compute, and what they say when something does not fit."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse import nn
from minifuse.errors import DTypeError, GradientError, IndexingError, ShapeError
from minifuse.functions import Composite
from minifuse.graph.plan import Plan, call
from minifuse.nn.layers import linear
from minifuse.testing import tolerance_for

BACKENDS = "python", "parallel"


class Block(nn.Module):
    """All kinds of attributes, and no call of super().__init__()."""

    def __init__(self):
        self.name = "block"
        self.scale = nn.Parameter(mf.ones(2))
        self.layers = [nn.Linear(2, 3), (nn.Linear(3, 4, bias=False),)]
        self.first = self.layers[0]
        self.heads = {"left": nn.ReLU(), "right": nn.Linear(4, 1)}
        self.shifts = [nn.Parameter(mf.zeros(5)), nn.Parameter(mf.zeros(6), requires_grad=False)]
        self.plain = mf.ones(3)

    @property
    def depth(self):
        return self.layers[0].dept


NAMES = ["scale", "shifts.0", "shifts.1", "layers.0.weight", "layers.0.bias", "layers.1.0.weight"]
NAMES += ["heads.right.weight", "heads.right.bias"]


def near(got, wanted, n=1):
    """Compare with float64, by the tolerance for a few operations and folds."""
    wanted = np.asarray(wanted, np.float64)
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
    rtol, atol, _ = tolerance_for("program", got.dtype, n, float(largest))
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got.numpy(), wanted, rtol, atol)


# Parameters


def test_a_parameter_is_a_leaf_over_the_memory_of_its_tensor():
    x = mf.ones(3, requires_grad=True) * 2
    p = nn.Parameter(x)
    assert isinstance(p, mf.Tensor)
    assert p.is_leaf
    assert p.requires_grad
    with mf.no_grad():
        p += 5
    assert x.tolist() == [7, 7, 7]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_computed_from_a_parameter_is_a_plain_tensor(backend):
    p = nn.Parameter(mf.ones(2, 3, backend=backend))
    results = [
        p * 2,
        2 * p,
        p + p,
        p.exp(),
        p.sum(),
        p.T,
        p[0],
        p.clone(),
        p.detach(),
        p @ p.T,
        p.to(mf.float64),
        p.argmax(1),
    ]
    assert {type(x) for x in results} == {mf.Tensor}
    (p * 2).sum().backward()
    assert type(p.grad) is mf.Tensor


@pytest.mark.parametrize("data", [[1.0], 1.0, np.ones(2), None])
def test_a_parameter_is_made_of_a_tensor(data):
    with pytest.raises(DTypeError, match=f"expected a tensor, got {type(data).__name__}"):
        nn.Parameter(data)


def test_integers_are_not_learned_but_may_be_kept():
    with pytest.raises(DTypeError, match="only floats"):
        nn.Parameter(mf.arange(3))
    assert nn.Parameter(mf.arange(3), requires_grad=False).tolist() == [0, 1, 2]


# What a module holds


def test_parameters_are_found_in_the_order_of_attributes_and_each_once():
    block = Block()
    assert [name for name, _ in block.named_parameters()] == NAMES
    assert [p.shape for p in block.parameters()] == [(2,), (5,), (6,), (3, 2), (3,), (4, 3), (1, 4), (1,)]
    assert list(block.state_dict()) == NAMES


def test_modules_are_found_each_once():
    block = Block()
    assert [name for name, _ in block.named_modules()] == ["", "layers.0", "layers.1.0", "heads.left", "heads.right"]
    assert [name for name, _ in block.named_children()] == ["layers.0", "layers.1.0", "heads.left", "heads.right"]
    assert list(block.modules())[1:] == list(block.children())


def test_modules_may_refer_to_each_other():
    a, b = nn.Sequential(nn.Linear(2, 3)), nn.Sequential()
    a.other, b.other = b, a
    assert [name for name, _ in a.named_parameters()] == ["0.weight", "0.bias"]
    assert len(list(b.modules())) == 3
    assert "..." in repr(a)


def test_a_parameter_that_two_modules_share_is_changed_once():
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    b.weight = a.weight
    model = nn.Sequential(a, nn.ReLU(), b)
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias", "2.bias"]
    mf.optim.SGD(model.parameters())


def test_train_and_eval_reach_all():
    block = Block()
    assert all(module.training for module in block.modules())
    assert block.eval() is block
    assert not any(module.training for module in block.modules())
    block.heads["right"].train()
    assert [module.training for module in block.modules()] == [False, False, False, False, True]
    assert nn.Linear(1, 1).training


def test_gradients_are_forgotten_and_parameters_frozen():
    layer = nn.Linear(3, 2)
    layer(mf.ones(1, 3)).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    layer.zero_grad()
    assert all(p.grad is None for p in layer.parameters())
    assert not layer.requires_grad_(False)(mf.ones(1, 3)).requires_grad
    assert layer.requires_grad_()(mf.ones(1, 3)).requires_grad


@pytest.mark.parametrize("how", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_a_copy_has_memory_of_its_own(how):
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    model[1].weight = nn.Parameter(model[1].weight, requires_grad=False)
    before = model(mf.ones(1, 3)).tolist()
    other = how(model)
    with mf.no_grad():
        other[0].weight *= 0
    assert model(mf.ones(1, 3)).tolist() == before
    assert other(mf.ones(1, 3)).tolist() != before
    assert [p.requires_grad for p in other.parameters()] == [True, True, False, True]


# Attributes


def test_a_misspelt_attribute_is_an_error_with_a_suggestion():
    with pytest.raises(AttributeError, match="Linear has no attribute wieght; did you mean weight"):
        _ = nn.Linear(3, 2).wieght
    with pytest.raises(AttributeError, match=r"Linear has no attribute xyz$"):
        _ = nn.Linear(3, 2).xyz
    assert not hasattr(nn.ReLU(), "weight")


def test_a_property_that_fails_says_so_itself():
    with pytest.raises(AttributeError, match="Linear has no attribute dept"):
        _ = Block().depth


@pytest.mark.parametrize("value", [mf.zeros(2, 3), np.zeros((2, 3)), 0.0, nn.ReLU()])
def test_a_parameter_is_not_lost_by_an_assignment(value):
    layer = nn.Linear(3, 2)
    with pytest.raises(DTypeError, match=f"Linear.weight is a parameter, got {type(value).__name__}; .*copy_"):
        layer.weight = value
    layer.weight = nn.Parameter(mf.ones(2, 3))
    assert layer.weight.sum().item() == 6
    layer.bias = None
    assert layer(mf.ones(1, 3)).tolist() == [[3, 3]]


def test_a_module_is_not_lost_by_an_assignment():
    model = nn.Sequential(nn.Linear(3, 2))
    with pytest.raises(DTypeError, match=r"Sequential\.0 is a module, got Tensor"):
        setattr(model, "0", mf.ones(3))
    setattr(model, "0", nn.ReLU())
    assert len(list(model.parameters())) == 0


def test_a_parameter_changes_in_place():
    layer = nn.Linear(3, 2)
    p = layer.weight
    with mf.no_grad():
        layer.weight *= 0
    assert layer.weight is p
    assert not p.any()


# States


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_goes_from_model_to_model(backend):
    a = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 4))
    b = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 4)).to(mf.float64, backend=backend)
    assert b.load_state_dict(a.state_dict()) == ([], [])
    assert [p.tolist() for p in b.parameters()] == [p.tolist() for p in a.parameters()]
    assert {(p.dtype, p.backend) for p in b.parameters()} == {(mf.float64, backend)}
    assert all(p.requires_grad for p in b.parameters())


def test_a_state_shares_memory_and_records_nothing():
    layer = nn.Linear(2, 1)
    state = layer.state_dict()
    assert not any(x.requires_grad for x in state.values())
    with mf.no_grad():
        layer.bias.copy_(mf.tensor([3.0]))
    assert state["bias"].tolist() == [3]
    layer.load_state_dict(state)
    assert layer.bias.tolist() == [3]


def test_all_that_does_not_fit_is_named_and_nothing_is_loaded():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 4))
    before = [p.tolist() for p in model.parameters()]
    state = {"0.weight": mf.zeros(2, 3), "0.bais": mf.zeros(2), "1.weight": np.zeros((2, 4)), "1.bias": mf.zeros(4)}
    with pytest.raises(ShapeError) as caught:
        model.load_state_dict(state)
    for part in (
        "0.bias is missing",
        "0.bais is unexpected; did you mean 0.bias?",
        "1.weight has shape (2, 4), expected (4, 2)",
    ):
        assert part in str(caught.value)
    assert "strict=False" in str(caught.value)
    assert [p.tolist() for p in model.parameters()] == before


def test_a_state_may_be_a_part():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 4))
    found = model.load_state_dict({"0.bias": [1.0, 2.0], "other": mf.zeros(1)}, strict=False)
    assert found.missing_keys == ["0.weight", "1.weight", "1.bias"]
    assert found.unexpected_keys == ["other"]
    assert model[0].bias.tolist() == [1, 2]
    with pytest.raises(ShapeError, match=r"0.bias has shape \(3,\), expected \(2,\). Nothing was loaded$"):
        model.load_state_dict({"0.bias": mf.zeros(3)}, strict=False)


# Moves


@pytest.mark.parametrize("backend", BACKENDS)
def test_moved_parameters_stay_the_same_objects(backend):
    layer = nn.Linear(3, 2)
    before, values = list(layer.parameters()), layer.weight.tolist()
    layer(mf.ones(1, 3)).sum().backward()
    assert layer.to("float64", backend=backend) is layer
    assert [p is q for p, q in zip(before, layer.parameters(), strict=True)] == [True, True]
    assert layer.weight.tolist() == values
    assert layer.weight.grad.dtype is mf.float64
    assert layer.weight.grad.backend == backend
    assert layer(mf.ones(1, 3, dtype=mf.float64, backend=backend)).requires_grad


def test_a_move_that_changes_nothing_copies_nothing():
    layer = nn.Linear(3, 2)
    address = layer.weight.address
    layer.to(mf.float32).to("parallel")
    assert layer.weight.address == address


def test_what_was_recorded_before_a_move_is_not_differentiated_after_it():
    p = nn.Parameter(mf.ones(3))
    model = nn.Module()
    model.p = p
    y = (p * p).sum()
    model.to(mf.float64)
    with pytest.raises(GradientError, match="changed in place"):
        y.backward()


def test_parameters_stay_floats():
    layer = nn.Linear(3, 2)
    with pytest.raises(DTypeError, match="parameters are floats, got int64"):
        layer.to(mf.int64)
    assert layer.weight.dtype is mf.float32


# In words


def test_the_representation_is_a_tree():
    block = Block()
    assert repr(block) == (
        "Block(\n"
        "  (layers.0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (layers.1.0): Linear(in_features=3, out_features=4, bias=False)\n"
        "  (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (heads.left): ReLU()\n"
        "  (heads.right): Linear(in_features=4, out_features=1, bias=True)\n"
        ")"
    )
    assert repr(nn.Sequential(nn.Sequential(nn.Flatten()))) == (
        "Sequential(\n  (0): Sequential(\n    (0): Flatten(start_dim=1, end_dim=-1)\n  )\n)"
    )


def test_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        nn.Module()(1)


# Layers


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5), (0, 5), (2, 0, 5)])
def test_linear_is_a_product_and_a_sum(shape, bias, dtype, backend):
    layer = nn.Linear(5, 4, bias=bias, dtype=dtype, backend=backend)
    x = mf.tensor(np.sin(np.arange(math.prod(shape))).reshape(shape), dtype=dtype, backend=backend, requires_grad=True)
    g = np.cos(np.arange(math.prod(shape[:-1]) * 4)).reshape(*shape[:-1], 4)
    y = layer(x)
    near(y, x.numpy() @ layer.weight.numpy().T + (layer.bias.numpy() if bias else 0), 5)
    y.backward(mf.tensor(g, dtype=dtype, backend=backend))
    rows, grads = x.numpy().reshape(-1, 5), g.reshape(-1, 4)
    near(x.grad, g @ layer.weight.numpy(), 4)
    near(layer.weight.grad, grads.T @ rows, 6)
    if bias:
        near(layer.bias.grad, grads.sum(0), 6)


def test_the_gradient_of_a_weight_lies_like_the_weight():
    """Else each step of an optimizer would go across memory."""
    layer = nn.Linear(5, 4)
    layer(mf.ones(3, 5)).sum().backward()
    assert layer.weight.grad.strides == layer.weight.strides == (5, 1)


def test_linear_is_one_call_of_one_kernel():
    layer = nn.Linear(5, 4)
    plan = Plan(linear, (mf.ones(3, 5), layer.weight, layer.bias))
    assert [type(step).__name__ for step in plan.steps] == ["Product"]
    y = layer(mf.ones(3, 5))
    assert y.history[0].plan.function is linear


def test_linear_differentiates_twice():
    layer = nn.Linear(3, 2, dtype=mf.float64)
    x = mf.tensor([[0.5, -1.0, 2.0]], dtype="float64", requires_grad=True)
    (layer(x) ** 2).sum().backward(create_graph=True)
    g = x.grad
    x.grad = layer.weight.grad = layer.bias.grad = None
    (g * g).sum().backward()  # g = 2 (x W.T + b) W
    w, r = layer.weight.numpy(), layer(x).detach().numpy()
    near(x.grad, 4 * (2 * r @ w) @ (w.T @ w), 9)
    near(layer.weight.grad, 4 * ((2 * r @ w) @ w.T).T @ x.numpy() + 4 * r.T @ (2 * r @ w), 9)


def test_linear_starts_at_random_by_seed_within_its_bound():
    mf.manual_seed(3)
    a = nn.Linear(25, 40)
    assert a.weight.abs().max().item() <= 0.2
    assert a.weight.abs().max().item() > 0.19
    assert a.bias.abs().max().item() <= 0.2
    assert abs(a.weight.mean().item()) < 0.02
    assert nn.Linear(25, 40).weight.tolist() != a.weight.tolist()
    mf.manual_seed(3)
    assert nn.Linear(25, 40).weight.tolist() == a.weight.tolist()


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (mf.ones(2, 4), ShapeError, r"got x of shape \(2, 4\), expected \(\.\.\., 3\)"),
        (mf.ones(()), ShapeError, r"got x of shape \(\)"),
        (mf.ones(2, 3, dtype=mf.float64), DTypeError, "got x of float64, expected float32"),
        (mf.arange(3), DTypeError, "got x of int64, expected float32"),
        (np.ones((2, 3), np.float32), DTypeError, "linear: expected a tensor, got ndarray"),
        ([[1.0, 2.0, 3.0]], DTypeError, "linear: expected a tensor, got list"),
    ],
)
def test_linear_says_what_does_not_fit(x, error, words):
    with pytest.raises(error, match=words):
        nn.Linear(3, 2)(x)


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (-1, 2)])
def test_linear_has_at_least_one_of_each(sizes):
    with pytest.raises(ShapeError, match="expected at least 1"):
        nn.Linear(*sizes)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("module", "meaning"),
    [
        (nn.ReLU(), lambda x: np.maximum(x, 0)),
        (nn.Tanh(), np.tanh),
        (nn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
        (nn.GELU(), lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))),
        (nn.Flatten(), lambda x: x.reshape(3, 35)),
        (nn.Flatten(0, 1), lambda x: x.reshape(15, 7)),
    ],
    ids=["ReLU", "Tanh", "Sigmoid", "GELU", "Flatten", "Flatten(0, 1)"],
)
def test_what_layers_without_parameters_compute(module, meaning, backend):
    x = np.linspace(-4, 4, 105).reshape(3, 5, 7)
    near(module(mf.tensor(x, dtype="float32", backend=backend)), meaning(x.astype(np.float32).astype(np.float64)))


def test_a_sequence_of_modules():
    relu = nn.ReLU()
    model = nn.Sequential(nn.Linear(3, 4), relu, nn.Linear(4, 2), relu)
    x = mf.randn(5, 3)
    near(model(x), np.maximum(model[2](relu(model[0](x))).detach().numpy(), 0))
    assert len(model) == 4
    assert list(model)[3] is model[-1] is relu
    assert isinstance(model[1:3], nn.Sequential)
    assert list(model[1:3]) == [relu, model[2]]
    assert len(list(model.modules())) == 4  # itself, and relu once
    assert nn.Sequential()(x) is x
    with pytest.raises(IndexError):
        model[4]
    with pytest.raises(DTypeError, match="argument 1 is function, expected"):
        nn.Sequential(relu, lambda x: x)


# Losses


def log_softmax(x):
    z = x - x.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("integer", ["int64", "int32"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_and_its_gradient(reduction, integer, dtype, backend):
    n, classes = 7, 5
    array = 3 * np.sin(np.arange(n * classes) ** 1.5).reshape(n, classes)
    index = np.arange(n) * 3 % classes
    x = mf.tensor(array, dtype=dtype, backend=backend, requires_grad=True)
    loss = nn.cross_entropy(x, mf.tensor(index, dtype=integer, backend=backend), reduction)
    wanted = -log_softmax(array)[np.arange(n), index]
    near(loss, {"mean": wanted.mean(), "sum": wanted.sum(), "none": wanted}[reduction], n)
    loss.sum().backward()
    near(x.grad, (np.exp(log_softmax(array)) - np.eye(classes)[index]) / (n if reduction == "mean" else 1), classes)
    assert near(nn.CrossEntropyLoss(reduction)(x, mf.tensor(index, backend=backend)), loss.detach().numpy()) is None


@given(n=st.integers(1, 70), classes=st.integers(1, 40), scale=st.sampled_from([0.1, 10.0, 1e4]), seed=st.integers(0, 99))
def test_cross_entropy_of_any_size(n, classes, scale, seed):
    draw = np.random.default_rng(seed)
    array, index = (scale * draw.standard_normal((n, classes))).astype(np.float32), draw.integers(0, classes, n)
    got = nn.cross_entropy(mf.tensor(array.T.copy()).T, mf.tensor(index), "none")
    near(got, -log_softmax(array.astype(np.float64))[np.arange(n), index], classes)


def test_cross_entropy_neither_overflows_nor_vanishes():
    x = mf.tensor([[1e4, 0.0], [0.0, -math.inf], [20.0, 0.0]], requires_grad=True)
    loss = nn.cross_entropy(x, mf.tensor([1, 0, 0]), "none")
    near(loss, [1e4, 0, math.log1p(math.exp(-20))])
    loss.sum().backward()
    near(x.grad, [[1, -1], [0, 0], [-1 / (1 + math.exp(20)), 1 / (1 + math.exp(20))]])


def test_cross_entropy_of_nothing_is_like_a_mean_of_nothing():
    assert math.isnan(nn.cross_entropy(mf.zeros(0, 3), mf.arange(0)).item())
    assert nn.cross_entropy(mf.zeros(0, 3), mf.arange(0), "sum").item() == 0


@pytest.mark.parametrize("integer", ["int64", "int32"])
@pytest.mark.parametrize("wrong", [5, -1, 2**31 - 1])
def test_a_target_that_is_no_class_is_an_error(wrong, integer):
    targets = mf.tensor([0, 4, wrong, 3], dtype=integer)
    with pytest.raises(IndexingError, match=rf"target {wrong} of example 2 is none of 5 classes; expected 0 to 4"):
        nn.cross_entropy(mf.zeros(4, 5), targets)


def test_inside_a_captured_function_a_target_that_is_no_class_gives_nan():
    loss = Composite(lambda x, y: nn.cross_entropy(x, y, "none") * 2, ())
    got = call(loss, mf.zeros(3, 4), mf.tensor([1, 4, -1])).tolist()
    assert got[0] == pytest.approx(2 * math.log(4))
    assert np.isnan(got[1:]).all()


@pytest.mark.parametrize(
    ("x", "y", "error", "words"),
    [
        (mf.zeros(4, 5), mf.arange(3), ShapeError, r"got targets of shape \(3,\), expected \(4,\)"),
        (mf.zeros(4, 5), mf.zeros(4, 5), ShapeError, r"got targets of shape \(4, 5\), expected \(4,\)"),
        (mf.zeros(4, 5), [0, 1, 2, 3], (DTypeError, ShapeError), "list"),
        (mf.zeros(4), mf.arange(4), ShapeError, r"got logits of shape \(4,\), expected \(N, C\)"),
        (mf.zeros(4, 0), mf.arange(4), ShapeError, "C >= 1"),
        (mf.zeros(4, 5), mf.zeros(4), DTypeError, "targets of float32, expected floats and int64 class indices"),
        (mf.arange(20).reshape(4, 5), mf.arange(4), DTypeError, "got logits of int64"),
        ([[0.0]], mf.arange(1), DTypeError, "cross_entropy: expected a tensor, got list"),
    ],
)
def test_cross_entropy_says_what_does_not_fit(x, y, error, words):
    with pytest.raises(error, match=words):
        nn.cross_entropy(x, y)


@pytest.mark.parametrize("loss", [nn.cross_entropy, nn.mse_loss])
def test_an_unknown_reduction(loss):
    y = mf.arange(4) if loss is nn.cross_entropy else mf.zeros(4, 5)
    with pytest.raises(ValueError, match="reduction is 'avg', expected"):
        loss(mf.zeros(4, 5), y, reduction="avg")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_squared_differences(reduction, backend):
    x, y = np.sin(np.arange(15)).reshape(3, 5), np.cos(np.arange(15)).reshape(3, 5)
    a, b = (mf.tensor(z, backend=backend, requires_grad=True) for z in (x, y))
    loss = nn.mse_loss(a, b, reduction)
    squares = (x - y) ** 2
    near(loss, {"mean": squares.mean(), "sum": squares.sum(), "none": squares}[reduction], 15)
    loss.sum().backward()
    near(a.grad, 2 * (x - y) / (15 if reduction == "mean" else 1))
    near(b.grad, -a.grad.numpy())
    near(nn.MSELoss(reduction)(a, b), loss.detach().numpy())


@pytest.mark.parametrize("y", [mf.zeros(3), mf.zeros(1, 3), 0.0])
def test_squared_differences_do_not_broadcast(y):
    with pytest.raises(ShapeError, match=r"got shapes \(3, 1\) and"):
        nn.mse_loss(mf.zeros(3, 1), y)
