"""Layers made from functions, and the random ones of them: dropout of channels, rrelu, gumbel_softmax."""

import inspect
import pickle

import numpy as np
import pytest

import minifuse as mf
import minifuse.nn.functional as F  # noqa: N812  # the name that people give it
from minifuse import nn
from minifuse.nn import lazy
from tests.nn.agreement import ways


@pytest.fixture(autouse=True)
def on_python():
    with mf.use_backend("python"):
        mf.manual_seed(0)
        yield


def test_every_name_that_is_imported_later_is_explained():
    for name in lazy.exported():
        assert inspect.getdoc(getattr(nn, name)), name


def test_a_layer_prints_its_options_and_can_be_pickled():
    layer = nn.Hardtanh(-2, max_val=2.0)
    assert repr(layer) == "Hardtanh(min_val=-2, max_val=2.0)"
    assert repr(nn.Mish(inplace=True)) == "Mish(inplace=True)"
    assert repr(pickle.loads(pickle.dumps(layer))) == repr(layer)


def test_arguments_of_layers_are_checked():
    with pytest.raises(TypeError, match="unexpected keyword argument 'beta'"):
        nn.CELU(beta=1.0)
    with pytest.raises(TypeError, match="missing a required argument: 'value'"):
        nn.Threshold(0.1)
    with pytest.raises(TypeError, match="missing a required argument: 'target'"):
        F.soft_margin_loss(mf.ones(2))
    with pytest.raises(mf.DTypeError, match="celu: got dtype int64, expected floats"):
        F.celu(mf.tensor([1]))
    with pytest.raises(mf.DTypeError, match="celu: expected a tensor, got float"):
        F.celu(1.0)


def test_a_weight_of_a_loss_is_a_buffer():
    layer = nn.BCELoss(weight=mf.tensor([1.0, 3.0]))
    assert layer.state_dict()["weight"].tolist() == [1, 3]
    assert layer(mf.tensor([0.5, 0.5]), mf.tensor([1.0, 0.0])).item() == pytest.approx(2 * np.log(2))


def test_inplace_and_twins_store_the_result():
    layers = (getattr(nn, name)(inplace=True) for name in ("Hardtanh", "ReLU", "LeakyReLU", "ELU", "SiLU"))
    for change in (*layers, lambda x: F.relu6(x, inplace=True), F.selu_, lambda x: F.celu(x, 1.0, True)):
        x = mf.tensor([-3.0, 9.0])
        y = change(x)
        assert y is x
        assert x.tolist() != [-3.0, 9.0]


def test_names_of_pytorch_are_accepted():
    assert F.celu(input=mf.tensor([2.0])).tolist() == [2.0]
    assert F.margin_ranking_loss(input1=mf.ones(2), input2=mf.ones(2), target=mf.ones(2), margin=2.0).item() == 2.0


@pytest.mark.parametrize(("kind", "shape", "dims"), [("1d", (30, 20, 5), 2), ("1d", (500, 5), 1), ("2d", (30, 20, 2, 3), 2),
                                                   ("3d", (30, 20, 2, 3, 2), 2), ("3d", (500, 2, 2, 3), 1)])  # fmt: skip
def test_dropout_of_channels_drops_all_of_a_channel(kind, shape, dims):
    layer = getattr(nn, f"Dropout{kind}")(0.25)
    for run in ways(layer):
        y = run(mf.ones(*shape)).numpy()
        channels = y.reshape(-1, int(np.prod(shape[dims:])))
        assert (channels == channels[:, :1]).all()
        assert set(np.unique(channels)) == {0, np.float32(1 / 0.75)}
        assert 0.15 < (channels[:, 0] == 0).mean() < 0.35
    assert layer.eval()(mf.ones(*shape)).numpy().all()
    assert not F.dropout2d(mf.ones(2, 3, 2), 1.0).numpy().any()


@pytest.mark.parametrize("function", [F.alpha_dropout, F.feature_alpha_dropout])
def test_alpha_dropout_keeps_mean_and_variance(function):
    x = mf.randn(100, 100)
    y = function(x, 0.3, training=True).numpy()
    assert abs(y.mean()) < 0.1
    assert 0.9 < y.std() < 1.1
    values, counts = np.unique(y, return_counts=True)
    assert values[counts.argmax()] < -0.5
    assert 0.25 < counts.max() / y.size < 0.35


def test_slopes_of_rrelu_are_random_in_training_and_differ_by_call():
    for run in ways(nn.RReLU(0.1, 0.3)):
        first, second = (run(-mf.ones(1000)).numpy() for _ in range(2))
        assert first.min() > -0.3
        assert first.max() < -0.1
        assert abs(first.mean() + 0.2) < 0.01
        assert (first != second).mean() > 0.9


def test_gumbel_softmax_draws_classes_by_their_probability():
    logits = mf.tensor([0.1, 0.2, 0.7]).log().expand(4000, 3)
    hard = F.gumbel_softmax(logits, hard=True)
    assert hard.dtype is mf.float32
    assert hard.mean(0).numpy() == pytest.approx([0.1, 0.2, 0.7], abs=0.03)
    x = mf.zeros(2, 3, requires_grad=True)
    y = F.gumbel_softmax(x, tau=0.5, hard=True, dim=0)
    assert sorted({*y.flatten().tolist()}) == [0, 1]
    (y * mf.tensor([[1.0], [2.0]])).sum().backward()
    assert np.abs(x.grad.numpy()).min() > 0
    assert F.gumbel_softmax(x).sum(1).tolist() == pytest.approx([1, 1])


def test_slopes_of_prelu_are_learned():
    layer = nn.PReLU(3)
    layer(-mf.ones(2, 3, 4)).sum().backward()
    assert layer.weight.grad.tolist() == [-8, -8, -8]
    assert repr(layer) == "PReLU(num_parameters=3)"


def test_bilinear_is_the_sum_over_pairs_of_features():
    layer = nn.Bilinear(3, 2, 4)
    x, y = mf.randn(5, 3), mf.randn(5, 2)
    expected = np.einsum("ni,oij,nj->no", x.numpy(), layer.weight.detach().numpy(), y.numpy()) + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(x, y).detach().numpy(), expected, rtol=1e-5)
    assert repr(layer) == "Bilinear(in1_features=3, in2_features=2, out_features=4, bias=True)"
