"""Classification losses: cross-entropy over classes, and binary cross-entropy. Each is one composite op.

Options have PyTorch's names and are keyword-only, except `weight`. Regression losses are in `regression`.
"""

import math
from importlib import import_module
from typing import Any

import numpy as np

from ..core.dispatch import active_tracer
from ..core.errors import DTypeError, IndexingError, ShapeError
from ..core.operators import add, eq, exp, log, log1p, maximum, ne, where
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..ir.reduction_bodies import reduce_dims
from ..tensors.tensor import Tensor
from .layers import apply, require_tensor
from .module import Buffer, Module
from .regression import Reduction, reduce_loss, require_same_shape_and_dtype

DEFAULT_IGNORE_INDEX = -100  # as in PyTorch


def cross_entropy(
    logits: A,
    targets: Array,
    weight: Array | None = None,
    *,
    ignore_index: int = DEFAULT_IGNORE_INDEX,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
) -> A:
    """Compute the cross-entropy: the negative log of the softmax probability of the target class of each example.

    Parameters
    ----------
    logits : Tensor of floats (N, C) or (N, C, ...)
        The scores of C classes before softmax, for N examples or for each position in them.
    targets : Tensor of int64 or int32 (N,) or (N, ...)
        The index of the target class; or floats of the shape of the logits, the probability of each class.
    weight : Tensor of floats (C,), optional
        A factor for each class. The mean is divided by the sum of the factors of the target classes.
    ignore_index : int
        Examples with this target are ignored: their loss and gradient are 0, and the mean does not count them.
    reduction : {"mean", "sum", "none"}
        Return the mean over all examples that are not ignored, the sum, or one loss per example.
    label_smoothing : float
        The probability, from 0 to 1, that is spread uniformly over all classes.

    Returns
    -------
    Tensor
        0-d; or the shape of the targets if `reduction` is "none". The mean is NaN if all examples are ignored.

    Raises
    ------
    ShapeError
        The shapes are not (N, C, ...) and (N, ...).
    DTypeError
        The logits are not floats, or the targets are not integers.
    IndexingError
        A target is neither in 0 ... C - 1 nor `ignore_index`. Inside a fused function, values are not known while tracing;
        there the loss of such an example is NaN.
    ValueError
        The reduction is unknown, or `label_smoothing` is not between 0 and 1.

    Notes
    -----
    With z = logits - max(logits) of each row, the loss of a row is log(sum(exp(z))) - z[target]. Nothing overflows, and no
    digits are lost if a probability is close to 1. To select z[target], the loop that computes the sum compares the index of
    each class with the target. So no temporary array has the shape of the logits, except the gradient. Smoothing by s
    replaces z[target] by (1 - s) z[target] + s mean(z) [1]_. Checking the targets takes 3 us.

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
        raise ValueError(f"cross_entropy: got label_smoothing={label_smoothing}, expected 0 to 1")
    if weight is not None or is_general(logits, targets):
        compute = general_loss()
        general: A = compute("cross_entropy", logits, targets, weight, ignore_index, reduction, label_smoothing, False)
        return general
    smoothing = (label_smoothing,) if label_smoothing else ()
    loss = apply(BoundFunction(_cross_entropy, (reduction,)), logits, targets, ignore_index, *smoothing)
    return check_targets("cross_entropy", loss, targets, logits.shape[1], ignore_index)


def nll_loss(
    log_probabilities: A,
    targets: Array,
    weight: Array | None = None,
    *,
    ignore_index: int = DEFAULT_IGNORE_INDEX,
    reduction: Reduction = "mean",
) -> A:
    """Compute the negative log-likelihood of the target classes, given log-probabilities (see `log_softmax`).

    The parameters, results and errors are those of `cross_entropy`, which is faster, since it reads the data once less.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
    >>> mf.nn.nll_loss(x, mf.tensor([0, 1]), reduction="none").exp()
    tensor([2.    , 1.3333])
    """
    if weight is not None or (is_general(log_probabilities, targets) and targets.dtype.is_integer):
        general: A = general_loss()("nll_loss", log_probabilities, targets, weight, ignore_index, reduction, 0.0, True)
        return general
    loss = apply(BoundFunction(_nll_loss, (reduction,)), log_probabilities, targets, ignore_index)
    return check_targets("nll_loss", loss, targets, log_probabilities.shape[1], ignore_index)


def is_general(logits: Any, targets: Any) -> bool:
    """Return whether the targets are probabilities, or there is one example without a batch: see `class_losses`."""
    if not isinstance(logits, Array) or not isinstance(targets, Array):
        return False
    return (len(logits.shape) == 1 and targets.shape == ()) or (targets.shape == logits.shape and targets.dtype.is_float)


def general_loss() -> Any:
    """Import the loss with class weights and probabilities, which is seldom used."""
    return import_module(f"{__package__}.class_losses").class_loss


def check_targets(name: str, loss: A, targets: Array, class_count: int, ignore_index: int) -> A:
    """Return the loss; raise IndexingError if a target is not a class, unless a function is being traced."""
    if isinstance(targets, Tensor) and active_tracer() is None:
        check_target_range(name, targets, class_count, ignore_index)
    return loss


def check_target_range(name: str, targets: Tensor, class_count: int, ignore_index: int) -> None:
    """Raise IndexingError if a target is not a class. Viewed as unsigned integers, negative targets are large, too."""
    array = targets.numpy()
    if array.size and array.view(f"u{array.itemsize}").max() >= class_count:
        is_wrong = ((array < 0) | (array >= class_count)) & (array != ignore_index)
        if is_wrong.any():
            position = np.unravel_index(int(np.argmax(is_wrong)), array.shape)
            example = ", ".join(map(str, position))
            raise IndexingError(
                f"{name}: got target {array[position]} for example {example}, expected 0 to {class_count - 1}, or "
                f"ignore_index={ignore_index} for examples to ignore"
            )


def _cross_entropy(x: Array, targets: Array, ignore_index: Array, *rest: Any) -> Array:
    *smoothing, reduction = rest
    check_class_shapes("cross_entropy", x, targets)
    class_count, target = x.shape[1], targets.unsqueeze(1)
    z = x - reduce_dims(x, (1,), True, maximum).detach()
    target_z = where(is_target(x, target), z, 0)
    if smoothing:
        (s,) = smoothing
        target_z = (1 - s) * target_z + (s / class_count) * z
    loss = log(reduce_dims(exp(z), (1,), True, add)) - reduce_dims(target_z, (1,), True, add)
    return reduce_class_losses(loss, targets, class_count, ignore_index, reduction)


def _nll_loss(x: Array, targets: Array, ignore_index: Array, reduction: Reduction) -> Array:
    check_class_shapes("nll_loss", x, targets)
    target = targets.unsqueeze(1)
    loss = -reduce_dims(where(is_target(x, target), x, 0), (1,), True, add)
    return reduce_class_losses(loss, targets, x.shape[1], ignore_index, reduction)


def is_target(x: Array, target: Array) -> Array:
    """Return a mask over the classes that is True at each example's target."""
    class_count = x.shape[1]
    return eq(target, x.positions(class_count).reshape(class_count, *[1] * (x.ndim - 2)))


