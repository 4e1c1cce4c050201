"""Wrong solutions of task 7.3, one a cell: `# %% name: the mistake that the check must name`."""


# %% upper: later places are seen, and earlier ones are not
def causal_mask(rows, columns):
    return arange(columns) >= arange(columns - rows, columns).reshape(rows, 1)


# %% first_places: the queries are taken for the first places
def causal_mask(rows, columns):
    return arange(columns) <= arange(rows).reshape(rows, 1)


# %% empty_rows: a row without any True becomes nan
def softmax(scores, mask=None):
    if mask is not None:
        scores = where(mask, scores, -math.inf)
    largest = scores.detach().max(-1, keepdim=True)
    weights = exp(scores - largest)
    total = weights.sum(-1, keepdim=True)
    return weights / where(total == 0, 1.0, total)


# %% empty_sum: a row without any True becomes nan
def softmax(scores, mask=None):
    if mask is not None:
        scores = where(mask, scores, -math.inf)
    largest = scores.detach().max(-1, keepdim=True)
    weights = exp(scores - where(largest == -math.inf, 0.0, largest))
    total = weights.sum(-1, keepdim=True)
    return weights / total


# %% overflow: the largest score is not subtracted
def softmax(scores, mask=None):
    if mask is not None:
        scores = where(mask, scores, -math.inf)
    weights = exp(scores)
    total = weights.sum(-1, keepdim=True)
    return weights / where(total == 0, 1.0, total)


# %% large_number: masked scores are a large number below 0
def softmax(scores, mask=None):
    if mask is not None:
        scores = where(mask, scores, -1e9)
    largest = scores.detach().max(-1, keepdim=True)
    weights = exp(scores - where(largest == -math.inf, 0.0, largest))
    total = weights.sum(-1, keepdim=True)
    return weights / where(total == 0, 1.0, total)


# %% reshaped: a reshape is taken for a permutation
def split_heads(x, heads):
    *front, length, width = x.shape
    return x.reshape(*front, heads, length, width // heads)


# %% copied: heads are copied
def split_heads(x, heads):
    *front, length, width = x.shape
    n = len(front)
    return x.reshape(*front, length, heads, width // heads).permute(*range(n), n + 1, n, n + 2).clone()


# %% unscaled: scores are not divided by the root of the width
def attention(q, k, v, mask=None):
    return softmax(q @ k.mT, mask) @ v


# %% uncorrected: sums are not corrected for a larger score
def streaming_attention(q, k, v, block, is_causal=False):
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
        largest = maximum(largest, scores.max(-1, keepdim=True))
        center = where(largest == -math.inf, 0.0, largest)
        weights = exp(scores - center)
        total = total + weights.sum(-1, keepdim=True)
        y = y + weights @ v[..., first:last, :]
    return y / where(total == 0, 1.0, total)


# %% first_places_of_a_stream: the queries are taken for the first places
def streaming_attention(q, k, v, block, is_causal=False):
    rows, columns = q.shape[-2], k.shape[-2]
    q = q / math.sqrt(q.shape[-1])
    total = zeros(*q.shape[:-1], 1, dtype=q.dtype)
    largest = total - math.inf
    y = zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    for first in range(0, columns, block):
        last = min(first + block, columns)
        scores = q @ k[..., first:last, :].mT
        if is_causal:
            mask = arange(first, last) <= arange(rows).reshape(rows, 1)
            scores = where(mask, scores, -math.inf)
        before, largest = largest, maximum(largest, scores.max(-1, keepdim=True))
        center = where(largest == -math.inf, 0.0, largest)
        weights, repair = exp(scores - center), exp(before - center)
        total = total * repair + weights.sum(-1, keepdim=True)
        y = y * repair + weights @ v[..., first:last, :]
    return y / where(total == 0, 1.0, total)


# %% empty_rows_of_a_stream: a row without any True becomes nan
def streaming_attention(q, k, v, block, is_causal=False):
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
    return y / total


# %% common_largest: all rows have one largest score
def streaming_attention(q, k, v, block, is_causal=False):
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
        before, largest = largest, maximum(largest, scores.max())
        center = where(largest == -math.inf, 0.0, largest)
        weights, repair = exp(scores - center), exp(before - center)
        total = total * repair + weights.sum(-1, keepdim=True)
        y = y * repair + weights @ v[..., first:last, :]
    return y / where(total == 0, 1.0, total)


# %% whole_mask: the causal mask is made for all keys
def streaming_attention(q, k, v, block, is_causal=False):
    rows, columns = q.shape[-2], k.shape[-2]
    q = q / math.sqrt(q.shape[-1])
    total = zeros(*q.shape[:-1], 1, dtype=q.dtype)
    largest = total - math.inf
    y = zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    seen = causal_mask(rows, columns)
    for first in range(0, columns, block):
        last = min(first + block, columns)
        scores = q @ k[..., first:last, :].mT
        if is_causal:
            scores = where(seen[:, first:last], scores, -math.inf)
        before, largest = largest, maximum(largest, scores.max(-1, keepdim=True))
        center = where(largest == -math.inf, 0.0, largest)
        weights, repair = exp(scores - center), exp(before - center)
        total = total * repair + weights.sum(-1, keepdim=True)
        y = y * repair + weights @ v[..., first:last, :]
    return y / where(total == 0, 1.0, total)


# %% at_once: all scores are held at once
def streaming_attention(q, k, v, block, is_causal=False):
    return attention(q, k, v, causal_mask(q.shape[-2], k.shape[-2]) if is_causal else None)
