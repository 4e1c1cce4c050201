"""Questions on task 4.3: windows, their means and maxima, and the way back."""

from random import Random

import numpy as np

from .. import oracle
from ..engine import Engine
from ..networks import average_pool, max_pool
from .figures import matrix, terms
from .question import Question, Wrong, format_value


def flat(values: object) -> tuple[float, ...]:
    """Return nested lists as a flat tuple."""
    return tuple(np.asarray(values, float).reshape(-1).tolist())


def maximum(rng: Random) -> Question:
    """Ask for a max pooling."""
    x = np.array([[rng.randint(-9, 9) for _ in range(4)] for _ in range(4)], float)
    answer = flat(max_pool(Engine().tensor([[x.tolist()]]), (2, 2)).tolist())
    from_zero = tuple(max(v, 0.0) for v in answer)
    rows = flat([x[r, c : c + 4].max() for r in range(4) for c in (0,)])
    wrong: Wrong = {rows: "a window has two rows and two columns"}
    if from_zero != answer:
        wrong[from_zero] = "the running maximum begins at 0, so negative elements are never found"
    return Question(
        "Windows of 2 x 2 are side by side. Which four numbers does max_pool write, row by row?",
        answer,
        "One number is kept of each window, the largest:",
        wrong,
        figure=matrix("x", x),
        drawing=matrix("max", np.reshape(answer, (2, 2))),
        numbers={"x": x.tolist()},
    )


def mean(rng: Random) -> Question:
    """Ask for an average pooling with a stride."""
    x, stride = [rng.randint(0, 9) for _ in range(6)], rng.choice([1, 3])
    out = average_pool(Engine().tensor([[[[float(v) for v in x]]]]), (1, 2), (1, stride))
    values = flat(out.tolist())
    place = rng.randint(1, min(2, len(values) - 1))
    start = place * stride
    return Question(
        f"A row {x} is pooled with windows of 1 x 2 and stride (1, {stride}). What is the mean of window {place}, counted "
        "from 0?",
        values[place],
        f"The window begins at {place} * {stride} = {start}: ({x[start]} + {x[start + 1]}) / 2 = "
        f"{format_value(values[place])}.",
        {
            (x[2 * place] + x[2 * place + 1]) / 2: "a window begins at its number times the stride, not times its size",
            x[start] + x[start + 1]: "a mean is divided by the size of the window",
        },
        numbers={"x": x, "stride": stride, "place": place},
    )


def ties(rng: Random) -> Question:
    """Ask for the gradient of a max pooling with overlapping windows and equal elements."""
    high = rng.randint(5, 9)
    x = rng.choice(
        [
            [1, high, high, 2],
            [high, high, 1, 3],
            [2, high, 1, high],
            [high, 1, 2, high],
            [3, high, 4, 1],
            [high, high, high, 1],
        ]
    )
    gradient = [rng.choice([1, 2, 4, 6]) for _ in range(3)]
    engine = Engine()
    row = engine.tensor([[[[float(v) for v in x]]]])
    y = max_pool(row, (1, 2), (1, 1))
    engine.backward(y, [[[[float(g) for g in gradient]]]])
    answer = flat(row.grad.tolist() if row.grad else [])
    greedy, first = [0.0] * 4, [0.0] * 4
    lines = []
    for k in range(3):
        seen = x[k : k + 2]
        winners = [k + j for j in range(2) if seen[j] == max(seen)]
        first[winners[0]] += gradient[k]
        for w in winners:
            greedy[w] += gradient[k]
        share = format_value(gradient[k] / len(winners))
        lines.append(
            f"window {k}: {seen}, receives {gradient[k]}: {' and '.join(f'x[{w}]' for w in winners)} "
            f"get{'s' * (len(winners) == 1)} {share}"
        )
    wrong: Wrong = {}
    if tuple(greedy) != answer:
        wrong[tuple(greedy)] = "equal elements share: each gets a part, not the whole"
        wrong[tuple(first)] = "equal elements share: the first does not get all"
    overwritten = [0.0] * 4
    for k in range(3):
        seen = x[k : k + 2]
        winners = [k + j for j in range(2) if seen[j] == max(seen)]
        for w in winners:
            overwritten[w] = gradient[k] / len(winners)
    if tuple(overwritten) != answer:
        wrong[tuple(overwritten)] = "an element of two windows gets the sum of both parts"
    return Question(
        f"The row {x} is max-pooled with windows of 1 x 2 and stride (1, 1). The three outputs receive {gradient}. What do "
        "the four elements receive?",
        answer,
        "Each window sends its gradient to its largest element; several equal ones share, and parts are added:",
        wrong,
        drawing="\n".join(lines),
        numbers={"x": x, "gradient": gradient},
    )


def mean_gradient(rng: Random) -> Question:
    """Ask for the gradient of an element of average pooling."""
    gradient, i = [rng.choice([2, 4, 6, 8]) for _ in range(3)], rng.randint(0, 3)
    engine = Engine()
    row = engine.tensor([[[[1.0, 2.0, 3.0, 4.0]]]])
    y = average_pool(row, (1, 2), (1, 1))
    engine.backward(y, [[[[float(g) for g in gradient]]]])
    answer = flat(row.grad.tolist() if row.grad else [])[i]
    windows = [k for k in range(3) if k <= i <= k + 1]
    return Question(
        "A row of 4 elements is average-pooled with windows of 1 x 2 and stride (1, 1). The three outputs receive "
        f"{gradient}. What does element {i}, counted from 0, receive?",
        answer,
        f"It is in {'windows' if len(windows) > 1 else 'window'} {' and '.join(map(str, windows))}, and each sends it a "
        f"half: {terms([(gradient[k], 0.5) for k in windows])} = {format_value(answer)}.",
        {
            float(sum(gradient[k] for k in windows)): "a mean of 2 elements sends each of them a half",
            gradient[windows[0]] / 4: "a window has 2 elements",
            **({gradient[windows[0]] / 2: "an element of two windows gets a part from both"} if len(windows) > 1 else {}),
        },
        numbers={"gradient": gradient, "i": i},
    )


def left_out(rng: Random) -> Question:
    """Ask how many elements are in no window."""
    rows, columns, window = rng.randint(4, 9), rng.randint(4, 9), rng.choice([2, 3, 4])
    engine = Engine()
    x = engine.tensor(np.ones((1, 1, rows, columns)).tolist())
    y = average_pool(x, (window, window))
    y.sum().backward()
    answer = int((np.asarray(x.grad.tolist() if x.grad else []) == 0).sum())
    size = oracle.function("conv_size")
    places = size(rows, window, window, 0), size(columns, window, window, 0)
    return Question(
        f"An image of {rows} x {columns} is pooled with windows of {window} x {window}, side by side. How many elements "
        "are in no window, and receive 0?",
        answer,
        f"{places[0]} x {places[1]} windows cover {places[0] * window} rows and {places[1] * window} columns: {rows} * "
        f"{columns} - {places[0] * window} * {places[1] * window} = {answer}.",
        {
            0: "sizes do not come out even, so rows or columns at the end are left out",
            rows * columns % (window * window): "rows and columns are left out, each by its own remainder",
        },
        numbers={"rows": rows, "columns": columns, "window": window},
    )


QUESTIONS = (maximum, mean, ties, mean_gradient, left_out)
