"""Questions on task 2.1: positions, indices and strides."""

from math import prod
from random import Random

from ...core.layout import row_major
from .figures import position_formula, strip
from .question import Question, format_value


def position(rng: Random) -> Question:
    """Ask for the position of an element of a new tensor."""
    shape = (rng.randint(2, 3), rng.randint(2, 4), rng.randint(2, 4))
    index = tuple(rng.randrange(n) for n in shape)
    layout = row_major(shape)
    return Question(
        f"A new tensor has shape {shape}. At which position is the element with index {index}?",
        layout.position(index),
        f"Strides are {layout.strides}. {position_formula(index, layout)}.",
        {
            row_major(shape[::-1]).position(index[::-1]): "the first dim was counted fastest",
            sum(index): "each index is multiplied by the stride of its dim",
        },
        numbers={"shape": shape, "index": index},
    )


def index(rng: Random) -> Question:
    """Ask for the index at a position."""
    shape = (rng.randint(2, 3), rng.randint(2, 4), rng.randint(2, 4))
    layout, at = row_major(shape), rng.randrange(3, prod(shape))
    answer = layout.index(at)
    (a, b, _), (i, j, k) = layout.strides, answer
    return Question(
        f"A new tensor has shape {shape}. Which index has the element at position {at}?",
        answer,
        f"Strides are {layout.strides}: {at} = {i} * {a} + {j} * {b} + {k} * 1. A division for each dim: {at} // {a} = "
        f"{i}, and what is left, {at % a}, // {b} = {j}.",
        {row_major(shape[::-1]).index(at)[::-1]: "the first dim was counted fastest"},
        numbers={"shape": shape, "at": at},
    )


def strides(rng: Random) -> Question:
    """Ask for the strides of a permuted tensor."""
    shape, dims = tuple(rng.sample(range(2, 6), 3)), rng.choice([(2, 0, 1), (1, 2, 0)])
    layout = row_major(shape)
    answer = layout.permute(*dims).strides
    inverse = [dims.index(d) for d in range(3)]
    return Question(
        f"A new tensor x of shape {shape} is permuted with dims {dims}. Which strides has the result?",
        answer,
        f"x has strides {layout.strides}. Dim d of the result is dim dims[d] of x, so sizes and strides move together: "
        f"shape {layout.permute(*dims).shape}, strides {answer}.",
        {
            layout.permute(*inverse).strides: "the inverse permutation: dim d of the result is dim dims[d] of x",
            layout.strides: "sizes were permuted, strides were not",
            row_major(layout.permute(*dims).shape).strides: "these are the strides of a copy; a view moves no number",
        },
        numbers={"shape": shape, "dims": dims},
    )


def flipped(rng: Random) -> Question:
    """Ask for stride and offset of a slice with a negative step."""
    n, step = rng.randint(7, 9), rng.choice([-1, -2, -3])
    start = rng.randint(max(3, -2 * step), n - 1)
    selected = range(n)[start::step]
    view = row_major((n,)).slice((start, step, len(selected)))
    answer = (*view.strides, view.offset)
    elements = ", ".join(f"v[{k}]" for k in selected)
    return Question(
        f"v has {n} elements, stride 1, offset 0. Which stride and which offset has v[{start}::{step}], which is "
        f"[{elements}]?",
        answer,
        f"The next element is {-step} to the left, so the stride is {step}. The first element is v[{start}], so the offset "
        f"is {start}.",
        {
            (step, 0): "a view with a negative stride begins at its highest position",
            (-step, start): "the view runs to the left, so its stride is negative",
            (step, len(selected)): "the offset is the position of the first element",
        },
        drawing=strip(view, n),
        numbers={"n": n, "start": start, "step": step},
    )


def cell(rng: Random) -> Question:
    """Ask for the position of an element of a view with an offset."""
    rows, columns, offset = rng.randint(2, 3), rng.randint(2, 3), rng.randint(1, 3)
    layout = row_major((rows, columns)).permute(1, 0)
    view = type(layout)(layout.shape, layout.strides, offset)
    at = (rng.randint(1, columns - 1), rng.randint(1, rows - 1))
    return Question(
        f"y is a view with shape {view.shape}, strides {view.strides} and offset {offset}. At which position of the "
        f"storage is y[{at[0]}, {at[1]}]?",
        view.position(at),
        f"{position_formula(at, view)}.",
        {
            view.position(at) - offset: "the offset was forgotten",
            offset + row_major(view.shape).position(at): "the strides of y are its own; these are those of a new tensor",
        },
        drawing=strip(view, offset + rows * columns + 1),
        numbers={"shape": view.shape, "strides": view.strides, "offset": offset, "index": at},
    )


def repeated(rng: Random) -> Question:
    """Ask how many storage elements a tensor with stride 0 uses."""
    rows, columns = rng.choice([10, 100, 1000]), rng.randint(2, 9)
    layout = row_major((columns,)).expand(rows, columns)
    answer = len({layout.position((i, j)) for i in range(rows) for j in range(columns)})
    return Question(
        f"A tensor has shape ({rows}, {columns}) and strides {layout.strides}. How many elements of its storage does it "
        "use?",
        answer,
        f"Stride 0 reads the same row {format_value(rows)} times: position = i * 0 + j * 1 is one of 0 to {columns - 1}. "
        "This is broadcasting, task 2.2.",
        {rows * columns: "stride 0 was taken for a copy", rows: "the dim with stride 0 is the one that is repeated"},
        numbers={"rows": rows, "columns": columns},
    )


QUESTIONS = (position, index, strides, flipped, cell, repeated)
