"""Task 7.4: train a transformer on sonnets."""

from collections.abc import Callable
from functools import lru_cache
from math import log
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import sonnets
from ..cases import at_random
from ..check import agreement, agreement_at_once, check_each, in_turn, same
from ..questions.task7_4 import (
    Draw,
    Training,
    ask_batches,
    ask_clipped,
    ask_evaluated,
    ask_logits,
    ask_loss,
    ask_run,
    ask_samples,
    ask_steps,
    ask_tokens,
)
from ..strided import Array
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..text_cases import (
    clipped,
    describe_gradients,
    describe_held,
    describe_loss,
    describe_sampling,
    describe_step,
    draw_samplings,
    evaluated,
    gradients,
    held_texts,
    loss_of,
    losses,
    mean_loss,
    read_clipped,
    read_stepped,
    sampled,
    stepped,
    steps,
    texts,
    tokens_of,
)
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

TOKENS, BATCHES, LOSS, CLIPPED, STEPS, EVALUATED, SAMPLED, MODEL, RUN = (
    "codes and characters are inverse, and what has no code is refused",
    "targets are the codes that follow, and all windows are equally likely",
    "the loss and its gradient are right, also for large logits",
    "one factor brings the common norm of all gradients to at most max_norm",
    "a step has gradients of its batch alone, and returns the loss before it",
    "each character of a held-out text counts once and equally",
    "codes are drawn with the probabilities of the logits",
    "the model sees the past in its order, and nothing of the future",
    "the loss begins at log(vocabulary), and falls below that of the frequencies alone",
)
MAX_EXPONENT = 700
"""exp of a larger number is inf, and of its negative 0 or nearly so."""
START_SHARE, MARGIN = 0.15, 0.3
"""Largest distance of the first loss from log(vocabulary), and least one of the last below the entropy, in nats."""


def draws() -> "SearchStrategy[Draw]":
    """Draw the arguments of a batch. Codes are all different, so that a window tells its place."""
    return at_random(draw_of)


def draw_of(random: Random) -> Draw:
    """Return the arguments of a batch."""
    context = random.randint(1, 6)
    count = context + random.randint(1, 9)
    return Draw(random.sample(range(100), count), context, random.randint(1, 5), random.randrange(1000))


def describe_draw(case: Draw) -> str:
    """Return the arguments of a batch as text."""
    return f"draw_batch(codes={case.codes}, context={case.context}, count={case.rows}, random=Random({case.seed}))"


def check_batches(case: Draw, answer: Any) -> None:
    """Raise `Wrong` for windows that are not in the text, wrong targets, or another source of randomness."""
    text = describe_draw(case)
    for kind, kind_of_targets, inputs, targets in answer:
        shape = case.rows, case.context
        if (kind, kind_of_targets) != ("int64", "int64") or inputs.shape != shape or targets.shape != shape:
            got = f"{kind} {inputs.shape} and {kind_of_targets} {targets.shape}"
            raise Wrong("inputs or targets have a wrong shape or dtype", case_text=text, expected=f"int64 {shape}", got=got)
        for row, following in zip(inputs.tolist(), targets.tolist(), strict=True):
            start = case.codes.index(row[0]) if row[0] in case.codes else -1
            if row != case.codes[start : start + case.context]:
                raise Wrong("a row of inputs is no window of codes", case_text=text, got=row, kind="window")
            expected = case.codes[start + 1 : start + 1 + case.context]
            if following != expected:
                kind = "same" if following == row else "targets"
                raise Wrong(
                    f"the targets of {row} are not the codes that follow",
                    case_text=text,
                    expected=expected,
                    got=following,
                    kind=kind,
                )
    first, _, again = answer
    if not np.array_equal(first[2], again[2]):
        raise Wrong("a Random with the same seed gives another batch", case_text=text, kind="source")


