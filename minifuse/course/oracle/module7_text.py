"""Reference answers of tasks 7.4 to 7.6, by ready-made functions of the library and of NumPy."""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from ... import nn
from ...core.dispatch import no_grad
from ...data import Characters
from ...recipes.gpt import GPT
from ...tensors.creation import tensor
from ...tensors.tensor import Tensor
from . import answers

# Task 7.4


@answers
class Tokenizer:
    """The library's characters."""

    def __init__(self, text: str) -> None:
        self.characters = Characters(text)

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> list[int]:
        """Return the codes of a text."""
        return [int(code) for code in self.characters.encode(text).tolist()]

    def decode(self, codes: Sequence[int]) -> str:
        """Return the text of codes."""
        return self.characters.decode(codes)


@answers
def draw_batch(codes: Sequence[int], context: int, count: int, random: Random) -> tuple[Tensor, Tensor]:
    """Draw windows of a view of all windows."""
    windows = np.lib.stride_tricks.sliding_window_view(np.array(codes, np.int64), context + 1)
    rows = windows[random.choices(range(len(windows)), k=count)]
    return tensor(rows[:, :-1].copy()), tensor(rows[:, 1:].copy())


@answers
def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the library's cross-entropy."""
    loss: Tensor = nn.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
    return loss


@answers
def clip_gradients(parameters: Sequence[Tensor], max_norm: float) -> float:
    """Scale gradients by the norm of NumPy."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = float(np.linalg.norm(np.concatenate([[0.0], *[g.numpy().ravel() for g in gradients]])))
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradients is {norm}")
    for p in parameters:
        if p.grad is not None and norm > max_norm:
            p.grad = p.grad * (max_norm / norm)
    return norm


@answers
def train_step(model: Callable[[Tensor], Tensor], optimizer: Any, inputs: Tensor, targets: Tensor, max_norm: float) -> float:
    """Take a step."""
    optimizer.zero_grad()
    loss = cross_entropy(model(inputs), targets)
    loss.backward()
    clip_gradients(optimizer.parameters, max_norm)
    optimizer.step()
    return float(loss.item())


@answers
class SonnetModel(GPT):
    """The library's GPT."""

    def __init__(self, vocabulary: int, context: int, seed: int = 0) -> None:
        super().__init__(vocabulary, context, layers=1, heads=2, width=32)


@answers
@no_grad()
def evaluate(model: Callable[[Tensor], Tensor], codes: Sequence[int], context: int) -> tuple[float, float, float]:
    """Return loss, perplexity and bits."""
    parts = [codes[k : k + context + 1] for k in range(0, len(codes) - 1, context)]
    sums = [cross_entropy(model(tensor([x[:-1]])), tensor([x[1:]])).item() * (len(x) - 1) for x in parts]
    loss = float(np.sum(sums) / (len(codes) - 1))
    return loss, math.exp(loss), loss / math.log(2)


@answers
def sample_next(logits: Sequence[float], random: Random, temperature: float = 1.0, top_k: int | None = None) -> int:
    """Search the cumulative probabilities."""
    array = np.array(logits)
    kept = np.argsort(-array, kind="stable")[:top_k]
    if temperature == 0:
        return int(kept[0])
    weights = np.zeros(len(array))
    weights[kept] = np.exp((array[kept] - array.max()) / temperature)
    sums = weights.cumsum()
    return int(np.searchsorted(sums, random.random() * sums[-1], side="right"))


# Task 7.5


@answers
class KeyValueCache:
    """Keys and values as lists."""

    def __init__(self, layers: int, heads: int, size: int) -> None:
        self.pairs: list[list[tuple[Tensor, Tensor]]] = [[] for _ in range(layers)]

    def __len__(self) -> int:
        return len(self.pairs[-1])

    def append(self, layer: int, key: Tensor, value: Tensor) -> None:
        """Append to a list."""
        self.pairs[layer].append((key, value))

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """Stack the list."""
        keys, values = (np.stack([x.numpy() for x in part], 1) for part in zip(*self.pairs[layer], strict=True))
        return tensor(keys), tensor(values)

    def reset(self) -> None:
        """Make new lists."""
        self.pairs = [[] for _ in self.pairs]


@answers
def attend(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Attend by einsum."""
    scores = np.einsum("hs,hts->ht", query.numpy(), keys.numpy()) / math.sqrt(query.shape[-1])
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return tensor(np.einsum("ht,hts->hs", powers / powers.sum(-1, keepdims=True), values.numpy()))


@answers
def decode_step(model: Any, codes: Sequence[int], caches: Sequence[KeyValueCache]) -> Tensor:
    """Feed a token to each sequence."""
    x = model.embed(codes, [len(cache) for cache in caches])
    for layer in range(model.layers):
        mixed = []
        for cache, query, key, value in zip(caches, *[y.numpy() for y in model.project(layer, x)], strict=True):
            cache.append(layer, tensor(key), tensor(value))
            mixed.append(attend(tensor(query), *cache.read(layer)).numpy())
        x = model.finish(layer, x, tensor(np.stack(mixed)))
    logits: Tensor = model.logits(x)
    return logits


@answers
def generate(
    model: Any, prompts: Sequence[Sequence[int]], count: int, choose: Callable[[list[float]], int]
) -> list[list[int]]:
    """Continue one prompt after the other."""
    found = []
    for prompt in prompts:
        cache, codes = KeyValueCache(model.layers, model.heads, model.size), list(prompt)
        while len(codes) < len(prompt) + count:
            logits = decode_step(model, [codes[len(cache)]], [cache])
            if len(cache) == len(codes):
                codes.append(choose(logits.tolist()[0]))
        found.append(codes[len(prompt) :])
    return found


# Task 7.6


@answers
def quantize(w: Tensor, per_row: bool = True) -> tuple[Tensor, Tensor]:
    """Quantize by NumPy."""
    array = w.numpy()
    if not np.isfinite(array).all():
        raise ValueError("an element is nan or inf")
    largest = np.abs(array).max(-1 if per_row else None, keepdims=True)
    scales = np.where(largest == 0, 1.0, largest / 127)
    return tensor(np.rint(array / scales).astype(np.int8)), tensor(scales)


@answers
def dequantize(codes: Tensor, scales: Tensor) -> Tensor:
    """Multiply in NumPy."""
    return tensor(codes.numpy() * scales.numpy())


@answers
def quantized_matmul(x: Tensor, codes: Tensor, scales: Tensor) -> Tensor:
    """Multiply codes by einsum."""
    x_codes, x_scales = (y.numpy() for y in quantize(x))
    product = np.einsum("nc,rc->nr", x_codes, codes.numpy(), dtype=np.int32)
    return tensor(product * x_scales * scales.numpy().T)


@answers
def count_bytes(codes: Tensor, scales: Tensor) -> int:
    """Return the bytes of both arrays."""
    return codes.numpy().nbytes + scales.numpy().nbytes
