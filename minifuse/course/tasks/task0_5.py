"""Task 0.5: classify points of two kinds with weights chosen by hand."""

from collections.abc import Callable
from typing import Any

from ...core.errors import NotDoneYet
from ..questions.calling import calls
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..toy_points import (
    BORDERS,
    MARGIN,
    Line,
    Network,
    is_right,
    picture,
    point_set,
    side_of_line,
    side_of_network,
    square,
)
from ..verdicts import Wrong

SLOTS = {
    "simple": "line_for_simple",
    "diagonal": "line_for_diagonal",
    "split": "network_for_split",
    "xor": "network_for_xor",
}
SIDE, BORDER, SHAPE = "wrong side", "wrong border", "no line and no network"  # kinds of failures
Change = Callable[[Any], Line | Network]  # from an answer to another one
NOUNS = {"line": "three numbers (weight of x, weight of y, bias)", "network": "(hidden, last)"}


def separates(name: str) -> Check:
    """Return a check that an answer has every point of a set on the right side."""
    slot = SLOTS[name]
    kind = slot.partition("_")[0]

    def run(student: StudentProcess, effort: Effort) -> None:
        points = point_set(name)
        try:
            answer = student.ask(calls(slot), ())
        except NotDoneYet as error:
            raise NotDoneYet(error.part, "\n  ".join([str(error), "", *picture(points)])) from None
        fault = fault_of_line(answer) if kind == "line" else fault_of_network(answer)
        if fault:
            raise Wrong(
                f"{slot} must return {NOUNS[kind]}; {fault}",
                case=(name, answer),
                case_text=f"{slot}()",
                got=answer,
                drawing=picture(points, is_framed=False),
                kind=SHAPE,
            )
        side = side_of(name, answer)
        wrong = [p for p in points if not is_right(p, side(p.x, p.y))]
        if wrong:
            p = wrong[0]
            raise Wrong(
                f"{len(wrong)} of the {len(points)} points of {name!r} are on the wrong side",
                case=(name, answer),
                case_text=f"{slot}() says {side(p.x, p.y):.4g} at x = {p.x}, y = {p.y}, a point of kind {p.kind}",
                kind=SIDE,
                drawing=picture(points, side, is_framed=False),
            )
        wrong = [p for p in square(name, effort.seed) if not is_right(p, side(p.x, p.y))]
        if wrong:
            p = wrong[len(wrong) // 2]
            raise Wrong(
                f"the points of {name!r} are on the right side, but the border is not within {MARGIN} of where it should be",
                case=(name, answer),
                case_text=f"{slot}() says {side(p.x, p.y):.4g} at x = {p.x}, y = {p.y}, where a point is of kind {p.kind}",
                kind=BORDER,
                drawing=picture([*points, *wrong], side, is_framed=False),
            )

    return Check(f"{slot} has every point of {name!r} on its side", run)


def is_number(x: object) -> bool:
    """Return whether a value can be a weight."""
    return isinstance(x, int | float) and not isinstance(x, bool)


def fault_of_line(line: object) -> str:
    """Describe the fault of a line; "" if there is none."""
    if not isinstance(line, tuple | list) or not all(map(is_number, line)):
        return f"{line!r} is no tuple of numbers"
    return "" if len(line) == 3 else f"{line!r} has {len(line)}"


def fault_of_network(network: object) -> str:
    """Describe the fault of a network; "" if there is none."""
    if not isinstance(network, tuple | list) or len(network) != 2 or not all(isinstance(x, tuple | list) for x in network):
        return f"{network!r} is no pair of lists: hidden lines, and what is made of them"
    hidden, last = network
    faults = [f"hidden line {k}: {fault}" for k, line in enumerate(hidden) if (fault := fault_of_line(line))]
    if faults:
        return faults[0]
    if not all(map(is_number, last)):
        return f"{last!r}, the second part, should be numbers only"
    wanted = len(hidden) + 1
    return "" if len(last) == wanted else f"last has {len(last)} numbers, and {len(hidden)} hidden lines want {wanted}"


def side_of(name: str, answer: Line | Network) -> Callable[[float, float], float]:
    """Return the function of a point that an answer defines."""
    of: Callable[..., float] = side_of_line if SLOTS[name].startswith("line") else side_of_network
    return lambda x, y: float(of(answer, x, y))


def holds(name: str, answer: Line | Network) -> bool:
    """Return whether an answer has every point on the right side."""
    return all(is_right(p, side_of(name, answer)(p.x, p.y)) for p in point_set(name))


def changed(change: Change) -> Callable[[Wrong], bool]:
    """Return a `when` for a mistake: a changed answer would have been right."""
    return lambda wrong: wrong.kind == SIDE and holds(wrong.case[0], change(wrong.case[1]))


def opposite(answer: Any) -> Line | Network:
    """Exchange the sides of a border."""
    if isinstance(answer[0], list | tuple):
        return answer[0], [-w for w in answer[1]]
    x, y, bias = answer
    return -x, -y, -bias


def lines(change: Callable[[Line], Line]) -> Change:
    """Return a change of a line, or of all hidden lines of a network."""
    return lambda answer: (
        ([change(line) for line in answer[0]], answer[1]) if isinstance(answer[0], list | tuple) else change(answer)
    )


def is_straight(wrong: Wrong) -> bool:
    """Return whether a network is linear: fewer than two of its hidden lines have a weight."""
    if wrong.kind != SIDE or not SLOTS[wrong.case[0]].startswith("network"):
        return False
    hidden, last = wrong.case[1]
    return sum(1 for line, w in zip(hidden, last, strict=False) if w and any(line[:2])) < 2


def has_no_bias(wrong: Wrong) -> bool:
    """Return whether every line passes through the corner (0, 0)."""
    if wrong.kind != SIDE:
        return False
    answer = wrong.case[1]
    found = answer[0] if isinstance(answer[0], list | tuple) else [answer]
    return len(found) > 0 and all(line[2] == 0 and any(line) for line in found)


def says_nothing(wrong: Wrong) -> bool:
    """Return whether the network is exactly 0 at the wrong points."""
    if wrong.kind != SIDE or not SLOTS[wrong.case[0]].startswith("network"):
        return False
    sides = [(p, side_of(*wrong.case)(p.x, p.y)) for p in point_set(wrong.case[0])]
    return all(side == 0 for p, side in sides if not is_right(p, side))


TASK = Task(
    id="0.5",
    title="Separate points by hand",
    file="by_hand.py",
    slots=tuple(SLOTS.values()),
    points=3,
    text=(
        "Four sets of points in the unit square, of kinds 1 and 0. Choose numbers that tell the kinds apart: a line, "
        "(weight of x, weight of y, bias), for the first two sets; a small network for the others, which no line can "
        "separate: hidden lines, each of which counts where it says more than 0, and a weight for each and a bias. Later a "
        "network finds such numbers by itself; here you see what it looks for."
    ),
    hints=(
        "A line says 0 on its border. Choose two places that the border should pass, and the weights that give 0 at both; "
        "then look at one point to see whether the signs are right.",
        "split: one hidden line says more than 0 on the left alone, another on the right alone; sum them, and subtract a "
        "little, so that the middle is below 0. xor: with u = x - 0.6 and v = y - 0.4, the kinds differ in whether |u - v| "
        "is larger than |u + v|.",
        "minifuse course check 0.5 draws the points; a size |s| is relu(s) + relu(-s), two hidden lines. "
        "docs/course/0.5-by-hand.md.",
    ),
    reads=("docs/course/0.5-by-hand.md",),
    checks=tuple(separates(name) for name in BORDERS),
    mistakes=(
        Mistake(
            "the two sides are exchanged",
            "The border is where it should be. Kind 1 is where the answer is above 0: change the sign of every number.",
            when=changed(opposite),
        ),
        Mistake(
            "the bias has the wrong sign",
            "For a border at x = 0.4 and a weight of 1, the line is x - 0.4: the bias is what brings it to 0 there.",
            when=changed(lines(lambda line: (*line[:2], -line[2]))),
        ),
        Mistake(
            "the weights of x and y are exchanged",
            "x goes to the right, y goes up. The first weight is that of x.",
            when=changed(lines(lambda line: (line[1], line[0], line[2]))),
        ),
        Mistake(
            "the line has no bias",
            "With a bias of 0 every line passes through (0, 0), the corner at the bottom left. The bias moves it away.",
            when=has_no_bias,
        ),
        Mistake(
            "a single line is to separate what no line can",
            "What one hidden line says grows in one direction. Use one for each stretch of the border, and sum them.",
            when=is_straight,
        ),
        Mistake(
            "the network says 0 where it should say less",
            "0 is neither kind. Where all hidden lines are below 0, only the last bias is left: it should be a little below "
            "0.",
            when=says_nothing,
        ),
        Mistake(
            "the border is right only where the points of the picture are",
            "The sixty points are an example: any other point of the square has a kind, too. Look at the dots: where should "
            "their edge be, and where is it?",
            when=lambda w: w.kind == BORDER,
        ),
        Mistake(
            "the answer has the wrong number of numbers",
            "A line is (weight of x, weight of y, bias). A network is (hidden, last): a list of lines, and one weight for "
            "each of them with a bias at the end.",
            when=lambda w: w.kind == SHAPE,
        ),
    ),
)
