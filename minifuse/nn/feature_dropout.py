"""Dropout of whole channels, and alpha dropout, which keeps mean and variance of the outputs of SELU."""

import math
from typing import Any

from ..core.dtypes import as_number
from ..core.errors import ShapeError
from ..core.operators import where
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from .dropout import SIGN_BIT, draw_coefficients, random_bits
from .function_layers import layer
from .layers import apply

SELU_LIMIT = -1.7580993408473766  # of selu(x) for x -> -inf: the value of an element that alpha dropout drops


@layer("Dropout1d", inplace=True, is_op=False)
def dropout1d(x: A, p: float = 0.5, training: bool = True) -> A:
    """Set each channel of (N, C, L) or (C, L) to 0 with probability p, and multiply the others by 1 / (1 - p)."""
    return drop("dropout1d", x, p, training, channel_dims("dropout1d", x, (2, 3)), is_alpha=False)


@layer("Dropout2d", inplace=True, is_op=False)
def dropout2d(x: A, p: float = 0.5, training: bool = True) -> A:
    """Set each channel of (N, C, H, W) to 0 with probability p, and multiply the others by 1 / (1 - p)."""
    return drop("dropout2d", x, p, training, 2, is_alpha=False)


@layer("Dropout3d", inplace=True, is_op=False)
def dropout3d(x: A, p: float = 0.5, training: bool = True) -> A:
    """Set each channel of (N, C, D, H, W) or (C, D, H, W) to 0 with probability p, and scale the others by 1 / (1 - p)."""
    return drop("dropout3d", x, p, training, channel_dims("dropout3d", x, (4, 5)), is_alpha=False)


@layer("AlphaDropout", inplace=True, is_op=False)
def alpha_dropout(x: A, p: float = 0.5, training: bool = False) -> A:
    """Set elements to the lower limit of SELU with probability p, then scale and shift to keep mean and variance."""
    return drop("alpha_dropout", x, p, training, x.ndim, is_alpha=True)


@layer("FeatureAlphaDropout", inplace=True, is_op=False)
def feature_alpha_dropout(x: A, p: float = 0.5, training: bool = False) -> A:
    """Apply `alpha_dropout` to whole channels of (N, C, ...)."""
    return drop("feature_alpha_dropout", x, p, training, 2, is_alpha=True)


def channel_dims(name: str, x: Array, ndims: tuple[int, int]) -> int:
    """Return the number of dims that count channels: 1 without a batch, 2 with one."""
    if x.ndim not in ndims:
        raise ShapeError(f"{name}: got shape {x.shape}, expected {ndims[0]} dims, or {ndims[1]} with a batch")
    return ndims.index(x.ndim) + 1


def drop(name: str, x: A, p: float, training: bool, mask_dims: int, is_alpha: bool) -> A:
    """Drop elements with probability p. Those with the same index along the first `mask_dims` dims are dropped together."""
    p = as_number(p)
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: got p={p}, expected a probability from 0 to 1")
    if not training or p == 0:
        return x
    scale, fill = 0.0 if p == 1 else 1 / (1 - p), 0.0
    shift = 0.0
    if is_alpha and p < 1:
        scale = 1 / math.sqrt((1 - p) * (1 + p * SELU_LIMIT**2))
        shift = -scale * SELU_LIMIT * p
        fill = scale * SELU_LIMIT + shift
    threshold = min(int(p * SIGN_BIT), SIGN_BIT - 1)
    body = BoundFunction(_drop, (mask_dims,))
    return apply(body, x, threshold, scale, shift, fill, *draw_coefficients())


def _drop(x: A, threshold: Array, scale: Array, shift: Array, fill: Array, *rest: Any) -> A:
    *coefficients, mask_dims = rest
    shape = x.shape[:mask_dims] + (1,) * (x.ndim - mask_dims)
    is_kept = random_bits(x, shape, coefficients) >= threshold
    return where(is_kept, x * scale + shift, fill)
