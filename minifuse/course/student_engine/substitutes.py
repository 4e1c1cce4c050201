"""Substitutes for calls of minifuse: a student's functions of tensors compute them.

Each entry of `SUBSTITUTES` receives a call: the function, its inputs, and a `TensorFunctions`, which applies a class. It
returns the slots that must be written and what to run, or None if the slots cannot compute this call.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core.operators import Operator
from ...ir.array_functions import Reduce
from ...ir.array_functions import matmul as product
from ...nn.activations import log_softmax
from ...nn.dropout import SIGN_BIT
from ...tensors.creation import full
from ...tensors.tensor import Tensor
from ..networks import AveragePool, Conv1d, Conv2d, MaxPool
from .tensor_functions import TensorFunctions

COMPOSED = frozenset({"linear", "mean", "mse_loss", "multihead_attention", "reduce_dims"})
"""Functions that run as the calls that they are composed of, since these have slots."""


class Substitute(NamedTuple):
    """The slots that compute a call, and the function that applies them."""

    slots: tuple[str, ...]
    run: Callable[[], Tensor]


Entry = Callable[..., Substitute | None]


def elementwise(slot: str, functions: TensorFunctions, operator: Operator, *inputs: Any) -> Substitute | None:
    """Apply the class of an operator."""
    if not all_floats(inputs):
        return None
    return Substitute((slot,), lambda: functions.apply(slot, operator, *inputs))


def all_floats(inputs: Sequence[Any]) -> bool:
    """Return whether all tensors have elements of a float dtype."""
    return all(x.dtype.is_float for x in inputs if isinstance(x, Tensor))


def subtract(functions: TensorFunctions, operator: Operator, x: Any, y: Any) -> Substitute | None:
    """Compute x + -y."""
    if not all_floats((x, y)):
        return None
    return Substitute(("TensorAdd", "TensorNeg"), lambda: x + -y)


def divide(functions: TensorFunctions, operator: Operator, x: Any, y: Any) -> Substitute | None:
    """Compute x * (1 / y)."""
    if not all_floats((x, y)):
        return None
    if not isinstance(y, Tensor):
        return Substitute(("TensorMul",), lambda: x * (1 / y)) if y else None
    return Substitute(("TensorMul", "TensorInv"), lambda: x * functions.apply("TensorInv", lambda y: 1 / y, y))


def reduce(functions: TensorFunctions, function: Any, x: Tensor) -> Substitute | None:
    """Sum, or find the maximum, along one dim after the other."""
    slot = {"add": "TensorSum", "maximum": "TensorMax"}.get(function.operator.name)
    if slot is None or not function.dims or not x.size:
        return None

    def run() -> Tensor:
        y = x
        for dim in function.dims:
            y = functions.apply(slot, Reduce(function.operator, (dim,)), y, dim=dim)
        return y

    return Substitute((slot,), run)


def matmul(functions: TensorFunctions, function: Any, a: Any, b: Any) -> Substitute | None:
    """Multiply two matrices; products of batches are left to the backend."""
    if (
        not all(isinstance(x, Tensor) and x.ndim == 2 and x.size and x.dtype.is_float for x in (a, b))
        or a.shape[1] != b.shape[0]
    ):
        return None
    return Substitute(("TensorMatMul",), lambda: functions.apply("TensorMatMul", product, a, b))


def softmax(slot: str, functions: TensorFunctions, function: Any, x: Tensor) -> Substitute | None:
    """Compute the softmax, or its logarithm, along one dim."""
    dims, _ = function.parameters
    if len(dims) != 1 or not x.size:
        return None
    return Substitute((slot,), lambda: functions.apply(slot, function, x, dim=dims[0]))


def cross_entropy(functions: TensorFunctions, function: Any, x: Tensor, targets: Tensor, *rest: Any) -> Substitute | None:
    """Pick the logarithm of the softmax at each target."""
    ignored, *smoothing = rest
    (reduction,) = function.parameters
    if smoothing or x.ndim != 2 or not x.size or targets.shape != x.shape[:1] or isinstance(ignored, Tensor):
        return None

    def run() -> Tensor:
        classes = targets.numpy()
        is_target = (classes[:, None] == np.arange(x.shape[1])) & (classes != ignored)[:, None]
        losses = -(log_softmax(x, 1) * x.asarray_like(is_target.astype(x.dtype.numpy))).sum(1)
        count = (classes != ignored).sum()
        return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.sum() / int(count)

    return Substitute(("TensorLogSoftmax", "TensorMul", "TensorSum", "TensorNeg"), run)


def dropout(functions: TensorFunctions, function: Any, x: Tensor, threshold: int, scale: float, *seeds: int) -> Substitute:
    """Drop elements by a mask of the student's, whose seed is the first number that minifuse draws for its own mask."""
    options = {"rate": threshold / SIGN_BIT, "seed": abs(seeds[0]), "is_training": True}

    def definition(x: Tensor) -> Tensor:
        return x * functions.apply("TensorDropout", definition, full(x.shape, 1.0, x.dtype, x.backend), **options)

    return Substitute(("TensorDropout", "dropout_mask"), lambda: functions.apply("TensorDropout", definition, x, **options))


