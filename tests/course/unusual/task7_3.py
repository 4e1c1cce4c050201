"""Right solutions of task 7.3 that are written in unusual ways. Each is appended to the reference."""

# %% differences: the mask is a difference, the softmax divides by exp of a logarithm
def causal_mask(rows, columns):
    return (arange(rows).reshape(rows, 1) - arange(columns).reshape(1, columns)) >= rows - columns


def softmax(scores, mask=None):
    seen = scores if mask is None else where(mask, scores, -1e300)
    shifted = exp(seen - seen.max(-1, keepdim=True).detach())
    if mask is not None:
        shifted = where(mask, shifted, 0.0)
    total = shifted.sum(-1, keepdim=True)
    return shifted * exp(-(total + (total == 0)).log())

# %% transposes: heads by transpose and unflatten, queries are scaled first
def split_heads(x, heads):
    return x.unflatten(-1, (heads, x.shape[-1] // heads)).transpose(-2, -3)


def merge_heads(x):
    return x.transpose(-2, -3).flatten(-2)


def attention(q, k, v, mask=None):
    return softmax((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2), mask) @ v

# %% backward_stream: the stream begins with the last block, and merges states
def streaming_attention(q, k, v, block, is_causal=False):
    rows, columns = q.shape[-2], k.shape[-2]
    state = None
    for first in reversed(range(0, columns, block)):
        keys, values = k[..., first : first + block, :], v[..., first : first + block, :]
        scores = q @ keys.mT * q.shape[-1] ** -0.5
        if is_causal:
            seen = arange(keys.shape[-2]) + (first - columns + rows) <= arange(rows).reshape(rows, 1)
            scores = where(seen, scores, -1e300)
        top = scores.max(-1, keepdim=True)
        weights = exp(scores - top) * (scores > -1e299)
        part = top, weights.sum(-1, keepdim=True), weights @ values
        if state is not None:
            high = maximum(top, state[0])
            one, two = exp(top - high), exp(state[0] - high)
            part = high, part[1] * one + state[1] * two, part[2] * one + state[2] * two
        state = part
    return state[2] / (state[1] + (state[1] == 0))
