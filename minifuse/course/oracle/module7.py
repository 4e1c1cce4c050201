"""Reference answers of module 7, tasks 7.1 to 7.3, with functions of the library."""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ...autograd import Function
from ...core.dispatch import use_dispatch_hook
from ...core.operators import exp, where
from ...tensors.creation import arange, zeros
from . import answers

F = TypeVar("F", bound=Callable[..., Any])


def unrecorded(function: F) -> F:
    """Run a function without the hook that records a student's calls of the library: it may call everything."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with use_dispatch_hook(None):
            return function(*args, **options)

    return run  # type: ignore[return-value]  # of the same parameters and result


# Task 7.1


@answers
class Embedding(Function):
    """Rows of a table."""

    @staticmethod
    def forward(ctx: Any, table: Any, ids: Any) -> Any:
        """Select rows."""
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Add the gradient of each row to the table."""
        (ids,) = ctx.saved_tensors
        rows = gradient.reshape(ids.size, ctx.shape[1])
        return zeros(*ctx.shape, dtype=gradient.dtype).index_add(0, ids.reshape(ids.size), rows), None


@answers
@unrecorded
def embed(table: Any, ids: Any) -> Any:
    """Return rows of a table; the library differentiates it."""
    if bool((ids < 0).any()) or bool((ids >= table.shape[0]).any()):
        raise IndexError(f"embed: got an id outside of the table; expected ids from 0 to {table.shape[0] - 1}")
    return table[ids]


@answers
@unrecorded
def add_positions(x: Any, positions: Any) -> Any:
    """Add row t of a table at place t."""
    length = x.shape[-2]
    if length > positions.shape[0]:
        raise ValueError(f"add_positions: got {length} places, expected at most {positions.shape[0]}, the rows of positions")
    return x + positions[:length]


@answers
@unrecorded
def unembed(x: Any, table: Any) -> Any:
    """Return the scores of all rows of a table."""
    return x @ table.T


# Task 7.2


@answers
@unrecorded
def layer_norm(x: Any, gain: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    """Normalize rows; the library differentiates it."""
    centered = x - x.mean(-1, keepdim=True)
    return centered / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt() * gain + bias


@answers
@unrecorded
def rms_norm(x: Any, gain: Any, epsilon: float = 1e-5) -> Any:
    """Divide rows by the root of their mean square."""
    return x / ((x * x).mean(-1, keepdim=True) + epsilon).sqrt() * gain


@answers
class LayerNorm(Function):
    """Rows of mean 0 and variance 1."""

    forward = staticmethod(lambda ctx, x, gain, bias, epsilon: layer_norm(x, gain, bias, epsilon))


@answers
class RMSNorm(Function):
    """Rows of mean square 1."""

    forward = staticmethod(lambda ctx, x, gain, epsilon: rms_norm(x, gain, epsilon))


# Task 7.3


def mask_of(rows: int, columns: int) -> Any:
    """Return where the last places see others. Reference answers call this, since a lent one may not call another."""
    return arange(columns)[None] <= (arange(rows) + (columns - rows))[:, None]


def weights_of(scores: Any, mask: Any) -> Any:
    """Return weights along the last dim; the library differentiates them."""
    seen = scores if mask is None else where(mask, scores, -math.inf)
    largest = seen.detach().max(-1, keepdim=True)
    weights = exp(seen - where(largest > -math.inf, largest, 0.0))
    total = weights.sum(-1, keepdim=True)
    return weights / where(total > 0, total, 1.0)


def attended(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Return the weighted mean of values."""
    return weights_of(q @ k.mT * q.shape[-1] ** -0.5, mask) @ v


@answers
@unrecorded
def causal_mask(rows: int, columns: int) -> Any:
    """Return where the last places see others."""
    return mask_of(rows, columns)


@answers
@unrecorded
def softmax(scores: Any, mask: Any = None) -> Any:
    """Return weights along the last dim."""
    return weights_of(scores, mask)


@answers
@unrecorded
def split_heads(x: Any, heads: int) -> Any:
    """Return heads as a dim before the length."""
    return x.unflatten(-1, (heads, x.shape[-1] // heads)).transpose(-3, -2)


@answers
@unrecorded
def merge_heads(x: Any) -> Any:
    """Return heads side by side."""
    return x.transpose(-3, -2).flatten(-2)


@answers
@unrecorded
def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """Return the weighted mean of values."""
    return attended(q, k, v, mask)


@answers
@unrecorded
def streaming_attention(q: Any, k: Any, v: Any, block: int, is_causal: bool = False) -> Any:
    """Return attention, by all scores at once."""
    return attended(q, k, v, mask_of(q.shape[-2], k.shape[-2]) if is_causal else None)
