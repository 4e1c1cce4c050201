"""nn.Sequential, nn.ModuleList and nn.ModuleDict: lists and dicts of modules with PyTorch's names."""

import copy

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError, IndexingError
from tests.nn.agreement import near, ways


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
    with pytest.raises(DTypeError, match="Sequential: module 1 is function, expected"):
        nn.Sequential(relu, lambda x: x)


@pytest.mark.parametrize("kind", [nn.Sequential, lambda *modules: nn.ModuleList(modules)], ids=["Sequential", "ModuleList"])
def test_a_numbered_container_is_a_list(kind):
    a, b, c, d = (nn.Linear(2, 2) for _ in range(4))
    modules = kind(a, b)
    assert modules.append(c) is modules
    assert modules.extend([d, a]) is modules
    assert list(modules) == [a, b, c, d, a]
    assert [name for name, _ in modules.named_children()] == ["0", "1", "2", "3"]
    assert list(modules.state_dict())[:3] == ["0.weight", "0.bias", "1.weight"]
    assert modules[-2] is d
    assert type(modules[::2]) is type(modules)
    assert list(modules[::2]) == [a, c, a]
    modules[1] = nn.ReLU()
    modules[-1] = b
    assert [type(module).__name__ for module in modules] == ["Linear", "ReLU", "Linear", "Linear", "Linear"]
    assert list(modules) == [a, modules[1], c, d, b]
    for index in (5, -6):
        with pytest.raises(IndexingError, match=f"index {index} is out of range for 5 modules"):
            modules[index]
        with pytest.raises(IndexingError):
            modules[index] = a
    with pytest.raises(DTypeError, match="module 6 is str, expected"):
        modules.extend([a, "no module"])
    assert len(modules) == 5  # nothing was taken
    other = copy.deepcopy(modules)
    assert len(other) == 5
    assert other[0] is not a


def test_a_list_of_modules_is_a_level_of_the_tree():
    class Tower(nn.Module):
        def __init__(self):
            self.layers = nn.ModuleList([nn.Linear(2, 2)])
            self.layers += [nn.Tanh()]

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    tower = Tower()
    assert list(tower.state_dict()) == ["layers.0.weight", "layers.0.bias"]
    assert repr(tower) == (
        "Tower(\n  (layers): ModuleList(\n    (0): Linear(in_features=2, out_features=2, bias=True)\n    (1): Tanh()\n  )\n)"
    )
    for run in ways(tower.forward):
        assert run(mf.ones(3, 2)).shape == (3, 2)
    with pytest.raises(NotImplementedError, match="ModuleList has no forward"):
        tower.layers(1)


def test_a_dict_of_modules():
    left, right = nn.Linear(2, 2), nn.ReLU()
    heads = nn.ModuleDict({"left": left})
    heads["right"] = right
    heads.update([("middle", nn.Tanh())])
    assert list(heads) == list(heads.keys()) == ["left", "right", "middle"]
    assert list(heads.values())[:2] == [left, right]
    assert dict(heads.items())["left"] is heads["left"] is left
    assert "right" in heads
    assert "training" not in heads
    assert len(heads) == 3
    assert list(heads.state_dict()) == ["left.weight", "left.bias"]
    assert heads.pop("middle").forward(mf.zeros(1)).tolist() == [0]
    del heads["left"]
    assert list(heads) == ["right"]
    assert repr(heads) == "ModuleDict(\n  (right): ReLU()\n)"
    heads.clear()
    assert len(heads) == 0
    assert len(nn.ModuleDict()) == 0


def test_a_bad_entry_is_named_and_nothing_is_added():
    heads = nn.ModuleDict({"left": nn.ReLU()})
    with pytest.raises(IndexingError, match="ModuleDict has no module 'lefd'; did you mean left"):
        heads["lefd"]
    for name in ("train", "", "a.b", "keys", "forward"):
        with pytest.raises(IndexingError, match=f"name '{name}', expected a name that is not empty"):
            heads.update({"new": nn.ReLU(), name: nn.ReLU()})
    with pytest.raises(DTypeError, match="name 1 of type int"):
        heads[1] = nn.ReLU()
    with pytest.raises(DTypeError, match=r"module 'x' is float, expected an nn.Module"):
        heads["x"] = 1.0
    assert list(heads) == ["left"]
