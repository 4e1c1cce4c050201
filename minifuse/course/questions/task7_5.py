"""Questions of task 7.5: what a cache stores and copies, steps beside a full pass, and generated codes."""

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.dispatch import use_dispatch_hook
from ...tensors.creation import tensor
from ...tensors.tensor import Tensor
from ..strided import Array
from ..student import Student
from ..verdicts import Wrong
from .library import counting_backend, elementary_calls, elements_of


class Weights(NamedTuple):
    """The weights of a transformer: all that its functions need."""

    tokens: Array
    places: Array
    layers: tuple[tuple[Array, Array, Array, Array], ...]
    """Of each layer: those of q, k and v (3, width, heads * size), of the mixed values, and of two layers with a relu."""
    head: Array
    heads: int


class Session(NamedTuple):
    """Tokens that are appended to each layer of a cache, with a reset between two groups of them."""

    layers: int
    heads: int
    size: int
    counts: tuple[int, ...]
    """How many tokens each group has."""


class Decoding(NamedTuple):
    """Steps of several sequences: which ones get which codes, or are reset."""

    weights: Weights
    caches: int
    steps: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    """(sequences, their codes); a step without codes resets the caches of the sequences."""


class Generation(NamedTuple):
    """Prompts of a transformer, and the number of codes that follow each."""

    weights: Weights
    prompts: list[list[int]]
    length: int


