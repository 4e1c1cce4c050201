"""Module 7: generate token by token, with the keys and values of earlier tokens kept.

A model here has the numbers `layers`, `heads` and `size`, and four functions, each of N tokens at once:

    model.embed(codes, places)      returns x of shape (N, width) for two lists of N ints
    model.project(layer, x)         returns (q, k, v), each of shape (N, heads, size)
    model.finish(layer, x, mixed)   returns the x of the next layer; mixed has shape (N, heads, size)
    model.logits(x)                 returns (N, vocabulary)
"""

import math

from minifuse.course import todo
from minifuse.course.elementary import float64, stack, zeros

# Task 7.5


class KeyValueCache:
    """The keys and values of one sequence: in each layer those of the tokens so far, in float64."""

    def __init__(self, layers, heads, size):
        # begin 7.5a
        self.shape = heads, size
        self.memory = [zeros(2, heads, 8, size, dtype=float64) for _ in range(layers)]
        self.lengths = [0] * layers
        # end

    def __len__(self):
        """Return the number of tokens, that of the last layer: within a step, earlier layers have one more already."""
        # begin 7.5b
        return self.lengths[-1]
        # end

    def append(self, layer, key, value):
        """Store the key and the value of the next token, two tensors of shape (heads, size).

        All elements that n calls write and copy are at most 8 times those of the n keys and values.
        """
        # begin 7.5c
        memory, length = self.memory[layer], self.lengths[layer]
        if length == memory.shape[2]:
            larger = zeros(2, self.shape[0], 2 * length, self.shape[1], dtype=float64)
            larger[:, :, :length] = memory
            memory = self.memory[layer] = larger
        memory[0, :, length] = key
        memory[1, :, length] = value
        self.lengths[layer] = length + 1
        # end

    def read(self, layer):
        """Return (keys, values) of all tokens of a layer, two views of shape (heads, tokens, size): nothing is copied."""
        # begin 7.5d
        memory = self.memory[layer][:, :, : self.lengths[layer]]
        return memory[0], memory[1]
        # end

    def reset(self):
        """Forget all tokens, in every layer."""
        # begin 7.5e
        self.lengths = [0] * len(self.lengths)
        # end


def attend(query, keys, values):
    """Return softmax(query . keys / sqrt(size)) . values for the newest token, a tensor of shape (heads, size).

    query has shape (heads, size), keys and values have shape (heads, tokens, size). Scores may be large.
    """
    # begin 7.5f
    scores = (keys @ query.unsqueeze(-1)).squeeze(-1) * (1 / math.sqrt(query.shape[-1]))
    powers = (scores - scores.max(-1, keepdims=True)).exp()
    shares = powers / powers.sum(-1, keepdims=True)
    return (shares.unsqueeze(1) @ values).squeeze(1)
    # end


def decode_step(model, codes, caches):
    """Feed one token to each of N sequences, and return the logits of those that follow: (N, vocabulary).

    codes is a list of ints, caches one `KeyValueCache` for each. The place of a token is the number of tokens that its cache
    has before. Sequences may have different lengths. Each function of the model is called for all N at once, once for each
    layer.
    """
    # begin 7.5g
    x = model.embed(codes, [len(cache) for cache in caches])
    for layer in range(model.layers):
        query, key, value = model.project(layer, x)
        mixed = []
        for k, cache in enumerate(caches):
            cache.append(layer, key[k], value[k])
            mixed.append(attend(query[k], *cache.read(layer)))
        x = model.finish(layer, x, stack(mixed))
    return model.logits(x)
    # end


def generate(model, prompts, count, choose):
    """Return, for each prompt, a list of the `count` codes that follow it.

    A prompt is a list of at least one code. choose(logits), with the logits of a token as a list of floats, returns the next
    code. Each token is fed once, and the last code of each sequence not at all: later steps leave out a sequence that is
    complete. Sequences advance together: there are as many steps as the longest of them needs, and none for count 0.
    """
    # begin 7.5h
    caches = [KeyValueCache(model.layers, model.heads, model.size) for _ in prompts]
    found = [list(prompt) for prompt in prompts]
    lengths = [len(prompt) + count for prompt in prompts]
    while count:
        active = [k for k, cache in enumerate(caches) if len(cache) < lengths[k] - 1]
        if not active:
            break
        logits = decode_step(model, [found[k][len(caches[k])] for k in active], [caches[k] for k in active])
        for k, row in zip(active, logits.tolist(), strict=True):
            if len(caches[k]) == len(found[k]):
                found[k].append(choose(row))
    return [codes[len(prompt) :] for codes, prompt in zip(found, prompts, strict=True)]
    # end
