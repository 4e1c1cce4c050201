"""nn.Module, nn.Parameter and nn.Buffer: registration, names, moves between backends, state dicts, errors."""

import copy
import pickle

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError, GradientError, ShapeError

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
def test_results_of_parameters_are_plain_tensors(backend):
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


def test_integers_may_be_buffers_but_not_parameters():
    with pytest.raises(DTypeError, match="expected a float type"):
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


def test_the_error_of_a_property_is_raised_unchanged():
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


def test_a_graph_recorded_before_a_move_is_an_error_in_backward():
    p = nn.Parameter(mf.ones(3))
    model = nn.Module()
    model.p = p
    y = (p * p).sum()
    model.to(mf.float64)
    with pytest.raises(GradientError, match="modified in place"):
        y.backward()


def test_parameters_stay_floats():
    layer = nn.Linear(3, 2)
    with pytest.raises(DTypeError, match="got dtype int64, expected a float for parameters"):
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


def test_a_module_without_forward_is_an_error():
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        nn.Module()(1)


# Buffers


class Counted(nn.Module):
    """A parameter behind a buffer, and buffers of several element types."""

    def __init__(self):
        self.steps = nn.Buffer(mf.tensor(0))
        self.weight = nn.Parameter(mf.ones(2))
        self.mean = nn.Buffer(mf.zeros(3))
        self.is_ready = nn.Buffer(mf.tensor([True, False]))


def test_buffers_are_in_the_state_but_no_parameters():
    model = nn.Sequential(Counted(), nn.Linear(2, 1))
    assert list(model.state_dict()) == ["0.weight", "0.steps", "0.mean", "0.is_ready", "1.weight", "1.bias"]
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "1.weight", "1.bias"]
    assert [name for name, _ in model.named_buffers()] == ["0.steps", "0.mean", "0.is_ready"]
    assert list(model.buffers())[1] is model[0].mean
    mf.optim.SGD(model.parameters(), lr=0.1)  # takes none that is not learned
    assert not model.requires_grad_().requires_grad_(True)[0].mean.requires_grad
    model.zero_grad()


def test_a_buffer_is_not_lost_by_an_assignment():
    module = Counted()
    with pytest.raises(DTypeError, match=r"Counted.mean is a buffer, got Tensor; .*copy_.*assign an nn.Buffer"):
        module.mean = mf.zeros(3)
    with pytest.raises(DTypeError, match="Buffer: expected a tensor, got list"):
        nn.Buffer([0.0])
    module.steps += 1
    module.mean = nn.Buffer(mf.ones(3))
    assert (module.steps.item(), module.mean.tolist()) == (1, [1, 1, 1])
    module.mean = None
    assert "mean" not in module.state_dict()


@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors_without_floats_keep_their_dtype(backend):
    module = Counted()
    steps, mean = module.steps, module.mean
    module.to(mf.float64, backend=backend)
    assert module.steps is steps
    assert module.mean is mean
    assert [x.dtype for x in module.state_dict().values()] == [mf.float64, mf.int64, mf.float64, mf.bool_]
    assert {x.backend for x in module.state_dict().values()} == {backend}
    with pytest.raises(DTypeError, match="got dtype int64, expected a float for parameters"):
        module.to(mf.int64)
    assert module.weight.dtype is mf.float64


@pytest.mark.parametrize("how", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_a_copy_has_buffers_of_its_own(how):
    module = Counted()
    other = how(module)
    other.steps += 5
    assert type(other.steps) is nn.Buffer
    assert (module.steps.item(), other.steps.item()) == (0, 5)


def test_a_state_is_loaded_completely_or_not_at_all():
    a, b = Counted(), Counted()
    a.steps += 7
    with mf.no_grad():
        a.weight += 1
    b.load_state_dict({name: x.numpy() for name, x in a.state_dict().items()})
    assert (b.steps.item(), b.weight.tolist()) == (7, [2, 2])
    b.load_state_dict({**a.state_dict(), "weight": mf.arange(2)})  # integers are floats as well
    assert (b.weight.dtype, b.weight.tolist()) == (mf.float32, [0, 1])
    for wrong in (np.array(1.5), np.array("seven"), np.array(1j)):
        with pytest.raises(ShapeError, match=r"steps has dtype .*, expected int64. Nothing was loaded$"):
            b.load_state_dict({**a.state_dict(), "steps": wrong})
    with pytest.raises(ShapeError, match="weight has dtype complex128, expected float32"):
        b.load_state_dict({**a.state_dict(), "weight": np.ones(2) * 1j})
    assert (b.steps.item(), b.weight.tolist()) == (7, [0, 1])
    b.load_state_dict({**a.state_dict(), "weight": np.ones(2, np.float16)})
    assert b.weight.tolist() == [1, 1]


def test_apply_visits_children_first():
    seen = []
    block = Block()
    assert block.apply(seen.append) is block
    assert seen[-1] is block
    assert len(seen) == 5
    assert {id(module) for module in seen} == {id(module) for module in block.modules()}
    nested = nn.Sequential(nn.Sequential(nn.ReLU()))
    seen.clear()
    nested.apply(seen.append)
    assert seen == [nested[0][0], nested[0], nested]
