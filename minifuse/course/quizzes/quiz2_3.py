"""Questions on task 2.3: loops over strided tensors."""

from math import prod
from random import Random

import numpy as np

from .. import oracle
from ..cases import fresh
from ..draw import strip
from ..strided import Strided
from .figures import matrix
from .question import Question, Wrong


def permuted(rng: Random, offset: int = 0) -> Strided:
    """Draw a tensor of two dims that is stored column by column."""
    rows, columns = rng.choice([(2, 3), (3, 2), (4, 2), (2, 4)])
    storage = np.array(rng.sample(range(1, 10), rows * columns) + [0.0] * offset)
    return Strided(np.roll(storage, offset), (rows, columns), (1, rows), offset)


def kth(rng: Random) -> Question:
    """Ask for the position of the k-th element."""
    a = permuted(rng, rng.randint(1, 2))
    k = rng.randrange(1, prod(a.shape) - 1)
    index = oracle.function("index_of")(k, a.shape)
    answer = oracle.function("position_of")(index, a.strides, a.offset)
    return Question(
        f"tensor_map walks over a tensor a with shape {a.shape}, strides {a.strides} and offset {a.offset}. At which "
        f"position is element number {k} of a in row-major order, counted from 0?",
        answer,
        f"Element {k} has index {index}, and position {a.offset} + {index[0]} * {a.strides[0]} + {index[1]} * "
        f"{a.strides[1]} = {answer}.",
        {
            k: "a storage is not walked from front to back",
            k + a.offset: "a storage is not walked from front to back, not even from the offset",
            answer - a.offset: "the offset is left out",
        },
        drawing="\n".join(strip(a, "a")),
        numbers={"shape": a.shape, "strides": a.strides, "offset": a.offset, "k": k},
    )


def zipped(rng: Random) -> Question:
    """Ask for an element of a zip with broadcasting."""
    a = permuted(rng)
    b = Strided(np.array(rng.sample([10.0, 20.0, 30.0, 40.0, 50.0], a.shape[1])), (a.shape[1],), (1,), 0)
    out = fresh(a.shape)
    oracle.function("tensor_zip")(lambda x, y: x + y, out, a, b)
    i, j = rng.randrange(a.shape[0]), rng.randrange(a.shape[1])
    k = i * a.shape[1] + j
    return Question(
        f"a has shape {a.shape} and strides {a.strides}; b has shape {b.shape}. What is out[{i}, {j}] after "
        "tensor_zip(add, out, a, b)?",
        float(out.array()[i, j]),
        f"a[{i}, {j}] is at position {i} * {a.strides[0]} + {j} * {a.strides[1]}: {a.array()[i, j]:g}. b is read at "
        f"({j},): {b.storage[j]:g}.",
        {
            float(a.storage[k] + b.storage[j]): f"element {k} of a was looked for at position {k}",
            float(
                a.array()[i, j] + b.storage[(j + 1) % a.shape[1]]
            ): "b is broadcast along rows, so its index is that of the column",
        },
        figure="\n".join([*strip(a, "a"), "", *strip(b, "b")]),
        drawing=matrix("out", out.array()),
        numbers={"a": a.storage.tolist(), "strides": a.strides, "shape": a.shape, "b": b.storage.tolist(), "index": (i, j)},
    )


def reduced(rng: Random) -> Question:
    """Ask for an element of a reduction that depends on the order."""
    array = np.array([[rng.randint(1, 9) for _ in range(3)] for _ in range(3)], float)
    a, dim, start = Strided(array.reshape(-1), (3, 3), (3, 1), 0), rng.randint(0, 1), rng.choice([0, 7, 8])
    at = rng.randrange(3)
    results = {}
    for d in (0, 1):
        for name, fn in (("right", lambda x, y: 10 * x + y), ("swapped", lambda x, y: 10 * y + x)):
            out = fresh((1, 3) if d == 0 else (3, 1))
            oracle.function("tensor_reduce")(fn, out, a, d, float(start))
            results[d, name] = float(out.array().reshape(-1)[at])
    elements = array[:, at] if dim == 0 else array[at]
    index = f"0, {at}" if dim == 0 else f"{at}, 0"
    wrong: Wrong = {
        results[1 - dim, "right"]: f"dim {dim} is reduced, so the index along it runs",
        results[dim, "swapped"]: "fn(so far, next), not fn(next, so far)",
    }
    if start:
        wrong[results[dim, "right"] - start * 1000] = "the reduction begins with start"
    return Question(
        f"fn(x, y) = 10 * x + y. What is out[{index}] after tensor_reduce(fn, out, a, dim={dim}, start={start})?",
        results[dim, "right"],
        f"Along dim {dim} the elements are {', '.join(f'{x:g}' for x in elements)}. In order, from start = {start}: "
        f"{results[dim, 'right']:g}.",
        wrong,
        figure=matrix("a", array),
        numbers={"a": array.tolist(), "dim": dim, "start": start, "at": at},
    )


def shape(rng: Random) -> Question:
    """Ask for the shape of the output of a reduction."""
    sizes, dim = tuple(rng.sample(range(2, 7), 3)), rng.randrange(3)
    out = fresh(tuple(1 if d == dim else n for d, n in enumerate(sizes)))
    a = fresh(sizes, 1.0)
    oracle.function("tensor_reduce")(lambda x, y: x + y, out, a, dim, 0.0)
    return Question(
        f"A tensor of shape {sizes} is reduced along dim {dim} by tensor_reduce. Which shape has out?",
        out.shape,
        f"The reduced dim stays, with size 1: {out.shape}. Each element of out is made of {sizes[dim]} elements of a.",
        {
            tuple(n for d, n in enumerate(sizes) if d != dim): "the dim stays, with size 1",
            tuple(n if d == dim else 1 for d, n in enumerate(sizes)): "only the reduced dim has size 1",
        },
        numbers={"sizes": sizes, "dim": dim},
    )


def calls(rng: Random) -> Question:
    """Ask how often fn is called by a reduction."""
    rows, columns, dim, counts = rng.randint(2, 5), rng.randint(2, 5), rng.randint(0, 1), []

    def fn(x: float, y: float) -> float:
        counts.append((x, y))
        return x + y

    array = fresh((rows, columns), 1.0).array()
    for line in array.T if dim == 0 else array:
        oracle.function("reduce_list")(fn, line.tolist(), 0.0)
    outputs, each = (columns, rows) if dim == 0 else (rows, columns)
    return Question(
        f"A tensor of shape ({rows}, {columns}) is reduced along dim {dim}. How often is fn called?",
        len(counts),
        f"out has {outputs} elements, and each takes {each} calls, since the first element is combined with start: "
        f"{outputs} * {each} = {len(counts)}.",
        {
            outputs * (each - 1): "the first element is combined with start, which is a call, too",
            outputs: "each output is made of several elements",
            each: "each output is made like this one",
        },
        numbers={"rows": rows, "columns": columns, "dim": dim},
    )


QUESTIONS = (kth, zipped, reduced, shape, calls)
