"""Cross-entropy with class weights or probabilities as targets, fused with a linear layer, and for very many classes.

`cross_entropy` and `nll_loss` call `class_loss` for what their own kernels do not compute.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..core.errors import ShapeError
from ..core.operators import ne, where
from ..functions.joining import cat
from ..ir.array_functions import A
from ..ir.array_methods import Array
from ..tensors.creation import DTypeLike
from ..tensors.tensor import Tensor
from .containers import ModuleList, Sequential
from .function_layers import one_call
from .layers import Linear, linear
from .losses import DEFAULT_IGNORE_INDEX, check_class_shapes, check_targets, cross_entropy, is_target
from .module import Buffer, Module
from .regression import Reduction, reduce_loss

__all__ = ["AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss", "linear_cross_entropy"]


def class_loss(
    name: str,
    x: A,
    targets: Array,
    weight: Array | None,
    ignore_index: int,
    reduction: Reduction,
    smoothing: float,
    is_log: bool,
) -> A:
    """Compute `cross_entropy`, or `nll_loss` if `is_log`, with class weights, probabilities, or without a batch."""
    is_one = len(x.shape) == 1
    if is_one:
        x, targets = x.unsqueeze(0), targets.unsqueeze(0)
    has_indices = is_log or targets.dtype.is_integer
    if has_indices:
        check_class_shapes(name, x, targets)
    elif targets.shape != x.shape:
        raise ShapeError(f"{name}: got probabilities of shape {targets.shape}, expected {x.shape}, one for each class")
    if weight is not None and weight.shape != (x.shape[1],):
        raise ShapeError(f"{name}: got a weight of shape {weight.shape}, expected ({x.shape[1]},), one for each class")
    loss: A = _class_loss(x, targets, weight, ignore_index, reduction, smoothing, is_log, has_indices)
    if has_indices:
        check_targets(name, loss, targets, x.shape[1], ignore_index)
    return loss.squeeze(0) if is_one and reduction == "none" else loss


@one_call
def _class_loss(
    x: A,
    targets: Array,
    weight: Array | None,
    ignore_index: int,
    reduction: Reduction,
    smoothing: float,
    is_log: bool,
    has_indices: bool,
) -> Any:
    class_count = x.shape[1]
    log_p = x if is_log else x.log_softmax(1)
    weighted = log_p if weight is None else log_p * weight.reshape(-1, *[1] * (x.ndim - 2))
    if not has_indices:
        loss = -(weighted * (targets * (1 - smoothing) + smoothing / class_count)).sum(1)
        return loss.sum() / (loss.size or math.nan) if reduction == "mean" else reduce_loss(loss, reduction)
    mask = is_target(x, targets.unsqueeze(1))
    loss = -((1 - smoothing) * where(mask, weighted, 0).sum(1) + smoothing / class_count * weighted.sum(1))
    is_counted, is_class = ne(targets, ignore_index), (targets >= 0) & (targets < class_count)
    loss = where(is_counted, where(is_class, loss, math.nan), 0)
    if reduction != "mean":
        return reduce_loss(loss, reduction)
    if weight is None:
        return loss.sum() / is_counted.sum().to(loss.dtype)
    target_weight = where(mask, weight.reshape(-1, *[1] * (x.ndim - 2)), 0).sum(1)
    return loss.sum() / where(is_counted, target_weight, 0).sum()


def linear_cross_entropy(
    x: A,
    linear_weight: Array,
    target: Array,
    *,
    linear_bias: Array | None = None,
    weight: Array | None = None,
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> A:
    """Compute `cross_entropy` of the logits x @ linear_weight.T + linear_bias.

    `linear_weight` is (C, K), or (C, ..., K) for logits (N, C, ...) of several predictions for each of N examples.

    Examples
    --------
    >>> import minifuse as mf
    >>> x, w = mf.tensor([[1.0, 0.0]]), mf.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> round(mf.nn.functional.linear_cross_entropy(x, w, mf.tensor([0])).item(), 4)
    0.3133
    """
    outputs, bias = linear_weight.shape[:-1], None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(x, linear_weight.reshape(-1, linear_weight.shape[-1]), bias)
    if len(outputs) > 1:
        logits = logits.reshape(*logits.shape[:-1], *outputs)
    return cross_entropy(
        logits,
        target,
        weight,
        ignore_index=DEFAULT_IGNORE_INDEX if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


class LinearCrossEntropyLoss(Module):
    """`linear_cross_entropy` as a module that contains the linear layer, `linear`."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        dtype: DTypeLike = None,
        backend: str | None = None,
        reduction: Reduction = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        self.in_features, self.num_classes, self.out_features = in_features, num_classes, tuple(out_features)
        self.linear = Linear(in_features, num_classes * math.prod(self.out_features), bias, dtype, backend)
        self.weight = None if weight is None else Buffer(weight)
        self.reduction, self.ignore_index, self.label_smoothing = reduction, ignore_index, label_smoothing

    def forward(self, x: A, target: Array) -> A:
        """Return the loss of inputs (N, in_features) and class indices (N, *out_features)."""
        outputs, bias = (self.num_classes, *self.out_features), self.linear.bias
        return linear_cross_entropy(
            x,
            self.linear.weight.reshape(*outputs, self.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(outputs),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )


class AdaptiveOutput(NamedTuple):
    """The log-probability of each target, and the loss."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over many classes, sorted by frequency: rare ones are in clusters with a smaller layer each [1]_.

    Parameters
    ----------
    in_features, n_classes : int
        Sizes of the input, and number of classes.
    cutoffs : sequence of int
        The first class of each cluster, ascending. Classes before the first cutoff are in the head.
    div_value : float
        Cluster k has a hidden layer of in_features / div_value ** (k + 1) elements.
    head_bias : bool
        Whether the layer of the head has a bias.

    Notes
    -----
    PyTorch computes each cluster for the examples in it. Here all clusters are computed for all examples, so shapes do not
    depend on values, and the layer can be fused.

    References
    ----------
    .. [1] E. Grave, A. Joulin, M. Cisse, D. Grangier, H. Jegou, Efficient softmax approximation for GPUs, 2016,
       arXiv:1609.04309

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[4, 10], div_value=2.0)
    >>> output, loss = layer(mf.randn(5, 8), mf.tensor([0, 3, 4, 12, 19]))
    >>> output.shape, loss.shape, layer.log_prob(mf.randn(5, 8)).shape
    ((5,), (), (5, 20))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        ends = [*cutoffs]
        if not ends or ends != sorted({*ends}) or ends[0] < 1 or ends[-1] >= n_classes:
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: got cutoffs={ends}, expected integers from 1 to {n_classes - 1}, ascending"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*ends, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head_size = ends[0] + len(ends)
        self.head = Linear(in_features, self.head_size, head_bias, dtype, backend)
        self.tail = ModuleList()
        for k, (start, end) in enumerate(pairwise(self.cutoffs)):
            hidden = max(1, int(in_features // div_value ** (k + 1)))
            first, second = (
                Linear(in_features, hidden, False, dtype, backend),
                Linear(hidden, end - start, False, dtype, backend),
            )
            self.tail.append(Sequential(first, second))

    def log_prob(self, x: A) -> Any:
        """Return the log-probabilities of all classes, (N, n_classes)."""
        head = self.head(x).log_softmax(1)
        parts = [
            cluster(x).log_softmax(1) + head[:, self.shortlist_size + k : self.shortlist_size + k + 1]
            for k, cluster in enumerate(self.tail)
        ]
        return cat([head[:, : self.shortlist_size], *parts], 1)

    def forward(self, x: A, target: Array) -> AdaptiveOutput:
        """Return the log-probability of the target of each example, and the mean of their negatives."""
        is_one = x.ndim == 1
        loss = class_loss(
            "AdaptiveLogSoftmaxWithLoss",
            self.log_prob(x.unsqueeze(0) if is_one else x),
            target.unsqueeze(0) if is_one else target,
            None,
            DEFAULT_IGNORE_INDEX,
            "none",
            0.0,
            True,
        )
        output = -(loss.squeeze(0) if is_one else loss)
        return AdaptiveOutput(output, -output.mean())

    def predict(self, x: A) -> Any:
        """Return the most probable class of each example."""
        return self.log_prob(x).argmax(1)
