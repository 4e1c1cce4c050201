"""More losses: of probabilities, of margins between scores, and of distances. Each is a function, one op, and a module.

`reduction` is "mean", "sum" or "none", as in `mse_loss`. Inputs of different shapes are broadcast, as in PyTorch.
"""

import math
from typing import Any, Literal

from ..core.errors import ShapeError
from ..core.operators import eq, exp, log, maximum, minimum, relu, sqrt, where
from ..functions.neural import vector_norm
from ..ir.array_functions import A
from ..ir.array_methods import Array
from .activations import log_one_plus_exp
from .function_layers import Constant, layer
from .regression import Reduction, reduce_loss

COSINE_EPS = 1e-12  # added to the squared lengths in `cosine_embedding_loss`


def log_or(x: A, low: float) -> A:
    """Return log(x), or `low` if that is less. The derivative is 0 where x is 0."""
    return where(x == 0, low, maximum(log(where(x == 0, 1, x)), low))


@layer("BCELoss")
def binary_cross_entropy(x: A, target: Array, weight: Array | None = None, reduction: Reduction = "mean") -> A:
    """Compute the binary cross-entropy of probabilities x; logarithms are at least -100.

    Use `binary_cross_entropy_with_logits` for scores: it is exact where probabilities round to 0 or 1.
    """
    if x.shape != target.shape:
        raise ShapeError(f"binary_cross_entropy: got shapes {x.shape} and {target.shape}, expected equal ones; use reshape")
    loss = -(target * log_or(x, -100.0) + (1 - target) * log_or(1 - x, -100.0))
    return reduce_loss(loss if weight is None else loss * weight, reduction)


@layer("KLDivLoss")
def kl_div(x: A, target: Array, reduction: Reduction | Literal["batchmean"] = "mean", log_target: bool = False) -> A:
    """Compute the terms target * (log(target) - x) of the Kullback-Leibler divergence, where x are log-probabilities.

    With `log_target`, the target has log-probabilities, too. reduction="batchmean" divides the sum by the batch size, as the
    divergence is defined; "mean" divides by the number of elements.
    """
    log_of_target = target if log_target else log(where(target == 0, 1, target))
    loss: A = (exp(target) if log_target else target) * (log_of_target - x)  # type: ignore[assignment]  # of the class of x
    return loss.sum() / x.shape[0] if reduction == "batchmean" else reduce_loss(loss, reduction)


@layer("PoissonNLLLoss")
def poisson_nll_loss(
    x: A, target: Array, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: Reduction = "mean"
) -> A:
    """Compute the negative log-likelihood of counts under Poisson distributions of mean exp(x), or x if not `log_input`.

    `full` adds Stirling's approximation of log(target!) where target > 1.
    """
    loss = exp(x) - target * x if log_input else x - target * log(x + eps)
    if full:
        large = where(target > 1, target, 1)
        loss = loss + where(target > 1, large * log(large) - large + 0.5 * log(2 * math.pi * large), 0)
    return reduce_loss(loss, reduction)


