"""nn batch and layer normalization as in PyTorch over several steps, eager and fused, and numbers of kernels."""

import copy
from itertools import product

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError, ShapeError
from minifuse.testing import gradcheck
from tests.nn.agreement import BACKENDS, near, smooth
from tests.nn.cases import NORMALIZATIONS, STEPS
from tests.nn.recorded import load

COUNT = 120  # elements that meet in the largest fold of the cases


def case(name, backend, dtype="float32"):
    """A layer with the parameters of the table, and what the table says of it."""
    kind, arguments, settings, _ = NORMALIZATIONS[name]
    table = {key.removeprefix(f"{name}/"): x for key, x in load("layers").items() if key.startswith(f"{name}/")}
    layer = getattr(nn, kind)(*arguments, **settings, dtype=dtype, backend=backend)
    with mf.no_grad():
        for key, p in layer.named_parameters():
            p.copy_(table[key])
    return layer, table


@pytest.mark.sampled(8)
@pytest.mark.parametrize("is_fused", [False, True], ids=["eager", "fused"])
@pytest.mark.parametrize(
    ("name", "backend"),
    [*[(name, "parallel") for name in NORMALIZATIONS], *product(["features", "average", "planes"], ["python", "cuda"])],
)
def test_steps_are_those_of_torch(name, backend, is_fused):
    layer, table = case(name, backend)

    def step(x, g):
        layer.zero_grad()
        y = layer(x)
        y.backward(g)
        return y.detach()

    run = mf.fuse(step) if is_fused else step
    for k in range(STEPS + 1):
        layer.train(k < STEPS)
        x = mf.tensor(table[f"{k}/x"], backend=backend, requires_grad=True)
        near(run(x, mf.tensor(table[f"{k}/g"], backend=backend)), table[f"{k}/y"], COUNT)
        near(x.grad, table[f"{k}/gx"], COUNT)
        for key, p in layer.named_parameters():
            near(p.grad, table[f"{k}/g {key}"], COUNT)
        for key, b in layer.named_buffers():
            near(b, table[f"{k}/{key}"], COUNT)


