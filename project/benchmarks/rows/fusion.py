"""Fused functions on the CPU, compared with torch.compile, numexpr, jax.jit, and unfused libraries.

`gpu_fusion` measures the same functions on a GPU.
"""

from importlib import import_module
from typing import Any

import numpy as np

import minifuse as mf

from ..fused import Arrays, backward, fused
from ..row import Array, Row, Work, normal, speed, within
from .convolutions import exact_cross_entropy, with_classes
from .functions import erf, torch_gelu
from .large import (
    LONG,
    TABLE,
    chain,
    numexpr_chain,
    numexpr_polynomial,
    numpy_softmax_backward,
    polynomial,
    softmax,
)

HOST, LARGE, MATMUL = "fusion-host", "fusion-large", "fusion-matmul"
SHORT = (1024,)
WIDTH = TABLE[1:]
EPSILON = 1e-5
SQUARE, LAYER = ((1024, 1024), (1024, 1024), (1024,)), ((4096, 784), (784, 128), (128,))
f32 = np.float32  # cupy.fuse treats other numbers as float64


def array_chain(np: Any, width: Any) -> Work:
    """Return the chain, written with NumPy functions."""
    return lambda a, b, c: f32(1) / (f32(1) + np.exp(-(a * b + c))) * np.maximum(a, f32(0)) - np.log1p(np.exp(-b * b))


def array_polynomial(np: Any, width: Any) -> Work:
    """Return the polynomial, written with NumPy functions."""
    return lambda a, b, c: (a * b + c) * a - f32(0.5) * b * b + c


def squared_difference(a: Any, b: Any) -> Any:
    """Return the sum of the squares of differences."""
    return ((a - b) ** 2).sum()


def transposed(x: Any, b: Any) -> Any:
    """Return x.T * 2 + b, which reads along columns and writes along rows."""
    return x.T * 2 + b


def array_transposed(np: Any, width: Any) -> Work:
    """Return the function y * 2 + b of the view y = x.T."""
    return lambda y, b: y * f32(2) + b


def views_of_transposed(x: Any, b: Any) -> tuple[Any, Any]:
    """Return (x.T, b), because cupy.fuse does not accept the view inside a function."""
    return x.T, b


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    """Normalize rows to mean 0 and variance 1, then scale and shift them."""
    d = x - x.mean(1, keepdim=True)
    return d * ((d * d).mean(1, keepdim=True) + EPSILON).rsqrt() * weight + bias


def torch_layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    """Return `layer_norm` by the one operator of torch."""
    import torch

    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, EPSILON)


def softmax_times(x: Any) -> Any:
    """Return softmax(x) * x of rows."""
    return x.softmax(1) * x


def array_softmax(np: Any, width: Any) -> Work:
    """Return the softmax of rows in NumPy without `keepdims`, which cupy.fuse does not support."""

    def work(x: Any) -> Any:
        e = np.exp(x - np.amax(x, axis=1)[:, None])
        return e / np.sum(e, axis=1)[:, None]

    return work


def array_layer_norm(np: Any, width: Any) -> Work:
    """Return layer norm, written with NumPy functions."""

    def work(x: Any, weight: Any, bias: Any) -> Any:
        d = x - (np.sum(x, axis=1) / width)[:, None]
        return d / np.sqrt(np.sum(d * d, axis=1) / width + f32(EPSILON))[:, None] * weight + bias

    return work


def softmax_times_backward(x: Array, g: Array) -> Any:
    """Return the gradient of `softmax_times` by hand."""
    y = softmax(x)
    return y * (g * (1 + x) - (y * g * x).sum(1, keepdims=True))


def layer_norm_backward(x: Array, weight: Array, bias: Array, g: Array) -> Any:
    """Return the gradient of `layer_norm` by hand."""
    d = x - x.mean(1, keepdims=True)
    scale = 1 / np.sqrt((d * d).mean(1, keepdims=True) + EPSILON)
    y, h = d * scale, g * weight
    return scale * (h - h.mean(1, keepdims=True) - y * (h * y).mean(1, keepdims=True))


def softmax_given(y: Any, g: Any) -> Any:
    """Return the gradient of softmax, given its result and the output gradient."""
    return y * (g - (y * g).sum(1)[:, None])


def torch_cross_entropy(x: Any, targets: Any) -> Any:
    """Return the mean loss of rows, in torch."""
    return import_module("torch").nn.functional.cross_entropy(x, targets)


def backward_of_loss(loss: Work) -> Work:
    """Return a function that does a forward and backward pass, and returns the gradient of the first input."""

    def forward_backward(x: Any, targets: Any) -> Any:
        x.grad = None
        loss(x, targets).backward()
        return x.grad

    return forward_backward


def relu_layer(x: Any, w: Any, b: Any) -> Any:
    """Apply a linear layer and relu."""
    return (x @ w + b).relu()


def gelu_layer(x: Any, w: Any, b: Any) -> Any:
    """Apply a linear layer and gelu."""
    return (x @ w + b).gelu()


def torch_gelu_layer(x: Any, w: Any, b: Any) -> Any:
    """Return `gelu_layer` in torch, where gelu is not a method."""
    return torch_gelu(x @ w + b)


