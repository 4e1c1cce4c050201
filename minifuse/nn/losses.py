"""Losses: how far what a model gives is from what it should give; as functions and as modules. Each is one captured call."""

import math
from typing import Any, Literal

import numpy as np

from ..array import fold
from ..autodiff import capture_under_way
from ..errors import DTypeError, IndexingError, ShapeError
from ..functions import Composite
from ..operators import add, eq, exp, log, maximum, where
from ..tensor import Tensor
from .layers import apply
from .module import Module

Reduction = Literal["mean", "sum", "none"]


def cross_entropy(logits: Any, targets: Any, reduction: Reduction = "mean") -> Any:
    """The negative logarithm of the probability that softmax gives to the right class of each example.

    Parameters
    ----------
    logits : Tensor of floats (N, C)
        What a model says of N examples and C classes, before any softmax.
    targets : Tensor of int64 or int32 (N,)
        The index of the right class of each example.
    reduction : {"mean", "sum", "none"}
        The mean of all examples, their sum, or one number for each.

    Returns
    -------
    Tensor
        0-d; (N,) where `reduction` is "none".

    Raises
    ------
    ShapeError
        The shapes are not (N, C) and (N,).
    DTypeError
        The logits are no floats, or the targets no integers.
    IndexingError
        A target is not one of 0 ... C - 1. While a function is captured there are no values to look at: there the loss of
        such an example is NaN.

    Notes
    -----
    With z = logits - max(logits) of each row, the loss of a row is log(sum(exp(z))) - z[target]: nothing overflows, and
    nothing is lost where a probability is nearly 1. The target is picked by comparing its index with that of each class, in
    the sweep that adds up, so no array of shape (N, C) is made but the gradient. Looking for a wrong target takes 3 us.

    Examples
    --------
    >>> import minifuse as mf
    >>> logits = mf.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    >>> loss = mf.nn.cross_entropy(logits, mf.tensor([0, 2]))
    >>> round(loss.item(), 4)
    0.6691
    >>> loss.backward()
    >>> (logits.grad * 6)[1]
    tensor([ 1.,  1., -2.])
    """
    loss = apply(Composite(_cross_entropy, (reduction,)), logits, targets)
    if isinstance(targets, Tensor) and capture_under_way() is None:
        refuse_out_of_range(targets, logits.shape[1])
    return loss


def refuse_out_of_range(targets: Tensor, classes: int) -> None:
    """Raise if a target is no class. Seen as unsigned, negative numbers are large, so that one maximum finds both."""
    array = targets.numpy()
    if array.size and array.view(f"u{array.itemsize}").max() >= classes:
        k = int(np.argmax((array < 0) | (array >= classes)))
        raise IndexingError(
            f"cross_entropy: target {array[k]} of example {k} is none of {classes} classes; expected 0 to {classes - 1}"
        )


def _cross_entropy(x: Any, targets: Any, reduction: Reduction) -> Any:
    if x.ndim != 2 or x.shape[1] == 0:
        raise ShapeError(
            f"cross_entropy: got logits of shape {x.shape}, expected (N, C), one row of C >= 1 classes an example"
        )
    n, classes = x.shape
    if getattr(targets, "shape", None) != (n,):
        got = getattr(targets, "shape", type(targets).__name__)
        raise ShapeError(
            f"cross_entropy: got targets of shape {got}, expected ({n},), one class index for each row of the logits"
        )
    if not x.dtype.is_float or not targets.dtype.is_integer:
        raise DTypeError(
            f"cross_entropy: got logits of {x.dtype} and targets of {targets.dtype}, expected floats and int64 class indices"
        )
    target = targets.reshape(n, 1)
    z = x - fold(x, (1,), True, maximum).detach()
    picked = where(eq(target, x.positions(classes)), z, 0)
    loss = log(fold(exp(z), (1,), True, add)) - fold(picked, (1,), True, add)
    return reduced(where((target >= 0) & (target < classes), loss, math.nan).reshape(n), reduction)


def mse_loss(x: Any, y: Any, reduction: Reduction = "mean") -> Any:
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
    return apply(Composite(_mse_loss, (reduction,)), x, y)


def _mse_loss(x: Any, y: Any, reduction: Reduction) -> Any:
    if getattr(y, "shape", None) != x.shape:
        got = getattr(y, "shape", type(y).__name__)
        raise ShapeError(f"mse_loss: got shapes {x.shape} and {got}, expected the same; use reshape or expand")
    difference = x - y
    return reduced(difference * difference, reduction)


def reduced(loss: Any, reduction: Reduction) -> Any:
    """The losses of all elements as one number, or as they are."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'reduction is {reduction!r}, expected "mean", "sum" or "none"')
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


class CrossEntropyLoss(Module):
    """`cross_entropy` as a module."""

    def __init__(self, reduction: Reduction = "mean") -> None:
        self.reduction = reduction

    def forward(self, logits: Any, targets: Any) -> Any:
        """(N, C) logits and (N,) class indices -> the loss."""
        return cross_entropy(logits, targets, self.reduction)


class MSELoss(Module):
    """`mse_loss` as a module."""

    def __init__(self, reduction: Reduction = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Any, y: Any) -> Any:
        """Two tensors of one shape -> the loss."""
        return mse_loss(x, y, self.reduction)
