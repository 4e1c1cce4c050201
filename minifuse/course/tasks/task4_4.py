"""Task 4.4: max, softmax, log-softmax and dropout."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from ..cases import layout_link, shapes, strided_like
from ..check import agreement, in_turn
from ..draw import rows
from ..keeping import keeps_nothing
from ..oracle.module4 import keep_mask, softmax
from ..questions.calling import calls
from ..questions.task2_4 import Call, Look, another, ask, both, slopes, value
from ..questions.task4_4 import Mask, ask_log, ask_masks, largest_of
from ..softmax_cases import agree_lists, agree_relatively, odd_calls, odd_dropouts, odd_masks
from ..strided import Array, Strided
from ..task import Check, Mistake, Task
from ..verdicts import Wrong
from .task2_4 import right_answer

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

ODD_SHARE = 0.25  # of the usual number of cases
MIN_LOG = 1e-3  # of which a logarithm is taken: the sum of exp(less) is at least 1, and log(1 / sum) is as good
MAX, MAX_BACK, SOFTMAX, SOFTMAX_BACK, LOG, LOG_BACK, MASK, TRAINING, EVALUATION = (
    "max gives the largest along a dim",
    "the gradient of max goes to the largest; equal ones share it",
    "softmax gives probabilities along a dim, for numbers of any size",
    "softmax knows its derivative",
    "log-softmax is exact where the probability is almost 0",
    "log-softmax knows its derivative",
    "the mask of dropout has zeros where the numbers of its seed say, and 1 / (1 - rate) elsewhere",
    "in training dropout multiplies by its mask, there and back",
    "in evaluation dropout changes nothing, neither values nor gradients",
)
SHIFTS = (0.0, 2000.0, -2000.0)  # exp makes inf of each element of a row, or 0


def mixed(x: Strided, few: int, factor: float) -> Strided:
    """Replace the elements by `few` distinct values in mixed order, multiples of `factor`."""
    return x._replace(storage=(x.storage * 37 % few - few // 2) * factor)


def along(name: str, few: int, factors: tuple[float, ...], shifts: tuple[float, ...] = (0.0,)) -> "SearchStrategy[Call]":
    """Draw a call of a function along a dim, with elements scaled by one of the factors and shifted by one of the shifts."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Call:
        shape = draw(shapes(3, 1).filter(len))
        dim = draw(st.integers(0, len(shape) - 1))
        x = mixed(strided_like(draw, shape), few, draw(st.sampled_from(factors)))
        x = x._replace(storage=x.storage + draw(st.sampled_from(shifts)))
        result = (*shape[:dim], 1, *shape[dim + 1 :]) if name == "TensorMax" else shape
        return Call(name, (x,), {"dim": dim}, mixed(strided_like(draw, result), 23, 0.5))

    return case()


def masks() -> "SearchStrategy[Mask]":
    """Draw (count, rate, seed)."""
    from hypothesis import strategies as st

    return st.tuples(st.integers(1, 40), st.sampled_from([0.1, 0.25, 0.5, 0.8]), st.integers(0, 999))


def dropped(is_training: bool) -> "SearchStrategy[Call]":
    """Draw a call of dropout."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Call:
        shape = draw(shapes(3, 1))
        x, d = [mixed(strided_like(draw, shape), few, 0.5) for few in (97, 89)]
        options = {"rate": draw(st.sampled_from([0.25, 0.5, 0.8])), "seed": draw(st.integers(0, 99))}
        return Call("TensorDropout", (x,), options | {"is_training": is_training}, d)

    return case()


def agrees(name: str, cases: Callable[[], "SearchStrategy[Call]"], how: Look, **options: Any) -> Check:
    """Return a check that compares a function with the oracle's."""
    return agreement(name, cases, partial(ask, how), right_answer(how), describe=str, draw=drawing, link=link_of, **options)


def odd(name: str, function: str, how: Look, agree: Callable[[Any, Any], bool] | None = None) -> Check:
    """Return a check of unusual elements, sizes and gradients."""
    return agrees(name, partial(odd_calls, function), how, agree=agree, share=ODD_SHARE)


def odd_slopes(name: str, function: str) -> list[Check]:
    """Return checks of the gradients of unusual cases, relative to the gradient of the result, and of what is kept."""
    cases, question = partial(odd_calls, function), partial(ask, slopes)

    def relative(case: Call, found: Any) -> Any:
        if not isinstance(found, tuple):
            return found
        return tuple(np.asarray(x, np.float64) / largest_of(case.d.array()) for x in found)

    right = right_answer(slopes)
    same = agreement(
        name,
        cases,
        question,
        lambda case: relative(case, right(case)),
        read=relative,
        describe=str,
        link=link_of,
        share=ODD_SHARE,
    )
    return [same, keeps_nothing(name, cases, function, question, another)]


def odd_dropped(name: str, is_training: bool) -> list[Check]:
    """Return checks of dropout for unusual elements, rates and seeds, and of what is kept."""
    cases = partial(odd_dropouts, is_training)
    return [
        agrees(name, cases, both, share=ODD_SHARE),
        keeps_nothing(name, cases, "TensorDropout", partial(ask, both), another),
    ]


def value_of_log(case: Call, answer: tuple[object, float]) -> object:
    """Return the value of an answer, or raise `Wrong` if a logarithm is taken of a number near 0."""
    found, least = answer
    if least < MIN_LOG:
        message = f"a logarithm is taken of {least:.3g}, which has lost digits, or is 0"
        raise Wrong(f"{message}; take it of the sum of exp(a - max), which is at least 1", kind="near 0")
    return found


def three_masks(case: Mask) -> list[list[float]]:
    """Return a mask twice, and the mask of half of the rate."""
    return [mask_of(case), mask_of(case), mask_of((case[0], case[1] / 2, case[2]))]


def describe_mask(case: Mask) -> str:
    """Return a case as text."""
    return f"dropout_mask(count={case[0]}, rate={case[1]}, seed={case[2]})"


def link_of(case: Call) -> str:
    """Return the page that shows the backward pass of the function for the shape of a case, of at most two dims."""
    dim, shape = case.options.get("dim"), case.inputs[0].shape
    if dim is None or len(shape) > 2:
        return layout_link(case.inputs[0])
    along_dim = f"({dim}, keepdims=True)" if len(shape) > 1 else "()"
    formula = {
        "TensorMax": f"x.max{along_dim}",
        "TensorSoftmax": f"x.exp()/x.exp().sum{along_dim}",
        "TensorLogSoftmax": f"x-x.exp().sum{along_dim}.log()",
    }[case.name]
    sizes = ",".join(map(str, shape))
    return "autodiff?" + urlencode(
        {"autodiff_function": "your own", "autodiff_own": formula, "autodiff_shapes": f"x: {sizes}"}
    )


def drawing(case: Call, got: object, expected: object) -> list[str]:
    """Draw the input, the gradient of the result, and the expected and actual answer."""
    lines = [*rows(case.inputs[0].array(), "a"), *rows(case.d.array(), "d")]
    for name, found in (("expected", expected), ("got", got)):
        for part in found if isinstance(found, tuple) else (found,):
            lines += rows(part, name)
    return lines


def mask_of(case: Mask) -> list[float]:
    """Return the right mask."""
    return [float(x) for x in keep_mask((case[0],), *case[1:])]


def naive(case: Call) -> Array:
    """Compute softmax without subtracting the maximum."""
    with np.errstate(all="ignore"):
        powers = np.exp(case.inputs[0].array())
        return np.asarray(powers * np.reciprocal(powers.sum(case.options["dim"], keepdims=True)))


def log_of_softmax(case: Call) -> Array:
    """Compute log(softmax(x)), which underflows."""
    with np.errstate(all="ignore"):
        return np.log(exact(case))


