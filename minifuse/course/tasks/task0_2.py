"""Task 0.2: properties that hold for right operators and find planted bugs."""

import math
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from ..check import agreement, agreement_at_once, in_turn
from ..float_cases import EDGES, SMALL, mentioned, sized
from ..mutants import BUGS, GRID, TESTED, Bug, is_false, is_true
from ..questions.task0_2 import Case, Point, answers, answers_twice, ask, called_operators, describe_calls
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Three = tuple[float, float, float]

HOLDS = "each property is True for right operators, whatever the numbers"
ASKS = "each property asks the operators that it is about"
FINDS = "each planted bug is found by its property"
INEXACT = 0.1, 0.2, 2.8  # their sums and products differ in the last digit if they are associated differently
PARTS_OF_GRID = [GRID[k :: len(GRID) // 100] for k in range(len(GRID) // 100)]  # most bugs are found at 100 points
MAX_NUMBER, ROUNDS = 30.0, 3  # of the numbers; how often each is tried
MAX_CALL_LINES = 12  # of the calls of operators in a picture


def threes() -> "SearchStrategy[Three]":
    """Draw three numbers: eighths, which floats represent exactly, or tenths; sometimes zeros or equal ones."""
    from hypothesis import strategies as st

    number = st.one_of(st.integers(-80, 80).map(lambda k: k / 8), st.integers(-300, 300).map(lambda k: k / 10), st.just(0.0))
    drawn = st.tuples(number, number, number).flatmap(
        lambda c: st.sampled_from([c, c, (c[0], c[0], c[2]), (c[0], -c[0], c[2])])
    )
    return drawn | st.just(INEXACT)


def fine_threes(student: StudentProcess, chance: Random, count: int) -> list[Three]:
    """Draw three numbers of every size from -30 to 30, many of them nearly equal, or mentioned in the student's file."""
    known = [x for x in mentioned(student.folder / TASK.file) if abs(x) <= MAX_NUMBER]
    whole = [float(k) for k in range(-30, 31)]
    free = [chance.uniform(-MAX_NUMBER, MAX_NUMBER) for _ in range(2 * count)] + [
        sized(chance, 1e-20, MAX_NUMBER) for _ in range(count)
    ]
    pool = [*whole, *free, *known, *(x for x in EDGES if abs(x) <= MAX_NUMBER and (x or math.copysign(1, x) > 0))]

    def near(x: float) -> float:
        step = chance.choice(
            (sized(chance, 1e-16, 1e-2) * (x or 1.0), chance.uniform(0.4, 1.2) * 1e-5 * x, sized(chance, 1e-16, 1e-2))
        )
        return chance.choice((x + step, x + step, math.nextafter(x, math.inf), x + chance.choice((1e-8, 1e-7))))

    found: list[Three] = []
    for _ in range(6 * count):
        x = chance.choice(
            (chance.choice(pool), chance.choice(pool), chance.choice((-1, 1)) * chance.uniform(25, MAX_NUMBER))
        )
        y = near(x)
        found += [
            (x, y, chance.choice((2 * y - x, near(y), MAX_NUMBER, -MAX_NUMBER, chance.choice(pool)))),
            (x, x, y),
            (chance.choice(pool), x, y),
        ]
        found.append((chance.choice(pool), chance.choice(pool), chance.choice(pool)))
    pairs = [(x, y) for x in known for y in known]
    found += [(x, y, chance.choice(pool)) for x, y in chance.sample(pairs, min(len(pairs), 5 * count))]
    found += [(x, y, chance.choice((0.0, MAX_NUMBER, -MAX_NUMBER, 1.0))) for x in SMALL for y in (x, 1.0, -x)]
    return [three for three in found if all(abs(x) <= MAX_NUMBER for x in three)]


def describe_case(case: Case) -> str:
    """Return a call as source text."""
    return f"{case[0]}(ops, {', '.join(map(str, case[1]))})"


def holds(slot: str) -> Check:
    """Return a check that a property is True for right operators."""
    name = f"{slot} is True for right operators"

    def coarse() -> "SearchStrategy[Case]":
        return threes().map(lambda xs: (slot, xs))

    def fine(student: StudentProcess, chance: Random, count: int) -> list[Case]:
        return [(slot, xs) for xs in fine_threes(student, chance, count)]

    def run(student: StudentProcess, effort: Effort) -> None:
        def drawing(case: Case, got: object, expected: bool) -> list[str]:
            lines = student.ask(describe_calls, case)
            return [*(lines[:MAX_CALL_LINES] or ["no operator was called"]), *["..."] * (len(lines) > MAX_CALL_LINES)]

        agreement(
            name,
            coarse,
            ask,
            lambda case: True,
            describe=describe_case,
            agree=lambda got, expected: is_true(got),
            draw=drawing,
            share=0.5,
        ).run(student, effort)
        agreement_at_once(
            name,
            fine,
            partial(answers_twice, slot, ROUNDS),
            lambda case: True,
            send=lambda case: case[1],
            describe=describe_case,
            agree=lambda got, expected: is_true(got),
            draw=drawing,
        ).run(student, effort)

    return Check(name, run)


def check_calls(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a property does not call each of its operators anywhere on the grid."""
    for slot in BUGS:
        names = TESTED[slot]
        uncalled = set(names) - student.ask(called_operators, (slot, names, GRID))
        if uncalled:
            raise Wrong(
                f"{slot} never calls ops.{' or ops.'.join(sorted(uncalled))}, so it cannot test it",
                case_text=f"{slot}(ops, x, y, z) at {len(GRID):,} times three numbers",
                kind="uncalled",
            )


def is_found(student: StudentProcess, slot: str, bug: Bug, parts: Sequence[Sequence[Point]] = PARTS_OF_GRID) -> bool:
    """Return whether, at some point of a part, a property is False with the bug and True without it."""
    for points in parts:
        got = student.ask(answers, (slot, {bug.operator: bug.replacement}, points))
        decisive = [xs for xs, answer in zip(points, got, strict=True) if is_false(answer)]
        if any(map(is_true, student.ask(answers, (slot, {}, decisive)))):
            return True
    return False


def check_found_bugs(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a property is True for one of its bugs on the whole grid, or for one that only few numbers show."""
    chance = Random(FINDS if effort.seed is None else effort.seed)
    for slot, bugs in BUGS.items():
        limited = [few for bug in bugs for few in bug.limited(chance)]
        missed_bugs = [bug for bug in bugs if not is_found(student, slot, bug)]
        if not missed_bugs:
            missed_bugs = [bug for bug in limited if not is_found(student, slot, bug, [bug.points(chance)])]
        if not missed_bugs:
            continue
        bug = missed_bugs[0]
        xs, got, right = bug.find_counterexample()
        name = " and ".join(TESTED[slot])
        raise Wrong(
            f"{slot} is True whatever {name} does: it finds none of the {len(bugs)} planted bugs"
            if len(missed_bugs) == len(bugs)
            else f"{slot} is True for a wrong {bug.operator}, one that {bug.description}{bug.where}",
            case_text=f"{bug.operator}({', '.join(map(str, xs))}), where this one gives {got:.6g}, and {right:.6g} is right",
            drawing=[
                f"{slot} finds or misses these bugs:",
                *[f"{'missed' if b in missed_bugs else 'found ':6}  {b.operator}: {b.description}" for b in bugs],
            ],
            kind="vacuous" if len(missed_bugs) == len(bugs) else "limited" if bug.where else "survived",
        )


TASK = Task(
    id="0.2",
    title="Properties that find bugs",
    file="properties.py",
    slots=tuple(BUGS),
    points=4,
    text=(
        "An example shows that an operator is right for one number; a property says what is true for all. Each function "
        "here is given operators, as ops.add, ops.mul and so on, and three numbers, and answers True or False. It must be "
        "True for right operators, whatever the numbers (between -30 and 30, 0 too), and False somewhere for each of the "
        "planted bugs, which are named by what they do as long as they live."
    ),
    hints=(
        "Think of laws rather than of results: what may be exchanged, what changes nothing, what undoes what. Then ask "
        "which wrong function would keep the law as well.",
        "add: order, grouping, 0, and x with -x. mul: order, 1, and its way with sums. maximum: not below either, and one "
        "of the two. relu: relu(x) and relu(-x) together give x. sigmoid: sigmoid(x) and sigmoid(-x) sum to 1, and their "
        "quotient is exp(x). exp and log undo each other; exp of a sum is a product.",
        "docs/course/0.2-properties.md has a property for an operator that is none of these. Compare floats by "
        "ops.is_close.",
    ),
    reads=("docs/course/0.2-properties.md",),
    checks=(in_turn(HOLDS, [holds(slot) for slot in BUGS]), Check(ASKS, check_calls), Check(FINDS, check_found_bugs)),
    mistakes=(
        Mistake(
            "nothing is returned",
            "A function without return gives None. Say `return` before the answer; an assert alone is no answer here.",
            when=lambda w: w.got is None and not w.kind,
            check=HOLDS,
        ),
        Mistake(
            "the answer is neither yes nor no",
            "Return True or False, or what lt, eq and is_close give: 1.0 or 0.0. Is there a comparison missing?",
            when=lambda w: not w.kind and not is_false(w.got),
            check=HOLDS,
        ),
        Mistake(
            "zero is not thought of",
            "inv has an answer at 0, inf, and yet no law of quotients holds there. Leave out 0 and the numbers next "
            "to it, where 1 / x is infinite too: `abs(x) < 1e-300 or ...`.",
            when=lambda w: w.case[0] == "about_inv" and w.case[1][0] == 0,
            check=HOLDS,
        ),
        Mistake(
            "numbers next to zero are not thought of",
            "Between 0 and 1e-308 there are floats, and 1 / x is inf for many of them, a product of two small ones 0. A law "
            "may leave them out, as it leaves out 0: `abs(x) < 1e-300 or ...`.",
            when=lambda w: min(abs(x) for x in w.case[1] if x or w.case[0] == "about_inv") < 1e-150,
            check=HOLDS,
        ),
        Mistake(
            "the property raises an error instead of answering",
            "It should have an answer for any three numbers: 0, negative ones, and two that are equal.",
            when=lambda w: bool(w.kind),
            check=HOLDS,
        ),
        Mistake(
            "floats are compared exactly",
            "(0.1 + 0.2) + 0.3 and 0.1 + (0.2 + 0.3) differ in the last digit, and no operator is to blame: ops.is_close "
            "asks what is meant.",
            when=lambda w: w.case[0] in ("about_add", "about_mul") and any(8 * x != round(8 * x) for x in w.case[1]),
            check=HOLDS,
        ),
        Mistake(
            "the operator is never asked",
            "x + y is Python's sum, not ops.add(x, y). Whatever happens to the operator, such a property is True.",
            when=lambda w: w.kind == "uncalled",
            check=ASKS,
        ),
        Mistake(
            "the property is true whatever the operator does",
            "Put a wrong operator in its place in your mind, one that always gives 7: is there a number for which yours is "
            "False?",
            when=lambda w: w.kind == "vacuous",
            check=FINDS,
        ),
        Mistake(
            "a few numbers are tested, and the others are not",
            "add(2, 3) is 5 for many a wrong add. Write what is true of x, y and z, whatever they are, and call the "
            "operator with them.",
            when=lambda w: w.kind == "limited",
            check=FINDS,
        ),
        Mistake(
            "the wrong operator keeps this law too",
            "Look at the place where the two differ. What is true of the right answer there, and not of the other? Ask for "
            "that too.",
            when=lambda w: w.kind == "survived",
            check=FINDS,
        ),
    ),
)
