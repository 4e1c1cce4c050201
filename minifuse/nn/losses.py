"""Losses of choices: how improbable a model finds what is right, of classes or of yes and no; each is one captured call.

Options are PyTorch's, and are given by name. Not here: weights of classes; losses between numbers (`regression`).
"""

import math
from typing import Any

import numpy as np

from ..core.dispatch import active_tracer
from ..core.errors import DTypeError, IndexingError, ShapeError
from ..core.operators import add, eq, exp, log, log1p, maximum, ne, where
from ..ir.array_functions import BoundFunction
from ..ir.array_methods import reduce_dims
from ..tensors.tensor import Tensor
from .layers import apply, refuse_other_than_tensors
from .module import Buffer, Module
from .regression import Reduction, reduced, refuse_other_than_alike

IGNORED = -100  # PyTorch's choice


def cross_entropy(
    logits: Any,
    targets: Any,
    *,
    ignore_index: int = IGNORED,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """The negative logarithm of the probability that softmax gives to the right class of each example.

    Parameters
    ----------
    logits : Tensor of floats (N, C) or (N, C, ...)
        What a model says of N examples, or of each place in them, and C classes, before any softmax.
    targets : Tensor of int64 or int32 (N,) or (N, ...)
        The index of the right class of each.
    ignore_index : int
        The target of what does not count: its loss and its gradient are 0, and the mean is over the others.
    reduction : {"mean", "sum", "none"}
        The mean of all that counts, the sum, or one number for each.
    label_smoothing : float
        0 to 1: how much of the right class is spread over all classes alike.

    Returns
    -------
    Tensor
        0-d; of the shape of the targets where `reduction` is "none". A mean of nothing is NaN.

    Raises
    ------
    ShapeError
        The shapes are not (N, C, ...) and (N, ...).
    DTypeError
        The logits are no floats, or the targets no integers.
    IndexingError
        A target is neither one of 0 ... C - 1 nor `ignore_index`. While a function is captured there are no values to look
        at: there the loss of such an example is NaN.
    ValueError
        There is no such reduction, or `label_smoothing` does not lie between 0 and 1.

    Notes
    -----
    With z = logits - max(logits) of each row, the loss of a row is log(sum(exp(z))) - z[target]: nothing overflows, and
    nothing is lost where a probability is nearly 1. The target is picked by comparing its index with that of each class, in
    the sweep that adds up, so no array of the shape of the logits is made but the gradient. Smoothing by s puts
    (1 - s) z[target] + s mean(z) in the place of z[target] [1]_. Looking for a wrong target takes 3 us.

    References
    ----------
    .. [1] C. Szegedy, V. Vanhoucke, S. Ioffe, J. Shlens, Z. Wojna, Rethinking the Inception Architecture for Computer
       Vision, 2015, arXiv:1512.00567

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
    >>> round(mf.nn.cross_entropy(logits, mf.tensor([0, -100])).item(), 4)
    0.2395
    """
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing is {label_smoothing}, expected 0 to 1")
    smoothing = (label_smoothing,) if label_smoothing else ()
    loss = apply(BoundFunction(_cross_entropy, (reduction,)), logits, targets, ignore_index, *smoothing)
    return checked("cross_entropy", loss, targets, logits.shape[1], ignore_index)


def nll_loss(log_probabilities: Any, targets: Any, *, ignore_index: int = IGNORED, reduction: Reduction = "mean") -> Any:
    """The negative logarithm of the probability of the right class, where logarithms are there already: of `log_softmax`.

    Parameters, results and errors are those of `cross_entropy`, which needs one pass less.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
    >>> mf.nn.nll_loss(x, mf.tensor([0, 1]), reduction="none").exp()
    tensor([2.    , 1.3333])
    """
    loss = apply(BoundFunction(_nll_loss, (reduction,)), log_probabilities, targets, ignore_index)
    return checked("nll_loss", loss, targets, log_probabilities.shape[1], ignore_index)


def checked(name: str, loss: Any, targets: Any, classes: int, ignored: int) -> Any:
    """The loss itself; an error if a target is no class, as far as targets have values."""
    if isinstance(targets, Tensor) and active_tracer() is None:
        refuse_out_of_range(name, targets, classes, ignored)
    return loss


def refuse_out_of_range(name: str, targets: Tensor, classes: int, ignored: int) -> None:
    """Raise if a target is no class. Seen as unsigned, negative numbers are large, so that one maximum finds most."""
    array = targets.numpy()
    if array.size and array.view(f"u{array.itemsize}").max() >= classes:
        is_wrong = ((array < 0) | (array >= classes)) & (array != ignored)
        if is_wrong.any():
            place = np.unravel_index(int(np.argmax(is_wrong)), array.shape)
            example = ", ".join(map(str, place))
            raise IndexingError(
                f"{name}: target {array[place]} of example {example} is none of {classes} classes; expected 0 to "
                f"{classes - 1}, or {ignored} for what does not count"
            )


def _cross_entropy(x: Any, targets: Any, ignored: Any, *more: Any) -> Any:
    *smoothing, reduction = more
    refuse_other_than_classes("cross_entropy", x, targets)
    classes, target = x.shape[1], targets.unsqueeze(1)
    z = x - reduce_dims(x, (1,), True, maximum).detach()
    picked = where(is_right(x, target), z, 0)
    if smoothing:
        (s,) = smoothing
        picked = (1 - s) * picked + (s / classes) * z
    loss = log(reduce_dims(exp(z), (1,), True, add)) - reduce_dims(picked, (1,), True, add)
    return mean_of_counted(loss, targets, classes, ignored, reduction)


def _nll_loss(x: Any, targets: Any, ignored: Any, reduction: Reduction) -> Any:
    refuse_other_than_classes("nll_loss", x, targets)
    target = targets.unsqueeze(1)
    loss = -reduce_dims(where(is_right(x, target), x, 0), (1,), True, add)
    return mean_of_counted(loss, targets, x.shape[1], ignored, reduction)


def is_right(x: Any, target: Any) -> Any:
    """Of each class whether it is the target."""
    classes = x.shape[1]
    return eq(target, x.positions(classes).reshape(classes, *[1] * (x.ndim - 2)))


def mean_of_counted(loss: Any, targets: Any, classes: int, ignored: Any, reduction: Reduction) -> Any:
    """The losses (N, 1, ...) reduced; those of ignored targets are 0, those of targets that are no class NaN."""
    counts, is_class = ne(targets, ignored), (targets >= 0) & (targets < classes)
    loss = where(counts, where(is_class, loss.squeeze(1), math.nan), 0)
    if reduction != "mean":
        return reduced(loss, reduction)
    return loss.sum() / counts.sum().to(loss.dtype)


def refuse_other_than_classes(name: str, x: Any, targets: Any) -> None:
    """Raise where logits and targets do not fit together."""
    if x.ndim < 2 or x.shape[1] == 0:
        raise ShapeError(
            f"{name}: got logits of shape {x.shape}, expected (N, C) or (N, C, ...), one row of C >= 1 classes an example"
        )
    shape = (x.shape[0], *x.shape[2:])
    if getattr(targets, "shape", None) != shape:
        got = getattr(targets, "shape", type(targets).__name__)
        raise ShapeError(f"{name}: got targets of shape {got}, expected {shape}, one class index for each row of the logits")
    if not x.dtype.is_float or not targets.dtype.is_integer:
        raise DTypeError(
            f"{name}: got logits of {x.dtype} and targets of {targets.dtype}, expected floats and int64 class indices"
        )


def binary_cross_entropy_with_logits(
    logits: Any, targets: Any, *, reduction: Reduction = "mean", pos_weight: Any = None
) -> Any:
    """The negative logarithm of the probability that sigmoid gives to what is right, of each element by itself.

    Parameters
    ----------
    logits : Tensor of floats
        What a model says, before any sigmoid.
    targets : Tensor of floats, of the same shape
        1 where it should say yes, 0 where no, or how probable yes is.
    reduction : {"mean", "sum", "none"}
        The mean of all elements, their sum, or one number for each.
    pos_weight : Tensor, optional
        How much yes counts, against no; it broadcasts to the shape of the logits, so (C,) for the last dim.

    Returns
    -------
    Tensor
        0-d; of the shape of the logits where `reduction` is "none".

    Raises
    ------
    ShapeError
        The shapes differ, or that of `pos_weight` does not broadcast.
    DTypeError
        Element types differ, or are no floats.

    Notes
    -----
    t log(1 + exp(-x)) + (1 - t) log(1 + exp(x)), computed as log(1 + exp(-|x|)) + (1 - t) x where x > 0, - t x elsewhere.
    Nothing overflows, nothing is lost where a probability is nearly 1, and one exponential does for both.

    Examples
    --------
    >>> import minifuse as mf
    >>> x, t = mf.tensor([0.0, 200.0, -200.0]), mf.tensor([1.0, 1.0, 1.0])
    >>> mf.nn.binary_cross_entropy_with_logits(x, t, reduction="none")
    tensor([  0.6931,   0.    , 200.    ])
    """
    weights = () if pos_weight is None else (pos_weight,)
    for weight in weights:
        refuse_other_than_tensors("binary_cross_entropy_with_logits: pos_weight", weight)
    return apply(BoundFunction(_binary_cross_entropy, (reduction,)), logits, targets, *weights)


def _binary_cross_entropy(x: Any, t: Any, *more: Any) -> Any:
    *weights, reduction = more
    refuse_other_than_alike("binary_cross_entropy_with_logits", x, t)
    yes, both = t, 1.0
    for weight in weights:
        check_weight(weight, x)
        yes = weight * t
        both = yes + (1 - t)
    rest = log1p(exp(where(x > 0, -x, x)))
    return reduced(both * rest + where(x > 0, 1 - t, -yes) * x, reduction)


def check_weight(weight: Any, x: Any) -> None:
    """Raise where a weight does not fit the logits."""
    name, sizes = "binary_cross_entropy_with_logits", zip(weight.shape[::-1], x.shape[::-1], strict=False)
    if weight.ndim > x.ndim or any(n not in (1, m) for n, m in sizes):
        raise ShapeError(f"{name}: got pos_weight of shape {weight.shape}, expected one that broadcasts to {x.shape}")
    if weight.dtype is not x.dtype:
        raise DTypeError(f"{name}: got pos_weight of {weight.dtype}, expected {x.dtype} like the logits")


class CrossEntropyLoss(Module):
    """`cross_entropy` as a module."""

    def __init__(self, *, ignore_index: int = IGNORED, reduction: Reduction = "mean", label_smoothing: float = 0.0) -> None:
        self.ignore_index, self.reduction, self.label_smoothing = ignore_index, reduction, label_smoothing

    def forward(self, logits: Any, targets: Any) -> Any:
        """(N, C, ...) logits and (N, ...) class indices -> the loss."""
        return cross_entropy(
            logits,
            targets,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(Module):
    """`nll_loss` as a module."""

    def __init__(self, *, ignore_index: int = IGNORED, reduction: Reduction = "mean") -> None:
        self.ignore_index, self.reduction = ignore_index, reduction

    def forward(self, log_probabilities: Any, targets: Any) -> Any:
        """(N, C, ...) logarithms and (N, ...) class indices -> the loss."""
        return nll_loss(log_probabilities, targets, ignore_index=self.ignore_index, reduction=self.reduction)


class BCEWithLogitsLoss(Module):
    """`binary_cross_entropy_with_logits` as a module."""

    def __init__(self, *, reduction: Reduction = "mean", pos_weight: Tensor | None = None) -> None:
        self.reduction = reduction
        self.pos_weight = None if pos_weight is None else Buffer(pos_weight)

    def forward(self, logits: Any, targets: Any) -> Any:
        """Two tensors of one shape -> the loss."""
        return binary_cross_entropy_with_logits(logits, targets, reduction=self.reduction, pos_weight=self.pos_weight)
