"""Task 7.5: the key-value cache."""

from collections.abc import Callable
from itertools import chain
from math import log2
from random import Random
from typing import Any

import numpy as np

from ..cache_cases import (
    LONG_SESSION,
    Attention,
    attentions,
    decodings,
    describe_attention,
    describe_decoding,
    describe_generation,
    describe_session,
    draw_weights,
    generations,
    long_decoding,
    long_generation,
    sessions,
)
from ..check import agreement, check_each, check_given, close, in_turn
from ..questions.task7_5 import (
    Decoding,
    Generation,
    Session,
    Weights,
    ask_attended,
    ask_decoded,
    ask_generated,
    ask_memory,
    ask_session,
    ask_work,
    pair_of,
    steps_of,
)
from ..strided import Array
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

STORED, MEMORY, ATTENDED, STEPS, WORK, GENERATED = (
    "a cache has the keys and values in their order, and none after a reset",
    "tokens are copied a few times at most, and reading copies nothing",
    "a token gets the mean of the values, weighted by softmax of its scores",
    "each step has the logits of the full pass, for sequences of any lengths",
    "the work of a step grows in proportion to the number of tokens",
    "all prompts advance together, each token is fed once, nothing leaks",
)
MAX_WRITTEN, MAX_KEPT = 8, 5
"""Elements that are written, and that are kept, relative to those of the keys and values."""
MAX_READS = 8
MAX_WORK = 16 * (2 * 2 * 3 + 2 * 20) + 200  # of a step after 16 tokens, two heads of three numbers


def check_session(case: Session, answer: Any) -> None:
    """Raise `Wrong` if a cache has other keys, values or tokens than were appended."""
    found, reads = answer
    text, steps = describe_session(case), steps_of(case)
    for (first, n, latest), (length, pairs) in zip(steps, found, strict=True):
        when = f"after append({latest}, ...) of token {first + n}" if n else "after reset()"
        counts = [n - (k > latest) for k in range(case.layers)]
        if length != counts[-1]:
            why = f": the last layer, {case.layers - 1}, has no more yet" if counts[-1] < n else ""
            raise Wrong(f"{when} len(cache) is {length}, expected {counts[-1]}{why}", case_text=text, kind="length")
        for layer, (count, pair) in enumerate(zip(counts, pairs, strict=True)):
            for kind, got in enumerate(pair):
                right = np.zeros((case.heads, count, case.size))
                for token in range(count):
                    right[:, token] = pair_of(case, layer, first + token)[kind]
                compare_stored(f"{when} the {('keys', 'values')[kind]} of read({layer})", text, got, right, bool(n))
    without_reads(case, (None, reads))


def compare_stored(what: str, text: str, got: Array, right: Array, is_append: bool) -> None:
    """Raise `Wrong` if what was read is not what was appended."""
    if got.shape != right.shape:
        expected = f"{right.shape}: (heads, tokens, size)"
        kind = "shape" if is_append else "reset"
        raise Wrong(f"{what} have shape {got.shape}, expected {expected}", case_text=text, kind=kind)
    if got.dtype != right.dtype:
        raise Wrong(f"{what} have dtype {got.dtype}, expected {right.dtype}", case_text=text, kind="dtype")
    if not close(got, right):
        head, _, number = (int(k) for k in np.argwhere(~np.isclose(got, right, rtol=1e-9))[0])
        where = f"[{head}, :, {number}]" if right.shape[0] * right.shape[2] > 1 else ""
        expected, found = (x[head, :, number].tolist() for x in (right, got))
        raise Wrong(
            f"{what} are wrong; shown is one number of each token{where}", case_text=text, expected=expected, got=found
        )


def are_zeros(wrong: Wrong) -> bool:
    """Return whether the newest token was read right, and each one that is wrong as zeros."""
    got, expected = np.array(wrong.got), np.array(wrong.expected)
    return bool(got.shape == expected.shape and got[-1] == expected[-1] and (got[~np.isclose(got, expected)] == 0).all())


