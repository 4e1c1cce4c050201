"""Losses between numbers: how far a result is from what it should be, element by element; each is one captured call.

Options are PyTorch's, and are given by name.
"""

from typing import Any, Literal

from ..core.errors import DTypeError, ShapeError
from ..core.operators import abs, where  # noqa: A004  # the name in the table
from ..ir.array_functions import BoundFunction
from .layers import apply
from .module import Module

Reduction = Literal["mean", "sum", "none"]


def mse_loss(x: Any, y: Any, *, reduction: Reduction = "mean") -> Any:
    """The square of the difference: (x - y) ** 2.

    Parameters
    ----------
    x, y : Tensor of floats, of the same shape
        What a model gives, and what it should give.
    reduction : {"mean", "sum", "none"}
        The mean of all elements, their sum, or one number for each.

    Returns
    -------
    Tensor
        0-d; of the shape of x where `reduction` is "none".

    Raises
    ------
    ShapeError
        The shapes differ; they are not broadcast, since (N, 1) and (N,) would become (N, N).

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.mse_loss(mf.tensor([1.0, 2.0]), mf.tensor([1.0, 5.0]))
    tensor(4.5)
    """
    return apply(BoundFunction(_mse_loss, (reduction,)), x, y)


def _mse_loss(x: Any, y: Any, reduction: Reduction) -> Any:
    refuse_other_than_alike("mse_loss", x, y)
    difference = x - y
    return reduced(difference * difference, reduction)


def l1_loss(x: Any, y: Any, *, reduction: Reduction = "mean") -> Any:
    """The absolute difference: |x - y|. Parameters, results and errors are those of `mse_loss`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.l1_loss(mf.tensor([1.0, 2.0]), mf.tensor([1.0, 5.0]))
    tensor(1.5)
    """
    return apply(BoundFunction(_l1_loss, (reduction,)), x, y)


def _l1_loss(x: Any, y: Any, reduction: Reduction) -> Any:
    refuse_other_than_alike("l1_loss", x, y)
    return reduced(abs(x - y), reduction)


def huber_loss(x: Any, y: Any, *, reduction: Reduction = "mean", delta: float = 1.0) -> Any:
    """Half the square of the difference d = |x - y| where it is below delta, delta * (d - delta / 2) elsewhere.

    Parameters, results and errors are those of `mse_loss`; and

    Parameters
    ----------
    delta : float
        Above 0: where the square becomes a straight line, whose slope it is.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.huber_loss(mf.tensor([1.0, 2.0]), mf.tensor([1.5, 5.0]), reduction="none")
    tensor([0.125, 2.5  ])
    """
    if not delta > 0:
        raise ValueError(f"huber_loss: delta is {delta}, expected above 0")
    return apply(BoundFunction(_huber_loss, (reduction,)), x, y, delta)


def smooth_l1_loss(x: Any, y: Any, *, reduction: Reduction = "mean", beta: float = 1.0) -> Any:
    """`huber_loss` over beta, with delta = beta: d**2 / (2 beta) below beta, d - beta / 2 elsewhere; for beta 0 `l1_loss`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.smooth_l1_loss(mf.tensor([1.0, 2.0]), mf.tensor([1.5, 5.0]), reduction="none", beta=0.5)
    tensor([0.25, 2.75])
    """
    if not beta >= 0:
        raise ValueError(f"smooth_l1_loss: beta is {beta}, expected at least 0")
    if beta == 0:
        return l1_loss(x, y, reduction=reduction)
    return apply(BoundFunction(_smooth_l1_loss, (reduction,)), x, y, beta)


def _huber_loss(x: Any, y: Any, delta: Any, reduction: Reduction) -> Any:
    return reduced(bent("huber_loss", x, y, delta), reduction)


def _smooth_l1_loss(x: Any, y: Any, beta: Any, reduction: Reduction) -> Any:
    return reduced(bent("smooth_l1_loss", x, y, beta) / beta, reduction)


def bent(name: str, x: Any, y: Any, delta: Any) -> Any:
    """Half the square of the difference where that is below delta, then the line that continues it."""
    refuse_other_than_alike(name, x, y)
    d = abs(x - y)
    is_far = d >= delta  # not where d is NaN
    near = where(is_far, 0, d)  # so that nothing infinite is squared where the line is chosen
    return where(is_far, delta * (d - 0.5 * delta), 0.5 * near * near)


def refuse_other_than_alike(name: str, x: Any, y: Any) -> None:
    """Raise for two tensors that are not of the same shape and the same floats; nothing is broadcast."""
    if getattr(y, "shape", None) != x.shape:
        got = getattr(y, "shape", type(y).__name__)
        raise ShapeError(f"{name}: got shapes {x.shape} and {got}, expected the same; use reshape or expand")
    if x.dtype is not y.dtype or not x.dtype.is_float:
        raise DTypeError(f"{name}: got {x.dtype} and {y.dtype}, expected the same floats; convert one, y.to(mf.{x.dtype})")


def reduced(loss: Any, reduction: Reduction) -> Any:
    """The losses of all elements as one number, or as they are."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'reduction is {reduction!r}, expected "mean", "sum" or "none"')
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


class MSELoss(Module):
    """`mse_loss` as a module."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Any, y: Any) -> Any:
        """Two tensors of one shape -> the loss."""
        return mse_loss(x, y, reduction=self.reduction)


class L1Loss(MSELoss):
    """`l1_loss` as a module."""

    def forward(self, x: Any, y: Any) -> Any:
        """Two tensors of one shape -> the loss."""
        return l1_loss(x, y, reduction=self.reduction)


class HuberLoss(Module):
    """`huber_loss` as a module."""

    def __init__(self, *, reduction: Reduction = "mean", delta: float = 1.0) -> None:
        self.reduction, self.delta = reduction, delta

    def forward(self, x: Any, y: Any) -> Any:
        """Two tensors of one shape -> the loss."""
        return huber_loss(x, y, reduction=self.reduction, delta=self.delta)


class SmoothL1Loss(Module):
    """`smooth_l1_loss` as a module."""

    def __init__(self, *, reduction: Reduction = "mean", beta: float = 1.0) -> None:
        self.reduction, self.beta = reduction, beta

    def forward(self, x: Any, y: Any) -> Any:
        """Two tensors of one shape -> the loss."""
        return smooth_l1_loss(x, y, reduction=self.reduction, beta=self.beta)