@layer("GaussianNLLLoss")
def gaussian_nll_loss(
    x: A, target: Array, var: Array | float, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean"
) -> A:
    """Compute the negative log-likelihood of the target under normal distributions of mean x and variance `var`.

    `var` is at least `eps`, has the shape of x or one element for each row, or is a number. `full` adds log(2 pi) / 2.
    """
    if not isinstance(var, Array):
        var = x.detach() * 0 + var
    if var.shape != x.shape and var.shape == x.shape[:-1]:
        var = var.unsqueeze(-1)
    var = var + (maximum(var, eps) - var).detach()
    difference = x - target
    loss = 0.5 * (log(var) + difference * difference / var)
    return reduce_loss(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@layer("HingeEmbeddingLoss")
def hinge_embedding_loss(x: A, target: Array, margin: float = 1.0, reduction: Reduction = "mean") -> A:
    """Compute x where the target is 1, and max(0, margin - x) where it is -1."""
    return reduce_loss(where(target != -1, x, 0) + where(target != 1, relu(margin - x), 0), reduction)


@layer("MarginRankingLoss")
def margin_ranking_loss(x1: A, x2: Array, target: Array, margin: float = 0.0, reduction: Reduction = "mean") -> A:
    """Compute max(0, -target * (x1 - x2) + margin): the target is 1 if x1 should be larger, and -1 if x2 should be."""
    return reduce_loss(relu(-target * (x1 - x2) + margin), reduction)


@layer("SoftMarginLoss")
def soft_margin_loss(x: A, target: Array, reduction: Reduction = "mean") -> A:
    """Compute log(1 + exp(-target * x)), with targets 1 and -1."""
    return reduce_loss(log_one_plus_exp(-target * x), reduction)


@layer("CosineEmbeddingLoss")
def cosine_embedding_loss(x1: A, x2: Array, target: Array, margin: float = 0.0, reduction: Reduction = "mean") -> A:
    """Compute 1 - cos of the angle between x1 and x2 where the target is 1, and max(0, cos - margin) where it is -1."""
    squares = ((x1 * x1).sum(-1) + COSINE_EPS) * ((x2 * x2).sum(-1) + COSINE_EPS)
    cosine = (x1 * x2).sum(-1) / sqrt(squares)
    return reduce_loss(where(target == 1, 1 - cosine, 0) + where(target == -1, relu(cosine - margin), 0), reduction)


@layer("MultiMarginLoss")
def multi_margin_loss(
    x: A,
    target: Array,
    p: Constant = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    reduction: Reduction = "mean",
) -> A:
    """Compute the sum over classes i, except the target t, of max(0, margin - x[t] + x[i]) ** p, over the number of classes.

    x is (N, C) or (C,), the target (N,) or 0-d. `weight` has a factor for each target class.
    """
    is_target = eq(target.unsqueeze(-1), x.positions(x.shape[-1]))
    target_x = where(is_target, x, 0).sum(-1, True)
    terms = relu(margin - target_x + x)
    terms = terms * terms if p == 2 else terms
    terms = where(is_target, 0, terms)
    if weight is not None:
        terms = terms * where(is_target, weight, 0).sum(-1, True)
    return reduce_loss(terms.sum(-1) / x.shape[-1], reduction)


@layer("MultiLabelMarginLoss")
def multilabel_margin_loss(x: A, target: Array, reduction: Reduction = "mean") -> A:
    """Compute the sum of max(0, 1 - (x[t] - x[i])) over targets t and other classes i, divided by the number of classes.

    x and the target are (N, C) or (C,). The targets of a row are the class indices before its first -1.
    """
    classes = x.shape[-1]
    position = x.positions(classes)
    first = where(target < 0, position, classes).min(-1, True)
    targets = where(position < first, target, -1)
    is_chosen = eq(targets.unsqueeze(-1), position)  # (..., place in the list of targets, class)
    target_x = where(is_chosen, x.unsqueeze(-2), 0).sum(-1, True)
    is_pair = (targets >= 0).unsqueeze(-1) & ~is_chosen.any(-2, True)
    terms = where(is_pair, relu(1 - target_x + x.unsqueeze(-2)), 0)
    return reduce_loss(terms.sum((-2, -1)) / classes, reduction)


@layer("MultiLabelSoftMarginLoss")
def multilabel_soft_margin_loss(x: A, target: Array, weight: Array | None = None, reduction: Reduction = "mean") -> A:
    """Compute the mean over classes, the last dim, of the binary cross-entropy of sigmoid(x)."""
    loss = target * log_one_plus_exp(-x) + (1 - target) * log_one_plus_exp(x)
    return reduce_loss((loss if weight is None else loss * weight).mean(-1), reduction)


@layer("TripletMarginLoss")
def triplet_margin_loss(
    anchor: A,
    positive: Array,
    negative: Array,
    margin: float = 1.0,
    p: Constant = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> A:
    """Compute max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is `pairwise_distance`.

    With `swap`, the distance of positive and negative replaces that of anchor and negative where it is less.
    """
    far = vector_norm(anchor - negative + eps, p, -1)
    if swap:
        far = minimum(far, vector_norm(positive - negative + eps, p, -1))  # type: ignore[assignment]  # of the class of far
    return reduce_loss(relu(vector_norm(anchor - positive + eps, p, -1) - far + margin), reduction)


@layer("TripletMarginWithDistanceLoss", is_op=False)
def triplet_margin_with_distance_loss(
    anchor: A,
    positive: Array,
    negative: Array,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> A:
    """Compute `triplet_margin_loss` with a function of two tensors as the distance; by default `pairwise_distance`."""
    distance = distance_function or (lambda x, y: vector_norm(x - y + 1e-6, 2.0, -1))
    far = distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduce_loss(relu(distance(anchor, positive) - far + margin), reduction)