def reduce_class_losses(loss: Array, targets: Array, class_count: int, ignore_index: Array, reduction: Reduction) -> Array:
    """Reduce losses (N, 1, ...). Losses of ignored targets are 0; those of targets that are not a class are NaN."""
    is_counted, is_class = ne(targets, ignore_index), (targets >= 0) & (targets < class_count)
    loss = where(is_counted, where(is_class, loss.squeeze(1), math.nan), 0)
    if reduction != "mean":
        return reduce_loss(loss, reduction)
    return loss.sum() / is_counted.sum().to(loss.dtype)


def check_class_shapes(name: str, x: Array, targets: Array) -> None:
    """Raise unless shapes and dtypes of logits and targets match."""
    if x.ndim < 2 or x.shape[1] == 0:
        raise ShapeError(f"{name}: got logits of shape {x.shape}, expected (N, C) or (N, C, ...) with C >= 1 classes")
    shape = (x.shape[0], *x.shape[2:])
    if getattr(targets, "shape", None) != shape:
        got = getattr(targets, "shape", type(targets).__name__)
        raise ShapeError(f"{name}: got targets of shape {got}, expected {shape}, one class index for each row of logits")
    if not x.dtype.is_float or not targets.dtype.is_index:
        raise DTypeError(
            f"{name}: got logits of dtype {x.dtype} and targets of dtype {targets.dtype}, expected floats and class "
            "indices of int64 or int32; write targets.to(mf.int64)"
        )


