"""Questions on task 2.6: slices, what is written through them, and when a reshape copies."""

from random import Random

import numpy as np

from ...core.layout import Layout, row_major
from .figures import strip
from .question import Question, choose, format_value


def drawn_slice(rng: Random) -> tuple[Layout, dict[str, int], str]:
    """Return the layout of x[a:, b::step] of a new matrix, its numbers, and the tensor and the slice as text."""
    rows, columns, step = rng.randint(4, 6), rng.randint(6, 9), rng.choice([2, 3])
    row, column = rng.randint(1, 2), rng.randint(1, 2)
    count = len(range(column, columns, step))
    layout = row_major((rows, columns)).slice((row, 1, rows - row), (column, step, count))
    numbers = {"rows": rows, "columns": columns, "row": row, "column": column, "step": step}
    return layout, numbers, f"A new tensor x has shape ({rows}, {columns}), and y = x[{row}:, {column}::{step}]"


def layout(rng: Random) -> Question:
    """Ask for the strides of a slice."""
    view, n, text = drawn_slice(rng)
    return Question(
        f"{text}. Which strides has y?",
        view.strides,
        f"x has strides ({n['columns']}, 1). Rows stay {n['columns']} apart; the neighbors along dim 1 are {n['step']} "
        f"elements of x apart. y has shape {view.shape} and offset {view.offset}.",
        {
            (n["columns"], 1): "the step multiplies the stride",
            row_major(view.shape).strides: "these are the strides of a copy; a slice is a view",
            (n["columns"] * n["step"], n["step"]): "the step is that of dim 1 alone",
        },
        numbers=n,
    )


def first(rng: Random) -> Question:
    """Ask for the offset of a slice."""
    view, n, text = drawn_slice(rng)
    row, column = n["row"], n["column"]
    return Question(
        f"{text}. Which offset has y?",
        view.offset,
        f"y[0, 0] is x[{row}, {column}], at {row} * {n['columns']} + {column} * 1 = {view.offset}.",
        {
            0: "a slice that begins later has a larger offset",
            row + column: "a start is multiplied by the stride of its dim",
            row * n["columns"] + column * n["step"]: "the start counts elements of x, not steps",
        },
        numbers=n,
    )


def size(rng: Random) -> Question:
    """Ask for the size of a slice with a step, whose bounds may be out of range."""
    n, step = rng.randint(8, 15), rng.choice([2, 3, 4])
    start, stop = rng.randint(0, 3), rng.choice([n - 1, n, n + rng.randint(3, 9), -1, -2])
    selected = range(n)[start:stop:step]
    return Question(
        f"v has {n} elements. How many has v[{start}:{stop}:{step}]?",
        len(selected),
        f"It has the elements {', '.join(map(str, selected))}: a bound below 0 counts from the end, one beyond the end "
        "is the end, and the quotient is rounded up.",
        {
            (selected.stop - start) // step: "the quotient is rounded up: the first element counts too",
            len(range(start, abs(stop), step)): "a bound below 0 counts from the end, and a slice ends with its tensor",
            selected.stop - start: "the step leaves elements out",
        },
        numbers={"n": n, "start": start, "stop": stop, "step": step},
    )


def written(rng: Random) -> Question:
    """Ask which element of the base changes when a view is written."""
    n, step = rng.randint(8, 10), rng.choice([2, 3, -1, -2])
    start = rng.randint(1, 2) if step > 0 else n - rng.randint(1, 3)
    selected = range(n)[start::step]
    at = rng.randint(1, min(len(selected) - 1, 3))
    view = row_major((n,)).slice((start, step, len(selected)))
    return Question(
        f"v has {n} elements, and w = v[{start}::{step}]. Then w[{at}] = 0 is written. Which element of v is 0 now: v[?]",
        selected[at],
        f"w shares the storage of v: w[{at}] is at {start} + {at} * {format_value(step)} = {selected[at]}.",
        {at: "w begins at another element than v", start + at: "neighbors in w are a step apart"},
        drawing=strip(view, n, 1.0),
        numbers={"n": n, "start": start, "step": step, "at": at},
    )


def needs_copy(rng: Random) -> Question:
    """Ask which of three views cannot be reshaped to one dim without a copy."""
    shape = (rng.randint(3, 9), rng.randint(3, 9))
    return choose(
        rng,
        f"x is a new tensor of shape {shape}. Which of these needs a copy to become a tensor of one dim?",
        "x[:, :2]",
        {
            "x[:2]": "whole rows follow each other, as in x",
            "x[:, 0]": "it has one dim already",
        },
        f"In x[:, :2] the second element of a row and the first of the next are {shape[1] - 1} apart, but those in a row "
        "1: no single stride describes both.",
        numbers={"shape": shape},
    )


def gradient(rng: Random) -> Question:
    """Ask for the gradient of a sum of two overlapping slices."""
    n, low, high = rng.randint(4, 6), rng.randint(1, 2), rng.randint(2, 3)
    counts = np.array([int(k >= low) + int(k < high) for k in range(n)])
    return Question(
        f"x has {n} elements, and loss = x[{low}:].sum() + x[:{high}].sum(). Which gradient has x?",
        tuple(counts.tolist()),
        f"Each slice passes back 1 for each of its elements, and 0 for the others; the two are added. "
        f"{f'Element {low} is' if low == high - 1 else f'Elements {low} to {high - 1} are'} in both.",
        {
            (1,) * n: "an element in both slices receives 1 from each",
            tuple(int(k < high) for k in range(n)): "gradients are added, the second does not replace the first",
            tuple(int(k >= low) for k in range(n)): "both slices pass gradients back",
        },
        numbers={"n": n, "low": low, "high": high},
    )


QUESTIONS = (layout, first, size, written, needs_copy, gradient)
