"""Module 7: a language model of characters: text as numbers, the loss, a step of training, and sampling.

Codes of characters are ints from 0. `inputs` and `targets` are int64 tensors of shape (count, context).
"""

import math
from itertools import accumulate
from random import Random

from minifuse.course import todo
from minifuse.course.elementary import arange, maximum, no_grad, tensor, where

# Task 7.4


class Tokenizer:
    """Characters as numbers: the characters of a text, each once and in sorted order, have the codes 0, 1, 2, ..."""

    def __init__(self, text):
        # begin 7.4a
        self.characters = sorted(set(text))
        self.codes = {character: code for code, character in enumerate(self.characters)}
        # end

    def __len__(self):
        """Return the number of characters."""
        # begin 7.4b
        return len(self.characters)
        # end

    def encode(self, text):
        """Return the codes of a text, a list of ints. Raise ValueError for a character that has no code."""
        # begin 7.4c
        unknown = set(text) - set(self.codes)
        if unknown:
            raise ValueError(f"characters without a code: {sorted(unknown)}")
        return [self.codes[character] for character in text]
        # end

    def decode(self, codes):
        """Return the text of a list of codes. Raise ValueError for a code below 0, or of at least len(self)."""
        # begin 7.4d
        if any(not 0 <= code < len(self) for code in codes):
            raise ValueError(f"codes are from 0 to {len(self) - 1}")
        return "".join(self.characters[code] for code in codes)
        # end


def draw_batch(codes, context, count, random):
    """Return (inputs, targets), two int64 tensors of shape (count, context).

    A row of inputs is a window of codes, a list of ints. The row of targets has the codes that follow each of them: the
    window that begins one place later. The places come from `random`, a `Random`; all that leave room for both are equally
    likely.
    """
    # begin 7.4e
    starts = [random.randrange(len(codes) - context) for _ in range(count)]
    rows = [codes[start : start + context + 1] for start in starts]
    return tensor([row[:-1] for row in rows]), tensor([row[1:] for row in rows])
    # end


def cross_entropy(logits, targets):
    """Return the mean of -log(softmax(logits)[target]), a tensor of shape ().

    logits has shape (..., vocabulary), targets is an int64 tensor of shape (...). Logits may be large, and -inf where they
    are not a target's. Only elementary calls: no softmax, logsumexp or the like of the library. In each row n of z,
    `z.gather(-1, i.unsqueeze(-1))` chooses z[n, i[n]].
    """
    # begin 7.4f
    shifted = logits - logits.detach().max(-1, keepdims=True)
    logs = shifted.exp().sum(-1).log()
    return (logs - shifted.gather(-1, targets.unsqueeze(-1)).squeeze(-1)).mean()
    # end


def clip_gradients(parameters, max_norm):
    """Scale all gradients by one factor so that their common norm is at most max_norm; return the norm before, a float.

    The norm is the root of the sum of squares of all elements of all gradients; the factor is max_norm / norm, or that of
    PyTorch, max_norm / (norm + 1e-6), and never above 1. Parameters whose grad is None are left out.
    Raise ValueError, and change nothing, if the norm is nan or inf.
    """
    # begin 7.4g
    found = [p for p in parameters if p.grad is not None]
    norm = math.sqrt(sum((p.grad * p.grad).sum().item() for p in found))
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradients is {norm}")
    if norm > max_norm:
        for p in found:
            p.grad = p.grad * (max_norm / norm)
    return norm
    # end


def train_step(model, optimizer, inputs, targets, max_norm):
    """Take a step of training, and return the loss before it, a float.

    model(inputs) returns logits. The optimizer has `parameters`, a list, and the methods `zero_grad()` and `step()`.
    Gradients are those of this batch alone, and clipped to max_norm.
    """
    # begin 7.4h
    optimizer.zero_grad()
    loss = cross_entropy(model(inputs), targets)
    loss.backward()
    clip_gradients(optimizer.parameters, max_norm)
    optimizer.step()
    return loss.item()
    # end


