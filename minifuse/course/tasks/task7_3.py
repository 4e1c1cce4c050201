"""Task 7.3: attention with several heads and a causal mask, and the softmax that streams over blocks of keys."""

import math
from functools import partial
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import among, at_random
from ..check import in_turn
from ..library_checks import count_of, elements_of, expected_answer, library_check, peaks_at_most
from ..library_facts import LibraryRun, TensorCall
from ..questions.library import incoming_gradient
from ..questions.task7_3 import split_and_merge
from ..strided import Array
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

MASK, SOFTMAX, HEADS, ATTENTION, STREAM = (
    "a query sees its own place and those before it",
    "weights are right for scores of any size, and 0 where the mask is False",
    "heads are split as a view, and merged with one copy",
    "attention is the weighted mean of values, with gradients of q, k and v",
    "a stream over blocks of keys has the same result, and never all scores",
)
SCORES = ((3,), (1, 4), (2, 3), (2, 2, 4))
FACTORS = (1.0, 1.0, 30.0, 1e3, 1e9)
"""Of scores: exp overflows above 709."""
HIDDEN = (math.inf, -math.inf, math.nan, 1e300)
SPLITS = (((2, 4), 2), ((3, 4), 2), ((2, 3, 6), 3), ((2, 1, 4), 4), ((2, 5, 3), 1), ((2, 2, 3, 4), 2), ((4, 4), 4))
MERGES = ((2, 2, 2), (2, 3, 2), (1, 4, 3), (2, 3, 1, 2), (2, 2, 3, 2))
ATTENTIONS = (((1, 2), (1, 2), 2), ((3, 2), (3, 2), 2), ((2, 3, 4), (2, 5, 4), 3), ((2, 2, 4, 3), (2, 2, 4, 3), 3))
"""(shape of q, shape of k, width of v)."""
STREAMS = (
    (((1, 1), (2, 1), 1), (1, 50)),
    (((1, 1), (3, 1), 1), (2,)),
    (((2, 1), (2, 1), 1), (2, 1)),
    (((2, 1), (1, 1), 1), (1, 50)),
    (((3, 2), (3, 2), 2), (2, 1, 3)),
    (((2, 4, 3), (2, 7, 3), 2), (2, 3, 1, 7)),
    (((5, 4), (3, 4), 4), (1, 2, 3)),
)
"""(sizes, blocks): many blocks leave a rest."""
LONG_STREAMS = ((((128, 4), (256, 4), 4), (16, 8, 12)), (((2, 64, 8), (2, 200, 8), 8), (16, 12)))
Size = tuple[tuple[int, ...], tuple[int, ...], int]
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
SLACK = 8192
"""Bytes for settings, and for the rounding of small sizes."""


def numbers(random: Random, *shape: int) -> Array:
    """Draw an array of quarters."""
    return np.asarray(np.random.default_rng(random.getrandbits(32)).integers(-9, 10, shape) / 4.0)


def draw_mask(random: Random, *shape: int) -> Array:
    """Draw a mask; some rows have no True."""
    draw = np.random.default_rng(random.getrandbits(32))
    mask = draw.random(shape) < random.choice((0.5, 0.8))
    if random.random() < 0.4:
        mask[(..., draw.integers(shape[-2]), slice(None)) if len(shape) > 1 else ...] = False
    return np.asarray(mask)


def mask_call(random: Random) -> TensorCall:
    """Draw a call of causal_mask."""
    return TensorCall("causal_mask", random.choice(((1, 1), (3, 3), (2, 5), (1, 4), (4, 2), (6, 6), (3, 4))))


def softmax_call(random: Random) -> TensorCall:
    """Draw a call of softmax, in which what is masked may be anything."""
    shape, factor = random.choice(SCORES), random.choice(FACTORS)
    scores = numbers(random, *shape) * factor - random.choice((0.0, 0.0, 2 * factor))
    if random.random() < 0.25:
        return TensorCall("softmax", (scores, *random.choice(((), (None,)))), random.randrange(99))
    mask = draw_mask(random, *(shape if random.random() < 0.7 or len(shape) == 1 else shape[-2:]))
    if random.random() < 0.3:
        scores = np.where(mask, scores, random.choice(HIDDEN))
    return TensorCall("softmax", (scores, mask), random.randrange(99))


def counted(shape: tuple[int, ...]) -> Array:
    """Return an array of 0, 1, 2, ..."""
    return np.arange(prod(shape), dtype=np.float64).reshape(shape)


