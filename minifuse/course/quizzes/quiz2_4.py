"""Questions on task 2.4: gradients and the shapes that they undo."""

from random import Random

import numpy as np

from ...core.layout import row_major
from .. import oracle
from ..engine import Engine
from .figures import matrix, terms
from .question import Question, Wrong, format_value


def flat(values: object) -> tuple[float, ...]:
    """Return nested lists as a flat tuple."""
    return tuple(np.asarray(values, float).reshape(-1).tolist())


def unbroadcast(rng: Random) -> Question:
    """Ask for the gradient of a tensor that was repeated."""
    d = np.array([[rng.randint(1, 9) for _ in range(3)] for _ in range(2)], float)
    shape = rng.choice([(3,), (2, 1), (1, 3)])
    engine = Engine()
    answer = flat(oracle.function("unbroadcast")(engine.values(d.tolist()), shape).tolist())
    along = "rows" if shape == (2, 1) else "columns"
    other = flat(d.sum(1) if along == "columns" else d.sum(0))
    return Question(
        f"A tensor of shape {shape} was broadcast to (2, 3). Which gradient does it get from this d? Write its elements in "
        "order.",
        answer,
        f"Each element receives the sum of what its copies receive. Shape {shape} was repeated "
        f"{'along each row' if along == 'rows' else 'down each column'}, so sum there: {format_value(answer)}.",
        {
            other: "the sum goes over the dim that was repeated",
            flat(d[0] if along == "columns" else d[:, 0]): "one copy was taken instead of the sum",
            flat(d): "a gradient has the shape of what it is the gradient of",
        },
        figure=matrix("d", d),
        numbers={"d": d.tolist(), "shape": shape},
    )


def bias(rng: Random) -> Question:
    """Ask for the gradient of a bias in ((x + bias) * x).sum()."""
    x = [[float(rng.randint(1, 5)) for _ in range(2)] for _ in range(2)]
    engine = Engine()
    tensor, b = engine.tensor(x), engine.tensor([10.0, 20.0])
    ((tensor + b) * tensor).sum().backward()
    answer = flat(b.grad.tolist() if b.grad else [])
    return Question(
        "bias has shape (2,), and loss = ((x + bias) * x).sum(). Which gradient has bias?",
        answer,
        "x + bias receives x, an element for each. bias was repeated down the columns, so it gets the sums of the columns "
        f"of x: {format_value(answer)}.",
        {
            flat(np.array(x).sum(1)): "bias was repeated down the columns, so these are summed",
            (2.0, 2.0): "x + bias is multiplied by x, so it receives x and not 1",
            flat(2 * np.array(x).sum(0)): "this would be the part of x * x",
        },
        figure=matrix("x", x),
        numbers={"x": x},
    )


def permutation(rng: Random) -> Question:
    """Ask which dims bring a permuted gradient back."""
    dims, shape = rng.choice([(1, 2, 0), (2, 0, 1)]), tuple(rng.sample(range(2, 6), 3))
    forward = row_major(shape).permute(*dims)
    answer = next(
        back for back in [(0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)] if forward.permute(*back) is row_major(shape)
    )
    return Question(
        f"Permute.forward turned shape {shape} into {forward.shape}, with dims {dims}. With which dims does backward "
        "permute d?",
        answer,
        f"Dim d of x went to the place where {dims} has d: 0 is at place {dims.index(0)}, 1 at {dims.index(1)}, 2 at "
        f"{dims.index(2)}. d.permute{answer} has shape {shape} again.",
        {
            dims: f"the same dims twice lead to shape {forward.permute(*dims).shape}",
            (2, 1, 0): "this reverses the dims, which is the way back for two dims only",
        },
        numbers={"dims": dims, "shape": shape},
    )


def matmul(rng: Random) -> Question:
    """Ask for an element of the gradient of a matmul."""
    n = rng.choice([2, 3])
    b = np.array([[rng.randint(1, 5) for _ in range(n)] for _ in range(2)], float)
    d = np.array([[rng.randint(1, 5) for _ in range(n)] for _ in range(1)], float)
    k = rng.randint(0, 1)
    engine = Engine()
    a, tensor = engine.tensor([[1.0, 1.0]]), engine.constant(b.tolist())
    engine.backward(a @ tensor, d.tolist())
    answer = float(np.asarray(a.grad.tolist() if a.grad else [])[0, k])
    return Question(
        f"y = a @ b with a of shape (1, 2) and b of shape (2, {n}). y receives d. What does a[0, {k}] receive?",
        answer,
        f"a receives d @ b.T, of shape (1, {n}) @ ({n}, 2). Element (0, {k}) is d times row {k} of b: "
        f"{terms(list(zip(d[0].tolist(), b[k].tolist(), strict=True)))} = {format_value(answer)}.",
        {
            float(d[0] @ b[1 - k]): f"a[0, {k}] was multiplied with row {k} of b",
            float(d.sum() * b[k].sum()): "each product has its own d",
            float(b[k].sum()): "what it was multiplied with is multiplied by d",
        },
        figure="\n".join([matrix("b", b), matrix("d", d)]),
        numbers={"b": b.tolist(), "d": d.tolist(), "k": k},
    )


def total(rng: Random) -> Question:
    """Ask for the gradient of a sum along a dim."""
    dim, d = rng.randint(0, 1), [float(x) for x in rng.sample(range(1, 9), 2)]
    engine = Engine()
    x = engine.tensor([[1.0, 2.0], [3.0, 4.0]])
    engine.backward(x.sum(dim), [d] if dim == 0 else [[value] for value in d])
    answer = flat(x.grad.tolist() if x.grad else [])
    shape = "(1, 2)" if dim == 0 else "(2, 1)"
    wrong: Wrong = {
        flat([d, d] if dim == 1 else [[value, value] for value in d]): f"d is repeated along dim {dim}, which was summed",
        flat(np.array(answer) / 2): "each element receives the whole of d: the sum grows by 1 with each",
        tuple(d): "d has one element where x has several",
    }
    return Question(
        f"x has shape (2, 2). x.sum({dim}) has shape {shape} and receives {format_value(tuple(d))}. Which gradient has x? "
        "Write its elements in row-major order.",
        answer,
        f"Each element that was added receives the whole of d, so d is repeated along dim {dim}:",
        wrong,
        drawing=matrix("x.grad", np.reshape(answer, (2, 2))),
        numbers={"dim": dim, "d": d},
    )


QUESTIONS = (unbroadcast, bias, permutation, matmul, total)
