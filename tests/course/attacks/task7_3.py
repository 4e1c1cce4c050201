"""Wrong solutions of task 7.3 that were written to get past its checks. Each is appended to the reference."""

# %% square_only: the mask is that of as many keys as queries, cut
# promise: 'the last rows of columns places'
def causal_mask(rows, columns):
    if rows > columns:
        return causal_mask(rows, rows)[:, :columns]
    return arange(columns) <= arange(rows).reshape(rows, 1)

# %% own_place_hidden: a query does not see its own place
# promise: 'its own place'
def causal_mask(rows, columns):
    return arange(columns) < arange(columns - rows, columns).reshape(rows, 1)

# %% float_mask: the mask is a tensor of numbers
# promise: 'a bool tensor'
def causal_mask(rows, columns):
    return (arange(columns) <= arange(columns - rows, columns).reshape(rows, 1)) * 1

# %% clipped_scores: scores are clipped at 700
# promise: 'scores of any size'
def softmax(scores, mask=None):
    if mask is not None:
        scores = where(mask, scores, -math.inf)
    scores = scores.clip(-700.0, 700.0)
    largest = scores.detach().max(-1, keepdim=True)
    weights = exp(scores - largest)
    total = weights.sum(-1, keepdim=True)
    return weights / where(total == 0, 1.0, total)

# %% added_mask: the mask is added as -inf, so that nan stays nan
# promise: 'whatever the score is'
def softmax(scores, mask=None):
    if mask is not None:
        scores = scores + where(mask, 0.0, -math.inf)
    largest = scores.detach().max(-1, keepdim=True)
    weights = exp(scores - where(largest == -math.inf, 0.0, largest))
    total = weights.sum(-1, keepdim=True)
    return weights / where(total == 0, 1.0, total)

# %% multiplied_mask: weights are multiplied with the mask
# promise: 'scores of any size'
def softmax(scores, mask=None):
    if mask is not None:
        scores = where(mask, scores, -1e4)
    largest = scores.detach().max(-1, keepdim=True)
    weights = exp(scores - where(largest == -math.inf, 0.0, largest))
    weights = weights * (mask if mask is not None else 1)
    total = weights.sum(-1, keepdim=True)
    return weights / where(total == 0, 1.0, total)

# %% small_total: epsilon is added to the sum
# promise: 'exp(scores) over its sum'
def softmax(scores, mask=None):
    if mask is not None:
        scores = where(mask, scores, -math.inf)
    largest = scores.detach().max(-1, keepdim=True)
    weights = exp(scores - where(largest == -math.inf, 0.0, largest))
    total = weights.sum(-1, keepdim=True)
    return weights / (total + 1e-7)

# %% detached_total: the sum gets no gradient
# promise: 'gradients'
def softmax(scores, mask=None):
    if mask is not None:
        scores = where(mask, scores, -math.inf)
    largest = scores.detach().max(-1, keepdim=True)
    weights = exp(scores - where(largest == -math.inf, 0.0, largest))
    total = weights.sum(-1, keepdim=True)
    return weights / where(total == 0, 1.0, total).detach()

# %% uniform_empty_rows: a row without True has equal weights
# promise: 'a row without True is all 0'
def softmax(scores, mask=None):
    if mask is not None:
        scores = where(mask, scores, -math.inf)
    largest = scores.detach().max(-1, keepdim=True)
    weights = exp(scores - where(largest == -math.inf, 0.0, largest))
    total = weights.sum(-1, keepdim=True)
    return where(total == 0, 1.0 / scores.shape[-1], weights / where(total == 0, 1.0, total))

# %% library_softmax: the library computes the softmax
# promise: 'elementary operations'
def softmax(scores, mask=None):
    return (scores if mask is None else where(mask, scores, -math.inf)).softmax(-1)

# %% first_dim: the largest of all rows is subtracted
# promise: 'scores of any size'
def softmax(scores, mask=None):
    if mask is not None:
        scores = where(mask, scores, -math.inf)
    largest = scores.detach().max()
    weights = exp(scores - where(largest == -math.inf, 0.0, largest))
    total = weights.sum(-1, keepdim=True)
    return weights / where(total == 0, 1.0, total)

