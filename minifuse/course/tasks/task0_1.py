"""Task 0.1: operators on one number or two."""

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from .. import oracle
from ..check import agreement_at_once, in_turn
from ..float_cases import EDGES, Draw, Numbers, mentioned, pairs, quarter, singles, sized
from ..questions.calling import call_with_each
from ..student_process import StudentProcess
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

Case = tuple[str, Numbers]  # (slot, its arguments)
Drawn = Callable[[Draw], Sequence[Numbers]]

CALLS = 25_000  # of an operator with the same numbers again and again
RTOL, ATOL = 1e-9, 2.3e-308  # of functions whose last digits may differ; below ATOL, floats have few digits
ROUNDED = "exp", "log", "inv", "sigmoid", "log_grad", "inv_grad"
SIGNED = "identity", "neg", "add", "mul"  # of which -0.0 and 0.0 are different results
ANY = "any float"  # the derivative where there is none
LARGEST_EXPONENT = math.log(1.7976931348623157e308)
PARTS = 0.1, 0.5, 0.9, 0.999, 1 - 3e-6, 1 + 3e-6, 1.001, 1.1, 2.0, 10.0  # of the tolerance
ARITHMETIC = "identity, add, mul, neg, maximum and relu give what arithmetic says"
ANSWERS = "lt, eq and is_close answer 1.0 or 0.0"
FUNCTIONS = "exp, log, inv and sigmoid are what their names say"
CORNERS = "every float has an answer: nothing overflows, nothing is divided by zero"
SLOPES = "log_grad, inv_grad and relu_grad are derivatives, times d"


def format_call(case: Case) -> str:
    """Return a call as source text: "add(1.0, 2.5)"."""
    slot, xs = case
    return f"{slot}({', '.join(map(str, xs))})"


def agrees(
    slot: str, name: str, drawn: Drawn, picture: Callable[[Case, object, object], Sequence[str]] | None = None
) -> Check:
    """Return a check that compares one operator with the oracle's."""

    def cases(student: StudentProcess, chance: Random, count: int) -> list[Case]:
        draw = Draw(chance, count, mentioned(student.folder / TASK.file))
        return [(slot, xs) for xs in drawn(draw)]

    return agreement_at_once(
        name,
        cases,
        partial(call_with_each, slot, CALLS),
        right_answer,
        send=lambda case: case[1],
        describe=format_call,
        agree=partial(is_right, slot),
        draw=picture,
    )


def right_answer(case: Case) -> float | str:
    """Return the oracle's answer; ANY for a derivative at 0, where log and inv have none."""
    slot, xs = case
    return ANY if slot in ("log_grad", "inv_grad") and xs[0] == 0 else float(oracle.function(slot)(*xs))


def is_right(slot: str, got: object, expected: float | str) -> bool:
    """Return whether an answer is a float, and the right one: exactly, or up to rounding where digits may differ."""
    if not isinstance(got, float | int) or isinstance(got, bool):
        return False
    if abs(got) > sys.float_info.max and isinstance(got, int):
        return False
    if isinstance(expected, str):
        return True
    if math.isnan(got) or math.isnan(expected):
        return math.isnan(got) and math.isnan(expected)
    if slot in SIGNED and math.copysign(1.0, got) != math.copysign(1.0, expected):
        return False
    if slot not in ROUNDED or expected == 0:
        return got == expected
    return math.isclose(got, expected, rel_tol=RTOL, abs_tol=ATOL)


def of_one(keep: Callable[[float], bool] = lambda x: True) -> Drawn:
    """Draw one float, as far as `keep` holds for it."""
    return lambda draw: [(x,) for x in singles(draw) if keep(x)]


def of_quarters(draw: Draw) -> list[Numbers]:
    """Draw two multiples of 1/4, which floats represent exactly."""
    return [(quarter(draw.chance), quarter(draw.chance)) for _ in range(draw.number)]


def has_exponential(x: float) -> bool:
    """Return whether e to the power of x, or of -x, is neither about the smallest nor about the largest float."""
    return not 740 < abs(x) < 750 and abs(abs(x) - LARGEST_EXPONENT) > 1e-3


def tolerance(x: float, y: float) -> float:
    """Return by how much two numbers may differ to be close."""
    return max(1e-5 * max(abs(x), abs(y)), 1e-8)


def neighbors(draw: Draw) -> list[Numbers]:
    """Draw two finite numbers that differ by a part or a multiple of the tolerance, or by anything but the tolerance."""
    chance, found = draw.chance, list(pairs(draw))
    for x in (*singles(draw), *(sized(chance, 1e-4, 1e-2) for _ in range(draw.number))):
        y = x + chance.choice(PARTS) * chance.choice((-1, 1)) * tolerance(x, x)
        found.append(chance.choice(((x, y), (y, x))))
    finite = [(x, y) for x, y in found if math.isfinite(x) and math.isfinite(y)]
    return [(x, y) for x, y in finite if abs(abs(x - y) / tolerance(x, y) - 1) > 1e-6]


def with_infinity(draw: Draw) -> list[Numbers]:
    """Draw two numbers, of which one at least is an infinity."""
    return [(x, y) for x in EDGES for y in EDGES if math.isinf(x) or math.isinf(y)]


def slopes(keep: Callable[[float], bool]) -> Drawn:
    """Draw (x, d): ordinary numbers."""
    return lambda draw: [(x, quarter(draw.chance)) for x in singles(draw) if 1e-3 <= abs(x) <= 1e4 and keep(x)]


def steep(draw: Draw) -> list[Numbers]:
    """Draw (x, d) with x of every size, 0 included, and d of every size where x is not at the end of the floats."""
    normal = [x for x in singles(draw) if 1e-300 <= abs(x) <= 1e300]
    free = [(draw.chance.choice(normal), draw.chance.choice(normal)) for _ in range(4 * draw.number)]
    return [*free, *((x, d) for x in EDGES for d in (0.0, 1.0, -2.5))]


def slope_measured(case: Case, got: object, expected: object) -> Sequence[str]:
    """Return the slope of a function from two of its values, as lines; none where floats are too coarse for that."""
    slot, (x, d) = case
    if x != 0 and not 1e-3 <= abs(x) <= 1e4:
        return []
    name = slot.removesuffix("_grad")
    if name == "relu" and x == 0:
        return ["relu has a corner at 0: a slope of 0 on its left, of 1 on its right; at 0 it is taken as 0"]
    step = 1e-4 * max(abs(x), 1e-4)
    low, high = [oracle.function(name)(x + side * step) for side in (-1, 1)]
    return [
        f"{name}({x:g} - {step:g}) = {low:.8g}",
        f"{name}({x:g} + {step:g}) = {high:.8g}",
        f"so {name} rises by {(high - low) / (2 * step):.5g} for each 1 in x there; times d = {d:g}",
    ]


def asks_for_a_distance(wrong: Wrong) -> bool:
    """Return whether is_close is wrong for small numbers that are far apart, or large ones that are close."""
    slot, xs = wrong.case
    size = max(map(abs, xs))
    return slot == "is_close" and bool(wrong.got == 1.0 if size < 100 else wrong.got == 0.0 or size < 1e4)


def adds_before_log(wrong: Wrong) -> bool:
    """Return whether the answer is the logarithm of a slightly larger number."""
    slot, xs = wrong.case
    is_number = isinstance(wrong.got, float) and math.isfinite(wrong.got)
    return slot == "log" and is_number and 0 < math.exp(wrong.got) - xs[0] < 0.1


def raises(slots: tuple[str, ...], *kinds: str) -> Callable[[Wrong], bool]:
    """Return whether a failure is one of these exceptions in one of these slots."""
    return lambda wrong: wrong.kind in kinds and wrong.case[0] in slots


def rises(wrong: Wrong) -> bool:
    """Return whether the answer is the derivative of inv with the wrong sign."""
    slot, got = wrong.case[0], wrong.got
    return slot == "inv_grad" and isinstance(got, float) and wrong.expected != 0 and is_right(slot, -got, wrong.expected)


def squares_x(wrong: Wrong) -> bool:
    """Return whether inv_grad failed where x * x, by which it divides, is too large or too small for a float."""
    slot, (x, d) = wrong.case
    square = x * x
    if slot != "inv_grad" or 1e-300 < square < math.inf:
        return False
    if square == 0:
        return wrong.kind == "ZeroDivisionError" or (not wrong.kind and x != 0 and is_edge(wrong.got))
    if wrong.kind:
        return wrong.kind == "OverflowError" and square == math.inf
    return is_right(slot, wrong.got, -d / square)


