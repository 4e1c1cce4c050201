"""Questions on task 2.2: shapes that fit, and which element is read."""

from math import prod
from random import Random

from ...core.indexing import Shape
from ...core.layout import row_major
from .. import oracle
from .figures import align, strip
from .question import Question, choose


def fitting(rng: Random) -> tuple[Shape, Shape]:
    """Draw two different shapes that fit: of three dims, and of two or three."""
    full = rng.sample(range(2, 8), 3)
    a = [n if rng.random() < 0.6 else 1 for n in full]
    b = [n if m == 1 or rng.random() < 0.4 else 1 for n, m in zip(full, a, strict=True)]
    return tuple(a), tuple(b[rng.randint(0, 1) :])


def shape(rng: Random) -> Question:
    """Ask for the common shape of two shapes."""
    a, b = fitting(rng)
    answer = oracle.function("broadcast_shape")(a, b)
    first = [*b, *(1,) * (len(a) - len(b))]
    wrong = {
        tuple(max(n, m) for n, m in zip(a, first, strict=True)): "shapes are aligned at their last dim, not at their first",
        a: "1 is repeated to the size of the other shape",
    }
    return Question(
        f"Tensors of shapes {a} and {b} are added. Which shape has the result?",
        answer,
        "Align the shapes at their last dim. In each column the sizes are equal, or one is 1 or missing; the other one "
        "counts:",
        {w: text for w, text in wrong.items() if len(a) != len(b) or w == a},
        drawing=align(a, b, result=answer),
        numbers={"a": a, "b": b},
    )


def common(a: Shape, b: Shape) -> Shape | None:
    """Return the common shape of two shapes; None if they do not fit."""
    try:
        shape: Shape = oracle.function("broadcast_shape")(a, b)
    except ValueError:
        return None
    return shape


def fits(rng: Random) -> Question:
    """Ask which pair of shapes does not fit."""
    fitting, others = list[tuple[Shape, Shape]](), list[tuple[Shape, Shape]]()
    while len(fitting) < 2 or not others:
        a = tuple(rng.choice([1, 2, 3, 4]) for _ in range(rng.randint(2, 3)))
        b = tuple(rng.choice([0, 1, 2, 3, 4]) for _ in range(rng.randint(1, 2)))
        group = others if common(a, b) is None else fitting
        group += [(a, b)] * ((a, b) not in group)
    a, b = others[0]
    n, m = next((n, m) for n, m in zip(a[::-1], b[::-1], strict=False) if n != m and 1 not in (n, m))
    return choose(
        rng,
        "Which two shapes do not fit, so that broadcast_shape raises ValueError?",
        f"{a} and {b}",
        {f"{x} and {y}": f"they fit, and give {common(x, y)}" for x, y in fitting[:2]},
        f"Aligned at the last dim, {n} meets {m}: the sizes are neither equal, nor is one of them 1.",
        drawing=align(a, b),
        numbers={"right": (a, b), "others": fitting[:2]},
    )


def element(rng: Random) -> Question:
    """Ask which element a broadcast index reads."""
    full = tuple(rng.randint(3, 6) for _ in range(3))
    small = tuple(n if rng.random() < 0.5 else 1 for n in full[1:])
    index = tuple(rng.randrange(1, n) for n in full)
    answer = oracle.function("broadcast_index")(index, small)
    return Question(
        f"A tensor b of shape {small} is broadcast to shape {full}. Which element of b is read at index {index}?",
        answer,
        f"b has no first dim, so index {index[0]} is dropped. A dim of size 1 is read at 0, whatever the index: {answer}.",
        {
            index[1:]: "a dim of size 1 has only element 0",
            tuple(
                0 if n == 1 else i for i, n in zip(index, small, strict=False)
            ): "the dim in front is dropped, not the last one",
        },
        drawing=align(full, small),
        numbers={"full": full, "small": small, "index": index},
    )


def strides(rng: Random) -> Question:
    """Ask for the strides that repeat a tensor."""
    n, m, is_column = rng.randint(2, 4), rng.randint(2, 4), rng.random() < 0.5
    small = (n, 1) if is_column else (m,)
    view = row_major(small).expand(n, m)
    return Question(
        f"A new tensor of shape {small} is broadcast to shape ({n}, {m}) without a copy. Which strides has the view?",
        view.strides,
        f"Along the repeated dim the position stays: stride 0. Along the other one it grows by 1: {view.strides}. A + "
        "below an index says that several are there:",
        {
            row_major((n, m)).strides: "these are the strides of a copy",
            view.strides[::-1]: "the dim that is repeated has stride 0",
        },
        drawing=strip(view, prod(small), 10.0),
        numbers={"small": small, "full": (n, m)},
    )


def reads(rng: Random) -> Question:
    """Ask how often each element is read."""
    a, b = fitting(rng)
    full = oracle.function("broadcast_shape")(a, b)
    view = row_major(b).expand(*full)
    positions = [view.position(i) for i in indices(full)]
    answer = positions.count(0)
    return Question(
        f"A tensor a of shape {a} and a tensor b of shape {b} are added. How often is each element of b read?",
        answer,
        f"The result has {prod(full)} elements, and b has {prod(b)}. Each element of the result reads one of b: "
        f"{prod(full)} / {prod(b)} = {answer}.",
        {prod(full): "this is how often all elements of b are read together", 1: "b is repeated along some dims"},
        drawing=align(a, b, result=full),
        numbers={"a": a, "b": b},
    )


def indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return all indices of a shape in row-major order."""
    return [oracle.function("index_of")(k, shape) for k in range(prod(shape))]


QUESTIONS = (shape, fits, element, strides, reads)
