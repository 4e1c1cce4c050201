"""data.toy_2d: coordinates and classes of points in the plane, equal for equal seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.core.errors import MinifuseError, ShapeError
from minifuse.data import points, toy_2d

RULES = {
    "simple": lambda a, b: a > 0,
    "diagonal": lambda a, b: b > -a,
    "split": lambda a, b: a < -0.5 or a > 0.5,
    "xor": lambda a, b: a * b < 0,
    "circle": lambda a, b: np.float32(a * a) + np.float32(b * b) > np.float32(0.4),
}


@given(
    name=st.sampled_from(toy_2d.DATASET_NAMES), n=st.integers(0, 300), seed=st.integers(0, 2**31 - 1), noise=st.floats(0, 2)
)
def test_points_are_in_the_square_and_follow_the_seed(name, n, seed, noise):
    x, y = points(name, n, seed, noise, backend="python")
    assert (x.shape, x.dtype, x.backend) == ((n, 2), mf.float32, "python")
    assert (y.shape, y.dtype, y.backend) == ((n,), mf.int64, "python")
    assert np.abs(x.numpy()).max(initial=0) <= 1
    assert set(y.tolist()) <= {0, 1}
    again = points(name, n, seed, noise)
    np.testing.assert_array_equal(x.numpy(), again[0].numpy())
    np.testing.assert_array_equal(y.numpy(), again[1].numpy())


@pytest.mark.parametrize("name", RULES)
def test_a_class_depends_on_the_position(name):
    x, y = (t.numpy() for t in points(name, 500, seed=1))
    assert [bool(RULES[name](a, b)) for a, b in x] == y.astype(bool).tolist()
    assert 100 < y.sum() < 400


def test_the_arms_of_the_spiral_are_half_a_turn_apart():
    x, y = (t.numpy() for t in points("spiral", 400, 3))
    assert (y == 0).sum() == (y == 1).sum() == 200
    radius, angle = np.hypot(*x.T) / toy_2d.SPIRAL_RADIUS, np.arctan2(x[:, 1], x[:, 0])
    np.testing.assert_allclose(np.cos(angle - 2 * np.pi * toy_2d.SPIRAL_TURNS * radius - np.pi * y), 1, atol=1e-4)


def test_the_moons_are_half_circles_that_reach_into_each_other():
    x, y = (t.numpy().astype(np.float64) * 1.6 if k == 0 else t.numpy() for k, t in enumerate(points("moons", 400, 3)))
    assert (y == 0).sum() == (y == 1).sum() == 200
    centre = np.where(y == 0, -0.5, 0.5), np.where(y == 0, -0.25, 0.25)
    across, up = x[:, 0] - centre[0], x[:, 1] - centre[1]
    np.testing.assert_allclose(np.hypot(across, up), 1, atol=1e-6)
    assert (up[y == 0] > -1e-6).all()
    assert (up[y == 1] < 1e-6).all()
    assert x[y == 1, 1].max() > x[y == 0, 1].min()  # no horizontal line parts them


def test_noise_moves_points_and_keeps_classes():
    clean, y = points("xor", 2000, 5)
    noisy, same = points("xor", 2000, 5, noise=0.05)
    assert y.tolist() == same.tolist()
    moved = (noisy - clean).numpy()[np.abs(clean.numpy()).max(1) < 0.8]
    assert 0.045 < moved.std() < 0.055
    assert (noisy.numpy()[:, 0] * noisy.numpy()[:, 1] < 0).astype(int).tolist() != y.tolist()


def test_other_seeds_draw_other_points():
    for name in toy_2d.DATASET_NAMES:
        assert points(name, 20, 0)[0].tolist() != points(name, 20, 1)[0].tolist()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("squares", 10), MinifuseError, "unknown data set 'squares'; expected one of simple, diagonal, .*, spiral, moons"),
        (("xor", -1), ShapeError, "n=-1 and noise=0.0"),
        (("xor", 5, 0, -0.1), ShapeError, "noise=-0.1"),
        (("xor", 5, 0, float("nan")), ShapeError, "noise=nan"),
        (("xor", 5, 0, float("inf")), ShapeError, "noise=inf"),
    ],
)
def test_an_unknown_set_is_an_error(arguments, error, words):
    with pytest.raises(error, match=words):
        points(*arguments)