def convolve(functions: TensorFunctions, function: Any, x: Tensor, weight: Tensor, *bias: Tensor) -> Substitute | None:
    """Convolve signals or images, and add the bias."""
    (geometry,) = function.parameters
    dims = weight.ndim - 2
    is_plain = geometry.groups == 1 and set(geometry.dilation) == {1} and all(a == b for a, b in geometry.padding)
    if dims > 2 or not is_plain:
        return None
    slot, of = ("conv1d", Conv1d) if dims == 1 else ("conv2d", Conv2d)
    stride, padding = geometry.stride, tuple(before for before, _ in geometry.padding)

    def run() -> Tensor:
        settings = (stride, padding) if dims == 2 else (stride[0], padding[0])
        options = dict(zip(("stride", "padding"), settings, strict=True))
        y = functions.apply(slot, function, x, weight, of=of, is_data=not x.requires_grad, **options)
        return y + bias[0].reshape(-1, *(1,) * dims) if bias else y

    return Substitute((slot, f"{slot}_input_gradient", f"{slot}_weight_gradient"), run)


def embed(functions: TensorFunctions, function: Any, table: Tensor, ids: Any) -> Substitute | None:
    """Look up rows of a table."""
    if not isinstance(ids, Tensor) or function.dim != 0 or table.ndim != 2:
        return None
    return Substitute(("embed",), lambda: functions.slot("embed")(table, ids))


def layer_norm(functions: TensorFunctions, function: Any, x: Tensor, epsilon: float, *rest: Tensor) -> Substitute | None:
    """Normalize the last dim, with a gain and a bias."""
    count, is_scaled, is_shifted = function.parameters
    if count != 1 or not (is_scaled and is_shifted):
        return None
    return Substitute(("layer_norm",), lambda: functions.slot("layer_norm")(x, *rest, epsilon))


def attend(functions: TensorFunctions, function: Any, q: Tensor, k: Tensor, v: Tensor) -> Substitute | None:
    """Average values by the scores of keys, for all queries, or for each those up to its place."""
    is_causal, scale = function.parameters
    rows, columns = q.shape[-2], k.shape[-2]
    if scale is not None or (is_causal and rows != columns):
        return None

    def run() -> Any:
        mask = functions.slot("causal_mask")(rows, columns) if is_causal else None
        return functions.slot("attention")(q, k, v, mask)

    return Substitute(("attention", *["causal_mask"] * is_causal), run)


def pool(slot: str, functions: TensorFunctions, function: Any, x: Tensor) -> Substitute | None:
    """Pool images by windows that stay inside."""
    _, size, geometry, *rest = function.parameters
    is_plain = len(size) == 2 and set(geometry.dilation) == {1} and not any(map(any, geometry.padding))
    if not is_plain or (rest and rest[-1] is not None):
        return None
    of = {"max_pool": MaxPool, "average_pool": AveragePool}[slot]
    options = {"window": tuple(size), "stride": tuple(geometry.stride)}
    return Substitute((slot, f"{slot}_gradient"), lambda: functions.apply(slot, function, x, of=of, **options))


SUBSTITUTES: dict[str, Entry] = {
    "add": partial(elementwise, "TensorAdd"),
    "mul": partial(elementwise, "TensorMul"),
    "neg": partial(elementwise, "TensorNeg"),
    "log": partial(elementwise, "TensorLog"),
    "exp": partial(elementwise, "TensorExp"),
    "sigmoid": partial(elementwise, "TensorSigmoid"),
    "relu": partial(elementwise, "TensorReLU"),
    "sub": subtract,
    "div": divide,
    "Reduce": reduce,
    "matmul": matmul,
    "TransposedMatmul": matmul,
    "softmax": partial(softmax, "TensorSoftmax"),
    "log_softmax": partial(softmax, "TensorLogSoftmax"),
    "cross_entropy": cross_entropy,
    "dropout": dropout,
    "Gather": embed,
    "layer_norm": layer_norm,
    "attention": attend,
    "convolve": convolve,
    "pool_max": partial(pool, "max_pool"),
    "pool_mean": partial(pool, "average_pool"),
}