def check_places(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if some windows are more likely than others, or follow each other."""
    places, count, seed = 5, 2000, effort.seed or 0
    codes, context = list(range(places + 3)), 3
    answer = student.ask(ask_batches, Draw(codes, context, count, seed))
    text = f"codes {codes}, context {context}, count {count}"
    starts = answer[0][2][:, 0]
    if np.array_equal(starts, answer[1][2][:, 0]):
        raise Wrong("two batches in turn from one source are equal", case_text=text, kind="source")
    counts = np.bincount(starts, minlength=places)
    pairs = np.bincount(starts[:-1] * places + starts[1:], minlength=places * places)
    for found, what in ((counts, "begin at a place"), (pairs, "begin at a place after a window at another one")):
        expected = count / len(found)
        if found.min() < expected - 6 * expected**0.5 or found.max() > expected + 6 * expected**0.5:
            message = f"{found.min()} to {found.max()} windows {what}; expected about {expected:.0f} each"
            raise Wrong(message, case_text=text, got=counts.tolist(), kind="last" if not counts[-1] else "places")


def inputs_of(vocabulary: int, context: int, seed: int) -> tuple[Array, list[str]]:
    """Return rows of codes that differ from the first one in a code, or in the order of two, and what differs."""
    draw = np.random.default_rng(seed)
    base = draw.integers(0, vocabulary, context)
    base[1] = (base[0] + 1) % vocabulary
    rows, names = [base], [""]
    for place in range(context):
        rows.append(base.copy())
        rows[-1][place] = (base[place] + 1 + draw.integers(0, vocabulary - 2)) % vocabulary
        names.append(f"the code at place {place}")
    rows.append(base.copy())
    rows[-1][:2] = base[1::-1]
    return np.array(rows), [*names, "the order of the first two codes"]


def check_model(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if logits depend on what follows or on other rows, or do not on all that comes before."""
    vocabulary, context, seed = 7, 6, effort.seed or 0
    rows, names = inputs_of(vocabulary, context, seed)
    text = f"SonnetModel(vocabulary={vocabulary}, context={context}, seed={seed}) after three steps"
    together, alone = student.ask(ask_logits, (vocabulary, context, seed, [rows, rows[:1, : context // 2]]))
    for found, shape in ((together, rows.shape), (alone, (1, context // 2))):
        if found.shape != (*shape, vocabulary):
            raise Wrong("logits have a wrong shape", case_text=text, expected=(*shape, vocabulary), got=found.shape)
    if not np.allclose(alone[0], together[0, : context // 2], rtol=1e-6, atol=1e-8):
        message = "logits of a row change if its second half and all other rows are left out"
        raise Wrong(message, case_text=text, kind="future")
    for place, (other, name) in enumerate(zip(together[1:], names[1:], strict=True)):
        change, first = np.abs(other - together[0]).max(-1), place % context
        if change[:first].max(initial=0) > 1e-8:
            raise Wrong(f"logits before place {place} change with {name}", case_text=text, kind="future")
        if change[max(first, place >= context) :].min() < 1e-9:
            kind = "order" if place >= context and change[2:].max() < 1e-9 else "past"
            kind = "alone" if place < context and change[first] > 1e-9 > change[first + 1 :].max(initial=0) else kind
            raise Wrong(
                f"some logits do not change with {name}",
                case_text=text,
                kind=kind,
            )


@lru_cache(maxsize=4)
def training_of(seed: int) -> Training:
    """Return a run on the sonnets, whose characters have codes in a drawn order."""
    random, text = Random(seed), sonnets()
    letters = sorted(set(text))
    random.shuffle(letters)
    codes = [letters.index(c) for c in text]
    border, context = len(codes) * 9 // 10, 32
    start = border + random.randrange(len(codes) - border - 512)
    return Training(codes[:border], codes[start : start + 513], len(letters), context, 150, seed)


def check_run(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a run begins or ends with a wrong loss, or leaves parameters as they were."""
    case = training_of(effort.seed or 0)
    first, last, losses, changed = student.ask(ask_run, case)
    targets = np.array(case.held_out[1:]).reshape(-1, case.context)
    text = f"{case.steps} steps with batches of 8 windows of {case.context} characters, AdamW with rate 0.01, max_norm 1.0"
    start, begin, end = log(case.vocabulary), mean_loss(first, targets), mean_loss(last, targets)
    if not changed or not all(changed):
        raise Wrong(f"{changed.count(False)} of {len(changed)} parameters do not change", case_text=text, kind="unused")
    if not abs(begin - start) < START_SHARE:
        raise Wrong(
            f"the loss begins at {begin:.3f} on the held-out text; expected log({case.vocabulary}) = {start:.3f}, up to "
            f"{START_SHARE}",
            case_text=text,
            kind="start",
        )
    shares = np.bincount(case.codes, minlength=case.vocabulary) / len(case.codes)
    entropy = float(-np.log(shares[targets]).mean())
    if not end < entropy - MARGIN:
        raise Wrong(
            f"the loss ends at {end:.3f} on the held-out text; expected less than {entropy - MARGIN:.3f}. Frequencies of "
            f"characters alone have {entropy:.3f}",
            case_text=text,
            kind="end",
        )
    if len(losses) != case.steps or not abs(losses[0] - start) < 2 * START_SHARE or not np.mean(losses[-10:]) < entropy:
        raise Wrong("train_step does not return the losses of the run", case_text=text, got=losses[:: case.steps // 5])


def has_kind(*kinds: str) -> Callable[[Wrong], bool]:
    """Return a function that says whether a failure is of one of these kinds."""
    return lambda wrong: wrong.kind in kinds


def decodes_below_0(wrong: Wrong) -> bool:
    """Return whether codes out of range do not raise ValueError, and all else is right."""
    return bool(wrong.got[:3] == wrong.expected[:3] and wrong.got.errors[0] == "ValueError")


def is_scaled_up(wrong: Wrong) -> bool:
    """Return whether small gradients were scaled up to max_norm."""
    return wrong.got.norm != "ValueError" and same(wrong.got, clipped(wrong.case, always=True))


def overflows(wrong: Wrong) -> bool:
    """Return whether a loss is not finite, of logits whose powers of e are inf or 0."""
    logits = wrong.case[0]
    return bool(not np.isfinite(wrong.got.loss) and np.abs(logits[np.isfinite(logits)]).max() > MAX_EXPONENT)


def multiplies_by_inf(wrong: Wrong) -> bool:
    """Return whether only a loss is wrong, and is nan, of logits with -inf among them."""
    is_right = same(wrong.got.gradient, wrong.expected.gradient)
    return bool(np.isnan(wrong.got.loss) and is_right and np.isneginf(wrong.case[0]).any())


def draws_no_place(wrong: Wrong) -> bool:
    """Return whether there is one window, and no place is found for it."""
    return "empty range" in wrong.message and len(wrong.case.codes) - wrong.case.context == 1


TASK = Task(
    id="7.4",
    title="Train on sonnets",
    file="sonnets.py",
    slots=(
        "Tokenizer",
        "draw_batch",
        "cross_entropy",
        "clip_gradients",
        "train_step",
        "SonnetModel",
        "evaluate",
        "sample_next",
    ),
    points=8,
    text=(
        "A language model predicts the next character. Write what a training needs: codes of characters, batches, "
        "a loss that does not overflow, clipped gradients, and a step. Assemble a small transformer, train it on "
        "Shakespeare's sonnets, measure it on text that it has not seen, and draw characters from it."
    ),
    hints=(
        "The target of each character is the one after it, so a window has as many examples as characters. A model that "
        "knows nothing gives each of V characters the probability 1 / V, and has the loss log(V): begin there.",
        "cross_entropy: subtract the largest logit of each row, which needs no gradient; the loss of a row is the log of "
        "the sum of exp, minus the logit of the target. clip_gradients: one norm of all gradients, one factor. SonnetModel: "
        "x = rows of a table for codes + rows for places; x = x + attention(norm(x)); x = x + mlp(norm(x)); norm(x) @ head.",
        "docs/course/7.4-sonnets.md; minifuse/recipes/gpt.py is the recipe of the library.",
    ),
    reads=("docs/course/7.4-sonnets.md", "docs/guide/recipes.md"),
    checks=(
        agreement(TOKENS, texts, ask_tokens, tokens_of, share=0.5),
        in_turn(
            BATCHES,
            (
                check_each(BATCHES, draws, ask_batches, check_batches, describe=describe_draw, share=0.5),
                Check(BATCHES, check_places),
            ),
        ),
        agreement(LOSS, losses, ask_loss, loss_of, describe=describe_loss),
        agreement(CLIPPED, gradients, ask_clipped, clipped, read=read_clipped, describe=describe_gradients),
        agreement(STEPS, steps, ask_steps, stepped, read=read_stepped, describe=describe_step, share=0.3),
        agreement(EVALUATED, held_texts, ask_evaluated, evaluated, describe=describe_held, share=0.3),
        agreement_at_once(SAMPLED, draw_samplings, ask_samples, sampled, describe=describe_sampling),
        Check(MODEL, check_model),
        Check(RUN, check_run),
    ),
    mistakes=(
        Mistake(
            "codes out of range are decoded",
            "characters[-1] is the last character. Check 0 <= code < len(self) before you index.",
            when=decodes_below_0,
            check=TOKENS,
        ),
        Mistake(
            "targets are the inputs themselves",
            "The target of a character is the one after it: begin the row of targets one place later.",
            when=has_kind("same"),
            check=BATCHES,
        ),
        Mistake(
            "the last window is never drawn",
            "randrange(n) never returns n. The last start that leaves room is len(codes) - context - 1.",
            when=lambda wrong: wrong.kind == "last" or draws_no_place(wrong),
            check=BATCHES,
        ),
        Mistake(
            "0 is multiplied by -inf, which is nan",
            "Choose the logit of the target with an index, gather or where; do not multiply by a mask of 0 and 1.",
            when=multiplies_by_inf,
            check=LOSS,
        ),
        Mistake(
            "exp overflows",
            "exp(710.0) is inf. Subtract the largest logit of each row first: the loss does not change.",
            when=overflows,
            check=LOSS,
        ),
        Mistake(
            "gradients are clipped one by one",
            "Their directions together then change. Compute one norm of all gradients, and scale them all by one factor.",
            wrong_answer=lambda c: clipped(c, each=True),
            check=CLIPPED,
        ),
        Mistake(
            "small gradients are scaled up",
            "Clipping makes a step shorter, never longer: leave gradients alone whose norm is below max_norm.",
            when=is_scaled_up,
            check=CLIPPED,
        ),
        Mistake(
            "gradients of earlier batches are added",
            "backward adds to grad. Call optimizer.zero_grad() before it.",
            wrong_answer=lambda c: stepped(c, keeps=True),
            check=STEPS,
        ),
        Mistake(
            "gradients are clipped after the step, or not at all",
            "step() uses the gradients: clip them between backward() and step().",
            wrong_answer=lambda c: stepped(c, clips=False),
            check=STEPS,
        ),
        Mistake(
            "gradients are recorded",
            "Call the model in a block `with no_grad():`, which saves memory and time.",
            wrong_answer=lambda c: evaluated(c, records=True),
            check=EVALUATED,
        ),
        Mistake(
            "a short last window counts as much as a whole one",
            "Add the losses of all characters, and divide once by their number.",
            wrong_answer=lambda c: evaluated(c, is_of_windows=True),
            check=EVALUATED,
        ),
        Mistake(
            "logits are multiplied by the temperature",
            "Divide by it: a temperature below 1 makes differences larger, and likely characters more likely.",
            wrong_answer=lambda c: sampled(c, power=1.0),
            check=SAMPLED,
        ),
        Mistake(
            "the model sees the future",
            "Attention is causal: place t may use places 0 to t. Otherwise it only learns to copy its targets.",
            when=has_kind("future"),
            check=MODEL,
        ),
        Mistake(
            "each place sees only itself",
            "Attention mixes places: its result must be added to x.",
            when=has_kind("alone"),
            check=MODEL,
        ),
        Mistake(
            "attention does not know places",
            "A sum over places is the same in any order. Add row t of a second table at place t, before attention.",
            when=has_kind("order"),
            check=MODEL,
        ),
        Mistake(
            "the loss begins too high",
            "Logits of a new model must be nearly equal: multiply the weights of the head by a small number, such as 0.02.",
            when=has_kind("start"),
            check=RUN,
        ),
    ),
    allows=frozenset({"minifuse.course.elementary"}),
)
