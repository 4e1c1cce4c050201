"""Convolutions, pooling and losses, forward and backward, compared with eager torch.

The exact results are computed by NumPy in float64, over windows of the padded input; gradients are written by hand.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ..row import Array, Bench, Row, Work, formula, normal, speed

GROUP = "convolution"
LINE, IMAGE = (32, 64, 256), (32, 16, 28, 28)  # (N, channels, ...)
LINE_WEIGHT, IMAGE_WEIGHT = (64, 64, 3), (32, 16, 3, 3)  # (outputs, inputs, ...)
PADDING = 1  # elements at each end of each dim, so that the result has the size of the input
POOLED = 2  # side of a pooling window
LOGITS = (4096, 1024)
Windows = tuple[int, ...]


def functional(x: Any) -> Any:
    """Return the module `nn.functional` of minifuse or torch."""
    module, _, _ = type(x).__module__.partition(".")
    return import_module(f"{module}.nn.functional")


def convolve(x: Any, w: Any) -> Any:
    """Convolve over the last one or two dims of the input, which keep their sizes."""
    return getattr(functional(x), f"conv{x.ndim - 2}d")(x, w, padding=PADDING)


def windows(x: Array, size: Windows) -> Any:
    """Return windows of the padded input, (N, channels, *sizes) -> (N, channels, *sizes, *size)."""
    padded = np.pad(x, [(0, 0), (0, 0), *[(PADDING, PADDING)] * len(size)])
    return np.lib.stride_tricks.sliding_window_view(padded, size, tuple(range(2, x.ndim)))


def exact_convolution(x: Array, w: Array) -> Any:
    """Return the convolution: products of window and weight, summed over input channels and the window."""
    size = w.shape[2:]
    dims = [1, *range(x.ndim, x.ndim + len(size))]
    sums = np.tensordot(windows(x, size), w, (dims, [1, *range(2, w.ndim)]))
    return np.moveaxis(sums, -1, 1)


def exact_gradient(x: Array, w: Array, g: Array) -> Any:
    """Return the gradient of the input: the output gradient, convolved with the flipped weight."""
    flipped = np.flip(w, tuple(range(2, w.ndim))).swapaxes(0, 1)
    return exact_convolution(g, flipped)


def backward_of(work: Work, *differentiated: int) -> Work:
    """Return a function that does a forward and backward pass, and returns the gradient of the first input.

    Gradients are also computed of the operands whose indices, after the first input, are `differentiated`.
    """

    def forward_backward(x: Any, *rest: Any) -> Any:
        *operands, g = rest
        for k in differentiated:
            operands[k].requires_grad = True
            operands[k].grad = None
        x.grad = None
        work(x, *operands).backward(g)
        return x.grad

    return forward_backward


def pooled(kind: str) -> Work:
    """Return a pooling function over windows that do not overlap."""
    return lambda x: getattr(functional(x), f"{kind}_pool2d")(x, POOLED)


def blocks(x: Array) -> Any:
    """Split an image into pooling windows, (N, C, H, W) -> (N, C, H / 2, 2, W / 2, 2)."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // POOLED, POOLED, w // POOLED, POOLED)


def exact_max_gradient(x: Array, g: Array) -> Any:
    """Return the gradient of max pooling: the maximum of each window receives its gradient."""
    is_largest = blocks(x) == blocks(x).max((3, 5), keepdims=True)
    return (is_largest * g[:, :, :, None, :, None]).reshape(x.shape)


def exact_mean_gradient(x: Array, g: Array) -> Any:
    """Return the gradient of average pooling: each element of a window receives an equal share."""
    return np.broadcast_to(g[:, :, :, None, :, None] / POOLED**2, blocks(x).shape).reshape(x.shape)


def with_classes(bench: Bench) -> list[Any]:
    """Return random logits, and a random class for each row."""
    logits = bench.normal(0, LOGITS, "float32")
    return [logits, bench.held(bench.rng.integers(0, logits.shape[1], logits.shape[0]))]


def cross_entropy(x: Any, y: Any) -> Any:
    """Compute the loss, and return the gradient of the logits."""
    x.grad = None
    functional(x).cross_entropy(x, y).backward()
    return x.grad


def exact_cross_entropy(x: Array, y: Array) -> Any:
    """Return the gradient: softmax, minus 1 at the class, divided by the number of rows."""
    module: Any = np if isinstance(x, np.ndarray) else import_module("cupy")
    e = module.exp(x - x.max(1, keepdims=True))
    is_class = y[:, None] == module.arange(x.shape[1])
    return (e / e.sum(1, keepdims=True) - is_class) / len(x)


def multiplications(weight: tuple[int, ...], passes: int) -> Callable[..., int]:
    """Return an upper bound of the additions and multiplications, padding included. A backward pass counts as two passes."""
    return lambda y, x, w, *_: passes * 2 * x[:, :1].size * w.size


def convolution_rows(title: str, x: tuple[int, ...], w: tuple[int, ...]) -> list[Row]:
    """Return rows of a convolution, forward, and forward and backward."""
    y = (x[0], w[0], *x[2:])
    options: dict[str, Any] = {"without": ["numpy"], "rests": True, "targets": [speed("torch", 1)]}
    name = f"{title} of {x} with {w}"
    return [
        formula(name, GROUP, normal(x, w), convolve, exact_convolution, flops=multiplications(w, 1), **options),
        formula(
            f"{name}, forward and backward",
            GROUP,
            normal(x, w, y),
            backward_of(convolve, 0),
            exact=exact_gradient,
            gradients=True,
            flops=multiplications(w, 3),
            **options,
        ),
    ]


def pooling_rows(kind: str, exact: Work, gradient: Work) -> list[Row]:
    """Return rows of pooling, forward, and forward and backward."""
    shape = (*IMAGE[:2], IMAGE[2] // POOLED, IMAGE[3] // POOLED)
    options: dict[str, Any] = {"without": ["numpy"], "targets": [speed("torch", 1)]}
    return [
        formula(f"{kind} pooling of {IMAGE} by 2", GROUP, normal(IMAGE), pooled(kind), exact, **options),
        formula(
            f"{kind} pooling of {IMAGE} by 2, forward and backward",
            GROUP,
            normal(IMAGE, shape),
            backward_of(pooled(kind)),
            exact=gradient,
            gradients=True,
            **options,
        ),
    ]


ROWS = [
    *convolution_rows("conv1d", LINE, LINE_WEIGHT),
    *convolution_rows("conv2d", IMAGE, IMAGE_WEIGHT),
    *pooling_rows("max", lambda x: blocks(x).max((3, 5)), exact_max_gradient),
    *pooling_rows("avg", lambda x: blocks(x).mean((3, 5)), exact_mean_gradient),
    formula(
        f"cross-entropy of {LOGITS}, forward and backward",
        GROUP,
        with_classes,
        cross_entropy,
        exact=exact_cross_entropy,
        gradients=True,
        without=["numpy"],
        targets=[speed("torch", 1)],
    ),
]
