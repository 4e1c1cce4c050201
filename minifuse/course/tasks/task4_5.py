"""Task 4.5: train a network to classify digits on the student's own engine."""

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ..capstone import MIN_ACCURACY, SLOT, STEPS, UNSEEN, digits, refuse_loans
from ..cases import among
from ..check import agreement, current, in_turn
from ..draw import rows
from ..questions.task4_5 import (
    Guesses,
    Trained,
    ask_dropped,
    ask_loss,
    ask_misled,
    ask_missing,
    ask_right,
    ask_trained,
    ask_untrained,
)
from ..strided import Array
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SEEDS = (1, 0, 2, 3, 4, 17, 101, 1001, 65_537, 1_000_001, (1 << 32) + 1, (1 << 40) + 2)
"""Seeds of dropout; many are equal modulo a power of 2 or of 10."""
DROPPED, SHORT_TRAINING_STEPS, MAX_RIGHT_WITHOUT_GRADIENTS = 8, 30, 0.5
SMALL_DISTANCE = 0.5
"""Of parameters from their first values, divided by the norm of those: a training that reads 9 in 10 moves them farther."""
RARE_SHARE = 0.2  # of the usual number of cases
TRAIN_PAGE = "train?train_data=digits"
NETWORK, DROPS, LOSS, RIGHT, LEARNS = (
    "a network gives ten log-probabilities for each image, and learns with all of its parameters",
    "elements are dropped when a seed is given, others for another seed, and only then",
    "the loss is the mean of minus the log-probabilities of the labels, and goes backward",
    "the digit with the largest log-probability counts",
    "it reads digits that it has not seen",
)


def guesses() -> "SearchStrategy[Guesses]":
    """Draw (log-probabilities (n, 10), labels). The largest probability may be below one half."""
    from hypothesis import strategies as st

    row = st.tuples(st.permutations(range(10)), st.sampled_from([0.1, 0.5, 1.0]), st.integers(0, 9))

    def case(drawn: list[tuple[list[int], float, int]]) -> Guesses:
        scores = np.array([np.array(order) * factor for order, factor, _ in drawn])
        return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True), tuple(label for *_, label in drawn)

    return st.lists(row, min_size=1, max_size=4).map(case)


def large_guesses() -> "SearchStrategy[Guesses]":
    """Draw many rows, with probabilities that are nearly equal, or nearly 0. No two of a row are equal."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Guesses:
        count, factor = draw(among(1, 3, 70, 200)), draw(among(1e-13, 1e-8, 1.0, 300.0, 1e6))
        scores = np.arange(10) * 3 % 10 + np.arange(count)[:, None]
        likely = scores % 10 * factor
        rank, shift = draw(among(0, 1, 2)), draw(st.integers(0, 9))
        ranked = np.argsort(-likely, axis=1)[:, rank]
        labels = np.where(np.arange(count) % 2 == 0, ranked, (np.arange(count) * 7 + shift) % 10)
        likely = likely - np.logaddexp.reduce(likely, axis=1, keepdims=True)
        return likely, tuple(labels.tolist())

    return case()


def describe_case(case: Guesses) -> str:
    """Return a case as text."""
    return f"likely of shape {case[0].shape}, labels {list(case[1])}"


def drawing(case: Guesses, got: object, expected: object) -> list[str]:
    """Picture the input, the expected answer and the one that was got."""
    parts = [("expected", expected), ("got", got)]
    flat = [(name, part) for name, found in parts for part in (found if isinstance(found, tuple) else (found,))]
    return [*rows(np.round(case[0], 2), "likely"), *[line for name, part in flat for line in rows(part, name)]]


def loss_of(case: Guesses, by: float = 1.0) -> tuple[float, Array]:
    """Return the loss and the gradient of each log-probability, times a factor."""
    chosen = np.eye(10)[list(case[1])]
    factor = by / len(case[1])
    return float(-(case[0] * chosen).sum() * factor), -chosen * factor


def right_of(case: Guesses) -> int:
    """Return the number of right predictions."""
    return int((case[0].argmax(axis=1) == np.array(case[1])).sum())


def sure_ones(case: Guesses) -> int:
    """Count the labels with a probability above one half."""
    return int((case[0][np.arange(len(case[1])), list(case[1])] > np.log(0.5)).sum())


def some_images() -> Array:
    """Return five digits."""
    return digits(0)[1][0][:5]


def gives_probabilities(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if an untrained network does not return probabilities or has equal parameters."""
    if student.task is None:
        check_all_written(student)
    current[0] = call = "DigitNetwork(engine, Random(1)) of 5 images"
    seen = student.ask(ask_untrained, some_images())
    if seen["shape"] != (5, 10):
        raise Wrong("the result has another shape", case_text=call, expected=(5, 10), got=seen["shape"])
    sums = np.exp(seen["likely"]).sum(axis=1)
    if not np.allclose(sums, 1):
        raise Wrong("probabilities of an image do not add up to 1", case_text=call, expected=1.0, got=sums, kind="scores")
    for k, values in enumerate(seen["parameters"]):
        if len(values) > 10 and np.ptp(values) == 0:
            raise Wrong(f"parameter {k} begins with equal numbers", case_text=call, got=values[0], kind="alike")
    unused = seen["unused"]
    if unused or not seen["parameters"]:
        raise Wrong(
            f"parameters {unused} get no gradient; the result does not depend on them"
            if unused
            else "there are no parameters",
            case_text=call,
            kind="unused",
        )