def array_relu_layer(np: Any, width: Any) -> Work:
    """Return `relu_layer`, written with NumPy functions."""
    return lambda x, w, b: np.maximum(x @ w + b, f32(0))


def exact_gelu_layer(x: Array, w: Array, b: Array) -> Any:
    """Return `gelu_layer` in NumPy or CuPy; NumPy has no erf, so `functions.erf` computes it."""
    z = x @ w + b
    special = erf if isinstance(z, np.ndarray) else import_module("cupyx.scipy.special").erf
    return z * 0.5 * (1 + special(z * 0.5**0.5))


def multiplications(y: Any, x: Any, *_: Any) -> int:
    """Return the number of additions and multiplications of the product in a layer."""
    return int(2 * y.size * x.shape[-1])


def numexpr_transposed(x: Array, b: Array) -> Any:
    """Return `transposed`, compiled by numexpr."""
    return import_module("numexpr").evaluate("y * two + b", {"y": x.T, "two": f32(2), "b": b})


def layers(kind: str, work: Work, arrays: Arrays | None, **options: Any) -> list[Row]:
    """Return a row of a layer with square matrices, and a row of the first layer of a network for digits."""
    targets = [speed("torch.compile", 1), *([speed("numpy", 1.1)] if arrays else [])]
    return [
        fused(
            f"{kind}(x @ w + b), {x[0]} x {x[1]} x {w[1]}",
            MATMUL,
            normal(x, w, b),
            work,
            arrays,
            flops=multiplications,
            rests=True,
            targets=targets if x[0] == x[1] else (),
            **options,
        )
        for x, w, b in (SQUARE, LAYER)
    ]


ROWS = [
    fused("chain of 8", HOST, normal(SHORT, SHORT, SHORT), chain, array_chain, targets=[within(3, "us")]),
    fused(
        "chain of 8, recorded for gradients",
        HOST,
        normal(SHORT, SHORT, SHORT),
        chain,
        exact=array_chain(np, 0),
        gradients=True,
    ),
    fused(
        "chain of 8",
        LARGE,
        normal(LONG, LONG, LONG),
        chain,
        array_chain,
        others={"numexpr": numexpr_chain},
        targets=[speed("torch.compile", 2.5)],
    ),
    fused(
        "polynomial",
        LARGE,
        normal(LONG, LONG, LONG),
        polynomial,
        array_polynomial,
        others={"numexpr": numexpr_polynomial},
        targets=[speed("torch.compile", 5)],
    ),
    fused(
        "((a - b) ** 2).sum()",
        LARGE,
        normal(LONG, LONG),
        squared_difference,
        lambda np, width: lambda a, b: np.sum((a - b) ** 2),
        targets=[speed("torch.compile", 1)],
    ),
    fused(
        "x.T * 2 + b",
        LARGE,
        normal(TABLE, TABLE[:1]),
        transposed,
        array_transposed,
        views=views_of_transposed,
        others={"numexpr": numexpr_transposed},
        targets=[speed("torch.compile", 1)],
    ),
    fused("softmax", LARGE, normal(TABLE), lambda x: x.softmax(1), array_softmax, targets=[speed("torch.compile", 1)]),
    fused(
        "layer norm",
        LARGE,
        normal(TABLE, WIDTH, WIDTH),
        layer_norm,
        array_layer_norm,
        torch=torch_layer_norm,
        targets=[speed("torch.compile", 1.5)],
    ),
    fused(
        "exp(x.T) * 2",
        LARGE,
        normal(TABLE),
        lambda x: x.T.exp() * 2,
        lambda np, width: lambda y: np.exp(y) * f32(2),
        views=lambda x: (x.T,),
        targets=[speed("torch", 3)],
    ),
    fused(
        "softmax(x), forward and backward",
        LARGE,
        normal(TABLE, TABLE),
        lambda x: x.softmax(1),
        around=backward,
        exact=numpy_softmax_backward,
        gradients=True,
        targets=[speed("torch", 1.5)],
    ),
    fused(
        "cross-entropy, forward and backward",
        LARGE,
        with_classes,
        mf.nn.cross_entropy,
        torch=torch_cross_entropy,
        around=backward_of_loss,
        exact=exact_cross_entropy,
        gradients=True,
        targets=[speed("torch.compile", 1)],
    ),
    fused(
        "softmax(x) * x, forward and backward",
        LARGE,
        normal(TABLE, TABLE),
        softmax_times,
        around=backward,
        exact=softmax_times_backward,
        gradients=True,
        targets=[speed("torch.compile", 1)],
    ),
    fused(
        "layer norm, forward and backward",
        LARGE,
        normal(TABLE, WIDTH, WIDTH, TABLE),
        layer_norm,
        torch=torch_layer_norm,
        around=backward,
        exact=layer_norm_backward,
        gradients=True,
        targets=[speed("torch.compile", 1)],
    ),
    *layers("relu", relu_layer, array_relu_layer),
    *layers("gelu", gelu_layer, None, torch=torch_gelu_layer, exact=exact_gelu_layer),
]