def split_call(size: tuple[tuple[int, ...], int], random: Random) -> TensorCall:
    """Draw a call of split_heads."""
    return TensorCall("split_heads", (counted(size[0]), size[1]), random.randrange(99))


def merge_call(shape: tuple[int, ...], random: Random) -> TensorCall:
    """Draw a call of merge_heads."""
    return TensorCall("merge_heads", (counted(shape),), random.randrange(99))


def both_call(size: tuple[tuple[int, ...], int], random: Random) -> TensorCall:
    """Draw a call that splits, doubles and merges."""
    return split_call(size, random)._replace(slot="x, heads: merge_heads(split_heads(x, heads) * 2)")


def draw_arguments(size: Size, random: Random) -> tuple[Array, Array, Array]:
    """Draw q, k and v; some scores are large."""
    q, k, width = size
    return numbers(random, *q) * random.choice((1.0, 1.0, 100.0)), numbers(random, *k), numbers(random, *k[:-1], width)


def attention_call(size: Size, random: Random) -> TensorCall:
    """Draw a call of attention."""
    q, k, v = draw_arguments(size, random)
    drawn = draw_mask(random, q.shape[-2], k.shape[-2])
    mask = random.choice(((), (None,), (drawn,), (drawn,)))
    return TensorCall("attention", (q, k, v, *mask), random.randrange(99))


def stream_call(size: tuple[Size, tuple[int, ...]], random: Random) -> TensorCall:
    """Draw a call of streaming_attention."""
    q, k, v = draw_arguments(size[0], random)
    if random.random() < 0.4:
        q = q * np.where(np.arange(q.shape[-2]) % 2, 1.0, 1e4)[:, None]  # rows whose scores are far apart
    causal = random.choice(((True,), (True,), (False,), ()))
    return TensorCall("streaming_attention", (q, k, v, random.choice(size[1]), *causal), is_constant=True)


def calls(draw: Any) -> "SearchStrategy[TensorCall]":
    """Return the strategy of calls that a function draws."""
    return at_random(draw)


def sized(draw: Any, sizes: tuple[Any, ...]) -> "SearchStrategy[TensorCall]":
    """Return the strategy of calls that a function draws of a size, which is the first one in a smallest case."""
    from hypothesis import strategies as st

    return st.builds(lambda size, seed: draw(size, Random(seed)), among(*sizes), st.integers(0, 2**48))


# Rules.


def is_view(call: TensorCall, run: LibraryRun) -> None:
    """Ask that nothing is copied."""
    if run.forward or not all(run.are_views):
        raise Wrong(f"{call.slot} copies elements; reshape and permute of x alone are views", kind="copies")


def copies_once(call: TensorCall, run: LibraryRun) -> None:
    """Ask that each element is written once."""
    if elements_of(run.forward) > call.arguments[0].size:
        raise Wrong(f"{call.slot} copies elements more than once; permute first, then reshape", kind="copies")


def stream_bytes(call: TensorCall) -> int:
    """Return the bytes that a stream may have: a few arrays of a block of scores, and of the result."""
    q, _, v, block, *_ = call.arguments
    return int(9 * prod(q.shape[:-1]) * (6 * block + 4 * v.shape[-1] + 2 * q.shape[-1] + 16)) + SLACK


