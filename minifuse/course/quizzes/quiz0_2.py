"""Questions on task 0.2: which laws find which bugs."""

from collections.abc import Callable
from itertools import product
from random import Random

from ..mutants import BUGS, Bug, operators_with
from ..questions.task0_2 import Operators
from .figures import table
from .question import Question, choose, format_value

Law = Callable[[Operators, float, float, float], float]
LAWS: dict[str, dict[str, Law]] = {
    "about_add": {
        "add(x, y) == add(y, x)": lambda ops, x, y, z: ops.is_close(ops.add(x, y), ops.add(y, x)),
        "add(x, 0) == x": lambda ops, x, y, z: ops.is_close(ops.add(x, 0.0), x),
        "add(add(x, y), -y) == x": lambda ops, x, y, z: ops.is_close(ops.add(ops.add(x, y), -y), x),
    },
    "about_mul": {
        "mul(x, y) == mul(y, x)": lambda ops, x, y, z: ops.is_close(ops.mul(x, y), ops.mul(y, x)),
        "mul(x, 1) == x": lambda ops, x, y, z: ops.is_close(ops.mul(x, 1.0), x),
        "mul(-x, y) == -mul(x, y)": lambda ops, x, y, z: ops.is_close(ops.mul(-x, y), -ops.mul(x, y)),
    },
}
NUMBERS = (0.0, 1.0, 2.5, -2.5, 0.1, -0.7)
EVERYWHERE, ROUNDING, ZERO = "Yes, at all numbers", "No: floats are rounded", "No: 0 and numbers next to it are exceptions"
TRUTHS: dict[str, tuple[Law, str, str]] = {
    "eq(add(x, y), add(y, x))": (lambda ops, x, y, z: ops.eq(ops.add(x, y), ops.add(y, x)), EVERYWHERE, ""),
    "eq(add(add(x, y), z), add(x, add(y, z)))": (
        lambda ops, x, y, z: ops.eq(ops.add(ops.add(x, y), z), ops.add(x, ops.add(y, z))),
        ROUNDING,
        "is_close asks what is meant.",
    ),
    "is_close(add(add(x, y), z), add(x, add(y, z)))": (
        lambda ops, x, y, z: ops.is_close(ops.add(ops.add(x, y), z), ops.add(x, ops.add(y, z))),
        EVERYWHERE,
        "",
    ),
    "eq(add(add(x, y), neg(y)), x)": (
        lambda ops, x, y, z: ops.eq(ops.add(ops.add(x, y), ops.neg(y)), x),
        ROUNDING,
        "is_close asks what is meant.",
    ),
    "is_close(mul(x, inv(x)), 1)": (
        lambda ops, x, y, z: ops.is_close(ops.mul(x, ops.inv(x)), 1.0),
        ZERO,
        "x times 1 / x is 1 except where 1 / x is inf, at 0 and at numbers next to 0: mul(0, inf) is nan.",
    ),
    "eq(neg(neg(x)), x)": (lambda ops, x, y, z: ops.eq(ops.neg(ops.neg(x)), x), EVERYWHERE, ""),
}
PROPERTIES: dict[str, Law] = {
    "ops.eq(ops.add(x, ops.neg(x)), 0.0)": lambda ops, x, y, z: ops.eq(ops.add(x, ops.neg(x)), 0.0),
    "ops.eq(ops.neg(ops.neg(x)), x)": lambda ops, x, y, z: ops.eq(ops.neg(ops.neg(x)), x),
    "ops.eq(ops.mul(x, y + z), ops.add(ops.mul(x, y), ops.mul(x, z)))": lambda ops, x, y, z: ops.eq(
        ops.mul(x, y + z), ops.add(ops.mul(x, y), ops.mul(x, z))
    ),
    "ops.is_close(ops.log(ops.exp(x)), x)": lambda ops, x, y, z: ops.is_close(ops.log(ops.exp(x)), x),
    "ops.eq(ops.add(x, ops.add(y, z)), ops.add(ops.add(x, y), z))": lambda ops, x, y, z: ops.eq(
        ops.add(x, ops.add(y, z)), ops.add(ops.add(x, y), z)
    ),
}
NEGATIONS: dict[str, Callable[[float], float]] = {
    "x (nothing changes)": lambda x: x,
    "1 / x": lambda x: 1 / x,
    "abs(x)": abs,
    "-2 * x": lambda x: -2 * x,
    "1 - x": lambda x: 1 - x,
    "x + 1": lambda x: x + 1,
    "x * x": lambda x: x * x,
}


def counterexample(law: Law, ops: Operators) -> tuple[float, ...] | None:
    """Return the first numbers at which a law is false; None if it is true at all of them."""
    return next((xs for xs in product(NUMBERS, NUMBERS, (0.3,)) if not law(ops, *xs)), None)