def without_reads(case: object, answer: Any) -> object:
    """Return an answer without the number of elements that Python read; raise `Wrong` if there are many."""
    found, reads = answer
    if reads > MAX_READS:
        raise Wrong(f"Python reads {reads:,} elements (tolist and item do); compute with tensors", kind="reads")
    return found


def check_memory(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a cache copies its tokens again and again, or keeps far more memory than it needs."""
    for count, heads, size in ((240, 2, 3),):
        written, storages, nbytes, reads, found = student.ask(ask_memory, (count, heads, size))
        text, needed = f"{count} tokens, {heads} heads of {size}; the cache is read after each", 2 * count * heads * size
        without_reads(text, (None, reads // count))
        if written > MAX_WRITTEN * needed:
            raise Wrong(
                f"{written:,} elements are written or copied for {needed:,}; at most {MAX_WRITTEN} times as many may be",
                case_text=text,
                kind="copies",
            )
        if storages > 2 * (log2(count) + 3):
            raise Wrong(f"read returns views of {storages} different memories, expected few", case_text=text, kind="copies")
        if nbytes > 8 * MAX_KEPT * needed:
            raise Wrong(
                f"the cache keeps {nbytes:,} bytes for {8 * needed:,} bytes of keys and values; at most {MAX_KEPT} times as "
                f"many may be, {8 * MAX_KEPT * needed:,}",
                case_text=text,
                kind="kept",
            )
        for name, got, sign in zip(("keys", "values"), found, (1, -1), strict=True):
            right = np.zeros((heads, count, size)) + sign * np.arange(1.0, count + 1)[:, None]
            compare_stored(f"after {count} tokens the {name} of read(0)", text, got, right, True)


def attended(case: Attention, *, is_scaled: bool = True) -> Array:
    """Return what a token gets."""
    query, keys, values = case
    scores = np.einsum("hs,hts->ht", query, keys) / (np.sqrt(query.shape[-1]) if is_scaled else 1)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(np.einsum("ht,hts->hs", powers / powers.sum(-1, keepdims=True), values))


def full_pass(weights: Weights, codes: list[int], *, sees_itself: bool = True) -> Array:
    """Return the logits of all places (length, vocabulary)."""
    x, length = weights.tokens[codes] + weights.places[: len(codes)], len(codes)
    for project, out, up, down in weights.layers:
        q, k, v = (x @ w for w in project)
        q, k, v = (y.reshape(length, weights.heads, -1).transpose(1, 0, 2) for y in (q, k, v))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        is_past = np.tri(length, k=0 if sees_itself else -1, dtype=bool)
        is_past[0, 0] = True
        powers = np.where(is_past, np.exp(scores - scores.max(-1, keepdims=True)), 0.0)
        mixed = (powers / powers.sum(-1, keepdims=True)) @ v
        x = x + mixed.transpose(1, 0, 2).reshape(length, -1) @ out
        x = x + np.maximum(x @ up, 0.0) @ down
    return np.asarray(x @ weights.head)


def check_decoded(case: Decoding, answer: Any) -> None:
    """Raise `Wrong` if a step has other logits than the full pass, or calls the model for other places or rows."""
    (found, lengths), text = answer, describe_decoding(case)
    sequences: list[list[int]] = [[] for _ in range(case.caches)]
    layers = len(case.weights.layers)
    for number, ((chosen, codes), step) in enumerate(zip(case.steps, found, strict=True)):
        if not codes:
            for k in chosen:
                sequences[k] = []
            continue
        places = [len(sequences[k]) for k in chosen]
        for k, code in zip(chosen, codes, strict=True):
            sequences[k].append(code)
        logits, asked, calls, rows = step
        here = f"{text}; step {number}"
        if rows.get("project", 0) > layers * len(chosen):
            raise Wrong(
                f"{rows['project']} rows are projected for {len(chosen)} tokens in {layers} layers; the keys of earlier "
                "tokens are in the cache",
                case_text=here,
                kind="rows",
            )
        if list(chain(*asked)) != places:
            raise Wrong(f"tokens have wrong places: {asked}", case_text=here, expected=[places], kind="places")
        expected_calls = {"embed": 1, "project": layers, "finish": layers, "logits": 1}
        if calls != expected_calls:
            raise Wrong(
                "the model is not called for all sequences at once", case_text=here, expected=expected_calls, got=calls
            )
        expected = np.array([full_pass(case.weights, sequences[k])[-1] for k in chosen])
        if not close(logits, expected):
            own = np.array([full_pass(case.weights, sequences[k], sees_itself=False)[-1] for k in chosen])
            raise Wrong(
                "the logits are not those of the full pass",
                case_text=here,
                expected=expected,
                got=logits,
                kind="itself" if close(logits, own) else "",
            )
    if lengths != list(map(len, sequences)):
        raise Wrong("caches have wrong lengths", case_text=text, expected=list(map(len, sequences)), got=lengths)


def check_work(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if the work of a step grows faster than the number of tokens."""
    early, late = (5, 6, 7), (13, 14, 15)  # some caches grow at one of them
    found = student.ask(ask_work, (draw_weights(Random(effort.seed or 0), 1), (*early, *late)))
    few, many = min(found[: len(early)]), min(found[len(early) :])
    if many > 2.6 * few or many > MAX_WORK:
        raise Wrong(
            f"a step takes {few:,} multiply-adds and elements after {early[0]} tokens, and {many:,} after {late[0]}; it "
            "should grow in proportion to the tokens, by two products of a key and about ten elements for each",
            kind="work",
        )


def check_generated(case: Generation, answer: Any) -> None:
    """Raise `Wrong` if codes are not the likeliest ones of full passes, or are computed with more steps than needed."""
    first, again, alone, (steps, rows, chosen, beginnings) = answer
    text, expected = describe_generation(case), list[list[int]]()
    for prompt in case.prompts:
        codes = list(prompt)
        for _ in range(case.length):
            codes.append(int(np.argmax(full_pass(case.weights, codes)[-1])))
        expected.append(codes[len(prompt) :])
    for found in (first, again, alone):
        if found != expected:
            is_leak = bool(case.length and beginnings < len(case.prompts)) or not first == again == alone
            message = "codes depend on other prompts or on earlier calls" if is_leak else "codes are wrong"
            raise Wrong(message, case_text=text, expected=expected, got=found, kind="leak" if is_leak else "")
    longest = max(map(len, case.prompts)) + case.length - 1 if case.length else 0
    needed = sum(map(len, case.prompts)) + (case.length - 1) * len(case.prompts) if case.length else 0
    if rows.get("embed", 0) > needed:
        raise Wrong(f"{rows['embed']} tokens are fed, expected {needed}", case_text=text, kind="rows")
    if steps > longest:
        raise Wrong(
            f"{steps} steps are taken, expected {longest}: all sequences advance together", case_text=text, kind="steps"
        )
    if chosen != case.length * len(case.prompts):
        raise Wrong(f"choose is called {chosen} times, expected {case.length * len(case.prompts)}", case_text=text)


def has_kind(*kinds: str) -> Callable[[Wrong], bool]:
    """Return a function that says whether a failure is of one of these kinds."""
    return lambda wrong: wrong.kind in kinds


def overflows(wrong: Wrong) -> bool:
    """Return whether the answer is not finite."""
    return wrong.got is not None and not np.isfinite(wrong.got).all()


TASK = Task(
    id="7.5",
    title="The key-value cache",
    file="generation.py",
    slots=("KeyValueCache", "attend", "decode_step", "generate"),
    points=6,
    text=(
        "A transformer that generates text computes the keys and values of all earlier tokens again for each new one. Keep "
        "them: write the cache, attention of one token, a step for sequences of different lengths, and generation."
    ),
    hints=(
        "Attention is causal: the keys and values of a token do not depend on later ones, so they never change. Only the "
        "new token is projected; its query meets the keys that are stored, its own among them.",
        "KeyValueCache: memory with more room than tokens; if it is full, memory of twice the size and one copy. read "
        "returns a slice of it. decode_step: places are the lengths of the caches; in each layer project all, append, "
        "attend, stack. generate: feed each sequence its next code until it has prompt + count codes.",
        "docs/course/7.5-key-value-cache.md; generate in minifuse/recipes/gpt.py has no cache: compare.",
    ),
    reads=("docs/course/7.5-key-value-cache.md", "docs/guide/recipes.md"),
    checks=(
        in_turn(
            STORED,
            (
                check_each(STORED, sessions, ask_session, check_session, describe=describe_session, share=0.25),
                check_given(STORED, [LONG_SESSION], ask_session, check_session, describe=describe_session),
            ),
        ),
        Check(MEMORY, check_memory),
        agreement(ATTENDED, attentions, ask_attended, attended, read=without_reads, describe=describe_attention, share=0.6),
        in_turn(
            STEPS,
            (
                check_each(STEPS, decodings, ask_decoded, check_decoded, describe=describe_decoding, share=0.4),
                check_given(STEPS, [long_decoding()], ask_decoded, check_decoded, describe=describe_decoding),
            ),
        ),
        Check(WORK, check_work),
        in_turn(
            GENERATED,
            (
                check_each(GENERATED, generations, ask_generated, check_generated, describe=describe_generation, share=0.2),
                check_given(GENERATED, [long_generation()], ask_generated, check_generated, describe=describe_generation),
            ),
        ),
    ),
    mistakes=(
        Mistake(
            "old keys are not copied into the larger memory",
            "New memory has zeros in it. Copy all keys and values of the old memory to the same places of the new one.",
            when=are_zeros,
            check=STORED,
        ),
        Mistake(
            "all tokens are copied for each new one",
            "cat and stack make new memory. Keep memory with room for more tokens, and write into a slice of it.",
            when=has_kind("copies"),
            check=MEMORY,
        ),
        Mistake(
            "scores are not divided by the root of size",
            "A product of size numbers grows with the root of size: divide by math.sqrt(size).",
            wrong_answer=lambda c: attended(c, is_scaled=False),
            check=ATTENDED,
        ),
        Mistake(
            "exp overflows",
            "Subtract the largest score first: the shares stay the same.",
            when=overflows,
            check=ATTENDED,
        ),
        Mistake(
            "earlier tokens are projected again",
            "Their keys and values are in the cache: pass only the new token to the model.",
            when=has_kind("rows"),
            check=STEPS,
        ),
        Mistake(
            "tokens get wrong places",
            "The place of a token is the number of tokens in its own cache before it; each sequence has its own.",
            when=has_kind("places", "place"),
            check=STEPS,
        ),
        Mistake(
            "the new token does not see itself",
            "Append its key and value before you attend: a token attends to itself, too.",
            when=lambda wrong: wrong.kind == "itself" or "has no elements along dim" in wrong.message,
            check=STEPS,
        ),
        Mistake(
            "reset leaves tokens in a layer",
            "Each layer has its own keys and values: forget those of all layers.",
            when=lambda wrong: wrong.kind == "reset",
            check=STORED,
        ),
        Mistake(
            "a cache is shared by several prompts",
            "Make a cache for each prompt in each call, or reset it.",
            when=has_kind("leak"),
            check=GENERATED,
        ),
        Mistake(
            "prompts are continued one after the other",
            "A step for three sequences costs hardly more than for one. Feed all that are not complete in each step.",
            when=has_kind("steps"),
            check=GENERATED,
        ),
    ),
    allows=frozenset({"minifuse.course.elementary"}),
)