def passes_once(call: TensorCall, run: LibraryRun) -> None:
    """Ask that each block is multiplied once with q, and once with v, and that no product is larger than a block."""
    q, k, _, block, *_ = call.arguments
    blocks = -(-k.shape[-2] // block)
    if (count := count_of(run.forward, "matmul")) > 2 * blocks:
        raise Wrong(f"{count} products for {blocks} blocks, expected two for each: a block is read once", kind="passes")
    many = [c for c in run.forward if scores_like(c.outputs, q, k)] if blocks > 1 else []
    if many:
        first = next((c for c in many if c.name not in COMPARISONS), many[0])
        kind = "peak" if first.name == "matmul" else "mask" if first.name in COMPARISONS else "large"
        name = COMPARISONS.get(first.name, first.name)
        raise Wrong(
            f"{name} makes an array of shape {first.outputs[0]}, as large as all scores of a head; a block has {block} "
            f"key{'s' * (block > 1)}",
            kind=kind,
        )


def scores_like(outputs: tuple[tuple[int, ...], ...], q: Array, k: Array) -> bool:
    """Return whether a call has an array of all scores."""
    return any(shape[-2:] in ((len_q := q.shape[-2], k.shape[-2]), (k.shape[-2], len_q)) for shape in outputs)


# Wrong answers.


def filled(call: TensorCall) -> Any:
    """Return the answer of softmax if masked scores are -1e9."""
    scores, *rest = call.arguments
    mask = rest[0] if rest and rest[0] is not None else np.True_
    seen = np.where(mask, scores, -1e9)
    weights = np.exp(seen - seen.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    g = incoming_gradient(call.gradient_seed or 0, scores.shape)
    return (weights,), (np.where(mask, weights * (g - (g * weights).sum(-1, keepdims=True)), 0.0),)


def has_nan(wrong: Wrong) -> bool:
    """Return whether a result or a gradient is nan where the right one is not."""
    return not wrong.kind and any(np.isnan(x).any() for part in wrong.got for x in part if x is not None)


def is_nan_without_keys(wrong: Wrong) -> bool:
    """Return whether a result or a gradient of softmax is nan, or rows of a stream that see no key."""
    if not has_nan(wrong) or not has_empty_row(wrong.case):
        return False
    if wrong.case.slot == "softmax":
        return True
    q, k, *_ = wrong.case.arguments
    return not np.isnan(wrong.got[0][0][..., q.shape[-2] - k.shape[-2] :, :]).any()


def has_empty_row(call: TensorCall) -> bool:
    """Return whether a row of the mask has no True, or a query of a stream is before the first key."""
    if call.slot == "streaming_attention":
        q, k, *_ = call.arguments
        return call.arguments[-1] is True and q.shape[-2] > k.shape[-2]
    mask = call.arguments[-1]
    return isinstance(mask, np.ndarray) and mask.dtype == bool and not mask.any(-1).all()


def triangle(call: TensorCall, *, turned: bool = False) -> Any:
    """Return the mask that sees later places, or the one of the first places."""
    rows, columns = call.arguments
    mask = np.arange(columns) <= np.arange(rows)[:, None] + (columns - rows if turned else 0)
    return (np.triu(np.ones((rows, columns), bool), columns - rows) if turned else mask,), ()


def of_first_places(call: TensorCall) -> Any:
    """Return the mask, or the stream, of queries at places 0, 1, 2, ..."""
    if call.slot == "causal_mask":
        return triangle(call)
    q, k, v, _, *causal = call.arguments
    mask = np.tri(q.shape[-2], k.shape[-2], dtype=bool) if causal and causal[0] else None
    return expected_answer(TensorCall("attention", (q, k, v, mask), is_constant=True))


def unpermuted(call: TensorCall) -> Any:
    """Return the answer of split_heads without a permutation."""
    x, heads = call.arguments
    *front, length, width = x.shape
    shape = (*front, heads, length, width // heads)
    return (x.reshape(shape),), (incoming_gradient(call.gradient_seed or 0, shape).reshape(x.shape),)


def rescaled(call: TensorCall) -> Any:
    """Return the answer of attention without the scale."""
    q, *rest = call.arguments
    factor = q.shape[-1] ** 0.5
    values, (first, *others) = expected_answer(call._replace(arguments=(q * factor, *rest)))
    return values, (first * factor, *others)


def streamed(call: TensorCall, *, repairs: bool = False, is_common: bool = False) -> Any:
    """Return the answer of a stream whose sums are not corrected, or whose rows have one largest score."""
    q, k, v, block, *causal = call.arguments
    rows, columns = q.shape[-2], k.shape[-2]
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if causal and causal[0]:
        scores = np.where(np.arange(columns) <= np.arange(columns - rows, columns)[:, None], scores, -np.inf)
    largest, total, y = np.float64(-np.inf), 0.0, np.zeros((*q.shape[:-1], v.shape[-1]))
    for first in range(0, columns, block):
        part = scores[..., first : first + block]
        before, largest = largest, np.maximum(largest, part.max(None if is_common else -1, keepdims=True))
        center = np.where(largest == -np.inf, 0.0, largest)
        weights, repair = np.exp(part - center), np.exp(before - center) if repairs else 1.0
        total = total * repair + weights.sum(-1, keepdims=True)
        y = y * repair + weights @ v[..., first : first + block, :]
    return (y / np.where(total == 0, 1.0, total),), ()


NAMES = ("q", "k", "v", "mask")
STREAM_NAMES = ("q", "k", "v", "block", "is_causal")
TASK = Task(
    id="7.3",
    title="Attention",
    file="attention.py",
    slots=("causal_mask", "softmax", "split_heads", "merge_heads", "attention", "streaming_attention"),
    points=8,
    text=(
        "Each place takes a weighted mean of the values of all places; a causal mask hides the later ones. Write the "
        "softmax that neither overflows nor divides 0 by 0, several heads as views, and attention. Then compute the same in "
        "one pass over blocks of keys, without ever holding all scores: the idea of FlashAttention."
    ),
    hints=(
        "Subtract the largest score of a row before exp; of a row that is all -inf subtract 0. A sum that was computed with "
        "a smaller largest score is wrong by one factor, exp(before - largest): multiply, and it is right.",
        "softmax: where(mask, scores, -inf), subtract, exp, divide by the sum, or by 1 if it is 0. Heads: reshape the last "
        "dim to (heads, width), then permute. Stream: keep largest, total and y of each row; for a block, correct total and "
        "y by exp(before - largest), then add what the block gives.",
        "docs/course/7.3-attention.md; docs/guide/attention.md; minifuse/nn/attention.py.",
    ),
    reads=("docs/course/7.3-attention.md", "docs/guide/attention.md", "minifuse/nn/attention.py"),
    checks=(
        library_check(MASK, partial(calls, mask_call), names=("rows", "columns"), share=0.3),
        library_check(SOFTMAX, partial(calls, softmax_call), names=("scores", "mask")),
        in_turn(
            HEADS,
            [
                library_check(HEADS, partial(sized, split_call, SPLITS), (is_view,), names=("x", "heads"), share=0.3),
                library_check(HEADS, partial(sized, merge_call, MERGES), (copies_once,), names=("x",), share=0.2),
                library_check(HEADS, partial(sized, both_call, SPLITS), combine=split_and_merge, share=0.1),
            ],
        ),
        library_check(ATTENTION, partial(sized, attention_call, ATTENTIONS), names=NAMES, share=0.5),
        library_check(
            STREAM,
            partial(sized, stream_call, STREAMS),
            (passes_once, peaks_at_most(stream_bytes, "some blocks of scores, and some arrays like the result")),
            large=partial(sized, stream_call, LONG_STREAMS),
            names=STREAM_NAMES,
            share=0.5,
        ),
    ),
    mistakes=(
        Mistake(
            "later places are seen, and earlier ones are not",
            "Key j is seen by query i if j <= i: rows are queries, columns are keys.",
            wrong_answer=lambda c: triangle(c, turned=True),
            check=MASK,
        ),
        Mistake(
            "the queries are taken for the first places",
            "With fewer queries than keys, the queries are the last places: query i is at place columns - rows + i.",
            wrong_answer=of_first_places,
        ),
        Mistake(
            "a row without any True becomes nan",
            "All its scores are -inf: -inf less -inf is nan, and so is 0 / 0. Subtract 0, and divide by 1, in such a row.",
            when=is_nan_without_keys,
        ),
        Mistake(
            "the largest score is not subtracted",
            "exp overflows above 709, and is 0 below -745. After the subtraction, the largest exponent is 0.",
            when=has_nan,
            check=SOFTMAX,
        ),
        Mistake(
            "masked scores are a large number below 0",
            "In a row without True they are all equal, and become equal weights; and other scores may be smaller. Use -inf.",
            wrong_answer=filled,
            check=SOFTMAX,
        ),
        Mistake(
            "a reshape is taken for a permutation",
            "Heads are beside each other in the last dim. Split it into (heads, width), then move heads before length by "
            "permute.",
            wrong_answer=unpermuted,
            check=HEADS,
        ),
        Mistake(
            "heads are copied",
            "Splitting a dim and permuting move no element. Only merging has to write.",
            when=lambda w: w.kind == "copies",
            check=HEADS,
        ),
        Mistake(
            "scores are not divided by the root of the width",
            "A dot product of width numbers grows like sqrt(width).",
            wrong_answer=rescaled,
            check=ATTENTION,
        ),
        Mistake(
            "sums are not corrected for a larger score",
            "total and y were computed with the largest score so far. If a larger one comes, multiply both by exp(before - "
            "largest).",
            wrong_answer=streamed,
            check=STREAM,
        ),
        Mistake(
            "all rows have one largest score",
            "Weights of a row whose scores are far below it are all 0. Each row needs its own: x.max(-1, keepdim=True).",
            wrong_answer=lambda c: streamed(c, repairs=True, is_common=True),
            check=STREAM,
        ),
        Mistake(
            "the causal mask is made for all keys",
            "Compare the places of one block of keys with the places of the queries, inside the loop.",
            when=lambda w: w.kind == "mask",
            check=STREAM,
        ),
        Mistake(
            "all scores are held at once",
            "Multiply q with one block of keys, use the scores, and let go of them before the next block.",
            when=lambda w: w.kind == "peak",
            check=STREAM,
        ),
    ),
    allows=frozenset({"minifuse.course.elementary"}),
)