def binary_cross_entropy_with_logits(
    logits: A,
    targets: Array,
    weight: Array | None = None,
    *,
    reduction: Reduction = "mean",
    pos_weight: Array | None = None,
) -> A:
    """Compute the binary cross-entropy of sigmoid(logits), elementwise.

    Parameters
    ----------
    logits : Tensor of floats
        The scores before sigmoid.
    targets : Tensor of floats, of the same shape
        The probability of the positive class: usually 1 or 0.
    weight : Tensor, optional
        A factor for each loss. It broadcasts to the shape of the logits.
    reduction : {"mean", "sum", "none"}
        Return the mean of all elements, their sum, or one loss per element.
    pos_weight : Tensor, optional
        The weight of the positive class. It broadcasts to the shape of the logits, so (C,) applies to the last dim.

    Returns
    -------
    Tensor
        0-d; or the shape of the logits if `reduction` is "none".

    Raises
    ------
    ShapeError
        The shapes differ, or `pos_weight` does not broadcast to them.
    DTypeError
        The dtypes differ, or are not floats.

    Notes
    -----
    The loss t log(1 + exp(-x)) + (1 - t) log(1 + exp(x)) is computed as log(1 + exp(-|x|)) + (1 - t) x if x > 0, and as
    log(1 + exp(-|x|)) - t x otherwise. Nothing overflows, no digits are lost if a probability is close to 1, and each
    element needs one `exp`.

    Examples
    --------
    >>> import minifuse as mf
    >>> x, t = mf.tensor([0.0, 200.0, -200.0]), mf.tensor([1.0, 1.0, 1.0])
    >>> mf.nn.binary_cross_entropy_with_logits(x, t, reduction="none")
    tensor([  0.6931,   0.    , 200.    ])
    """
    if weight is not None:
        require_tensor("binary_cross_entropy_with_logits: weight", weight)
        each = binary_cross_entropy_with_logits(logits, targets, reduction="none", pos_weight=pos_weight)
        return reduce_loss(each * weight, reduction)
    weights = () if pos_weight is None else (pos_weight,)
    for factor in weights:
        require_tensor("binary_cross_entropy_with_logits: pos_weight", factor)
    return apply(BoundFunction(_binary_cross_entropy, (reduction,)), logits, targets, *weights)


def _binary_cross_entropy(x: Array, t: Array, *rest: Any) -> Array:
    *weights, reduction = rest
    require_same_shape_and_dtype("binary_cross_entropy_with_logits", x, t)
    positive_weight, total_weight = t, 1.0
    for weight in weights:
        check_pos_weight(weight, x)
        positive_weight = weight * t
        total_weight = positive_weight + (1 - t)
    log_term = log1p(exp(where(x > 0, -x, x)))
    return reduce_loss(total_weight * log_term + where(x > 0, 1 - t, -positive_weight) * x, reduction)


def check_pos_weight(weight: Array, x: Array) -> None:
    """Raise unless `pos_weight` broadcasts to the logits and has their dtype."""
    name, sizes = "binary_cross_entropy_with_logits", zip(weight.shape[::-1], x.shape[::-1], strict=False)
    if weight.ndim > x.ndim or any(n not in (1, m) for n, m in sizes):
        raise ShapeError(f"{name}: got pos_weight of shape {weight.shape}, expected one that broadcasts to {x.shape}")
    if weight.dtype is not x.dtype:
        raise DTypeError(f"{name}: got pos_weight of dtype {weight.dtype}, expected {x.dtype} like the logits")


class CrossEntropyLoss(Module):
    """`cross_entropy` as a module."""

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = DEFAULT_IGNORE_INDEX,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        self.weight = None if weight is None else Buffer(weight)
        self.ignore_index, self.reduction, self.label_smoothing = ignore_index, reduction, label_smoothing

    def forward(self, logits: A, targets: Array) -> A:
        """Return the loss of logits (N, C, ...) and class indices (N, ...)."""
        return cross_entropy(
            logits,
            targets,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(Module):
    """`nll_loss` as a module."""

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = DEFAULT_IGNORE_INDEX,
        reduction: Reduction = "mean",
    ) -> None:
        self.weight = None if weight is None else Buffer(weight)
        self.ignore_index, self.reduction = ignore_index, reduction

    def forward(self, log_probabilities: A, targets: Array) -> A:
        """Return the loss of log-probabilities (N, C, ...) and class indices (N, ...)."""
        return nll_loss(log_probabilities, targets, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class BCEWithLogitsLoss(Module):
    """`binary_cross_entropy_with_logits` as a module."""

    def __init__(
        self, weight: Tensor | None = None, *, reduction: Reduction = "mean", pos_weight: Tensor | None = None
    ) -> None:
        self.reduction = reduction
        self.weight = None if weight is None else Buffer(weight)
        self.pos_weight = None if pos_weight is None else Buffer(pos_weight)

    def forward(self, logits: A, targets: Array) -> A:
        """Return the loss of logits and targets of one shape."""
        return binary_cross_entropy_with_logits(
            logits, targets, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )
