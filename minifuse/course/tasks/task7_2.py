"""Task 7.2: layer norm and RMS norm, with derivatives that are written by hand."""

from collections.abc import Callable, Iterable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import at_random
from ..library_checks import Rule, library_check, only_own_derivatives, saves_at_most
from ..library_facts import LibraryCall, LibraryRun, TensorCall
from ..questions.library import incoming_gradient
from ..strided import Array
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from random import Random

    from hypothesis.strategies import SearchStrategy

VALUES, OFFSETS, COSTS, RMS = (
    "each row is normalized, with gradients of x, gain and bias",
    "rows far from zero are as exact as rows around it",
    "backward sums twice along rows, and keeps one array and two numbers a row",
    "RMS norm divides by the root of the mean square, and keeps no more than that",
)
NAMES, RMS_NAMES = ("x", "gain", "bias", "epsilon"), ("x", "gain", "epsilon")
"""Of the arguments of layer_norm and rms_norm."""
SMALL = ((3,), (1, 4), (4, 1), (2, 3), (2, 2, 5), (3, 7))
LARGE = ((64, 32), (5, 10, 16))
EPSILONS = (1e-5, 1e-5, 1e-3, 0.5)
FACTORS = (1.0, 1.0, 1e-3, 100.0)
"""Of deviations: with 1e-3, the variance is below some epsilons."""
FAR = 1e4
SLACK = 1024
"""Bytes for settings and the rounding of small sizes."""
ROOM = f"1.125 times that, and {SLACK:,} bytes for gain and settings"


def norm_call(
    slot: str, shapes: tuple[tuple[int, ...], ...], offsets: tuple[float, ...], factors: tuple[float, ...], random: "Random"
) -> TensorCall:
    """Draw a call of layer_norm or rms_norm; some leave epsilon out, and some rows are constant."""
    shape = random.choice(shapes)
    draw = np.random.default_rng(random.getrandbits(32))
    x = draw.integers(-9, 10, shape) / 2.0 * random.choice(factors)
    if random.random() < 0.2:
        x = np.zeros(shape) + x[..., :1]
    x = np.asarray(x + random.choice(offsets) * draw.choice((1.0, -1.0, 0.5), (*shape[:-1], 1)))
    settings = [draw.integers(-9, 10, shape[-1:]) / 2.0 for _ in range(2 if slot == "layer_norm" else 1)]
    epsilon = () if random.random() < 0.2 else (random.choice(EPSILONS),)
    return TensorCall(slot, (x, *settings, *epsilon), random.randrange(99))


def calls(
    slot: str,
    shapes: tuple[tuple[int, ...], ...] = SMALL,
    offsets: tuple[float, ...] = (0.0, 1.0),
    factors: tuple[float, ...] = FACTORS,
) -> "SearchStrategy[TensorCall]":
    """Return the strategy of calls of a slot."""
    return at_random(partial(norm_call, slot, shapes, offsets, factors))


def reduces_at_most(forward: int, backward: int, advice: str) -> Rule:
    """Return the rule that both passes have at most some sums and means, and no matmul in their place."""

    def rule(call: TensorCall, run: LibraryRun) -> None:
        for name, found, most in (("forward", run.forward, forward), ("backward", run.backward, backward)):
            count = count_sums(found, call.arguments[0].size)
            if count > most:
                raise Wrong(
                    f"the {name} pass has {count} sums and means, expected at most {most}: {advice}", kind=f"sums {name}"
                )

    return rule


def count_sums(calls: Iterable[LibraryCall], size: int) -> int:
    """Count sums, means and the like of as many elements as x has.

    Smaller ones, such as `sum(0)` of what another `sum(0)` left of three dims, count by their elements.
    """
    sizes = [prod(c.inputs[0]) for c in calls if c.name in ("sum", "mean", "max", "min", "prod", "matmul") and c.inputs]
    small = sum(n for n in sizes if n < size)
    return len(sizes) - sum(n < size for n in sizes) + max(small - 1, 0) // size


def array_and_numbers(count: int) -> Callable[[TensorCall], int]:
    """Return the function that computes the bytes of an array like x and some numbers for each row, with rounding."""

    def nbytes(call: TensorCall) -> int:
        x = call.arguments[0]
        return int(1.125 * (x.nbytes + count * 8 * prod(x.shape[:-1]))) + SLACK

    return nbytes


# Wrong answers.


def simulate(
    call: TensorCall,
    *,
    correction: int = 0,
    outside: bool = False,
    is_constant: bool = False,
    leaves_out: bool = False,
    without_gain: bool = False,
    centers: bool | None = None,
) -> Any:
    """Return the answer in NumPy, possibly with a mistake."""
    is_rms = call.slot == "rms_norm"
    x, gain, *rest = call.arguments
    bias = np.zeros_like(gain) if is_rms else rest.pop(0)
    epsilon = rest[0] if rest else 1e-5
    width, centers = x.shape[-1], not is_rms if centers is None else centers
    centered = x - x.mean(-1, keepdims=True) if centers else x
    with np.errstate(all="ignore"):
        variance = (centered**2).sum(-1, keepdims=True) / np.float64(width - correction)
        scale = 1 / (np.sqrt(variance) + epsilon if outside else np.sqrt(variance + epsilon))
        normal = centered * scale
        g = incoming_gradient(call.gradient_seed or 0, x.shape)
        d = g if without_gain else g * gain
        change: Array = np.zeros_like(x) if is_constant else (d * normal).mean(-1, keepdims=True) * normal
        mean = d.mean(-1, keepdims=True) if centers and not is_constant else 0.0
        dx = scale * (d - mean - (0 if leaves_out else change))
    rows = (-1, width)
    gradients = dx, (g * normal).reshape(rows).sum(0), g.reshape(rows).sum(0)
    return (normal * gain + bias,), gradients[: 2 if is_rms else 3]


