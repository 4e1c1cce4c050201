"""nn.utils: vectors of parameters, weight and spectral normalization, clipping."""

import copy

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from tests.nn.agreement import near


@pytest.fixture(autouse=True)
def on_python():
    with mf.use_backend("python"):
        mf.manual_seed(0)
        yield


def test_parameters_as_one_vector():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    vector = nn.utils.parameters_to_vector(model.parameters())
    near(vector[6:8].detach(), model[0].bias.detach().numpy())
    (vector * vector).sum().backward()
    near(model[1].bias.grad, 2 * model[1].bias.detach().numpy())
    nn.utils.vector_to_parameters(mf.arange(11) * 1.0, model.parameters())
    assert model[1].weight.tolist() == [[8, 9]]
    with pytest.raises(mf.ShapeError, match=r"got shape \(3,\), expected \(11,\)"):
        nn.utils.vector_to_parameters(mf.ones(3), model.parameters())


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_splits_length_and_direction(dim):
    layer = nn.Linear(3, 2)
    w, x = layer.weight.detach().numpy().copy(), mf.randn(4, 3)
    y = layer(x).detach().numpy()
    assert nn.utils.weight_norm(layer, dim=dim) is layer
    near(layer(x), y)
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight_g", "weight_v"]
    norm = np.sqrt((w * w).sum(axis=None if dim is None else 1 - dim, keepdims=dim is not None))
    near(layer.weight_g, norm)
    for run in layer, mf.fuse(layer), copy.deepcopy(layer):
        with mf.no_grad():
            layer.weight_g.copy_(2 * layer.weight_g)
        scaled = run(x)
        if run is not layer and not isinstance(run, nn.Module):
            near(scaled, 4 * (y - layer.bias.detach().numpy()) + layer.bias.detach().numpy())
    layer(x).sum().backward()
    assert abs((layer.weight_v.grad * layer.weight_v).sum().item()) < 1e-3  # only the direction of v counts
    now = layer.weight.detach().numpy()
    nn.utils.remove_weight_norm(layer)
    near(layer.weight, now)
    assert [*layer.state_dict()] == ["bias", "weight"]
    with pytest.raises(ValueError, match=r"remove_weight_norm: Linear\.weight is not computed by it"):
        nn.utils.remove_weight_norm(layer)


def test_spectral_norm_divides_by_the_largest_singular_value():
    layer = nn.utils.spectral_norm(nn.Linear(3, 2), n_power_iterations=30)
    original = layer.weight_orig.detach().numpy()
    for run in layer, mf.fuse(layer):
        run(mf.ones(1, 3))
    near(layer.weight, original / np.linalg.svd(original)[1][0])
    u = layer.weight_u.numpy().copy()
    layer.eval()(mf.ones(1, 3)).sum().backward()
    assert (layer.weight_u.numpy() == u).all()
    assert layer.weight_orig.grad is not None
    assert [*layer.state_dict()] == ["bias", "weight_orig", "weight_u", "weight_v"]
    nn.utils.remove_spectral_norm(layer)
    assert [*layer.state_dict()] == ["bias", "weight"]
    with pytest.raises(mf.DTypeError, match=r"spectral_norm: ReLU\.weight is NoneType, expected a parameter"):
        nn.utils.spectral_norm(nn.ReLU())


def test_clipping_is_that_of_optim():
    assert nn.utils.clip_grad_norm_ is mf.optim.clip_grad_norm_
    with pytest.raises(AttributeError, match=r"has no attribute 'clip_nothing'"):
        nn.utils.clip_nothing  # noqa: B018
