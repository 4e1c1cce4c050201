"""Fused functions on a GPU, compared with torch.compile, cupy.fuse, and unfused libraries.

`fusion` measures the same functions on the CPU. HOST_ROWS are timed by the host's clock, all others by the device's.
"""

from typing import Any

import numpy as np

import minifuse as mf

from ..fused import backward, fused
from ..gpu import on_device
from ..row import Row, Target, normal, speed, within
from . import fusion
from .convolutions import exact_cross_entropy
from .fusion import SHORT, array_chain, array_layer_norm, array_softmax, layer_norm, torch_layer_norm
from .large import chain

HOST, MEMORY, MATMUL = "gpu-fusion-host", "gpu-fusion-memory", "gpu-fusion-matmul"
LONG = (1 << 26,)
TABLE, ODD = (8192, 8192), (65536, 1001)  # rows of 1001 are not aligned to vectors
LOGITS = ((8192, 8192), (65536, 1001), (4096, 50257))  # (rows, classes); 50257 classes as in GPT-2
LAYER = ((4096, 4096), (4096, 4096), (4096,))
CHAIN = "y = 1.0f / (1.0f + expf(-(a * b + c))) * fmaxf(a, 0.0f) - log1pf(expf(-b * b))"  # in CUDA C, for cupy


def fusion_targets(at_least: float, than_cupy: float = 1.5) -> list[Target]:
    """Return the targets relative to the peers that fuse."""
    return [speed("torch.compile", at_least), speed("cupy.fuse", than_cupy)]


def row_reductions(shape: tuple[int, int]) -> list[Row]:
    """Return rows of softmax and layer norm of a table."""
    rows, width = shape
    return [
        fused(
            f"softmax, {rows} x {width}",
            MEMORY,
            normal(shape),
            lambda x: x.softmax(1),
            array_softmax,
            targets=fusion_targets(1.1),
        ),
        fused(
            f"layer norm, {rows} x {width}",
            MEMORY,
            normal(shape, (width,), (width,)),
            layer_norm,
            array_layer_norm,
            torch=torch_layer_norm,
            targets=fusion_targets(1),
        ),
    ]


def cross_entropy_row(shape: tuple[int, int]) -> Row:
    """Return the row of cross-entropy with class indices, forward and backward."""
    rows, classes = shape

    def inputs(bench: Any) -> tuple[Any, Any]:
        (x,) = normal(shape)(bench)
        return x, bench.held(bench.rng.integers(0, x.shape[1], x.shape[0]))

    return fused(
        f"cross-entropy, forward and backward, {rows} x {classes}",
        MEMORY,
        inputs,
        mf.nn.cross_entropy,
        torch=fusion.torch_cross_entropy,
        around=fusion.backward_of_loss,
        exact=exact_cross_entropy,
        gradients=True,
        targets=[speed("torch.compile", 1)],
    )


HOST_ROWS = [
    fused(
        "chain of 8",
        HOST,
        normal(SHORT, SHORT, SHORT),
        chain,
        array_chain,
        targets=[within(7, "us"), speed("cupy.fuse", 1.5)],
    ),
    fused(
        "chain of 8, recorded for gradients",
        HOST,
        normal(SHORT, SHORT, SHORT),
        chain,
        exact=array_chain(np, 0),
        gradients=True,
    ),
]
POINTWISE = [
    fused(
        "chain of 8",
        MEMORY,
        normal(LONG, LONG, LONG),
        chain,
        array_chain,
        element=("float32 a, float32 b, float32 c", "float32 y", CHAIN),
        targets=fusion_targets(1, 1.6),
    ),
    fused(
        "x.T * 2 + b",
        MEMORY,
        normal(TABLE, TABLE[:1]),
        fusion.transposed,
        fusion.array_transposed,
        views=fusion.views_of_transposed,
        element=("float32 x, float32 b", "float32 y", "y = x * 2.0f + b"),
        targets=fusion_targets(1),
    ),
]
REDUCTIONS = [
    fused(
        "((a - b) ** 2).sum()",
        MEMORY,
        normal(TABLE, TABLE),
        fusion.squared_difference,
        lambda np, width: lambda a, b: np.sum((a - b) ** 2),
        targets=fusion_targets(1.02),
    ),
    *row_reductions(TABLE),
    *row_reductions(ODD),
    fused(
        "backward of softmax, 8192 x 8192",
        MEMORY,
        normal(TABLE, TABLE),
        fusion.softmax_given,
        targets=[speed("torch.compile", 1)],
    ),
    fused(
        "softmax(x) * x, forward and backward",
        MEMORY,
        normal(TABLE, TABLE),
        fusion.softmax_times,
        around=backward,
        exact=fusion.softmax_times_backward,
        gradients=True,
        targets=[speed("torch.compile", 1)],
    ),
    fused(
        "layer norm, forward and backward",
        MEMORY,
        normal(TABLE, TABLE[1:], TABLE[1:], TABLE),
        layer_norm,
        torch=torch_layer_norm,
        around=backward,
        exact=fusion.layer_norm_backward,
        gradients=True,
        targets=[speed("torch.compile", 1)],
    ),
    *map(cross_entropy_row, LOGITS),
]


def layer(kind: str, work: Any, **options: Any) -> Row:
    """Return the row of a layer of a network; torch calls cuBLAS for the product."""
    x, w, b = LAYER
    return fused(
        f"{kind}(x @ w + b), 4096 x 4096 x 4096",
        MATMUL,
        normal(x, w, b),
        work,
        flops=fusion.multiplications,
        targets=[speed("torch.compile", 1)],
        **options,
    )


LAYERS = [
    layer("relu", fusion.relu_layer, exact=fusion.array_relu_layer(np, 0)),
    layer("gelu", fusion.gelu_layer, torch=fusion.torch_gelu_layer, exact=fusion.exact_gelu_layer),
]
GPU_ROWS = [
    *HOST_ROWS,
    *[on_device(row, beside_copy=True) for row in POINTWISE],
    *[on_device(row) for row in (*REDUCTIONS, *LAYERS)],
]