def finder(rng: Random) -> Question:
    """Ask which of three laws finds a bug, where exactly one does."""
    candidates = [(slot, bug) for slot in LAWS for bug in BUGS[slot] if len(finding_laws(slot, bug)) == 1]
    slot, bug = rng.choice(candidates)
    ops = operators_with({bug.operator: bug.function})
    found = {law: counterexample(run, ops) for law, run in LAWS[slot].items()}
    right = next(law for law, at in found.items() if at)
    rows = [
        (law, "found" if at else "missed", f"at x = {at[0]}, y = {at[1]}" if at else "true everywhere")
        for law, at in found.items()
    ]
    return choose(
        rng,
        f"A wrong {bug.operator} {bug.description}. Which law finds it?",
        right,
        {law: f"the wrong {bug.operator} obeys this law too" for law in found if law != right},
        f"A law finds a bug if it is false for some numbers. The laws, tried with the wrong {bug.operator}:",
        drawing=table(rows),
        numbers={"slot": slot, "bug": bug.description, "right": right},
    )


def finding_laws(slot: str, bug: Bug) -> list[str]:
    """Return the laws that are false for a bug at some numbers."""
    ops = operators_with({bug.operator: bug.function})
    return [law for law, run in LAWS[slot].items() if counterexample(run, ops)]


def broken_pairs(rng: Random) -> Question:
    """Ask at how many pairs a law is broken by a bug."""
    bug = rng.choice([BUGS["about_mul"][1], BUGS["about_add"][1], BUGS["about_add"][0]])
    pairs = [tuple(rng.choice([-2, -1, 0, 1, 2]) for _ in range(2)) for _ in range(5)]
    results = [(x, y, bug.function(x, y), bug.function(y, x)) for x, y in pairs]
    answer = sum(a != b for _, _, a, b in results)
    name = bug.operator
    return Question(
        f"A wrong {name} {bug.description}. The law {name}(x, y) == {name}(y, x) is tried at the pairs "
        f"{', '.join(map(str, pairs))}. At how many of them is it false?",
        answer,
        "Only where the two sides differ does a pair find the bug:",
        {
            5: "a bug does not show at all numbers",
            5 - answer: "these are the pairs at which the bug stays hidden",
            0: "the two sides differ for some of the pairs",
        },
        drawing=table(results, ("x", "y", f"{name}(x, y)", f"{name}(y, x)")),
        numbers={"bug": bug.description, "pairs": pairs},
    )


def asleep(rng: Random) -> Question:
    """Ask which wrong neg a law lets live."""
    xs = [-3.0, -0.5, 0.25, 1.0, 2.0]
    alive = [name for name, f in NEGATIONS.items() if all(abs(f(f(x)) - x) < 1e-12 for x in xs)]
    right = rng.choice(alive)
    others = rng.sample([name for name in NEGATIONS if name not in alive], 3)
    rows = [(name, NEGATIONS[name](2.0), NEGATIONS[name](NEGATIONS[name](2.0))) for name in (right, *others)]
    return choose(
        rng,
        "The law neg(neg(x)) == x holds for the right neg. For which of these wrong ones does it hold as well, for every "
        "x other than 0?",
        right,
        {name: f"applied twice to 2 it returns {format_value(twice)}" for name, _, twice in rows[1:]},
        f"A wrong function can obey a law: {right}, applied twice, returns x. So another law is needed, such as add(x, "
        "neg(x)) == 0. At x = 2:",
        drawing=table(rows, ("neg(x) is", "once", "twice")),
        numbers={"right": right, "others": others},
    )


def truth(rng: Random) -> Question:
    """Ask whether a property is true for right operators."""
    name = rng.choice(list(TRUTHS))
    law, right, advice = TRUTHS[name]
    at = counterexample(law, operators_with())
    where = f"It is False at x, y, z = {', '.join(map(str, at))}." if at else "No numbers make it False."
    mistakes = {
        EVERYWHERE: "there are numbers at which it is False",
        ROUNDING: "both sides round in the same way, or is_close allows for it",
        ZERO: "0 obeys this law, too",
    }
    return choose(
        rng,
        f"The operators are right. Is the property {name} True for all numbers?",
        right,
        {text: mistake for text, mistake in mistakes.items() if text != right},
        f"{where} {advice}".strip(),
        numbers={"name": name, "right": right, "at": at},
    )


def calls(rng: Random) -> Question:
    """Ask how many calls of operators a property makes."""
    text = rng.choice(list(PROPERTIES))
    PROPERTIES[text](ops := operators_with(), 2.0, 3.0, 5.0)
    names = [name for name, _, _ in ops.calls]
    return Question(
        "How many calls does ops.calls contain after one call of this property?",
        len(names),
        "Arguments are computed before the call that needs them, so the outermost operator comes last:",
        {
            len(names) - 1: "the comparison is an operator, too",
            len(set(names)): "each call counts, not each operator",
        }
        if len(set(names)) < len(names)
        else {len(names) - 1: "the comparison is an operator, too"},
        figure=f"return {text}",
        drawing="\n".join(f"{name}{xs} = {result}" for name, xs, result in ops.calls),
        numbers={"text": text},
    )


QUESTIONS = (finder, broken_pairs, asleep, truth, calls)
