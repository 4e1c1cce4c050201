"""Functions of neural networks that are in `mf` and in `mf.nn.functional`, as in PyTorch: distances, and a few more."""

import math

from ..core.errors import ShapeError
from ..core.indexing import normalize_dim
from ..core.layout import broadcast
from ..core.operators import abs, maximum, sqrt, where  # noqa: A004  # the name of the operator
from ..ir.array_functions import A
from ..ir.array_methods import Array
from ..ir.gather import Gather
from ..ir.numpy_api.table import call_once
from .table import function


@function(operands=1)
def hardshrink(x: A, lambd: float = 0.5) -> A:
    """Return x where |x| > lambd, and 0 elsewhere."""
    return where((x >= -lambd) & (x <= lambd), 0, x)


@function(operands=2)
def prelu(x: A, weight: Array) -> A:
    """Return x where x > 0, and x times a slope elsewhere. `weight` has one slope, or one for each channel (dim 1)."""
    if weight.ndim == 1 and x.ndim >= 2:
        weight = weight.reshape(-1, *[1] * (x.ndim - 2))
    return where(x > 0, x, x * weight)


@function(method=False)
def bilinear(x1: A, x2: Array, weight: Array, bias: Array | None = None) -> A:
    """Return y with y[..., o] = sum over i, j of x1[..., i] * weight[o, i, j] * x2[..., j], plus bias[o]."""
    return call_once(_bilinear, x1, x2, weight, *(() if bias is None else (bias,)))


def _bilinear(x1: A, x2: Array, weight: Array, bias: Array | None = None) -> A:
    outputs, features1, features2 = weight.shape
    if x1.shape[-1] != features1 or x2.shape[-1] != features2:
        raise ShapeError(
            f"bilinear: got shapes {x1.shape} and {x2.shape}, expected (..., {features1}) and (..., {features2}) for a "
            f"weight of shape {weight.shape}"
        )
    rows = x1 @ weight.permute(1, 0, 2).reshape(features1, outputs * features2)
    y = (rows.reshape(*x1.shape[:-1], outputs, features2) * x2.unsqueeze(-2)).sum(-1)
    return y if bias is None else y + bias


def vector_norm(x: A, p: float, dim: int, keepdim: bool = False) -> A:
    """Return the p-norm along a dim. Where it is 0, so is its gradient."""
    if p == 0:
        return (x != 0).to(x.dtype).sum(dim, keepdim)
    if p == 1:
        return abs(x).sum(dim, keepdim)
    if p == math.inf:
        return abs(x).max(dim, keepdim)
    total = ((x * x) if p == 2 else abs_power(x, p)).sum(dim, keepdim)
    positive = where(total > 0, total, 1)  # the derivative of the root at 0 is infinite
    return where(total == 0, total, sqrt(positive) if p == 2 else positive ** (1 / p))


def abs_power(x: A, p: float) -> A:
    """Return |x| ** p. At 0, so is its gradient."""
    return where(x == 0, 0, where(x == 0, 1, abs(x)) ** p)


@function(operands=2)
def cosine_similarity(x1: A, x2: Array, dim: int = 1, eps: float = 1e-8) -> A:
    """Return the cosine of the angle between vectors along a dim: their product over their lengths, each at least `eps`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.cosine_similarity(mf.tensor([[3.0, 4.0]]), mf.tensor([[4.0, 3.0]]))
    tensor([0.96])
    """
    ndim = max(x1.ndim, x2.ndim)
    d = normalize_dim(dim, ndim) - ndim
    shape = broadcast(x1.shape, x2.shape)
    x1, x2 = x1.expand(shape), x2.expand(shape)
    return (x1 * x2).sum(d) / (maximum(vector_norm(x1, 2, d), eps) * maximum(vector_norm(x2, 2, d), eps))


@function(operands=2)
def pairwise_distance(x1: A, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> A:
    """Return the p-norm of x1 - x2 + eps along the last dim."""
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


@function(operands=2, method=False)
def cdist(x1: A, x2: Array, p: float = 2.0, compute_mode: str | None = None) -> A:
    """Return the distance of each row of x1 (..., P, M) to each row of x2 (..., R, M), of shape (..., P, R).

    Distances are sums of differences, which is exact for close points. So `compute_mode` of PyTorch changes nothing.
    """
    return vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@function(operands=1, method=False)
def pdist(x: A, p: float = 2.0) -> A:
    """Return the distances of all pairs of rows of x (N, M), in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    if x.ndim != 2:
        raise ShapeError(f"pdist: got shape {x.shape}, expected (N, M); use cdist for batches")
    n = x.shape[0]
    k = x.positions(n * (n - 1) // 2)
    root = sqrt((2 * n - 1) * (2 * n - 1) - 8.0 * k.to("float64"))
    i = ((2 * n - 1 - root) / 2).to("int64")  # the first pair of row i is number i * (2 n - 1 - i) / 2
    j = k - i * (2 * n - 1 - i) // 2 + i + 1
    return vector_norm(Gather(0)(x, i) - Gather(0)(x, j), p, -1)
