"""backends.parallel.conv_weight_grad against float64: partial panels and blocks, layouts."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.parallel import conv_weight_grad, implicit_gemm_conv
from minifuse.backends.parallel.backend import ParallelBackend
from minifuse.core.layout import row_major
from minifuse.ir.array_functions import BoundFunction, Matmul
from minifuse.nn.im2col import WindowGradient
from tests.steps import composite_step

# (groups, M, channels of a group, image, N, size, step, dilation)
CASES = {
    "one of each": (1, 1, 1, (5, 8), 32, (3, 3), (1, 1), (1, 1)),
    "whole panels": (1, 8, 4, (5, 9), 20, (2, 3), (1, 1), (1, 1)),
    "past panels": (1, 9, 6, (5, 17), 11, (2, 2), (1, 1), (1, 1)),
    "past a block": (1, 5, 5, (2400,), 1, (3,), (1,), (1,)),
    "groups": (3, 2, 4, (6, 10), 17, (3, 2), (1, 1), (1, 1)),
    "depthwise": (7, 1, 1, (6, 20), 8, (2, 5), (1, 1), (1, 1)),
    "few channels": (2, 6, 3, (9, 40), 7, (5, 2), (2, 1), (1, 1)),
    "stride": (2, 3, 4, (9, 11), 129, (3, 2), (2, 3), (1, 1)),
    "dilation": (1, 6, 5, (11, 40), 4, (3, 3), (1, 1), (2, 3)),
}


def parts(case, dtype):
    """What the product receives, z, and the exact result."""
    groups, m, channels, image, n, size, step, dilation = CASES[case]
    places = [(i - d * (k - 1) - 1) // s + 1 for i, k, s, d in zip(image, size, step, dilation, strict=True)]
    draw = np.random.default_rng(len(case)).standard_normal
    given = draw((groups, m, int(np.prod(places)) * n)).astype(dtype)
    z = draw((groups * channels, *image, n)).astype(dtype)
    wanted = np.zeros((groups, m, channels, *size))
    g, seen = (
        given.astype(np.float64).reshape(groups, m, *places, n),
        z.astype(np.float64).reshape(groups, channels, *image, n),
    )
    for taps in np.ndindex(*size):
        ranges = [slice(t * d, t * d + (p - 1) * s + 1, s) for t, d, p, s in zip(taps, dilation, places, step, strict=True)]
        part = seen[(slice(None), slice(None), *ranges)]
        wanted[(..., *taps)] = np.einsum("gmx,gcx->gmc", g.reshape(groups, m, -1), part.reshape(groups, channels, -1))
    return given, z, wanted.reshape(groups, m, -1)


def function_of(case, dtype):
    *_, size, step, dilation = CASES[case]
    return WindowGradient(size, step, dilation, dtype, Matmul())


def both(given, z, function):
    """As one captured call."""
    return function(given, z)[0]


def gradient(case, given, z):
    return given.apply(BoundFunction(both, (function_of(case, given.dtype),)), given, z)


@pytest.mark.sampled(2, each="case")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(case, dtype):
    given, z, wanted = parts(case, dtype)
    assert (
        ParallelBackend().supports(
            composite_step(
                function_of(case, getattr(mf, dtype)), [row_major(given.shape), row_major(z.shape)], [getattr(mf, dtype)] * 2
            )
        )
        is None
    )
    found = gradient(case, mf.tensor(given), mf.tensor(z)).numpy()
    np.testing.assert_allclose(found, wanted, atol=(1e-5 if dtype == "float32" else 1e-13) * np.abs(wanted).max())


@pytest.mark.parametrize("case", ["past panels", "few channels"])
def test_operands_in_any_layout(case):
    given, z, wanted = parts(case, "float32")
    turned = mf.tensor(given.transpose(2, 0, 1).copy()).permute(1, 2, 0)
    images = mf.tensor(z.T.copy()).permute(*reversed(range(z.ndim)))
    for x, y in ((turned, images), (mf.tensor(given), mf.tensor(z[::-1].copy()).flip(0)), (turned, mf.tensor(z))):
        np.testing.assert_allclose(gradient(case, x, y).numpy(), wanted, atol=1e-5 * np.abs(wanted).max())


def test_short_runs_are_left_to_copies(monkeypatch):
    for module in (conv_weight_grad, implicit_gemm_conv):
        monkeypatch.setattr(module, "lanes_of", lambda dtype: 64 // dtype.itemsize)  # vectors of 512 bits
    shapes = [(1, 4, 6 * 24 * 4), (2, 8, 24, 4)]
    for size, step, is_worth in (((3, 1), (1, 1), False), ((3, 1), (1, 2), False)):
        assert conv_weight_grad.is_profitable((size, step, (1, 1), mf.float32), shapes) == is_worth
    assert conv_weight_grad.is_profitable(((3, 1), (1, 1), (1, 1), mf.float32), [shapes[0], (2, 8, 32, 4)])


def test_the_gradient_of_a_convolution_copies_no_windows():
    x, w = mf.randn(16, 3, 10, 12), mf.randn(5, 3, 3, 3, requires_grad=True)
    y = mf.nn.conv2d(x, w, padding=1)
    with mf.profile() as found:
        y.backward(mf.ones_like(y))
    assert "window_gradient of (1, 5, 1920), (3, 12, 14, 16)" in [event.work.form for event in found.events]
