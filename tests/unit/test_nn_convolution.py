"""nn convolutions as in PyTorch on every backend, eager and fused: gradients, copies, errors."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError, ShapeError
from minifuse.ir.array_functions import Matmul, PadSlice
from minifuse.ir.graph import Argument, Node
from minifuse.nn import im2col
from minifuse.testing import gradcheck, tolerance_for
from tests.nn.cases_convolution import CONVOLUTIONS
from tests.nn.recorded import load

INTERPRETED = "1d same", "2d stride", "2d groups", "2d whole image", "2d no example"  # few, since an interpreter is slow
RUNS = [(backend, name) for backend in ("python", "parallel") for name in CONVOLUTIONS]
RUNS += [("cuda", name) for name in INTERPRETED]


def function_of(name):
    return nn.conv1d if name.startswith("1d") else nn.conv2d


def table_of(name):
    """What PyTorch gives, by what it is."""
    return {key.removeprefix(f"{name}/"): x for key, x in load("convolution").items() if key.startswith(f"{name}/")}


def inputs_of(table, backend, dtype):
    found = [mf.tensor(table[key], dtype=dtype, backend=backend) for key in ("x", "weight", "bias") if key in table]
    return [x.requires_grad_() for x in found]


def random(*shape):
    return mf.tensor(np.random.default_rng(sum(shape)).standard_normal(shape), requires_grad=True)


def plain(x, w, stride, padding, dilation, groups):
    """A convolution of two dims by its definition: no windows, no products of matrices."""
    n, _, height, width = x.shape
    outputs, channels, rows, columns = w.shape
    (top, left), (s, t), (d, e) = padding, stride, dilation
    wide = np.pad(x, ((0, 0), (0, 0), (top, top), (left, left)))
    shape = (height + 2 * top - d * (rows - 1) - 1) // s + 1, (width + 2 * left - e * (columns - 1) - 1) // t + 1
    y = np.zeros((n, outputs, *shape))
    for o, p, q in np.ndindex(outputs, *shape):
        first = o // (outputs // groups) * channels
        part = wide[:, first : first + channels, p * s :: d, q * t :: e][:, :, :rows, :columns]
        y[:, o, p, q] = (part * w[o]).sum((1, 2, 3))
    return y


# What it gives


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("backend", "name"), RUNS)
def test_values_and_gradients_are_those_of_torch(backend, name):
    table, function, settings = table_of(name), function_of(name), CONVOLUTIONS[name][2]
    g = mf.tensor(table["g"], backend=backend)

    def run(*inputs):
        y = function(*inputs, **settings)
        (y * g).sum().backward()
        return y

    for do in (run, mf.fuse(run)):
        inputs = inputs_of(table, backend, mf.float64)
        y = do(*inputs)
        np.testing.assert_allclose(y.numpy(), table["y"], 1e-12, 1e-12)
        for key, x in zip(("gx", "gweight", "gbias"), inputs, strict=False):
            np.testing.assert_allclose(x.grad.numpy(), table[key], 1e-12, 1e-12, err_msg=key)


@pytest.mark.parametrize("name", ["2d same", "2d groups stride", "1d"])
def test_float32_sums_are_as_exact_as_its_products(name):
    table = table_of(name)
    inputs = inputs_of(table, "parallel", mf.float32)
    y = function_of(name)(*inputs, **CONVOLUTIONS[name][2])
    assert y.dtype is mf.float32
    np.testing.assert_array_equal(y.numpy(), table["y"])  # eighths: every sum is exact


@given(st.data())
def test_any_geometry_is_the_definition(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    rows, columns, groups = draw(1, 4), draw(1, 3), draw(1, 3)
    padding, stride, dilation = ((draw(low, high), draw(low, high)) for low, high in ((0, 3), (1, 3), (1, 2)))
    n, channels, outputs = draw(0, 3), groups * draw(1, 2), groups * draw(1, 3)
    least = [max(1, d * (k - 1) + 1 - 2 * p) for d, k, p in zip(dilation, (rows, columns), padding, strict=True)]
    x, w = random(n, channels, *[k + draw(0, 3) for k in least]), random(outputs, channels // groups, rows, columns)
    wanted = plain(x.numpy(), w.numpy(), stride, padding, dilation, groups)
    found = nn.conv2d(x, w, None, stride, padding, dilation, groups)
    np.testing.assert_allclose(found.numpy(), wanted, 1e-12, 1e-12)
    # The gradient of a linear function is its transpose: <g, A x> = <A^T g, x>.
    found.backward(g := mf.tensor(np.random.default_rng(1).standard_normal(found.shape)))
    for leaf in (x, w):
        np.testing.assert_allclose((leaf.grad * leaf).sum().item(), (g * found).sum().item(), 1e-9, 1e-9)


@pytest.mark.parametrize("padding", [0, 2])
def test_sizes_past_the_edges_of_tiles(padding):
    values, kernel = random(33, 3, 17, 19).numpy(), random(17, 3, 5, 3).numpy()
    x, w = (mf.tensor(a, dtype=mf.float32, requires_grad=True) for a in (values, kernel))
    wanted = plain(values, kernel, (1, 1), (padding, padding), (1, 1), 1)
    y = nn.conv2d(x, w, padding=padding)
    rtol, atol, _ = tolerance_for("program", mf.float32, 45, float(np.abs(wanted).max()))
    np.testing.assert_allclose(y.numpy(), wanted, rtol, atol)
    y.backward(y.detach())
    for leaf in (x, w):  # <A x, A x> = <A^T A x, x>
        np.testing.assert_allclose((leaf.grad * leaf).sum().item(), (wanted**2).sum(), 1e-4)


@pytest.mark.sampled(2, each="how")
@pytest.mark.parametrize(
    ("shapes", "settings"),
    [
        (((2, 2, 4, 3), (3, 2, 3, 2), (3,)), {"padding": 1}),  # its gradient is a convolution
        (((2, 1, 3, 4), (9, 1, 2, 2)), {}),  # too many kernels for that: sums over windows
        (((2, 2, 5, 4), (2, 1, 2, 3)), {"groups": 2, "stride": (2, 1)}),
        (((1, 1, 5), (2, 1, 2)), {"dilation": 3}),
    ],
    ids=["convolved", "summed", "groups", "dilated"],
)
@pytest.mark.parametrize("how", [lambda f: f, mf.fuse], ids=["eager", "fused"])
def test_gradients_and_gradients_of_those(shapes, settings, how):
    function = nn.conv1d if len(shapes[0]) == 3 else nn.conv2d
    fn = how(lambda *inputs: function(*inputs, **settings).tanh())
    assert gradcheck(fn, *[random(*shape) for shape in shapes], second=len(shapes) == 2)


def test_the_layout_of_x_does_not_matter():
    x, w = random(3, 2, 6, 5).detach(), random(4, 2, 3, 2)
    wanted = nn.conv2d(x, w, padding=1).numpy()
    seen = [
        x.permute(2, 3, 0, 1).contiguous().permute(2, 3, 0, 1),
        x.flip(0, 3).contiguous().flip(0, 3),
        mf.zeros(3, 2, 12, 5, dtype=mf.float64)[:, :, ::2].copy_(x),
    ]
    for y in [x, *seen]:
        leaf = y.detach().requires_grad_()
        found = nn.conv2d(leaf, w, padding=1)
        np.testing.assert_allclose(found.numpy(), wanted, 1e-12, 1e-12)
        found.sum().backward()
        np.testing.assert_allclose(
            leaf.grad.numpy(), np.asarray(mf.grad(lambda x: nn.conv2d(x, w, padding=1).sum())(x)), 1e-12
        )
    repeated = random(3, 1, 1, 5).detach().expand(3, 2, 6, 5)
    np.testing.assert_allclose(
        nn.conv2d(repeated, w).numpy(), plain(repeated.numpy(), w.numpy(), (1, 1), (0, 0), (1, 1), 1), 1e-12
    )


# How it is computed


def launches(fn, *inputs):
    """(form, shape of the space) of each launch of a call."""
    fn(*inputs)
    with mf.profile() as found:
        fn(*inputs)
    return [event.work.form for event in found.events]


def last(x):
    """The same, with examples closest in memory."""
    return x.detach().permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)


def test_the_output_layout_is_kept_by_later_layers():
    x, w = random(5, 2, 7, 6), random(4, 2, 3, 3)
    y = nn.conv2d(x, w)
    assert y.strides == (1, 5 * 5 * 4, 5 * 4, 5)
    assert mf.relu(y).strides == y.strides
    assert nn.max_pool2d(mf.relu(y), 2).strides == (1, 2 * 2 * 5, 2 * 5, 5)


def test_windows_are_multiplied_without_a_copy():
    """On a backend that knows such products."""
    w, x, bias = random(4, 2, 3, 3).detach(), random(5, 2, 7, 6).detach(), random(4).detach()
    product = "window_product of (1, 4, 18), (2, 7, 6, 5)"
    assert launches(nn.conv2d, last(x), w) == [product]
    assert launches(nn.conv2d, last(x), w, bias) == [f"{product}, (4,)"]
    assert launches(nn.conv2d, x, w) == ["pointwise over (2, 7, 6, 5)", product]  # first in order
    backward = gradient_launches(last(x), w, padding=1)
    assert "window_product of (1, 2, 36), (4, 9, 8, 5)" in backward
    short = x.to(mf.float32), w.to(mf.float32)
    assert len(launches(lambda x, w: nn.conv2d(x, w, stride=2), *short)) == 3  # runs of 5 examples: windows are copied
    assert launches(lambda: nn.conv2d(last(x), w[:, :, :1, :1]))[-1] == "matmul (1, 4, 2) @ (1, 2, 210)"


def test_operands_that_are_copied():
    """On a backend that does not."""
    w = random(4, 2, 3, 3).detach().to("python")
    x = random(5, 2, 7, 6).detach().to("python")
    assert launches(nn.conv2d, last(x), w) == ["pointwise over (2, 3, 3, 5, 4, 5)", "matmul (1, 4, 18) @ (1, 18, 100)"]
    assert len(launches(nn.conv2d, x, w)) == 3  # first in order, then all windows
    assert len(launches(lambda x: nn.conv2d(x, w[:, :, :1, :1]), last(x))) == 1  # one element is no window
    for image in (x[:, :, :3, :3].contiguous(), last(x[:, :, :3, :3])):
        assert launches(nn.conv2d, image, w) == ["matmul (1, 4, 18) @ (1, 18, 5)"]  # neither is the whole image
    apart = launches(lambda x: nn.conv2d(x, w, stride=3), x)
    assert len(apart) == 2  # elements are read once: no reason to put them in order first
    assert launches(nn.conv2d, last(x), w, w[:, 0, 0, 0])[1:] == ["matmul (1, 4, 18) @ (1, 18, 100) with epilogue"]


def gradient_launches(x, w, **settings):
    x = x.detach().requires_grad_()
    y = nn.conv2d(x, w, **settings)
    g = last(mf.ones_like(y))

    def backward():
        x.grad = None
        y.backward(g, retain_graph=True)

    return launches(backward)


def test_the_gradient_of_x_is_a_convolution_where_that_copies_little():
    x, w = last(random(5, 2, 7, 6)).to("python"), random(3, 2, 3, 3).detach().to("python")
    forms = gradient_launches(x, w)
    assert "pointwise over (3, 3, 3, 7, 6, 5)" in forms  # all windows of the gradient
    assert not any(form.startswith("rows") for form in forms)
    forms = gradient_launches(x, w, padding=1)
    assert "pointwise over (3, 3, 3, 7, 6, 5)" in forms  # nothing for the zeros around x
    assert any(form.startswith("rows") for form in gradient_launches(x, w, stride=2))
    wide = random(64, 2, 3, 3).detach().to("python")
    assert any(form.startswith("rows") for form in gradient_launches(x, wide))
    few = w[:1, :, :2, :2].contiguous()  # a convolution would copy little too, yet there is nothing to add up
    for part, kernel in ((x[:, :, :3, :3], w), (x[:, :, :2, :2], few), (x, w[:, :, :1, :1])):
        assert [form.partition(" ")[0] for form in gradient_launches(last(part), kernel)] == ["matmul"]


def test_only_zeros_around_images_are_padding():
    inner = Node(Argument(0), (), (2, 4, 5, 3), mf.float32)
    for shape, place, is_padding in [
        ((2, 6, 5, 3), ((0, 1, 2), (1, 1, 4), (0, 1, 5), (0, 1, 3)), True),
        ((2, 8, 5, 3), ((0, 1, 2), (1, 2, 4), (0, 1, 5), (0, 1, 3)), False),
        ((3, 4, 5, 3), ((1, 1, 2), (0, 1, 4), (0, 1, 5), (0, 1, 3)), False),
        ((2, 4, 5, 4), ((0, 1, 2), (0, 1, 4), (0, 1, 5), (0, 1, 3)), False),
    ]:
        z = PadSlice(shape, place)(inner)
        assert (im2col.padding_op(z) is z.function) == is_padding
    assert im2col.padding_op(inner) is None


def test_convolutions_without_a_matmul_are_sums():
    view = im2col.Patches("patches", ((3,), (1,), (1,)))
    x = Node(Argument(0), (), (2, 6, 5), mf.float32)
    kernel, b = Node(Argument(1), (), (1, 6, 5), mf.float32), Node(Argument(2), (), (1, 5, 20), mf.float32)
    g = Matmul()(kernel, b).reshape(2, 3, 4, 5)
    assert view.as_convolution(g, x).shape == x.shape
    assert view.as_convolution(g + g, x) is None
    grouped = Matmul()(kernel.reshape(2, 3, 5)[:, :, :2], b.expand(2, 5, 20)[:, :2]).reshape(2, 3, 4, 5)
    assert view.as_convolution(grouped, x).shape == x.shape
    flat = Matmul()(Node(Argument(3), (), (2, 5), mf.float32), Node(Argument(4), (), (5, 60), mf.float32))
    assert view.as_convolution(flat.reshape(2, 3, 4, 5), x) is None
    turned = Matmul()(b.mT, kernel.mT).reshape(2, 3, 4, 5)  # as many elements, in another order
    assert view.as_convolution(turned, x) is None


# Modules


def test_modules_hold_parameters_and_use_them():
    layer = nn.Conv2d(4, 6, (3, 2), stride=(1, 2), padding=1, dilation=(2, 1), groups=2, dtype=mf.float64)
    assert [(name, p.shape) for name, p in layer.named_parameters()] == [("weight", (6, 2, 3, 2)), ("bias", (6,))]
    x = random(3, 4, 7, 6)
    wanted = nn.conv2d(x, layer.weight, layer.bias, (1, 2), 1, (2, 1), 2)
    np.testing.assert_array_equal(layer(x).numpy(), wanted.numpy())
    line = nn.Conv1d(4, 6, 3, padding="same", bias=False, dtype=mf.float64)
    assert [(name, p.shape) for name, p in line.named_parameters()] == [("weight", (6, 4, 3))]
    assert line(x[:, :, 0]).shape == (3, 6, 6)


def test_first_values_are_spread_as_in_torch():
    mf.manual_seed(0)
    layer = nn.Conv2d(8, 64, (3, 5), groups=2)
    bound = 1 / math.sqrt(4 * 3 * 5)
    for p in layer.parameters():
        values = p.numpy()
        assert 0.9 * bound < np.abs(values).max() <= bound
        assert abs(values.std() - bound / math.sqrt(3)) < 0.2 * bound
    mf.manual_seed(0)
    np.testing.assert_array_equal(nn.Conv2d(8, 64, (3, 5), groups=2).weight.numpy(), layer.weight.numpy())


def test_repr_shows_the_settings():
    assert repr(nn.Conv1d(2, 3, 4)) == "Conv1d(2, 3, kernel_size=(4,), stride=(1,))"
    layer = nn.Conv2d(4, 6, (3, 2), stride=2, padding="valid", dilation=(1, 2), groups=2, bias=False)
    assert repr(layer) == (
        "Conv2d(4, 6, kernel_size=(3, 2), stride=(2, 2), padding='valid', dilation=(1, 2), groups=2, bias=False)"
    )


@pytest.mark.parametrize(
    ("backend", "is_fused", "steps"),
    [("python", False, 4), ("parallel", False, 4), ("parallel", True, 4), ("cuda", True, 1)],  # an interpreter is slow
)
def test_training_follows_torch(backend, is_fused, steps):
    table = table_of("training")
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, backend=backend),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, backend=backend),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(6, 5, backend=backend),
    )
    model.load_state_dict({name: table[f"before {name}"] for name, _ in model.named_parameters()})
    optimizer = mf.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x, t = mf.tensor(table["x"], backend=backend), mf.tensor(table["t"], backend=backend)

    def step(x, t):
        loss = nn.cross_entropy(model(x), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step = mf.fuse(step) if is_fused else step
    losses = [step(x, t).item() for _ in range(steps)]
    np.testing.assert_allclose(losses, table["losses"][:steps], 1e-5)
    for name, p in model.named_parameters() if steps == len(table["losses"]) else ():
        np.testing.assert_allclose(p.numpy(), table[f"after {name}"], 1e-4, 1e-5, err_msg=name)


# What is refused


X, W = (2, 4, 7, 6), (6, 4, 3, 2)
REFUSED = [
    ((2, 7), W, {}, r"conv2d: got x of shape \(2, 7\), expected \(N, 4, H, W\)"),
    ((2, 3, 7, 6), W, {}, r"got x of shape \(2, 3, 7, 6\), expected \(N, 4, H, W\).*groups=1"),
    (X, W, {"groups": 2}, r"expected \(N, 8, H, W\).*groups=2"),
    ((2, 16, 7, 6), W, {"groups": 4}, "6 output channels, .* and groups=4; expected a multiple of groups"),
    (X, (6, 4, 3), {}, r"got weight of shape \(6, 4, 3\), expected \(O, C / groups, KH, KW\)"),
    (X, (6, 0, 3, 2), {}, "expected .* each at least 1"),
    (X, (6, 4, 8, 2), {}, r"got a window of \(8, 2\).* for an image of \(7, 6\).*smaller kernel or more padding"),
    (X, W, {"dilation": 4}, r"got a window of \(9, 5\)"),
    (X, W, {"stride": 0}, "got stride=0, expected an integer of at least 1, or 2 of them"),
    (X, W, {"stride": (1, 2, 3)}, r"got stride=\(1, 2, 3\)"),
    (X, W, {"dilation": 1.5}, "got dilation=1.5"),
    (X, W, {"padding": -1}, "got padding=-1, expected an integer of at least 0"),
    (X, W, {"padding": "full"}, 'got padding=\'full\', expected an integer, one for each dim, "valid" or "same"'),
    (X, W, {"padding": "same", "stride": 2}, "needs stride 1"),
    (X, W, {"groups": 0}, "got groups=0"),
]


@pytest.mark.parametrize(("x", "w", "settings", "message"), REFUSED)
def test_mismatched_shapes_are_errors(x, w, settings, message):
    with pytest.raises(ShapeError, match=message):
        nn.conv2d(mf.ones(*x), mf.ones(*w), **settings)


def test_operands_are_tensors_of_one_type():
    x, w = mf.ones(*X), mf.ones(*W)
    with pytest.raises(ShapeError, match=r"got bias of shape \(4,\), expected \(6,\)"):
        nn.conv2d(x, w, mf.ones(4))
    with pytest.raises(DTypeError, match="x of dtype float32 and weight of dtype float64"):
        nn.conv2d(x, w.to(mf.float64))
    with pytest.raises(DTypeError, match="x of dtype float32 and bias of dtype float64"):
        nn.conv2d(x, w, mf.ones(6, dtype=mf.float64))
    with pytest.raises(DTypeError, match="expected weight to be a tensor, got ndarray"):
        nn.conv2d(x, np.ones(W, np.float32))
    with pytest.raises(DTypeError, match="Conv2d: expected x to be a tensor, got list"):
        nn.Conv2d(4, 6, 3)([[1.0]])
    with pytest.raises(ShapeError, match="Conv1d: got x of shape"):
        nn.Conv1d(4, 6, 3)(x)


def test_modules_refuse_numbers_at_once():
    for arguments, settings, message in [
        ((0, 6, 3), {}, "got in_channels=0 and out_channels=6"),
        ((3, 6, 3), {"groups": 2}, "multiples of groups=2"),
        ((4, 6, 0), {}, "Conv2d: got kernel_size=0"),
        ((4, 6, (3, 3, 3)), {}, r"got kernel_size=\(3, 3, 3\)"),
        ((4, 6, 3), {"padding": "same", "stride": 2}, "Conv2d: padding="),
    ]:
        with pytest.raises(ShapeError, match=message):
            nn.Conv2d(*arguments, **settings)
