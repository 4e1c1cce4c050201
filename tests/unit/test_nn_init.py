"""nn.init: distributions, errors, and that no gradient is recorded."""

import math

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError, ShapeError
from minifuse.nn import init

BACKENDS = "python", "parallel", "cuda"
SHAPE = (40, 6, 5, 5)  # fan_in 150, fan_out 1000
MANY = math.prod(SHAPE)

ROOT3, XAVIER, KAIMING = math.sqrt(3), math.sqrt(2 / 1150), math.sqrt(1 / 150)

# name: (function, its range if it has one, its standard deviation)
RANDOM = {
    "uniform": (lambda x: init.uniform_(x, -2, 4), (-2, 4), 6 / math.sqrt(12)),
    "uniform from 0": (init.uniform_, (0, 1), 1 / math.sqrt(12)),
    "normal": (lambda x: init.normal_(x, 0, 0.3), None, 0.3),
    "xavier uniform": (lambda x: init.xavier_uniform_(x, 2), (-2 * ROOT3 * XAVIER, 2 * ROOT3 * XAVIER), 2 * XAVIER),
    "xavier normal": (lambda x: init.xavier_normal_(x, 0.5), None, 0.5 * XAVIER),
    "kaiming uniform": (
        lambda x: init.kaiming_uniform_(x, nonlinearity="relu"),
        (-math.sqrt(6) * KAIMING, math.sqrt(6) * KAIMING),
        math.sqrt(2) * KAIMING,
    ),
    "as in Linear": (lambda x: init.kaiming_uniform_(x, math.sqrt(5)), (-KAIMING, KAIMING), KAIMING / ROOT3),
    "kaiming normal": (
        lambda x: init.kaiming_normal_(x, mode="fan_out", nonlinearity="tanh"),
        None,
        5 / 3 / math.sqrt(1000),
    ),
    "truncated": (lambda x: init.trunc_normal_(x, std=0.5), (-2, 2), 0.5),
    "truncated narrowly": (lambda x: init.trunc_normal_(x, 1, 1, 0, 2), (0, 2), 0.53956),
}


@pytest.mark.parametrize("name", RANDOM)
def test_spread_and_range(name):
    function, ends, std = RANDOM[name]
    mf.manual_seed(1)
    p = nn.Parameter(mf.zeros(SHAPE))
    assert function(p) is p
    values = p.detach().numpy().astype(np.float64)
    assert abs(values.std() / std - 1) < 5 / math.sqrt(MANY)
    if ends:
        assert ends[0] <= values.min() < ends[0] + 0.6 * std
        assert ends[1] - 0.6 * std < values.max() <= ends[1] * (1 + 1e-6)
    mean = {"uniform": 1, "uniform from 0": 0.5, "truncated narrowly": 1}.get(name, 0)
    assert abs(values.mean() - mean) < 5 * std / math.sqrt(MANY)


@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (7, 7), (4, 3, 2, 2), (20, 3, 2, 2)])
def test_orthogonal_rows_or_columns(shape):
    w = init.orthogonal_(mf.zeros(shape, dtype="float64"), gain=2).numpy().reshape(shape[0], -1)
    square = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=1e-12)


def test_orthogonal_matrices_have_signs_at_random():
    """Rotations and reflections alike; the plain result of a QR decomposition has one sign on its diagonal."""
    mf.manual_seed(0)
    found = np.array([init.orthogonal_(mf.zeros(3, 3)).numpy() for _ in range(200)])
    assert abs((np.linalg.det(found) > 0).mean() - 0.5) < 0.2
    assert (abs((found > 0).mean(0) - 0.5) < 0.2).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_seeds_give_equal_values_on_every_backend_and_in_any_layout(backend):
    mf.manual_seed(4)
    wanted = init.kaiming_normal_(mf.zeros(3, 5)).tolist()
    for x in (mf.zeros(3, 5, backend=backend), mf.zeros(5, 3, backend=backend).T):
        mf.manual_seed(4)
        assert init.kaiming_normal_(x).tolist() == wanted
    mf.manual_seed(4)
    assert init.kaiming_normal_(mf.zeros(3, 5)).tolist() == wanted
    assert init.kaiming_normal_(mf.zeros(3, 5)).tolist() != wanted