def is_edge(got: object) -> bool:
    """Return whether an answer is 0, an infinity or nan."""
    return isinstance(got, float) and (got == 0 or not math.isfinite(got))


def multiplies_by_slope(wrong: Wrong) -> bool:
    """Return whether the answer is d times a derivative that is inf or 0 by itself."""
    slot, (x, d) = wrong.case
    if slot not in ("log_grad", "inv_grad"):
        return False
    if wrong.kind:
        return wrong.kind == "OverflowError" and slot == "inv_grad" and x * x < 1e-300
    return is_right(slot, wrong.got, without_d(wrong.case) * d)


def without_d(case: Case) -> float:
    """Return a derivative that is not multiplied by d."""
    slot, (x, _) = case
    slope: float = oracle.function(slot)(x, 1.0)
    return slope


TASK = Task(
    id="0.1",
    title="Operators on numbers",
    file="operators.py",
    slots=tuple(
        "identity add mul neg lt eq maximum is_close sigmoid relu log exp inv log_grad inv_grad relu_grad".split()  # noqa: SIM905
    ),
    points=4,
    text=(
        "Sixteen functions of one float or two: all that a network computes is made of them. Each takes floats and gives a "
        "float; questions (lt, eq, is_close) answer 1.0 or 0.0. None of them raises: what is too large for a float is inf, "
        "the logarithm of 0 is -inf, that of a negative number is nan. The three that end in _grad give d times a "
        "derivative."
    ),
    hints=(
        "Most are one line. Where a formula has exp in it, ask how large its argument can be: e to the power of 710 does "
        "not fit a float, e to the power of -710 is merely close to 0.",
        "sigmoid: for x >= 0 take 1 / (1 + exp(-x)); for x < 0 multiply above and below by exp(x), so that exp is never "
        "asked for more than 1. exp and log: math.exp and math.log, with the answers that they refuse to give put in by "
        "hand.",
        "minifuse/core/operators.py has the same functions for the whole library, each with its derivative; "
        "docs/guide/operators.md lists them.",
    ),
    reads=("docs/course/0.1-operators.md", "docs/guide/operators.md"),
    checks=(
        in_turn(
            ARITHMETIC,
            [
                agrees("identity", "identity(x) is x", of_one()),
                agrees("add", "add(x, y) is the sum", pairs),
                agrees("mul", "mul(x, y) is the product", pairs),
                agrees("neg", "neg(x) has the other sign", of_one()),
                agrees("maximum", "maximum(x, y) is the larger one", pairs),
                agrees("relu", "relu(x) is x where it is positive, else 0.0", of_one()),
            ],
        ),
        in_turn(
            ANSWERS,
            [
                agrees("lt", "lt(x, y) is 1.0 if x is less than y, else 0.0", pairs),
                agrees("eq", "eq(x, y) is 1.0 if x and y are equal, else 0.0", pairs),
                agrees("is_close", "is_close(x, y) goes by the size of the numbers", neighbors),
            ],
        ),
        in_turn(
            FUNCTIONS,
            [
                agrees("exp", "exp(x) is e to the power of x", of_one(lambda x: abs(x) <= 30)),
                agrees("log", "log(x) is the natural logarithm", of_one(lambda x: 0 < x < math.inf)),
                agrees("inv", "inv(x) is 1 / x", of_one(lambda x: 1e-300 <= abs(x) <= 1e300)),
                agrees("sigmoid", "sigmoid(x) is 1 / (1 + exp(-x))", of_one(lambda x: abs(x) <= 30)),
            ],
        ),
        in_turn(
            CORNERS,
            [
                agrees("exp", "exp has an answer for every float", of_one(has_exponential)),
                agrees("sigmoid", "sigmoid has an answer for every float", of_one(has_exponential)),
                agrees("log", "log has an answer for every float", of_one()),
                agrees("inv", "inv has an answer for every float", of_one(lambda x: x != 0 or math.copysign(1, x) > 0)),
                agrees("is_close", "an infinity is close to itself alone", with_infinity),
            ],
        ),
        in_turn(
            SLOPES,
            [
                agrees(
                    "log_grad", "log_grad(x, d) is d times the slope of log at x", slopes(lambda x: x > 0), slope_measured
                ),
                agrees(
                    "inv_grad", "inv_grad(x, d) is d times the slope of inv at x", slopes(lambda x: True), slope_measured
                ),
                agrees("relu_grad", "relu_grad(x, d) is d times the slope of relu at x", pairs, slope_measured),
                agrees("log_grad", "log_grad(x, d) is d / x for every x but 0", steep),
                agrees("inv_grad", "inv_grad(x, d) is -d / (x * x) for every x but 0", steep),
            ],
        ),
    ),
    mistakes=(
        Mistake(
            "a question is answered by True or False",
            "Later the answer is multiplied, summed and differentiated like any number, so it is a float: 1.0 or 0.0.",
            when=lambda w: isinstance(w.got, bool),
            check=ANSWERS,
        ),
        Mistake(
            "is_close allows the same distance for numbers of every size",
            "Floats keep about 16 digits, wherever the point is. How far apart may two numbers near 1e9 be, and how far two "
            "near 1e-6?",
            when=asks_for_a_distance,
            check=ANSWERS,
        ),
        Mistake(
            "nothing is close to zero but zero itself",
            "A part of 0 is 0. That is what the second tolerance is for, 1e-8, whatever the size of the numbers.",
            when=lambda w: w.case[0] == "is_close" and w.got == 0.0 and max(map(abs, w.case[1])) < 2e-3,
            check=ANSWERS,
        ),
        Mistake(
            "sigmoid asks for exp of a large number",
            "For x = -1000 the formula wants exp(1000), which no float holds, although the answer is close to 0. Which "
            "other form of the same quotient has exp(x) in it, instead of exp(-x)?",
            when=raises(("sigmoid",), "OverflowError"),
        ),
        Mistake(
            "sigmoid divides one infinity by another",
            "inf / inf is nan. For x >= 0 use the form in which exp is asked for -x, for x < 0 the one in which it is asked "
            "for x: exp then never gives more than 1.",
            when=lambda w: w.case[0] == "sigmoid" and isinstance(w.got, float) and math.isnan(w.got),
            check=CORNERS,
        ),
        Mistake(
            "exp stops where the result is too large for a float",
            "math.exp raises OverflowError there. A float has a value for it: math.inf.",
            when=raises(("exp",), "OverflowError"),
            check=CORNERS,
        ),
        Mistake(
            "log or inv stops at a number that it does not like",
            "math.log raises at 0 and below, and so does a division by 0. Say what is to be given there: -inf or nan for "
            "log, inf for inv.",
            when=raises(("log", "inv"), "ValueError", "ZeroDivisionError"),
            check=CORNERS,
        ),
        Mistake(
            "log adds something to its argument first",
            "That keeps log(0) finite, and makes every other answer wrong by a little: log(1) is no longer 0, and "
            "log(exp(x)) is not x. Treat 0 by itself.",
            when=adds_before_log,
        ),
        Mistake(
            "a derivative is not multiplied by d",
            "d is the derivative of all that comes after, with respect to this operator's result: the chain rule "
            "multiplies.",
            wrong_answer=without_d,
            check=SLOPES,
        ),
        Mistake(
            "relu_grad multiplies d by 0",
            "d may be infinite, and inf * 0 is nan. Choose d or 0.0 with `if`.",
            when=lambda w: w.case[0] == "relu_grad" and isinstance(w.got, float) and math.isnan(w.got),
            check=SLOPES,
        ),
        Mistake(
            "x * x is too small or too large for a float",
            "x * x is 0 for x = 1e-200, although x is not, and inf for x = 1e200. Divide d by x twice: -d / x / x.",
            when=squares_x,
            check=SLOPES,
        ),
        Mistake(
            "d is multiplied by a derivative that is inf or 0",
            "The derivative alone may be too large or too small for a float where its product with d is not, and inf * 0 is "
            "nan; `**` raises OverflowError there. Begin with d, and divide it by x.",
            when=multiplies_by_slope,
            check=SLOPES,
        ),
        Mistake(
            "the derivative of inv has the wrong sign",
            "Where x is positive and grows, 1 / x falls.",
            when=rises,
            check=SLOPES,
        ),
    ),
)
