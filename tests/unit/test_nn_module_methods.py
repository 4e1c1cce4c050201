"""Registration, look-up, casts and hooks of modules; containers of parameters, Identity and Unflatten."""

import copy

import pytest

import minifuse as mf
from minifuse import nn


@pytest.fixture(autouse=True)
def on_python():
    with mf.use_backend("python"):
        yield


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1)))


def test_registration_is_assignment():
    module = nn.Module()
    module.register_buffer("mean", mf.zeros(2))
    module.register_buffer("cache", mf.ones(3), persistent=False)
    module.register_buffer("none", None)
    module.register_parameter("weight", nn.Parameter(mf.ones(2)))
    module.register_parameter("bias", None)
    module.add_module("layer", nn.Linear(2, 1))
    assert [name for name, _ in module.named_buffers()] == ["mean", "cache"]
    assert [name for name, _ in module.named_parameters()] == ["weight", "layer.weight", "layer.bias"]
    assert [*module.state_dict()] == ["weight", "mean", "layer.weight", "layer.bias"]
    assert module.bias is module.none is None
    assert [*copy.deepcopy(module).state_dict()] == [*module.state_dict()]
    assert module.load_state_dict(module.state_dict()).missing_keys == []


@pytest.mark.parametrize(
    ("register", "error", "text"),
    [
        (lambda m: m.register_buffer("a.b", mf.ones(1)), mf.IndexingError, "without a dot"),
        (lambda m: m.register_buffer("training", mf.ones(1)), mf.IndexingError, "no attribute yet"),
        (lambda m: m.register_parameter("w", mf.ones(1)), mf.DTypeError, r"got Tensor, expected an nn\.Parameter"),
        (lambda m: m.add_module("w", mf.ones(1)), mf.DTypeError, r"got Tensor, expected an nn\.Module"),
        (lambda m: m.half(), mf.DTypeError, r"write module\.float\(\)"),
        (lambda m: m.get_parameter("1.1.wight"), AttributeError, "did you mean weight"),
        (lambda m: m.get_parameter("1.1"), AttributeError, "is Linear, expected Parameter"),
    ],
)
def test_mistakes_are_explained(register, error, text):
    with pytest.raises(error, match=text):
        register(model())


def test_look_up_by_name():
    m = model()
    assert m.get_submodule("") is m
    assert m.get_submodule("1.1") is m[1][1]
    assert m.get_parameter("1.1.bias") is m[1][1].bias
    m.set_submodule("1.0", nn.Tanh(), strict=True)
    assert isinstance(m[1][0], nn.Tanh)
    m.heads = {"left": [nn.Linear(1, 1)]}
    m.heads["left"][0].scale = nn.Buffer(mf.ones(1))
    assert m.get_buffer("heads.left.0.scale") is m.heads["left"][0].scale
    m.set_submodule("heads.left.0", nn.ReLU())
    assert isinstance(m.heads["left"][0], nn.ReLU)


def test_options_of_iterators():
    m = model()
    m.twice = m[0]
    assert [name for name, _ in m[1].named_parameters(prefix="x")] == ["x.1.weight", "x.1.bias"]
    assert [*m.parameters(recurse=False)] == []
    assert [*m[0].buffers(recurse=False)] == []
    assert len([*m.named_parameters(remove_duplicate=False)]) == 6
    assert [name for name, _ in m.named_modules(prefix="m", remove_duplicate=False)][-1] == "m.twice"
    state = m[1].state_dict(prefix="b.", keep_vars=True, destination={})
    assert state["b.1.weight"] is m[1][1].weight


