"""Questions on task 0.5: lines and small networks."""

from random import Random

from ..toy_points import Point, is_right, picture, side_of_line, side_of_network
from .figures import signed, table, terms
from .question import Question, format_value

SCALE = (0.0, 0.25, 0.5, 0.75, 1.0)


def line_value(rng: Random) -> Question:
    """Ask what a line says of a point."""
    a, b = rng.choice([-4, -2, 2, 4]), rng.choice([-8, -4, 4, 8])
    bias, x, y = rng.choice([-3, -1, 1, 3]), rng.choice([0.25, 0.5, 0.75]), rng.choice([0.25, 0.5, 0.75])
    answer = side_of_line((a, b, bias), x, y)
    kind = "above 0, so the line says kind 1" if answer > 0 else "not above 0, so the line does not say kind 1"
    return Question(
        f"What does the line ({a}, {b}, {bias}) say of the point x = {x}, y = {y}?",
        answer,
        f"weight of x * x + weight of y * y + bias = {terms([(a, x), (b, y)])} + {signed(bias)} = {format_value(answer)}. "
        f"That is {kind}.",
        {answer - bias: "the bias is left out", a * y + b * x + bias: "x and y are exchanged"},
        numbers={"line": (a, b, bias), "point": (x, y)},
    )


def bias(rng: Random) -> Question:
    """Ask for the bias of an upright line at a place."""
    weight, at = rng.choice([-4, -2, -1, 1, 2, 4]), rng.choice([0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7])
    answer = 0.0 - side_of_line((weight, 0, 0), at, 0.0)
    side = "left" if weight < 0 else "right"
    return Question(
        f"A line ({weight}, 0, bias) shall say kind 1 to the {side} of x = {at}. What is the bias?",
        answer,
        f"At the border the line says 0: {weight} * {at} + bias = 0, so bias = {format_value(answer)}.",
        {
            -answer: "the bias has the wrong sign: at the border weight and bias cancel",
            at: "the bias is not the place of the border, unless the weight is -1",
            -at: "the bias is not minus the place of the border, unless the weight is 1",
        }
        if abs(weight) > 1
        else {-answer: "the bias has the wrong sign: at the border weight and bias cancel", 0: "this border is at x = 0"},
        drawing="\n".join(picture([], lambda x, y: side_of_line((weight, 0, answer), x, y))[:19:9]),
        tolerance=1e-6,
        numbers={"weight": weight, "at": at},
    )


def network_value(rng: Random) -> Question:
    """Ask what a network of two hidden lines says of a point."""
    hidden = [(rng.choice([-4, -2, 2, 4]), 0, rng.choice([-1, 1])), (0, rng.choice([-4, -2, 2, 4]), rng.choice([-1, 1]))]
    last = (rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([-1, -2, 1]))
    x, y = rng.choice([0.0, 0.5, 1.0]), rng.choice([0.0, 0.5, 1.0])
    answer = side_of_network((hidden, last), x, y)
    values = [side_of_line(line, x, y) for line in hidden]
    rows = [
        (k, format_value(tuple(line)), v, max(v, 0.0), w)
        for k, (line, v, w) in enumerate(zip(hidden, values, last, strict=False))
    ]
    return Question(
        f"A network has the hidden lines {hidden[0]} and {hidden[1]}, and last = {last}. What does it say of x = {x}, y = "
        f"{y}?",
        answer,
        "relu makes 0 of a line below 0: w0 * relu(line 0) + w1 * relu(line 1) + bias = "
        f"{terms([(w, max(v, 0.0)) for w, v in zip(last, values, strict=False)])} + {signed(last[2])} = "
        f"{format_value(answer)}.",
        {
            sum(w * v for w, v in zip(last, values, strict=False))
            + last[2]: "relu is left out: it makes 0 of a line below 0",
            answer - last[2]: "the last bias is left out",
        },
        drawing=table(rows, ("line", "numbers", "says", "relu", "weight")),
        numbers={"hidden": hidden, "last": last, "point": (x, y)},
    )


def wrong_points(rng: Random) -> Question:
    """Ask how many points a line gets wrong."""
    points = [Point(rng.choice(SCALE), rng.choice(SCALE), rng.randint(0, 1)) for _ in range(4)]
    line = (rng.choice([-2, 2]), rng.choice([-4, 4]), rng.choice([-1, 1]))
    says = [side_of_line(line, p.x, p.y) for p in points]
    answer = sum(not is_right(p, value) for p, value in zip(points, says, strict=True))
    rows = [
        (p.x, p.y, p.kind, value, "right" if is_right(p, value) else "wrong") for p, value in zip(points, says, strict=True)
    ]
    return Question(
        f"How many of these points are on the wrong side of the line {line}? Kind 1 belongs where it says more than 0, "
        "kind 0 where it says less.",
        answer,
        "A point of which a line says exactly 0 is on no side, and wrong:" if 0 in says else "The line says of each point:",
        {
            4 - answer: "these are the right ones; change the sign of every number, and they are the wrong ones",
            **(
                {sum((v > 0) != p.kind for p, v in zip(points, says, strict=True)): "0 is on neither side"}
                if 0 in says
                else {}
            ),
        },
        figure=table(list(points), ("x", "y", "kind")),
        drawing=table(rows, ("x", "y", "kind", "says", "")),
        numbers={"points": points, "line": line},
    )


QUESTIONS = (line_value, bias, network_value, wrong_points)