def test_state_dicts_have_the_names_of_torch():
    for name in NORMALIZATIONS:
        layer, table = case(name, "parallel")
        parameters = [key for key in table if "/" not in key]
        buffers = [key for key in ("running_mean", "running_var", "num_batches_tracked") if f"0/{key}" in table]
        assert list(layer.state_dict()) == parameters + buffers


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fused_step_changes_all_that_an_eager_one_changes(backend):
    """Forward, backward, optimizer and running statistics in one function: a loader of a state finds all of it."""
    found = []
    for is_fused in (False, True):
        mf.manual_seed(0)
        with mf.use_backend(backend):
            model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
        optimizer = mf.optim.SGD(model.parameters(), lr=0.1)

        def step(x, y, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = nn.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = mf.fuse(step) if is_fused else step
        for k in range(4):
            x = mf.tensor(np.cos(np.arange(24.0) + k).reshape(8, 3), "float32", backend=backend)
            run(x, mf.tensor(np.arange(8) % 2, backend=backend))
        assert model[1].num_batches_tracked.item() == 4
        found.append({**model.state_dict(), "used": model.eval()(x)})
        if is_fused:
            assert run.stats().calls == 2  # there are no gradients in the first
    assert found[0].keys() == found[1].keys()
    for name, x in found[0].items():
        near(found[1][name], x.detach().numpy(), 8)


def test_modes_of_a_fused_step_are_captured_apart():
    layer = nn.BatchNorm1d(2)
    run = mf.fuse(lambda x: layer(x))
    x = mf.tensor([[1.0, 10.0], [3.0, 30.0]])
    near(run(x).detach(), [[-1, -1], [1, 1]])
    layer.eval()
    mean, var = layer.running_mean.numpy().copy(), layer.running_var.numpy().copy()
    near(run(x).detach(), (x.numpy() - mean) / np.sqrt(var + 1e-5))
    assert layer.running_mean.tolist() == mean.tolist()
    layer.train()
    run(x)
    assert layer.num_batches_tracked.item() == 2


MEAN, VARIANCE = smooth(6, requires_grad=False), smooth(6, requires_grad=False) + 2
FUNCTIONS = {
    "batch": lambda x, w, b: nn.batch_norm(x, None, None, w[0], b[0], training=True),
    "batch of images": lambda x, w, b: nn.batch_norm(x.reshape(3, 4, 2, 3), None, None, w[0, :4], None, training=True),
    "statistics": lambda x, w, b: nn.batch_norm(x, MEAN, VARIANCE, w[1], b[1], eps=0.1),
    "rows": lambda x, w, b: nn.layer_norm(x, (6,), w[0], b[0]),
    "planes": lambda x, w, b: nn.layer_norm(x.reshape(3, 4, 6), (4, 6), w, b),
    "plain": lambda x, w, b: nn.layer_norm(x, [6]) * w[0] + b[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    inputs = smooth(12, 6), smooth(4, 6, phase=0.3), smooth(4, 6, phase=0.7)
    assert gradcheck(FUNCTIONS[name], *inputs)
    if name in ("batch of images", "rows"):
        assert gradcheck(mf.fuse(FUNCTIONS[name]), *inputs)


@pytest.mark.parametrize(
    "function",
    [lambda x, w: nn.batch_norm(x, None, None, w, training=True), lambda x, w: nn.layer_norm(x, (3,), w)],
    ids=["batch", "layer"],
)
def test_gradients_of_second_order(function):
    assert gradcheck(function, smooth(4, 3), smooth(3, phase=0.3), second=True)


@pytest.mark.sampled(2, each="shape")
@pytest.mark.parametrize("shape", [(65, 1025), (1025, 33), (2, 3, 1, 257)])
@pytest.mark.parametrize("order", [None, (1, 0)])
def test_rows_past_the_edges_of_blocks(shape, order):
    x = np.random.default_rng(0).normal(5, 2, shape).astype(np.float32)
    t = mf.tensor(x) if order is None or len(shape) > 2 else mf.tensor(x.T.copy()).T
    exact = x.astype(np.float64)
    mean, var = exact.mean(-1, keepdims=True), exact.var(-1, keepdims=True)
    near(nn.layer_norm(t, shape[-1:]), (exact - mean) / np.sqrt(var + 1e-5), shape[-1])
    dims = (0, *range(2, x.ndim))
    mean, var = exact.mean(dims, keepdims=True), exact.var(dims, keepdims=True)
    near(nn.batch_norm(t, None, None, training=True), (exact - mean) / np.sqrt(var + 1e-5), x.size // shape[1])


def test_a_large_mean_takes_no_digits_from_the_variance():
    x = 1000 + np.sin(np.arange(60.0)).reshape(4, 15)
    exact = x.astype(np.float32).astype(np.float64)
    wanted = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.layer_norm(mf.tensor(x, "float32"), (15,)).numpy(), wanted, atol=1e-3)


@pytest.mark.parametrize(
    ("layer", "forward", "backward"),
    [
        (nn.LayerNorm(12), 1, 2),  # gradients of scale and shift are folds along other dims
        (nn.LayerNorm((3, 12), elementwise_affine=False), 1, 1),
        (nn.BatchNorm1d(3, track_running_stats=False), 1, 1),
        (nn.BatchNorm1d(3), 4, 1),  # and three buffers
        (nn.BatchNorm1d(3).eval(), 1, 2),
    ],
)
def test_forward_and_backward_are_few_kernels(layer, forward, backward):
    found = mf.fuse(lambda x: layer(x)).explain(mf.rand(8, 3, 12, requires_grad=True))
    assert len(found.forward.kernels) <= forward
    assert len(found.backward.run.kernels) <= backward


def test_statistics_are_no_parameters_and_move_with_the_layer():
    layer = nn.BatchNorm2d(3).to(mf.float64, backend="python")
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    assert (layer.running_var.dtype, layer.num_batches_tracked.dtype) == (mf.float64, mf.int64)
    assert layer.num_batches_tracked.backend == "python"
    layer(mf.rand(2, 3, 4, 5, dtype=mf.float64, backend="python"))
    other = copy.deepcopy(layer)
    other(mf.rand(2, 3, 4, 5, dtype=mf.float64, backend="python"))
    assert (layer.num_batches_tracked.item(), other.num_batches_tracked.item()) == (1, 2)
    assert layer.load_state_dict(other.state_dict()) == ([], [])
    assert layer.num_batches_tracked.item() == 2


def test_running_statistics_of_the_function_change_in_place():
    x, mean, var = mf.tensor([[1.0], [3.0]]), mf.zeros(1), mf.ones(1)
    nn.batch_norm(x, mean, var, training=True, momentum=0.5)
    assert (mean.tolist(), var.tolist()) == ([1], [1.5])
    nn.batch_norm(x, mean, var)
    assert (mean.tolist(), var.tolist()) == ([1], [1.5])


@pytest.mark.parametrize(
    ("run", "error", "words"),
    [
        (lambda: nn.BatchNorm1d(3)(mf.ones(2, 4)), ShapeError, r"got x of shape \(2, 4\), expected \(N, 3\) or"),
        (lambda: nn.BatchNorm1d(3)(mf.ones(3)), ShapeError, r"expected \(N, 3\) or \(N, 3, L\)"),
        (lambda: nn.BatchNorm2d(3)(mf.ones(2, 3)), ShapeError, r"expected \(N, 3, H, W\)"),
        (lambda: nn.BatchNorm2d(3)([1.0]), DTypeError, "BatchNorm2d: expected a tensor, got list"),
        (lambda: nn.BatchNorm1d(3)(mf.ones(1, 3)), ShapeError, "at least 2 elements for each channel"),
        (lambda: nn.BatchNorm1d(3)(mf.ones(0, 3)), ShapeError, "at least 2 elements for each channel"),
        (lambda: nn.BatchNorm1d(3)(mf.ones(2, 3, dtype="float64")), DTypeError, "and weight of dtype float32"),
        (lambda: nn.BatchNorm1d(0), ShapeError, "got num_features=0"),
        (lambda: nn.batch_norm(mf.ones(2, 3), None, None), ValueError, "both"),
        (lambda: nn.batch_norm(mf.ones(2, 3), mf.ones(3), None, training=True), ValueError, "both"),
        (lambda: nn.batch_norm(mf.ones(2, 3), mf.ones(2), mf.ones(3)), ShapeError, r"running_mean of shape \(2,\)"),
        (lambda: nn.batch_norm(mf.ones(2, 3), mf.ones(3), mf.ones(3), bias=1.0), DTypeError, "bias: expected a tensor"),
        (lambda: nn.batch_norm(mf.ones(3), mf.ones(3), mf.ones(3)), ShapeError, r"expected \(N, C\) or \(N, C, \.\.\.\)"),
        (lambda: nn.batch_norm(mf.arange(6).reshape(2, 3), None, None, training=True), DTypeError, "got dtype int64"),
        (lambda: nn.layer_norm(mf.ones(2, 3), (4,)), ShapeError, r"expected \(\.\.\., 4\)"),
        (lambda: nn.layer_norm(mf.ones(2, 3), ()), ShapeError, "as in normalized_shape"),
        (lambda: nn.layer_norm(mf.ones(3), (2, 3)), ShapeError, r"expected \(\.\.\., 2, 3\)"),
        (lambda: nn.layer_norm(mf.ones(2, 3), (3,), mf.ones(2)), ShapeError, r"weight of shape \(2,\), expected \(3,\)"),
        (lambda: nn.layer_norm(mf.arange(3), (3,)), DTypeError, "got dtype int64, expected floats"),
        (lambda: nn.layer_norm([1.0], (1,)), DTypeError, "layer_norm: expected a tensor, got list"),
        (lambda: nn.LayerNorm(()), ShapeError, "expected sizes of at least 1"),
        (lambda: nn.LayerNorm((3, 0)), ShapeError, "expected sizes of at least 1"),
    ],
)  # fmt: skip
def test_mismatched_shapes_are_errors(run, error, words):
    with pytest.raises(error, match=words):
        run()


def test_a_batch_that_is_refused_changes_nothing():
    layer = nn.BatchNorm1d(3)
    with pytest.raises(ShapeError):
        layer(mf.ones(1, 3))
    assert layer.num_batches_tracked.item() == 0
    assert layer.running_var.tolist() == [1, 1, 1]


def test_representations_are_those_of_torch():
    assert repr(nn.BatchNorm2d(3, momentum=None)) == (
        "BatchNorm2d(3, eps=1e-05, momentum=None, affine=True, track_running_stats=True)"
    )
    assert repr(nn.LayerNorm([4, 5], bias=False)) == "LayerNorm((4, 5), eps=1e-05, elementwise_affine=True)"