def test_casts_and_zero_grad():
    m = model().double()
    assert m.get_parameter("0.weight").dtype is mf.float64
    assert m.float().type("float64").float().get_parameter("0.weight").dtype is mf.float32
    assert m.cpu() is m
    m(mf.ones(1, 3)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m[0].weight.grad.tolist() == [[0, 0, 0], [0, 0, 0]]
    m.zero_grad()
    assert m[0].weight.grad is None


def test_forward_hooks_see_and_replace_inputs_and_outputs():
    layer, log = nn.Identity(), []
    first = layer.register_forward_hook(lambda module, inputs, y: log.append((module is layer, len(inputs), y.item())))
    layer.register_forward_pre_hook(lambda module, inputs: inputs[0] + 1)
    layer.register_forward_hook(lambda module, inputs, y: y * 10)
    layer.register_forward_hook(lambda module, inputs, named, y: y + len(named), with_kwargs=True, prepend=True)
    assert layer(mf.tensor(1.0)).item() == 20
    assert log == [(True, 1, 2.0)]
    first.remove()
    assert mf.fuse(lambda x: layer(x) * 1)(mf.tensor(2.0)).item() == 30
    assert layer(mf.tensor(2.0)).item() == 30
    assert len(log) == 1
    with layer.register_forward_pre_hook(lambda module, inputs, named: ((inputs[0] * 0,), named), with_kwargs=True):
        assert layer(mf.tensor(2.0)).item() == 0
    assert layer(mf.tensor(2.0)).item() == 30


def test_a_hook_with_always_call_runs_after_an_error():
    layer, seen = nn.Module(), []
    layer.register_forward_hook(lambda module, inputs, y: seen.append(y), always_call=True)
    with pytest.raises(NotImplementedError):
        layer(mf.ones(1))
    assert seen == [None]


@pytest.mark.skipif(not hasattr(mf.Tensor, "register_hook"), reason="tensors have no hooks on gradients")
def test_backward_hooks_see_and_replace_gradients():
    layer, seen = nn.Identity(), []
    layer.register_full_backward_pre_hook(lambda module, gy: (gy[0] * 2,))
    handle = layer.register_full_backward_hook(
        lambda module, gx, gy: seen.append((gx[0].item(), gy[0].item())) or (gx[0] * 5,)
    )
    x = mf.tensor(3.0, requires_grad=True)
    (layer(x * 1) * x).backward()
    assert seen == [(6.0, 6.0)]
    assert x.grad.item() == 33
    handle.remove()
    x.grad = None
    layer(x).backward()
    assert x.grad.item() == 2


@pytest.mark.parametrize("kind", [nn.Sequential, lambda *modules: nn.ModuleList(modules)], ids=["Sequential", "ModuleList"])
def test_numbered_containers_insert_and_remove(kind):
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    modules = kind(a, b)
    assert [*modules.insert(1, c)] == [a, c, b]
    assert modules.pop(1) is c
    assert [*modules.__add__([c])] == [a, b, c]
    modules += [c]
    del modules[0]
    assert [name for name, _ in modules.named_children()] == ["0", "1"]
    del modules[-1:]
    assert [*modules] == [b]


def test_sequential_takes_names_from_a_dict():
    m = nn.Sequential({"a": nn.Linear(3, 2), "b": nn.ReLU()})
    assert [*m.state_dict()] == ["a.weight", "a.bias"]
    assert isinstance(m[1], nn.ReLU)
    assert m(mf.ones(1, 3)).shape == (1, 2)


def test_containers_of_parameters():
    weights = nn.ParameterList([nn.Parameter(mf.ones(2)), mf.zeros(3)])
    assert [p.shape for p in weights.parameters()] == [(2,), (3,)]
    weights.append(mf.ones(1))
    weights[0] = mf.zeros(4)
    assert repr(weights) == "ParameterList((4,), (3,), (1,))"
    with pytest.raises(mf.DTypeError, match="ParameterList: entry 3 is list, expected a tensor"):
        weights.append([1.0])
    named = nn.ParameterDict({"a": mf.ones(2)})
    named.update(nn.ParameterDict([("b", mf.ones(3))]))
    assert named.setdefault("a", mf.ones(9)).shape == (2,)
    assert named.get("c") is None
    assert [*named.copy().popitem()[1].shape] == [3]
    assert [*named.fromkeys(["x", "y"], mf.ones(1)).state_dict()] == ["x", "y"]
    assert repr(named) == "ParameterDict(a: (2,), b: (3,))"


def test_identity_and_unflatten():
    x = mf.ones(2, 6)
    assert nn.Identity(54, unused=True)(x) is x
    assert nn.Unflatten(1, (2, -1))(x).shape == (2, 2, 3)
    assert repr(nn.Unflatten(-1, [3, 2])) == "Unflatten(dim=-1, unflattened_size=(3, 2))"
    with pytest.raises(mf.ShapeError, match=r"Unflatten: dim 1 of shape \(2, 6\)"):
        nn.Unflatten(1, (4, 2))(x)