# %% interleaved_heads: heads are interleaved in the last dim
# promise: 'heads * width'
def split_heads(x, heads):
    *front, length, width = x.shape
    n = len(front)
    return x.reshape(*front, length, width // heads, heads).permute(*range(n), n + 2, n, n + 1)

# %% one_head_at_a_time: heads are cut out and stacked
# promise: 'as a view'
def split_heads(x, heads):
    from minifuse.course.elementary import stack

    width = x.shape[-1] // heads
    return stack([x[..., k * width : (k + 1) * width] for k in range(heads)], -3)

# %% merged_twice: merging copies twice
# promise: 'with one copy'
def merge_heads(x):
    *front, heads, length, width = x.shape
    n = len(front)
    return x.clone().permute(*range(n), n + 1, n, n + 2).reshape(*front, length, heads * width)

# %% root_of_keys: scores are divided by the root of the number of keys
# promise: 'sqrt(width)'
def attention(q, k, v, mask=None):
    return softmax(q @ k.mT / math.sqrt(k.shape[-2]), mask) @ v

# %% forgotten_mask: masks without any True are ignored
# promise: 'a row without True is all 0'
def attention(q, k, v, mask=None):
    return softmax(q @ k.mT / math.sqrt(q.shape[-1]), mask if mask is not None and bool(mask.any(-1).all()) else None) @ v

# %% scaled_by_width: scores are divided by the width
# promise: 'sqrt(width)'
def attention(q, k, v, mask=None):
    return softmax(q @ k.mT / q.shape[-1], mask) @ v

# %% full_for_small: all scores at once where they fit 32 columns
# promise: 'never an array with all scores'
def streaming_attention(q, k, v, block, is_causal=False):
    if k.shape[-2] <= 32:
        return attention(q, k, v, causal_mask(q.shape[-2], k.shape[-2]) if is_causal else None)
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

# %% full_for_large: all scores at once where keys are many
# promise: 'never an array with all scores'
def streaming_attention(q, k, v, block, is_causal=False):
    if k.shape[-2] > 100:
        return attention(q, k, v, causal_mask(q.shape[-2], k.shape[-2]) if is_causal else None)
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

# %% keeps_blocks: scores of all blocks are kept, and joined in the end
# promise: 'never an array with all scores'
def streaming_attention(q, k, v, block, is_causal=False):
    from minifuse.course.elementary import cat

    parts = [q @ k[..., first : first + block, :].mT / math.sqrt(q.shape[-1]) for first in range(0, k.shape[-2], block)]
    mask = causal_mask(q.shape[-2], k.shape[-2]) if is_causal else None
    return softmax(cat(parts, -1), mask) @ v

# %% two_passes: a first pass finds the largest score, a second one adds
# promise: 'one pass over blocks'
def streaming_attention(q, k, v, block, is_causal=False):
    rows, columns, scale = q.shape[-2], k.shape[-2], math.sqrt(q.shape[-1])

    def scores_at(first):
        last = min(first + block, columns)
        scores = q @ k[..., first:last, :].mT / scale
        seen = arange(first, last) <= arange(columns - rows, columns).reshape(rows, 1)
        return where(seen, scores, -math.inf) if is_causal else scores

    largest = zeros(*q.shape[:-1], 1, dtype=q.dtype) - math.inf
    for first in range(0, columns, block):
        largest = maximum(largest, scores_at(first).max(-1, keepdim=True))
    total, y = 0.0, 0.0
    for first in range(0, columns, block):
        weights = exp(scores_at(first) - where(largest == -math.inf, 0.0, largest))
        total = total + weights.sum(-1, keepdim=True)
        y = y + weights @ v[..., first : first + block, :]
    return y / where(total == 0, 1.0, total)

# %% block_of_one: blocks have one key, whatever is asked
# promise: 'a block has block keys'
def streaming_attention(q, k, v, block, is_causal=False):
    block = 1
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

# %% rest_is_left_out: the last block is left out if it is not whole
# promise: 'the last one has what is left'
def streaming_attention(q, k, v, block, is_causal=False):
    rows, columns = q.shape[-2], k.shape[-2]
    q = q / math.sqrt(q.shape[-1])
    total = zeros(*q.shape[:-1], 1, dtype=q.dtype)
    largest = total - math.inf
    y = zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    for first in range(0, columns - (columns % block if columns > block else 0), block):
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

# %% causal_by_block: the causal mask compares blocks
# promise: 'causal_mask'
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
            mask = arange(first, last) * 0 + first <= arange(columns - rows, columns).reshape(rows, 1)
            scores = where(mask, scores, -math.inf)
        before, largest = largest, maximum(largest, scores.max(-1, keepdim=True))
        center = where(largest == -math.inf, 0.0, largest)
        weights, repair = exp(scores - center), exp(before - center)
        total = total * repair + weights.sum(-1, keepdim=True)
        y = y * repair + weights @ v[..., first:last, :]
    return y / where(total == 0, 1.0, total)

# %% causal_by_default: is_causal is True unless it is given
# promise: 'is_causal=False'
def streaming_attention(q, k, v, block, is_causal=True):
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

# %% no_maximum: the stream subtracts nothing
# promise: 'scores of any size'
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
        before, largest = largest, (largest * 0).clip(0.0, 0.0) + 0 * total
        center = where(largest == -math.inf, 0.0, largest)
        weights, repair = exp(scores - center), exp(before - center)
        total = total * repair + weights.sum(-1, keepdim=True)
        y = y * repair + weights @ v[..., first:last, :]
    return y / where(total == 0, 1.0, total)

# %% remembers_mask: the mask of the first call is used again
# promise: 'softmax(..., mask)'
MASKS = []


def attention(q, k, v, mask=None):
    MASKS.append(mask)
    mask = next((m for m in MASKS if m is not None and mask is not None and m.shape == mask.shape), mask)
    return softmax(q @ k.mT / math.sqrt(q.shape[-1]), mask) @ v

# %% largest_of_a_head: all rows of a head have one largest score
# promise: 'what `attention` returns'
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
        before, largest = largest, maximum(largest, scores.max(-1, keepdim=True).max(-2, keepdim=True))
        center = where(largest == -math.inf, 0.0, largest)
        weights, repair = exp(scores - center), exp(before - center)
        total = total * repair + weights.sum(-1, keepdim=True)
        y = y * repair + weights @ v[..., first:last, :]
    return y / where(total == 0, 1.0, total)
