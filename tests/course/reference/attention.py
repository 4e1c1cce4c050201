"""Module 7: attention, with all scores at once, and with a block of keys at a time.

Tensors are those of the library, `mf.Tensor`. Write with elementary operations: `+ - * / @`, comparisons, `exp`, `maximum`,
`where(condition, x, y)`, in which x or y may be a number, `x.max(-1, keepdim=True)`, `x.sum(-1, keepdim=True)`,
`x.reshape(...)`, `x.permute(...)`, `x.mT` (the last two dims exchanged), slices, `x.detach()` (no gradient). `arange(m, n)`
counts from m to n - 1.
"""

import math

from minifuse.course import todo
from minifuse.course.elementary import arange, exp, maximum, where, zeros

# Task 7.3


def causal_mask(rows, columns):
    """Return a bool tensor (rows, columns): True where a query may see a key.

    The queries are the last `rows` of `columns` places. Each sees its own place, and those before it.
    """
    # begin 7.3a
    return arange(columns) <= arange(columns - rows, columns).reshape(rows, 1)
    # end


def softmax(scores, mask=None):
    """Return exp(scores) over its sum along the last dim, for scores of any size.

    Where `mask` is False a weight is 0, whatever the score is, and the score gets no gradient. A row without True is all 0.
    Scores that are seen are finite.
    """
    # begin 7.3b
    if mask is not None:
        scores = where(mask, scores, -math.inf)
    largest = scores.detach().max(-1, keepdim=True)
    weights = exp(scores - where(largest == -math.inf, 0.0, largest))
    total = weights.sum(-1, keepdim=True)
    return weights / where(total == 0, 1.0, total)
    # end


def split_heads(x, heads):
    """Return x (..., length, heads * width) as a view (..., heads, length, width)."""
    # begin 7.3c
    *front, length, width = x.shape
    n = len(front)
    return x.reshape(*front, length, heads, width // heads).permute(*range(n), n + 1, n, n + 2)
    # end


def merge_heads(x):
    """Return x (..., heads, length, width) as (..., length, heads * width)."""
    # begin 7.3d
    *front, heads, length, width = x.shape
    n = len(front)
    return x.permute(*range(n), n + 1, n, n + 2).reshape(*front, length, heads * width)
    # end


def attention(q, k, v, mask=None):
    """Return softmax(q @ k.mT / sqrt(width), mask) @ v, for q (..., rows, width), and k, v of (..., columns, width)."""
    # begin 7.3e
    return softmax(q @ k.mT / math.sqrt(q.shape[-1]), mask) @ v
    # end


def streaming_attention(q, k, v, block, is_causal=False):
    """Return what `attention` returns, with causal_mask if `is_causal`, from one pass over blocks of keys and values.

    A block has `block` keys, the last one what is left. There is never an array with all scores.
    """
    # begin 7.3f
    rows, columns = q.shape[-2], k.shape[-2]
    q = q / math.sqrt(q.shape[-1])
    total = zeros(*q.shape[:-1], 1, dtype=q.dtype)
    largest = total - math.inf
    y = zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    for first in range(0, columns, block):
        last = min(first + block, columns)
        scores = q @ k[..., first:last, :].mT
        if is_causal:
            mask = arange(first, last) <= arange(columns - rows, columns).reshape(rows, 1)
            scores = where(mask, scores, -math.inf)
        before, largest = largest, maximum(largest, scores.max(-1, keepdim=True))
        center = where(largest == -math.inf, 0.0, largest)
        weights, repair = exp(scores - center), exp(before - center)
        total = total * repair + weights.sum(-1, keepdim=True)
        y = y * repair + weights @ v[..., first:last, :]
    return y / where(total == 0, 1.0, total)
    # end