def check_all_written(student: StudentProcess) -> None:
    """Raise NotDoneYet with the names of missing slots, if the folder alone cannot train the network."""
    training, _ = digits(0)
    with StudentProcess(student.folder, student.tasks, TASK) as lending:
        refuse_loans(lending.ask(ask_missing, (training[0][:20], training[1][:20])))


def drops(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if dropout is active in evaluation, inactive in training, or does not depend on the seed."""
    current[0] = call = f"DigitNetwork(engine, Random(1)), asked twice about {DROPPED} images"
    once, again, alone, trained = student.ask(ask_dropped, (digits(0)[1][0][:DROPPED], [*SEEDS, SEEDS[0]]))
    if not np.array_equal(once, again):
        raise Wrong("without a seed two answers differ", case_text=call, expected=once[0], got=again[0], kind="evaluation")
    if not np.allclose(once, alone):
        k = int(np.argmax(np.abs(once - alone).max(axis=1)))
        what = f"the answer for image {k} depends on the other images that are asked with it"
        raise Wrong(what, case_text=call, expected=alone[k], got=once[k], kind="batch")
    *trained, repeated = trained
    case_text = f"network({DROPPED} images, seed) for the seeds {', '.join(map(str, SEEDS))}"
    if not np.array_equal(repeated, trained[0]):
        raise Wrong(f"with seed {SEEDS[0]} two answers differ", case_text=case_text, kind="random")
    for seed, one in zip(SEEDS, trained, strict=True):
        if np.array_equal(one, once):
            what = f"with seed {seed} nothing is dropped; a rate of 0.1 drops one element in ten"
            raise Wrong(what, case_text=case_text, kind="seed")
    for (a, one), (b, other) in combinations(zip(SEEDS, trained, strict=True), 2):
        if np.array_equal(one, other):
            raise Wrong(f"seeds {a} and {b} drop the same elements", case_text=case_text, kind="seed")


def learns_by_gradients(student: StudentProcess, effort: Effort) -> None:
    """Train a few steps with shuffled gradients, and raise `Wrong` if the network reads digits all the same."""
    training, (images, labels) = digits(effort.seed or 0)
    steps = SHORT_TRAINING_STEPS
    current[0] = case_text = f"{SLOT}(engine, images, labels, steps={steps}, seed=1) on an engine with shuffled gradients"
    predictions, count = student.ask(ask_misled, (*training, steps, 1, images))
    if count > steps:
        raise Wrong(
            f"{count} losses went backward", case_text=case_text, expected=f"at most {steps}", got=count, kind="steps"
        )
    right = 0.0 if predictions is None else float(np.mean(predictions == np.asarray(labels)))
    if right > MAX_RIGHT_WITHOUT_GRADIENTS:
        what = f"{right:.0%} of the digits are read right although each gradient was shuffled"
        advice = "what the network knows must come from the gradients of its losses, on the engine"
        raise Wrong(f"{what}; {advice}", case_text=case_text, link=TRAIN_PAGE, kind="no gradients")


def learns(student: StudentProcess, effort: Effort) -> None:
    """Train on the student's engine, and raise `Wrong` if the accuracy on the test digits is too low."""
    seed = effort.seed or 0
    training, (images, labels) = digits(seed)
    current[0] = case_text = f"{SLOT}(engine, {len(training[1]):,} images, labels, steps={STEPS}, seed={seed})"
    seen: Trained = student.ask(ask_trained, (*training, STEPS, seed, images))
    if seen.predictions is None:
        raise Wrong(f"{SLOT} returns None; return the network", case_text=case_text, kind="nothing")
    count = len(seen.losses)
    if count > STEPS:
        raise Wrong(
            f"{count} losses went backward",
            case_text=case_text,
            expected=f"at most {STEPS}",
            got=count,
            kind="steps",
        )
    right = float(np.mean(seen.predictions == np.asarray(labels)))
    if right < MIN_ACCURACY:
        kind = kind_of_failure(seen)
        whose = f"{seen.share}; minifuse course status says whether those are right" * (kind == "accuracy")
        raise Wrong(
            f"the accuracy on {UNSEEN} test digits is {right:.1%}, expected {MIN_ACCURACY:.0%}. "
            f"{describe_losses(seen.losses)}{whose}".rstrip(),
            case_text=case_text,
            link=TRAIN_PAGE,
            kind=kind,
        )
    notes = [f"{right:.1%} of {UNSEEN} digits that it had not seen are read right", seen.share, seen.compiled]
    student.notes += filter(None, notes)


def describe_losses(losses: list[float]) -> str:
    """Return a sentence on how far the losses went; "" for none."""
    if not losses:
        return ""
    return f"In {len(losses)} steps the loss went from {mean_of(losses[:10]):.3g} to {mean_of(losses[-10:]):.3g}. "


def mean_of(losses: list[float]) -> float:
    """Return the mean."""
    return float(np.mean(losses))


def kind_of_failure(seen: Trained) -> str:
    """Return what is known about a training whose network reads too few digits."""
    if not seen.losses:
        return "nothing backward"
    if seen.accumulates:
        return "accumulated"
    is_falling = mean_of(seen.losses[-10:]) < mean_of(seen.losses[:10])
    return "slow" if is_falling and seen.moved < SMALL_DISTANCE else "accuracy"


TASK: Task = Task(
    id="4.5",
    title="Read digits with your engine",
    file="digits.py",
    slots=("DigitNetwork", "digit_loss", "count_right", SLOT),
    points=8,
    text=(
        "Put all together: a network with a convolution, pooling, relu, dropout and an output for each digit, its loss, and "
        "the loop that trains it, on the engine that your own files make. Of 300 digits that it has never seen, 9 in 10 "
        "must be read right. What you have not written is lent by the course; `--strict` lends nothing, and names what is "
        "missing."
    ),
    hints=(
        "Six kernels of 3 x 3 and pooling by 2 leave 6 images of 3 x 3. A convolution with ten kernels of that size is a "
        "linear layer with ten outputs. relu after max-pooling gives the same as before it, and has four times fewer "
        "elements to do.",
        "In each step: 16 images by random.sample, the network with the step as seed, the loss, backward, and p.value = "
        "p.value - p.grad * rate with p.grad = None for each parameter. Begin with a rate of 0.9 and let it fall to 0 in a "
        "straight line. Weights between -1 and 1, divided by the root of how many products an output sums.",
        "docs/course/4.5-digits.md; tensor_network.py of task 2.5 has the same parts.",
    ),
    reads=("docs/course/4.5-digits.md", "docs/guide/training.md"),
    checks=(
        Check(NETWORK, gives_probabilities),
        Check(DROPS, drops),
        in_turn(
            LOSS,
            [
                agreement(LOSS, guesses, ask_loss, loss_of, describe=describe_case, draw=drawing),
                agreement(LOSS, large_guesses, ask_loss, loss_of, describe=describe_case, share=RARE_SHARE),
            ],
        ),
        in_turn(
            RIGHT,
            [
                agreement(RIGHT, guesses, ask_right, right_of, describe=describe_case, draw=drawing),
                agreement(RIGHT, large_guesses, ask_right, right_of, describe=describe_case, share=RARE_SHARE),
            ],
        ),
        in_turn(LEARNS, [Check(LEARNS, learns_by_gradients), Check(LEARNS, learns)]),
    ),
    mistakes=(
        Mistake(
            "scores are given as they are, without log-softmax",
            "The exponentials of a row must add up to 1. The last function of the network sees to it, along dim 1.",
            when=lambda w: w.kind == "scores",
            check=NETWORK,
        ),
        Mistake(
            "all kernels begin alike",
            "Kernels that begin alike receive the same gradients, and stay alike for ever. Draw each number by itself.",
            when=lambda w: w.kind == "alike",
            check=NETWORK,
        ),
        Mistake(
            "a parameter has no part in the result",
            "What parameters() gives is what learns: each of them must be used when the network is called.",
            when=lambda w: w.kind == "unused",
            check=NETWORK,
        ),
        Mistake(
            "elements are dropped in evaluation too",
            "seed is None when the network is used, not trained: no dropout then.",
            when=lambda w: w.kind == "evaluation",
            check=DROPS,
        ),
        Mistake(
            "the seed has no say in what is dropped",
            "Where a seed is given, some elements go through dropout, and with that seed: another one drops others.",
            when=lambda w: w.kind == "seed",
            check=DROPS,
        ),
        Mistake(
            "the loss has no minus sign",
            "Logarithms of probabilities are negative, and likely labels should make a small loss.",
            wrong_answer=lambda c: loss_of(c, -1.0),
            check=LOSS,
        ),
        Mistake(
            "the mean is taken over all ten columns",
            "There is one label a row: the sum is divided by the number of rows.",
            wrong_answer=lambda c: loss_of(c, 0.1),
            check=LOSS,
        ),
        Mistake(
            "only labels with more than one half count",
            "With ten digits the largest probability may well be 0.3. It is compared with the others, not with a number.",
            wrong_answer=sure_ones,
            check=RIGHT,
        ),
        Mistake(
            "gradients are left for the next step",
            "backward adds to what has been gathered. After a step, begin anew: grad = None.",
            when=lambda w: w.kind == "accumulated",
            check=LEARNS,
        ),
        Mistake(
            "the parameters have hardly moved",
            "The loss falls, but all steps together are short: try a larger learning rate. Here 0.3 to 0.9 works.",
            when=lambda w: w.kind == "slow",
            check=LEARNS,
        ),
        Mistake(
            "nothing goes backward",
            "Without loss.backward() no parameter has a gradient, and nothing changes.",
            when=lambda w: w.kind == "nothing backward",
            check=LEARNS,
        ),
    ),
    allows=frozenset({"minifuse.course.networks"}),
)
