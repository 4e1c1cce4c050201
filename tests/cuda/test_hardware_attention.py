"""Attention on a GPU: its kernels against float64 and against the interpreter, of every width and layout."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.layout import row_major
from minifuse.ir.attention import Attention, KeyValueGradient, QueryGradient
from minifuse.testing import gradcheck
from tests.steps import composite_step

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

SHAPES = [(1, 1, 1, 16), (2, 3, 33, 18), (2, 2, 128, 32), (2, 3, 129, 64), (1, 2, 300, 80), (1, 2, 257, 128)]


def exact(q, k, v, g, is_causal):
    """Result and gradients in float64."""
    scale = q.shape[-1] ** -0.5
    scores = scale * q @ k.swapaxes(-1, -2)
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    y = p @ v
    ds = scale * p * (g @ v.swapaxes(-1, -2) - (g * y).sum(-1, keepdims=True))
    return y, ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g


def computed(arrays, is_causal):
    """The same by the kernels."""
    q, k, v, g = [mf.tensor(x, mf.float32, requires_grad=n < 3) for n, x in enumerate(arrays)]
    y = mf.nn.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    y.backward(g)
    return [x.numpy() for x in (y.detach(), q.grad, k.grad, v.grad)]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_width_past_the_edges_of_tiles(shape, is_causal):
    arrays = np.random.default_rng(0).standard_normal((4, *shape))
    for got, wanted in zip(computed(arrays, is_causal), exact(*arrays, is_causal), strict=True):
        np.testing.assert_allclose(got, wanted, 1e-5, 1e-5 * max(np.abs(wanted).max(), 1))  # of one key, gradients are 0


def test_queries_and_keys_of_other_numbers():
    random = np.random.default_rng(0)
    q, k, v, g = [random.standard_normal((2, n, 64)) for n in (70, 200, 200, 70)]
    for is_causal in (False, True):
        for got, wanted in zip(computed((q, k, v, g), is_causal), exact(q, k, v, g, is_causal), strict=True):
            np.testing.assert_allclose(got, wanted, 1e-5, 1e-5 * np.abs(wanted).max())


def test_the_same_bits_in_every_run():
    arrays = np.random.default_rng(0).standard_normal((4, 2, 4, 500, 64))
    first = computed(arrays, True)
    for _ in range(10):
        assert all(a.tobytes() == b.tobytes() for a, b in zip(computed(arrays, True), first, strict=True))


@pytest.mark.parametrize("start", [0, 1, 4])
def test_views_that_begin_anywhere(start):
    """Heads cut out of one array, as projections leave them; at multiples of 16 bytes, and not."""
    x = np.random.default_rng(0).standard_normal((2, 50, 3, 200)).astype(np.float32)
    of = mf.tensor(x).permute(0, 2, 1, 3)
    q, k, v = [of[..., start + 60 * n : start + 60 * n + 60] for n in range(3)]
    arrays = [t.numpy().astype(float) for t in (q, k, v)]
    y = mf.nn.scaled_dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(y.numpy(), exact(*arrays, np.zeros_like(arrays[0]), True)[0], 1e-5, 1e-5)


def test_a_module_learns_as_on_the_cpu():
    losses = {}
    for backend in ("parallel", "cuda"):
        mf.manual_seed(0)
        module = mf.nn.MultiheadAttention(64, 2, causal=True, backend=backend)
        x, t = [mf.tensor(a, mf.float32, backend=backend) for a in np.random.default_rng(1).standard_normal((2, 4, 40, 64))]
        losses[backend] = []
        for _ in range(5):
            loss = mf.nn.mse_loss(module(x), t)
            module.zero_grad()
            loss.backward()
            with mf.no_grad():
                for p in module.parameters():
                    p -= 0.5 * p.grad
            losses[backend].append(loss.item())
    np.testing.assert_allclose(losses["cuda"], losses["parallel"], 1e-5)


def test_float64_takes_the_definition():
    x = mf.tensor(np.random.default_rng(0).standard_normal((3, 5, 16)), mf.float64, requires_grad=True)
    assert gradcheck(lambda x: mf.nn.scaled_dot_product_attention(x, x, x, is_causal=True), x)


def test_all_three_functions_are_known():
    """Otherwise the tests above would have tested products."""
    for kind, count in ((Attention, 3), (QueryGradient, 4), (KeyValueGradient, 4)):
        shapes = [(2, 5, 16)] * count + [(2, 5)] * (2 if count == 4 else 0)
        step = composite_step(kind(True, 1.0), [row_major(shape) for shape in shapes], [mf.float32] * len(shapes))
        assert mf.tensor([1.0]).meta.backend.supports(step) is None