def sums_one_row(wrong: Wrong) -> bool:
    """Return whether the gradient of gain or bias is a number, for x of one dim."""
    return wrong.kind == "GradientError" and "has shape ()" in wrong.message and wrong.case.arguments[0].ndim == 1


def is_far(wrong: Wrong) -> bool:
    """Return whether a failure is a wrong value of rows far from zero."""
    return not wrong.kind and wrong.got is not None and np.abs(wrong.case.arguments[0]).max() > FAR / 10


TASK = Task(
    id="7.2",
    title="Layer norm",
    file="layer_norm.py",
    slots=("LayerNorm", "layer_norm", "RMSNorm", "rms_norm"),
    points=6,
    text=(
        "Normalize rows to mean 0 and variance 1, exactly also where they are far from zero, and write the derivative by "
        "hand: two sums along a row are enough, and one array is kept. Then leave out the mean: RMS norm."
    ),
    hints=(
        "Subtract the mean first, then square: squares of large numbers have no digits left for a small variance. In the "
        "derivative, mean and variance depend on x too; each of them adds one sum along the row.",
        "With normal = (x - mean) * scale and d = gradient * gain: dx = scale * (d - mean(d) - normal * mean(d * normal)). "
        "Gain gets the sum of gradient * normal over all rows, bias the sum of gradient. RMS norm has no mean, and its dx "
        "has no mean(d).",
        "docs/course/7.2-layer-norm.md; minifuse/nn/normalization.py.",
    ),
    reads=("docs/course/7.2-layer-norm.md", "docs/guide/gradients.md", "minifuse/nn/normalization.py"),
    checks=(
        library_check(
            VALUES,
            partial(calls, "layer_norm"),
            (only_own_derivatives,),
            names=NAMES,
            share=0.6,
        ),
        library_check(
            OFFSETS,
            partial(calls, "layer_norm", SMALL[3:], (0.0, FAR, -FAR), (1.0,)),
            names=NAMES,
            share=0.5,
        ),
        library_check(
            COSTS,
            partial(calls, "layer_norm"),
            (
                only_own_derivatives,
                reduces_at_most(2, 4, "a mean and a variance forward; backward two along rows, and two over rows"),
                saves_at_most(array_and_numbers(2), f"an array like x and two numbers for each row, {ROOM}"),
            ),
            large=partial(calls, "layer_norm", LARGE),
            names=NAMES,
            share=0.3,
        ),
        library_check(
            RMS,
            partial(calls, "rms_norm"),
            (
                only_own_derivatives,
                reduces_at_most(1, 2, "a mean of squares forward; backward one along rows, and one over rows"),
                saves_at_most(array_and_numbers(1), f"an array like x and a number for each row, {ROOM}"),
            ),
            large=partial(calls, "rms_norm", LARGE),
            names=RMS_NAMES,
            share=0.6,
        ),
    ),
    mistakes=(
        Mistake(
            "the variance divides by the width less 1",
            "That is the estimate from a sample. A layer norm takes the mean of the squared distances.",
            wrong_answer=lambda c: simulate(c, correction=1),
        ),
        Mistake(
            "epsilon is added to the root",
            "Epsilon is added to the variance, below the root.",
            wrong_answer=lambda c: simulate(c, outside=True),
        ),
        Mistake(
            "mean and variance are taken for constants",
            "They are computed from x, so a change of x changes them. Each of the two adds a term to the derivative.",
            wrong_answer=lambda c: simulate(c, is_constant=True),
        ),
        Mistake(
            "the derivative leaves out the variance",
            "A change of x along the row itself only changes its length, which is divided away: subtract "
            "normal * mean(d * normal).",
            wrong_answer=lambda c: simulate(c, leaves_out=True),
        ),
        Mistake(
            "the gradient is not multiplied with gain",
            "Between the normalized row and the result is a product with gain: d = gradient * gain.",
            wrong_answer=lambda c: simulate(c, without_gain=True),
        ),
        Mistake(
            "the mean is subtracted in RMS norm",
            "RMS norm leaves the mean where it is: x / sqrt(mean(x * x) + epsilon).",
            wrong_answer=lambda c: simulate(c, centers=True),
            check=RMS,
        ),
        Mistake(
            "the variance is the difference of two large numbers",
            "mean(x * x) - mean(x) ** 2 loses all digits where the mean is large. Subtract the mean before you square.",
            when=is_far,
            check=OFFSETS,
        ),
        Mistake(
            "backward takes more sums than it needs",
            "Save what forward has computed, the normalized rows and 1 / sqrt(variance + epsilon): mean and variance are "
            "not needed again. Sum the rows over all leading dims at once: reshape(-1, width).sum(0).",
            when=lambda w: w.kind == "sums backward",
        ),
        Mistake(
            "x of one dim is not taken for a row",
            "Such an x is a single row, of which gain gets the gradient as it is: reshape(-1, width) makes rows of any x.",
            when=sums_one_row,
        ),
        Mistake(
            "more is kept than one array",
            "x can be computed from the normalized rows, or these from x, mean and scale. Keep one of them.",
            when=lambda w: w.kind == "saved",
        ),
    ),
    allows=frozenset({"minifuse.course.elementary"}),
)