class SonnetModel:
    """A transformer: model(codes) maps int64 codes (count, length <= context) to logits (count, length, vocabulary).

    The logits at a place depend on the codes at this place and before it, and on their order. All start weights come from
    `Random(seed)`. They make the logits of a new model nearly equal. `tensor(rows, dtype="float64").requires_grad_()` makes
    weights of a list of lists. You may write more methods, or leave `mix` out.
    """

    def __init__(self, vocabulary, context, seed=0, width=32, heads=2):
        # begin 7.4i
        random = Random(seed)

        def weights(rows, columns, size):
            drawn = [[random.gauss(0.0, size) for _ in range(columns)] for _ in range(rows)]
            return tensor(drawn, dtype="float64").requires_grad_()

        self.width, self.heads = width, heads
        self.tokens, self.places = weights(vocabulary, width, 0.3), weights(context, width, 0.3)
        self.query, self.key, self.value, self.out = (weights(width, width, width**-0.5) for _ in range(4))
        self.up, self.down = weights(width, 4 * width, width**-0.5), weights(4 * width, width, (4 * width) ** -0.5)
        self.head = weights(width, vocabulary, 0.02)
        # end

    def parameters(self):
        """Return all weights, a list."""
        # begin 7.4j
        mixing = [self.query, self.key, self.value, self.out]
        return [self.tokens, self.places, *mixing, self.up, self.down, self.head]
        # end

    def __call__(self, codes):
        """Return the logits."""
        # begin 7.4k
        x = self.tokens[codes] + self.places[: codes.shape[1]]
        x = x + self.mix(normalized(x))
        y = normalized(x) @ self.up
        x = x + maximum(y, 0.0) @ self.down
        return normalized(x) @ self.head
        # end

    def mix(self, x):
        """Return the attention of each place to itself and to those before it."""
        # begin 7.4l
        count, length, width = x.shape
        shape = count, length, self.heads, width // self.heads
        q, k, v = ((x @ w).reshape(*shape).permute(0, 2, 1, 3) for w in (self.query, self.key, self.value))
        scores = q @ k.permute(0, 1, 3, 2) * (width // self.heads) ** -0.5
        place = arange(length)
        scores = where(place <= place.unsqueeze(-1), scores, -math.inf)
        powers = (scores - scores.detach().max(-1, keepdims=True)).exp()
        mixed = powers / powers.sum(-1, keepdims=True) @ v
        return mixed.permute(0, 2, 1, 3).reshape(count, length, width) @ self.out
        # end


def normalized(x):
    """Return x with mean 0 and mean square 1 along its last dim."""
    x = x - x.mean(-1, keepdim=True)
    return x * ((x * x).mean(-1, keepdim=True) + 1e-5) ** -0.5


def evaluate(model, codes, context):
    """Return (loss, perplexity, bits), three floats, for a text that the model has not seen.

    loss is the mean of -log(probability) over all characters but the first. The model reads windows of `context` codes one
    after the other, from the first on; the last one may be shorter. No gradients are computed. perplexity is e ** loss,
    bits is loss in units of log(2).
    """
    # begin 7.4m
    total, count = 0.0, len(codes) - 1
    with no_grad():
        for start in range(0, count, context):
            row = codes[start : start + context + 1]
            loss = cross_entropy(model(tensor([row[:-1]])), tensor([row[1:]]))
            total += loss.item() * (len(row) - 1)
    loss = total / count
    return loss, math.exp(loss), loss / math.log(2)
    # end


def sample_next(logits, random, temperature=1.0, top_k=None):
    """Return a code that is drawn with the probabilities softmax(logits / temperature).

    logits is a list of floats. With top_k, only the top_k largest logits can be drawn; of equal ones those with smaller
    codes are kept. top_k may be larger than the number of logits. Temperature 0 returns the code of the largest logit, and
    draws nothing. Otherwise `random.random()` draws one number u, and the code is the first at which the sum of the
    probabilities, from code 0 on, is greater than u. If rounding leaves none, it is the last code that can be drawn.
    """
    # begin 7.4n
    best = sorted(range(len(logits)), key=lambda code: -logits[code])
    if temperature == 0:
        return best[0]
    kept = sorted(best[:top_k])
    sums = list(accumulate(math.exp((logits[code] - logits[best[0]]) / temperature) for code in kept))
    u = random.random() * sums[-1]
    return next(code for code, total in zip(kept, sums, strict=True) if total > u)
    # end
