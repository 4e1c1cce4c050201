"""Cases of task 7.5: sessions with a cache, arguments of attention, steps of several sequences, and prompts."""

from random import Random
from typing import TYPE_CHECKING

import numpy as np

from ..core.wording import format_count
from .cases import among
from .questions.task7_5 import Decoding, Generation, Session, Weights, pair_of
from .strided import Array

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

VOCABULARY, PLACES = 5, 48
LONG_SESSION = Session(1, 1, 1, (70,))
Attention = tuple[Array, Array, Array]
"""(query, keys, values)."""


def sessions() -> "SearchStrategy[Session]":
    """Draw appends and resets."""
    from hypothesis import strategies as st

    counts = st.lists(st.integers(1, 12) | among(20, 40), min_size=1, max_size=3).map(tuple)
    return st.builds(Session, among(1, 2), among(1, 2), among(1, 3), counts)


def describe_session(case: Session) -> str:
    """Return a session as text."""
    steps = ", then reset(), then ".join(format_count(n, "token") for n in case.counts)
    key, value = pair_of(case, 0, 0).tolist()
    return (
        f"KeyValueCache(layers={case.layers}, heads={case.heads}, size={case.size}), then {steps}. "
        f"Token 1 has the key {key} and the value {value}, token 2 those numbers and 1 more, ..."
    )


def attentions() -> "SearchStrategy[Attention]":
    """Draw the arguments of `attend`."""
    from hypothesis import strategies as st

    sizes = among((1, 2, 1), (1, 2, 4), (2, 1, 3), (2, 4, 3), (1, 40, 3))
    return st.builds(attention_of, sizes, among(1, 1, 1, 40, 1000), st.integers(0, 2**32))


def attention_of(sizes: tuple[int, int, int], scale: int, seed: int) -> Attention:
    """Return a query, keys and values; some scores are large."""
    (heads, tokens, size), draw = sizes, np.random.default_rng(seed)
    query, keys, values = (draw.integers(-6, 7, shape) / 2 for shape in ((heads, size), *[(heads, tokens, size)] * 2))
    return query * scale, keys, values


def describe_attention(case: Attention) -> str:
    """Return a call of `attend` as text."""
    names = zip(("query", "keys", "values"), case, strict=True)
    shown = (f"{name}={x.tolist()}" if x.size <= 24 else f"{name} of shape {x.shape}" for name, x in names)
    return f"attend({', '.join(shown)})"


def draw_weights(random: Random, layers: int = 2, heads: int = 2, size: int = 3) -> Weights:
    """Return drawn weights."""
    draw, width = np.random.default_rng(random.getrandbits(32)).normal, 4
    one = tuple(
        (
            draw(size=(3, width, heads * size)) * 0.8,
            draw(size=(heads * size, width)) * 0.5,
            draw(size=(width, 6)) * 0.5,
            draw(size=(6, width)) * 0.5,
        )
        for _ in range(layers)
    )
    return Weights(draw(size=(VOCABULARY, width)), draw(size=(PLACES, width)), one, draw(size=(width, VOCABULARY)), heads)


def decodings() -> "SearchStrategy[Decoding]":
    """Draw steps of some sequences."""
    from hypothesis import strategies as st

    return st.builds(decoding_of, among(1, 2), among(1, 2), st.integers(1, 7), st.integers(0, 2**48))


def decoding_of(layers: int, count: int, length: int, seed: int) -> Decoding:
    """Return steps of sequences that begin at different times, stop, and are reset."""
    random, steps = Random(seed), list[tuple[tuple[int, ...], tuple[int, ...]]]()
    for _ in range(length):
        chosen = tuple(random.sample(range(count), random.randint(1, count)))
        is_reset = bool(steps) and random.random() < 0.15
        steps.append((chosen, () if is_reset else tuple(random.randrange(VOCABULARY) for _ in chosen)))
    return Decoding(draw_weights(random, layers), count, tuple(steps))


def long_decoding() -> Decoding:
    """Return 40 steps of a sequence, which another one joins at step 30."""
    random = Random(7)
    who = [(0,)] * 30 + [(0, 1)] * 10
    steps = tuple((chosen, tuple(random.randrange(VOCABULARY) for _ in chosen)) for chosen in who)
    return Decoding(draw_weights(random, 1), 2, steps)


def describe_decoding(case: Decoding) -> str:
    """Return steps as text."""
    shown = [f"codes {codes} to sequences {who}" if codes else f"reset of sequences {who}" for who, codes in case.steps]
    layers = len(case.weights.layers)
    return f"{format_count(layers, 'layer')}, {case.weights.heads} heads; " + ", then ".join(shown)


def generations() -> "SearchStrategy[Generation]":
    """Draw prompts."""
    from hypothesis import strategies as st

    lengths = st.lists(st.integers(1, 3), min_size=1, max_size=2)
    return st.builds(generation_of, among(1, 2), lengths, among(1, 2, 4, 0), st.integers(0, 2**48))


def generation_of(layers: int, lengths: list[int], count: int, seed: int) -> Generation:
    """Return prompts of some lengths."""
    random = Random(seed)
    prompts = [[random.randrange(VOCABULARY) for _ in range(length)] for length in lengths]
    return Generation(draw_weights(random, layers), prompts, count)


def long_generation() -> Generation:
    """Return a long and a short prompt, with many codes to generate."""
    random = Random(7)
    return Generation(draw_weights(random, 1), [[random.randrange(VOCABULARY) for _ in range(n)] for n in (20, 2)], 20)


def describe_generation(case: Generation) -> str:
    """Return prompts as text."""
    return f"prompts {case.prompts}, count {case.length}"