def test_nothing_is_recorded_and_the_parameter_stays():
    layer = nn.Linear(3, 2)
    before = layer.weight
    for function in (init.zeros_, init.ones_, init.xavier_normal_, init.orthogonal_, lambda x: init.constant_(x, 0.5)):
        function(layer.weight)
    assert layer.weight is before
    assert layer.weight.is_leaf
    assert layer.weight.requires_grad
    assert layer.weight.tolist() == [[0.5] * 3] * 2
    assert init.ones_(mf.arange(3)).tolist() == [1, 1, 1]


def test_a_fused_function_draws_anew_in_each_call():
    x = mf.zeros(20)

    @mf.fuse
    def restart():
        init.normal_(x)
        init.trunc_normal_(x[:10])
        return x.sum()

    found = []
    for run in (restart, restart.function):
        mf.manual_seed(3)
        run()
        first = x.tolist()
        run()
        found.append([first, x.tolist()])
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]


def test_gains():
    assert init.calculate_gain("linear") == init.calculate_gain("sigmoid") == init.calculate_gain("conv2d") == 1
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu", 2) == math.sqrt(0.4)
    assert init.calculate_gain("leaky_relu") == math.sqrt(2 / 1.0001)
    assert init.calculate_gain("selu") == 0.75


@pytest.mark.parametrize(
    ("run", "error", "words"),
    [
        (lambda: init.uniform_(mf.zeros(2), 1, 0), ValueError, "got a=1 and b=0"),
        (lambda: init.normal_(mf.zeros(2), 0, -1), ValueError, "std=-1"),
        (lambda: init.trunc_normal_(mf.zeros(2), std=0), ValueError, "std=0"),
        (lambda: init.trunc_normal_(mf.zeros(2), a=5, b=6), ValueError, "2.9e-07 of the normal distribution"),
        (lambda: init.trunc_normal_(mf.zeros(2), a=1, b=-1), ValueError, "is between a=1 and b=-1"),
        (lambda: init.xavier_normal_(mf.zeros(2)), ShapeError, r"xavier_normal_: got shape \(2,\), expected"),
        (lambda: init.kaiming_uniform_(mf.zeros(2, 0)), ShapeError, "not empty"),
        (lambda: init.orthogonal_(mf.zeros(2)), ShapeError, "orthogonal_: got shape"),
        (lambda: init.kaiming_normal_(mf.zeros(2, 2), mode="fan"), ValueError, "mode='fan', expected \"fan_in\""),
        (lambda: init.kaiming_normal_(mf.zeros(2, 2), nonlinearity="step"), ValueError, "nonlinearity='step'"),
        (lambda: init.normal_(mf.arange(2)), DTypeError, "got a tensor of dtype int64"),
        (lambda: init.normal_(np.zeros(2)), DTypeError, "expected a tensor, got ndarray"),
        (lambda: init.zeros_([0.0]), DTypeError, "expected a tensor, got list"),
        (lambda: init.xavier_uniform_([[0.0]]), DTypeError, "expected a tensor, got list"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_errors(run, error, words):
    with pytest.raises(error, match=words):
        run()


def test_the_list_of_names():
    assert set(init.__all__) == {name for name in vars(init) if name.endswith("_") and name[0] != "_"} | {"calculate_gain"}


def test_eye_and_dirac_copy_inputs():
    assert init.eye_(mf.ones(3, 2)).tolist() == [[1, 0], [0, 1], [0, 0]]
    x = mf.randn(2, 4, 5)
    y = nn.functional.conv1d(x, init.dirac_(mf.ones(6, 4, 3)), padding=1)
    near = np.testing.assert_allclose
    near(y[:, :4].numpy(), x.numpy(), rtol=1e-6)
    assert not y[:, 4:].numpy().any()
    grouped = init.dirac_(mf.ones(4, 2, 1), groups=2).numpy()[..., 0]
    assert grouped.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    with pytest.raises(ShapeError, match="eye_: got shape"):
        init.eye_(mf.ones(2))
    with pytest.raises(ShapeError, match="groups=3"):
        init.dirac_(mf.ones(4, 2, 1), groups=3)


def test_sparse_sets_a_part_of_each_column_to_zero():
    w = init.sparse_(mf.zeros(50, 20), 0.3, std=0.5).numpy()
    assert (w == 0).sum(0).tolist() == [15] * 20
    assert 0.4 < w[w != 0].std() < 0.6


def test_a_generator_can_be_passed():
    draws = [init.normal_(mf.zeros(3), generator=np.random.default_rng(7)).tolist() for _ in range(2)]
    assert draws[0] == draws[1]
    init.kaiming_uniform_(mf.zeros(3, 4), generator=np.random.default_rng(0))
    assert init.calculate_gain("conv_transpose2d") == 1