def from_zero(case: Call) -> Array:
    """Compute softmax with a maximum that starts at 0."""
    a, dim = case.inputs[0].array(), case.options["dim"]
    with np.errstate(all="ignore"):
        powers = np.exp(a - a.max(dim, keepdims=True, initial=0.0))
        return np.asarray(powers * np.reciprocal(powers.sum(dim, keepdims=True)))


def exact(case: Call) -> Array:
    """Compute softmax."""
    return softmax(case.inputs[0].array(), case.options["dim"])


def to_largest(case: Call, which: str) -> tuple[Array]:
    """Compute the gradient of max that assigns all of it to each maximum, or to the first one."""
    a, dim = case.inputs[0].array(), case.options["dim"]
    winners = a == a.max(dim, keepdims=True)
    if which == "first":
        winners &= np.cumsum(winners, dim) == 1
    return (winners * case.d.array(),)


def mask_for(case: Call) -> Array:
    """Return the mask for a case of dropout."""
    return keep_mask(case.d.shape, case.options["rate"], case.options["seed"])


def there_and_back(case: Call, forth: Array | float, back: Array | float) -> tuple[Array, ...]:
    """Return the value and the gradient of a multiplication by constants."""
    return np.asarray(case.inputs[0].array() * forth), np.asarray(case.d.array() * back)


