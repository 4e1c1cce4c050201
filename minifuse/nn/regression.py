"""Regression losses: elementwise distances between predictions and targets. Each is one composite op.

Options have PyTorch's names and are keyword-only.
"""

from typing import Literal

from ..core.errors import DTypeError, ShapeError
from ..core.operators import abs, where  # noqa: A004  # the name of the operator
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from .layers import apply
from .module import Module

Reduction = Literal["mean", "sum", "none"]


def mse_loss(x: A, y: Array, *, reduction: Reduction = "mean") -> A:
    """Compute the squared error: (x - y) ** 2.

    Parameters
    ----------
    x, y : Tensor of floats, of the same shape
        Predictions and targets.
    reduction : {"mean", "sum", "none"}
        Return the mean of all elements, their sum, or one loss per element.

    Returns
    -------
    Tensor
        0-d; or the shape of x if `reduction` is "none".

    Raises
    ------
    ShapeError
        The shapes differ. They are not broadcast, since (N, 1) and (N,) would become (N, N).

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.mse_loss(mf.tensor([1.0, 2.0]), mf.tensor([1.0, 5.0]))
    tensor(4.5)
    """
    return apply(BoundFunction(_mse_loss, (reduction,)), x, y)


def _mse_loss(x: Array, y: Array, reduction: Reduction) -> Array:
    require_same_shape_and_dtype("mse_loss", x, y)
    difference = x - y
    return reduce_loss(difference * difference, reduction)


def l1_loss(x: A, y: Array, *, reduction: Reduction = "mean") -> A:
    """Compute the absolute error: |x - y|. Parameters, results and errors are those of `mse_loss`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.l1_loss(mf.tensor([1.0, 2.0]), mf.tensor([1.0, 5.0]))
    tensor(1.5)
    """
    return apply(BoundFunction(_l1_loss, (reduction,)), x, y)


def _l1_loss(x: Array, y: Array, reduction: Reduction) -> Array:
    require_same_shape_and_dtype("l1_loss", x, y)
    return reduce_loss(abs(x - y), reduction)


def huber_loss(x: A, y: Array, reduction: Reduction = "mean", delta: float = 1.0) -> A:
    """Compute the Huber loss: d**2 / 2 if d = |x - y| is less than delta, else delta * (d - delta / 2).

    Parameters, results and errors are those of `mse_loss`, and also:

    Parameters
    ----------
    delta : float
        Greater than 0: the error at which the parabola becomes a line, and the slope of the line.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.huber_loss(mf.tensor([1.0, 2.0]), mf.tensor([1.5, 5.0]), reduction="none")
    tensor([0.125, 2.5  ])
    """
    if not delta > 0:
        raise ValueError(f"huber_loss: got delta={delta}, expected greater than 0")
    return apply(BoundFunction(_huber_loss, (reduction,)), x, y, delta)


def smooth_l1_loss(x: A, y: Array, *, reduction: Reduction = "mean", beta: float = 1.0) -> A:
    """Compute `huber_loss` / beta with delta = beta: d**2 / (2 beta) if d < beta, else d - beta / 2. With beta=0: `l1_loss`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.smooth_l1_loss(mf.tensor([1.0, 2.0]), mf.tensor([1.5, 5.0]), reduction="none", beta=0.5)
    tensor([0.25, 2.75])
    """
    if not beta >= 0:
        raise ValueError(f"smooth_l1_loss: got beta={beta}, expected at least 0")
    if beta == 0:
        return l1_loss(x, y, reduction=reduction)
    return apply(BoundFunction(_smooth_l1_loss, (reduction,)), x, y, beta)


def _huber_loss(x: Array, y: Array, delta: Array, reduction: Reduction) -> Array:
    return reduce_loss(huber("huber_loss", x, y, delta), reduction)


def _smooth_l1_loss(x: Array, y: Array, beta: Array, reduction: Reduction) -> Array:
    return reduce_loss(huber("smooth_l1_loss", x, y, beta) / beta, reduction)


def huber(name: str, x: A, y: Array, delta: Array) -> A:
    """Return d**2 / 2 if d = |x - y| is less than delta, else the tangent line."""
    require_same_shape_and_dtype(name, x, y)
    d = abs(x - y)
    is_far = d >= delta  # False if d is NaN
    near = where(is_far, 0, d)  # 0 if far: an infinite square would make the gradient NaN
    return where(is_far, delta * (d - 0.5 * delta), 0.5 * near * near)


def require_same_shape_and_dtype(name: str, x: Array, y: Array) -> None:
    """Raise unless both have the same shape and the same float dtype. Nothing is broadcast."""
    if getattr(y, "shape", None) != x.shape:
        got = getattr(y, "shape", type(y).__name__)
        raise ShapeError(f"{name}: got shapes {x.shape} and {got}, expected equal ones; write reshape or expand")
    if x.dtype is not y.dtype or not x.dtype.is_float:
        raise DTypeError(f"{name}: got dtypes {x.dtype} and {y.dtype}, expected one float dtype; write y.to(mf.{x.dtype})")


def reduce_loss(loss: A, reduction: Reduction) -> A:
    """Reduce elementwise losses to one number, unless `reduction` is "none"."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'loss: got reduction={reduction!r}, expected "mean", "sum" or "none"')
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


class MSELoss(Module):
    """`mse_loss` as a module."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: A, y: Array) -> A:
        """Return the loss of two tensors of one shape."""
        return mse_loss(x, y, reduction=self.reduction)


class L1Loss(MSELoss):
    """`l1_loss` as a module."""

    def forward(self, x: A, y: Array) -> A:
        """Return the loss of two tensors of one shape."""
        return l1_loss(x, y, reduction=self.reduction)


class HuberLoss(Module):
    """`huber_loss` as a module."""

    def __init__(self, reduction: Reduction = "mean", delta: float = 1.0) -> None:
        self.reduction, self.delta = reduction, delta

    def forward(self, x: A, y: Array) -> A:
        """Return the loss of two tensors of one shape."""
        return huber_loss(x, y, reduction=self.reduction, delta=self.delta)


class SmoothL1Loss(Module):
    """`smooth_l1_loss` as a module."""

    def __init__(self, *, reduction: Reduction = "mean", beta: float = 1.0) -> None:
        self.reduction, self.beta = reduction, beta

    def forward(self, x: A, y: Array) -> A:
        """Return the loss of two tensors of one shape."""
        return smooth_l1_loss(x, y, reduction=self.reduction, beta=self.beta)
