"""nn.Dropout: how many elements, which for a seed, new ones in each call, and the same in the backward pass."""

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError
from minifuse.tensors.random import generator
from tests.nn.agreement import BACKENDS, near, ways


def mask_of(y):
    return y.detach().numpy() != 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.93, 1.0])
def test_a_share_of_p_is_dropped_and_the_mean_stays(p, dtype):
    mf.manual_seed(1)
    n = 100_003
    y = nn.dropout(mf.ones(n, dtype=dtype), p)
    kept = mask_of(y)
    assert abs(kept.mean() - (1 - p)) < 5 * (p * (1 - p) / n) ** 0.5 + 1e-12
    if kept.any():
        np.testing.assert_allclose(y.numpy()[kept], 1 / (1 - p), rtol=1e-6)


def test_elements_are_dropped_independently_of_their_neighbours():
    """Of many masks: at each distance, each combination of two, three and four is as frequent as chance makes it."""
    mf.manual_seed(2)
    masks = np.array([mask_of(nn.dropout(mf.ones(64))) for _ in range(4000)]).astype(float) * 2 - 1
    for places in ([0, 1], [3, 4], [0, 63], [8, 16], [0, 32], [1, 2, 3], [0, 16, 48], [0, 1, 2, 3], [5, 21, 37, 53]):
        assert abs(masks[:, places].prod(1).mean()) < 4.5 / 4000**0.5, places
    assert abs(masks.mean(0)).max() < 5 / 4000**0.5
    one = mask_of(nn.dropout(mf.ones(1 << 18))).astype(float) * 2 - 1
    for distance in (1, 2, 3, 64, 1000, 1 << 12):
        assert abs((one[distance:] * one[:-distance]).mean()) < 5 / len(one) ** 0.5, distance


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.75])
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_element_survives_if_its_hash_is_large(backend, p):
    """Integers that overflow, as NumPy computes them; 0.5 and its like become literals of a fused kernel."""
    for run in ways(lambda x: nn.dropout(x, p)):
        mf.manual_seed(11)
        y = mask_of(run(mf.ones(17, 61, backend=backend)))
        mf.manual_seed(11)
        a, b, c, d = (np.int64(generator().bit_generator.random_raw() - 2**63) for _ in range(4))
        i = np.arange(17 * 61)
        with np.errstate(over="ignore"):
            value = (((a * i + b) * i + c) * i + d) & np.int64(2**63 - 1)
        assert np.array_equal(y.ravel(), value >= int(p * 2**63))


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_are_reproducible_and_the_same_everywhere(backend):
    mf.manual_seed(7)
    wanted = [mask_of(nn.dropout(mf.ones(5, 33), 0.3)) for _ in range(3)]
    assert not np.array_equal(wanted[0], wanted[1])
    for run in ways(lambda x: nn.dropout(x, 0.3)):
        mf.manual_seed(7)
        for mask in wanted:
            assert np.array_equal(mask_of(run(mf.ones(5, 33, backend=backend))), mask)


def test_the_order_of_memory_plays_no_part():
    mf.manual_seed(3)
    wanted = mask_of(nn.dropout(mf.ones(6, 4)))
    mf.manual_seed(3)
    assert np.array_equal(mask_of(nn.dropout(mf.ones(4, 6).T)), wanted)


def test_fused_dropout_draws_anew_in_each_call_in_program_order():
    def noisy(x):
        return nn.dropout(x, 0.5), mf.rand(2), nn.dropout(x, 0.2)

    found = []
    for run in ways(noisy):
        mf.manual_seed(5)
        found.append([[y.tolist() for y in run(mf.ones(40))] for _ in range(3)])
    assert found[0][0] != found[0][1]
    assert found[1][0] != found[1][1]
    assert found[0] == found[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_gradient_goes_through_the_same_mask(backend):
    for run in ways(lambda x: nn.dropout(x * 3, 0.4)):
        x = mf.tensor(np.linspace(1, 2, 105).reshape(3, 5, 7), "float32", backend=backend, requires_grad=True)
        y = run(x)
        y.sum().backward()
        kept = mask_of(y)
        assert 0 < kept.mean() < 1
        near(y.detach(), np.where(kept, x.detach().numpy() * 3 / 0.6, 0))
        near(x.grad, np.where(kept, 3 / 0.6, 0))


def test_the_gradient_in_a_fused_step_goes_through_the_mask_of_that_call():
    @mf.fuse
    def step(x):
        x.grad = None
        y = nn.dropout(x, 0.5)
        y.sum().backward()
        return y.detach()

    x = mf.ones(100, requires_grad=True)
    masks = [mask_of(step(x)) for _ in range(3) if np.array_equal(mask_of(step(x)), mask_of(x.grad))]
    assert len(masks) == 3
    assert not np.array_equal(masks[0], masks[1])


def test_no_mask_is_stored():
    found = mf.fuse(lambda x: nn.dropout(x, 0.5)).explain(mf.ones(1000, requires_grad=True))
    assert len(found.forward.kernels) == len(found.backward.run.kernels) == 1
    assert found.forward.nbytes == found.backward.run.nbytes == 8000


def test_only_in_training():
    layer = nn.Dropout(0.5)
    x = mf.ones(100)
    assert 0 < mask_of(layer(x)).mean() < 1
    assert layer.eval()(x) is x
    assert nn.dropout(x, 0.0) is x
    assert nn.dropout(x, 0.5, training=False) is x
    run = mf.fuse(lambda x: layer(x) * 1)
    assert mask_of(run(x)).all()
    layer.train()
    assert not mask_of(run(x)).all()


def test_dropped_infinities_and_nan_are_zero():
    y = nn.dropout(mf.full(200, float("inf")), 0.5).numpy()
    assert set(y.tolist()) == {0.0, float("inf")}
    assert nn.dropout(mf.full(5, float("nan")), 1.0).tolist() == [0] * 5


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_p_is_a_probability(p):
    with pytest.raises(ValueError, match=r"ropout: got p=.*, expected a probability"):
        nn.Dropout(p)
    with pytest.raises(ValueError, match=r"dropout: got p=.*, expected a probability"):
        nn.dropout(mf.ones(1), p)


def test_invalid_p_is_an_error():
    with pytest.raises(DTypeError, match="dropout: got dtype int64, expected floats"):
        nn.dropout(mf.arange(3))
    with pytest.raises(DTypeError, match="dropout: expected a tensor, got list"):
        nn.dropout([1.0])
    assert nn.dropout(mf.ones(0, 3)).shape == (0, 3)
    assert nn.dropout(mf.ones(())).shape == ()


def test_the_representation():
    assert repr(nn.Dropout()) == "Dropout(p=0.5)"