TASK = Task(
    id="4.4",
    title="Max, softmax, dropout",
    file="softmax.py",
    slots=("TensorMax", "TensorSoftmax", "TensorLogSoftmax", "dropout_mask", "TensorDropout"),
    points=5,
    text=(
        "Functions of tensors once more, from the loops and operators that you have: the largest along a dim, softmax and "
        "its logarithm, which must not fail for large numbers, and dropout, which leaves elements out while a network "
        "is trained, and none when it is asked. What is left out depends on a seed alone, so that it can be repeated."
    ),
    hints=(
        "softmax(a) is softmax(a - c) for any number c: the largest of a row is a good one, since no power is above 1 then. "
        "For the logarithm, do not take log of a quotient: write it as a difference first.",
        "softmax: y = powers / sum; backward: y * (d - the sum of d * y along the dim). log-softmax: less - log(sum of "
        "exp(less)) with less = a - max; backward: d - softmax * the sum of d. max: the elements equal to the largest share "
        "d. dropout: a * mask, d * mask.",
        "docs/course/4.4-softmax.md; docs/guide/numbers.md has what large numbers do to floats.",
    ),
    reads=("docs/course/4.4-softmax.md",),
    checks=(
        in_turn(MAX, [agrees(MAX, lambda: along("TensorMax", 97, (0.5,)), value), odd(MAX, "TensorMax", value)]),
        in_turn(
            MAX_BACK,
            [agrees(MAX_BACK, lambda: along("TensorMax", 3, (0.5,)), slopes), *odd_slopes(MAX_BACK, "TensorMax")],
        ),
        in_turn(
            SOFTMAX,
            [
                agrees(SOFTMAX, lambda: along("TensorSoftmax", 97, (0.0625, 30.0), SHIFTS), value),
                odd(SOFTMAX, "TensorSoftmax", value, agree_relatively),
            ],
        ),
        in_turn(
            SOFTMAX_BACK,
            [
                agrees(SOFTMAX_BACK, lambda: along("TensorSoftmax", 97, (0.0625,)), slopes),
                *odd_slopes(SOFTMAX_BACK, "TensorSoftmax"),
            ],
        ),
        in_turn(
            LOG,
            [
                agrees(LOG, lambda: along("TensorLogSoftmax", 97, (0.0625, 30.0), SHIFTS), value),
                agreement(
                    LOG,
                    lambda: odd_calls("TensorLogSoftmax") | along("TensorLogSoftmax", 97, (1.0, 6.0)),
                    ask_log,
                    right_answer(value),
                    read=value_of_log,
                    describe=str,
                    link=link_of,
                    share=2 * ODD_SHARE,
                ),
            ],
        ),
        in_turn(
            LOG_BACK,
            [
                agrees(LOG_BACK, lambda: along("TensorLogSoftmax", 97, (0.0625,)), slopes),
                *odd_slopes(LOG_BACK, "TensorLogSoftmax"),
            ],
        ),
        in_turn(
            MASK,
            [
                agreement(MASK, masks, calls("dropout_mask"), mask_of, describe=describe_mask),
                agreement(
                    MASK, odd_masks, ask_masks, three_masks, agree=agree_lists, describe=describe_mask, share=ODD_SHARE
                ),
                keeps_nothing(MASK, odd_masks, "dropout_mask", calls("dropout_mask"), lambda c: (c[0] + 77, *c[1:])),
            ],
        ),
        in_turn(TRAINING, [agrees(TRAINING, lambda: dropped(True), both), *odd_dropped(TRAINING, True)]),
        in_turn(EVALUATION, [agrees(EVALUATION, lambda: dropped(False), both), *odd_dropped(EVALUATION, False)]),
    ),
    mistakes=(
        Mistake(
            "each of several equal elements gets the whole gradient",
            "What they get must add up to d. How many are equal to the largest? A sum of ones and zeros tells.",
            wrong_answer=lambda c: to_largest(c, "each"),
            check=MAX_BACK,
        ),
        Mistake(
            "the first of several equal elements gets the whole gradient",
            "Here equal ones share, as in the library: no order of elements matters then.",
            wrong_answer=lambda c: to_largest(c, "first"),
            check=MAX_BACK,
        ),
        Mistake(
            "the largest of a row is looked for from 0 on",
            "A row may have elements around -2000 only. exp makes 0 of them all, and 0 / 0 is nan: begin at -inf.",
            wrong_answer=from_zero,
            check=SOFTMAX,
        ),
        Mistake(
            "exp is taken of large numbers",
            "exp(800) is no float any more: it is inf, and inf / inf is nan. Subtract the largest of the dim first.",
            wrong_answer=naive,
            when=lambda w: w.kind == "OverflowError",
            check=SOFTMAX,
        ),
        Mistake(
            "the derivative of softmax forgets that all share one sum",
            "If one element grows, all others of its row become less likely: the sum of d * y along the dim takes part.",
            wrong_answer=lambda c: (c.d.array() * exact(c) * (1 - exact(c)),),
            check=SOFTMAX_BACK,
        ),
        Mistake(
            "the logarithm is taken of a probability that has become 0",
            "log(exp(x) / s) is x - log(s), and that has no exp of x to become 0.",
            wrong_answer=log_of_softmax,
            check=LOG,
        ),
        Mistake(
            "elements are kept with the probability of being dropped",
            "A number of random() is less than 0.1 once in ten times: that element is dropped.",
            wrong_answer=lambda c: [1 / (1 - c[1]) if not m else 0.0 for m in mask_of(c)],
            check=MASK,
        ),
        Mistake(
            "what is kept is not scaled",
            "With every second element gone, a sum is half as large. 1 / (1 - rate) makes up for it, in training.",
            wrong_answer=lambda c: [float(m > 0) for m in mask_of(c)],
            check=MASK,
        ),
        Mistake(
            "the gradient does not pass the mask",
            "An element that was dropped had no part in the result; one that was scaled had a larger one.",
            wrong_answer=lambda c: there_and_back(c, mask_for(c), 1.0),
            check=TRAINING,
        ),
        Mistake(
            "values are changed in evaluation",
            "A network that is asked, not trained, uses all that it has: is_training is False then. Nothing is scaled: "
            "the mask has made up for what was dropped in training already.",
            when=lambda w: not w.kind,
            check=EVALUATION,
        ),
    ),
)
