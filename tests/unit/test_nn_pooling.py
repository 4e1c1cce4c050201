"""nn pooling as in PyTorch on every backend, eager and fused: gradients, copies, errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError, ShapeError
from minifuse.testing import gradcheck
from tests.nn.cases_convolution import POOLINGS
from tests.nn.recorded import load

INTERPRETED = "max rest", "max overlapping", "max no example", "mean of what is there", "adaptive"  # an interpreter is slow
RUNS = [(backend, name) for backend in ("python", "parallel") for name in POOLINGS]
RUNS += [("cuda", name) for name in INTERPRETED]


def table_of(name):
    """What PyTorch gives, by what it is."""
    return {key.removeprefix(f"{name}/"): x for key, x in load("convolution").items() if key.startswith(f"{name}/")}


def random(*shape, requires_grad=True):
    return mf.tensor(np.random.default_rng(sum(shape)).standard_normal(shape), requires_grad=requires_grad)


# What it gives


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("backend", "name"), RUNS)
def test_values_and_gradients_are_those_of_torch(backend, name):
    table, (function, _, settings) = table_of(name), POOLINGS[name]
    g = mf.tensor(table["g"], backend=backend)

    def run(x):
        y = getattr(nn, function)(x, **settings)
        (y * g).sum().backward()
        return y

    for do in (run, mf.fuse(run)):
        x = mf.tensor(table["x"], backend=backend, requires_grad=True)
        np.testing.assert_allclose(do(x).numpy(), table["y"], 1e-12, 1e-12)
        np.testing.assert_allclose(x.grad.numpy(), table["gx"], 1e-12, 1e-12)


@given(st.data())
def test_windows_end_where_torchs_do(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    size, step, gap, is_ceil = draw(1, 4), draw(1, 4), draw(1, 3), data.draw(st.booleans())
    padding = draw(0, size // 2)
    n = max(1, gap * (size - 1) + 1 - 2 * padding) + draw(0, 9)
    x = np.arange(float(n))  # so that the largest is the last one
    starts = [start for start in range(-padding, n, step) if is_ceil or start + gap * (size - 1) < n + padding]
    found = [start for k, start in enumerate(starts) if k == 0 or starts[k - 1] + gap * (size - 1) < n + padding - 1]
    if is_ceil:  # a window more, where elements are left over
        starts = [start for start in found if start < n]
    windows = [[i for i in range(s, s + gap * size, gap) if 0 <= i < n] for s in starts]
    windows = [w for w in windows if w]
    y = nn.max_pool1d(mf.tensor(x.reshape(1, 1, n)), size, step, padding, gap, is_ceil)
    assert y.numpy().ravel().tolist() == [x[w].max() for w in windows]


def test_the_first_of_equal_elements_receives_the_gradient():
    x = mf.tensor([[[[1.0, 3, 2, 2], [3, 3, 2, 2]]]], requires_grad=True)
    nn.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[[0, 1, 1, 0], [0, 0, 0, 0]]]]
    x.grad = None
    nn.max_pool2d(x, 2, stride=1).sum().backward()
    assert x.grad.tolist() == [[[[0, 2, 1, 0], [0, 0, 0, 0]]]]


def test_nan_is_found_and_infinity_is_no_padding():
    x = mf.tensor([[[1.0, np.nan, -np.inf, -np.inf, -np.inf]]], requires_grad=True)
    y = nn.max_pool1d(x, 2, stride=1, padding=1)
    np.testing.assert_array_equal(y.numpy(), [[[1, np.nan, np.nan, -np.inf, -np.inf, -np.inf]]])
    y.backward(mf.ones_like(y))
    np.testing.assert_array_equal(x.grad.numpy()[0, 0, :2], [1, 2])
    assert nn.max_pool1d(mf.tensor([[[-5, -7, -6]]]), 2, padding=1).tolist() == [[[-5, -6]]]  # integers too


@pytest.mark.sampled(2, each="fn")
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: nn.max_pool2d(x, 2),
        lambda x: nn.max_pool2d(x, 3, 2, 1),
        lambda x: nn.avg_pool2d(x, (2, 3), 1, 1, count_include_pad=False),
        lambda x: nn.avg_pool2d(x, 2),
        lambda x: nn.adaptive_avg_pool2d(x, (3, 2)),
    ],
    ids=["max", "max overlapping", "mean overlapping", "mean", "adaptive"],
)
@pytest.mark.parametrize("how", [lambda f: f, mf.fuse], ids=["eager", "fused"])
def test_gradients_and_gradients_of_those(fn, how):
    assert gradcheck(how(lambda x: fn(x).tanh()), random(2, 2, 5, 4), second=how is not mf.fuse)


def test_windows_of_a_computation_need_no_memory_of_it():
    x = random(3, 2, 6, 8, requires_grad=False)
    wanted = nn.max_pool2d(mf.tensor(np.tanh(x.numpy())), 2).numpy()
    do = mf.fuse(lambda x: nn.max_pool2d(x.tanh(), 2))
    np.testing.assert_allclose(do(x).numpy(), wanted, 1e-12)
    assert len(launches(do, x)) == 1


# How it is computed


def launches(fn, *inputs):
    """The form of each launch of a call."""
    fn(*inputs)
    with mf.profile() as found:
        fn(*inputs)
    return [event.work.form for event in found.events]


@pytest.mark.parametrize(
    ("fn", "back"),
    [
        (lambda x: nn.max_pool2d(x, 2), ["rows"]),
        (lambda x: nn.avg_pool2d(x, 2), ["pointwise", "pointwise"]),  # of the few quotients, then that repeats them
        (lambda x: nn.adaptive_avg_pool2d(x, (3, 4)), ["pointwise", "pointwise"]),
    ],
    ids=["max", "mean", "adaptive"],
)
def test_windows_beside_each_other_are_read_once_and_put_back_once(fn, back):
    for x in (random(5, 3, 6, 8), random(3, 6, 8, 5).detach().permute(3, 0, 1, 2)):
        x = x.detach().requires_grad_()
        assert len(launches(fn, x.detach())) == 1
        y = fn(x)
        g = mf.tensor(np.ones(y.shape))

        def backward(x=x, y=y, g=g):
            x.grad = None
            y.backward(g, retain_graph=True)

        assert [form.partition(" ")[0] for form in launches(backward)] == back


def test_a_rest_is_zero_in_the_gradient():
    x = random(2, 3, 7, 5)
    nn.max_pool2d(x, 2).sum().backward()
    assert not x.grad.numpy()[:, :, 6].any()
    assert not x.grad.numpy()[..., 4].any()
    assert x.grad.sum().item() == 2 * 3 * 3 * 2


# Modules


@pytest.mark.parametrize(
    ("layer", "function", "text"),
    [
        (nn.MaxPool2d(3, 2, 1), lambda x: nn.max_pool2d(x, 3, 2, 1), "=3, stride=2, padding=1, dilation=1, ceil_mode=False"),
        (nn.MaxPool2d((2, 3), ceil_mode=True), lambda x: nn.max_pool2d(x, (2, 3), ceil_mode=True), "stride=(2, 3), "),
        (nn.AvgPool2d(3, 2, 1, False), lambda x: nn.avg_pool2d(x, 3, 2, 1, False), "kernel_size=3, stride=2, padding=1"),
        (nn.AdaptiveAvgPool2d((3, None)), lambda x: nn.adaptive_avg_pool2d(x, (3, None)), "output_size=(3, None)"),
        (nn.MaxPool1d(2), lambda x: nn.max_pool1d(x, 2), "kernel_size=2, stride=2"),
        (nn.AvgPool1d(2, 1), lambda x: nn.avg_pool1d(x, 2, 1), "kernel_size=2, stride=1"),
        (nn.AdaptiveAvgPool1d(4), lambda x: nn.adaptive_avg_pool1d(x, 4), "output_size=4"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, nn.Module) else "",
)  # fmt: skip
def test_modules_are_the_functions(layer, function, text):
    x = random(2, 3, 7, 8, requires_grad=False)
    x = x[:, :, 0] if type(layer).__name__.endswith("1d") else x
    np.testing.assert_array_equal(layer(x).numpy(), function(x).numpy())
    assert text in repr(layer)
    assert not list(layer.parameters())


# What is refused


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda x: nn.max_pool2d(x[0, 0], 2), r"max_pool2d: got x of shape \(6, 8\), expected \(N, C, H, W\)"),
        (lambda x: nn.max_pool1d(x, 2), r"max_pool1d: got x of shape .* expected \(N, C, L\)"),
        (lambda x: nn.max_pool2d(x, 7), r"got a window of \(7, 7\).* for an image of \(6, 8\)"),
        (lambda x: nn.max_pool2d(x, 3, dilation=3), r"got a window of \(7, 7\)"),
        (lambda x: nn.max_pool2d(x, 3, padding=2), r"got padding=2, expected at most half of the window size \(3, 3\)"),
        (lambda x: nn.avg_pool2d(x, (2, 3), padding=(1, 2)), r"got padding=\(1, 2\), expected at most half"),
        (lambda x: nn.avg_pool2d(x, 0), "got kernel_size=0, expected an integer of at least 1"),
        (lambda x: nn.avg_pool2d(x, 2, 0), "got stride=0"),
        (lambda x: nn.adaptive_avg_pool2d(x, 0), r"adaptive_avg_pool2d: got output_size=\[0, 0\]"),
        (lambda x: nn.adaptive_avg_pool2d(x, (1, 2, 3)), r"got output_size=\[1, 2, 3\]"),
        (lambda x: nn.adaptive_avg_pool2d(x[:, :, :0], 1), "expected at least 1 element along each of its last 2 dims"),
        (lambda x: nn.MaxPool2d(9)(x), "MaxPool2d: got a window of"),
    ],
)
def test_mismatched_shapes_are_errors(do, message):
    with pytest.raises(ShapeError, match=message):
        do(mf.ones(2, 3, 6, 8))


def test_x_is_a_tensor_and_means_are_of_floats():
    with pytest.raises(DTypeError, match="max_pool2d: expected a tensor, got list"):
        nn.max_pool2d([[[[1.0]]]], 1)
    for name, fn in (("avg_pool2d", nn.avg_pool2d), ("adaptive_avg_pool2d", nn.adaptive_avg_pool2d)):
        with pytest.raises(DTypeError, match=f"{name}: got dtype int64, expected floats"):
            fn(mf.arange(16).reshape(1, 1, 4, 4), 2)


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: nn.max_pool2d(x, 3, padding=1),
        lambda x: nn.avg_pool2d(x, 3, padding=1),
        lambda x: nn.adaptive_avg_pool2d(x, 2),
    ],
)
def test_the_result_has_the_memory_order_of_the_images(pool):
    for do in (pool, mf.fuse(pool)):
        assert do(mf.ones(3, 4, 6, 6)).is_contiguous()
        assert not do(mf.ones(4, 6, 6, 3).permute(3, 0, 1, 2)).is_contiguous()