class Model:
    """A transformer whose functions count their calls and rows. Its own calls of the library are not recorded."""

    def __init__(self, weights: Weights) -> None:
        self.tokens: Any = tensor(weights.tokens)
        self.places: Any = tensor(weights.places)
        self.head = tensor(weights.head)
        self.weights = [tuple(map(tensor, layer)) for layer in weights.layers]
        self.layers, self.heads = len(weights.layers), weights.heads
        self.size = weights.layers[0][0].shape[2] // weights.heads
        self.calls, self.rows = Counter[str](), Counter[str]()
        self.asked: list[list[int]] = []
        """The places of each step."""

    def count(self, name: str, rows: int) -> None:
        """Count a call."""
        self.calls[name] += 1
        self.rows[name] += rows

    def embed(self, codes: Sequence[int], places: Sequence[int]) -> Tensor:
        """Return the sum of the rows of codes and of places."""
        if len(codes) != len(places):
            raise Wrong(f"model.embed gets {len(codes)} codes and {len(places)} places")
        if any(not 0 <= place < self.places.shape[0] for place in places):
            raise Wrong(f"model.embed gets the places {list(places)}; there are {self.places.shape[0]}", kind="place")
        self.count("embed", len(codes))
        self.asked.append([int(place) for place in places])
        with use_dispatch_hook(None):
            x: Tensor = self.tokens[list(map(int, codes))] + self.places[list(map(int, places))]
            return x

    def project(self, layer: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values."""
        self.count("project", x.shape[0])
        with use_dispatch_hook(None):
            q, k, v = ((x @ self.weights[layer][0][i]).reshape(x.shape[0], self.heads, self.size) for i in range(3))
            return q, k, v

    def finish(self, layer: int, x: Tensor, mixed: Tensor) -> Tensor:
        """Return x plus the mixed values, then plus two layers."""
        self.count("finish", x.shape[0])
        if tuple(mixed.shape) != (x.shape[0], self.heads, self.size):
            expected = x.shape[0], self.heads, self.size
            raise Wrong(f"model.finish gets mixed of shape {tuple(mixed.shape)}, expected {expected}")
        _, out, up, down = self.weights[layer]
        with use_dispatch_hook(None):
            x = x + mixed.reshape(x.shape[0], self.heads * self.size) @ out
            y: Tensor = x + (x @ up).relu() @ down
            return y

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits."""
        self.count("logits", x.shape[0])
        with use_dispatch_hook(None):
            y: Tensor = x @ self.head
            return y


def pair_of(case: Session, layer: int, token: int) -> Array:
    """Return the key and the value of a token in a layer (2, heads, size): all its numbers differ."""
    shape = case.layers, case.heads, case.size
    key = token + 1 + np.arange(prod(shape)).reshape(shape)[layer] / 100
    return np.stack([key, -key])


def steps_of(case: Session) -> list[tuple[int, int, int]]:
    """Return each moment at which a cache is read: (tokens that were forgotten, tokens since, the layer that got the last).

    The layer of a reset is the last one.
    """
    found, first = list[tuple[int, int, int]](), 0
    for k, count in enumerate(case.counts):
        found += [(first, 0, case.layers - 1)] * bool(k)
        found += [(first, n, layer) for n in range(1, count + 1) for layer in range(case.layers)]
        first += count
    return found


def ask_session(student: Student, case: Session) -> object:
    """Return, for each of `steps_of`, the length of the cache and what it has; and how many elements Python read."""
    backend = counting_backend()
    with elementary_calls():
        backend.reads = 0
        cache = student.KeyValueCache(case.layers, case.heads, case.size)
        found = []
        for first, n, layer in steps_of(case):
            if n:
                cache.append(layer, *map(tensor, pair_of(case, layer, first + n - 1)))
            else:
                cache.reset()
            pairs = [cache.read(k) for k in range(case.layers)]
            found.append((len(cache), [tuple(map(elements_of, pair)) for pair in pairs]))
        return found, backend.reads


def ask_memory(student: Student, case: tuple[int, int, int]) -> object:
    """Append many tokens, and read each time.

    Return (elements that were written, storages that were read from, bytes of the cache, elements that Python read, the keys
    and values in the end). Token t has the numbers t + 1, and their negatives as its value.
    """
    count, heads, size = case
    backend = counting_backend()
    with elementary_calls() as recorder:
        backend.reads = 0
        pairs = [[tensor(np.full((heads, size), sign * (t + 1.0))) for sign in (1, -1)] for t in range(count)]
        start = recorder.live_bytes()
        cache = student.KeyValueCache(1, heads, size)
        seen: dict[int, object] = {}
        written = 0
        for pair in pairs:
            recorder.take()
            cache.append(0, *pair)
            for x in cache.read(0):
                seen.setdefault(id(x.buffer), x.buffer)
            written += sum(prod(shape) for call in recorder.take() for shape in call.outputs)
        live = recorder.live_bytes() - start
        return written, len(seen), live, backend.reads, tuple(map(elements_of, cache.read(0)))


def ask_attended(student: Student, case: tuple[Array, Array, Array]) -> object:
    """Return what a token gets."""
    backend = counting_backend()
    with elementary_calls():
        arguments = [tensor(x) for x in case]
        backend.reads = 0
        return elements_of(student.attend(*arguments)), backend.reads


def ask_decoded(student: Student, case: Decoding) -> object:
    """Return (logits, places, calls and rows of the model's functions) for each step; None for a reset."""
    with elementary_calls():
        model = Model(case.weights)
        caches = [student.KeyValueCache(model.layers, model.heads, model.size) for _ in range(case.caches)]
        found: list[Any] = []
        for chosen, codes in case.steps:
            if not codes:
                for k in chosen:
                    caches[k].reset()
                found.append(None)
                continue
            model.calls.clear()
            model.rows.clear()
            model.asked.clear()
            logits = student.decode_step(model, list(codes), [caches[k] for k in chosen])
            found.append((elements_of(logits), list(model.asked), dict(model.calls), dict(model.rows)))
        return found, [len(cache) for cache in caches]


def ask_work(student: Student, case: tuple[Weights, tuple[int, ...]]) -> object:
    """Return the multiply-adds and the elements of results of a step after each of some numbers of tokens."""
    weights, lengths = case
    with elementary_calls() as recorder:
        model = Model(weights)
        cache = student.KeyValueCache(model.layers, model.heads, model.size)
        found = []
        for length in range(max(lengths) + 1):
            recorder.take()
            student.decode_step(model, [length % 3], [cache])
            if length in lengths:
                found.append(sum(map(work_of, recorder.take())))
        return found


def work_of(call: Any) -> int:
    """Return the multiply-adds of a product, or the elements of the results of any other call."""
    elements = sum(map(prod, call.outputs))
    return elements * call.inputs[0][-1] if call.name == "matmul" and call.inputs else elements


def ask_generated(student: Student, case: Generation) -> object:
    """Return the codes, those of a second call and of each prompt alone, and facts of the first call.

    Facts are (steps, rows of each function of the model, calls of `choose`, tokens at place 0).
    """
    with elementary_calls():
        chosen = [0]

        def choose(logits: list[float]) -> int:
            chosen[0] += 1
            return int(np.argmax(logits))

        model = Model(case.weights)
        prompts = [list(prompt) for prompt in case.prompts]
        first = student.generate(model, prompts, case.length, choose)
        facts = model.calls["embed"], dict(model.rows), chosen[0], sum(places.count(0) for places in model.asked)
        if prompts != case.prompts:
            raise Wrong("generate changes the prompts; make new lists", kind="changed")
        again = student.generate(Model(case.weights), prompts, case.length, choose)
        alone = [student.generate(Model(case.weights), [prompt], case.length, choose)[0] for prompt in case.prompts]
        return first, again, alone, facts
