"""Questions on task 5.5: gradients as a graph, and what is saved for them."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from .. import oracle
from ..fusion import REDUCTIONS, Graph
from ..graph_evaluation import evaluate_graph, evaluate_nodes, live_nodes
from ..programs import sample_arrays
from .figures import table
from .question import Question, Wrong, choose, format_value
from .quiz5_1 import capture

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "x.exp() / x.exp().sum()": lambda x: x.exp() / x.exp().sum(),
    "x * x.sum()": lambda x: x * x.sum(),
    "x - x.sum() / 8.0": lambda x: x - x.sum() / 8.0,
    "x + x.max()": lambda x: x + x.max(),
    "(x * x).sum().log() + x": lambda x: (x * x).sum().log() + x,
    "x * 2.0 + x.exp()": lambda x: x * 2.0 + x.exp(),
    "x / x.max()": lambda x: x / x.max(),
    "x * x.max() + x.sum()": lambda x: x * x.max() + x.sum(),
}


def gradient(graph: Graph, arrays: list[Any], d: Any) -> list[Any]:
    """Return the gradients of the inputs as arrays."""
    return evaluate_graph(oracle.function("gradient_graph")(graph, ()), [*arrays, d])


def saved(rng: Random) -> Question:
    """Ask how many values are saved."""
    text, function = rng.choice(list(FUNCTIONS.items()))
    graph = capture(function, (4, 8))
    forward, backward = oracle.function("forward_and_backward")(graph)
    answer = len(forward.outputs) - 1
    reductions = sum(node.op in REDUCTIONS for node in graph.nodes)
    names = ", ".join(f"%{k} = {forward.nodes[k].op}" for k in forward.outputs[1:]) or "nothing"
    wrong: Wrong = {len(graph.nodes) - 1: "elementwise values are cheaper to compute again than to store and load"}
    if reductions != answer:
        wrong[reductions] = "the backward pass does not ask for each reduction"
    else:
        wrong[answer - 1 if answer else 1] = "a reduction that the backward pass needs is saved, and nothing else"
    return Question(
        "How many values does the forward pass of this graph save for backward: reductions that backward needs?",
        answer,
        f"Saved: {names}. The backward graph, with x first, then what was saved, then d:",
        wrong,
        figure=str(graph),
        drawing=short(backward),
        numbers={"text": text},
    )


def short(graph: Graph, most: int = 16) -> str:
    """Return a graph as text, cut if it is long."""
    lines = str(graph).splitlines()
    return "\n".join(lines if len(lines) <= most else [*lines[: most - 2], f"... {len(lines) - most + 1} more", lines[-1]])


AGAIN: dict[str, Callable[[Any], Any]] = {
    "x.exp() / x.exp().sum()": lambda x: x.exp() / x.exp().sum(),
    "x.exp() / x.sum()": lambda x: x.exp() / x.sum(),
    "x.exp() * x.max()": lambda x: x.exp() * x.max(),
    "x.exp() + x.max()": lambda x: x.exp() + x.max(),
}


def again(rng: Random) -> Question:
    """Ask what the backward pass computes again."""
    text, function = rng.choice(list(AGAIN.items()))
    graph = capture(function, (4, 8))
    forward, backward = oracle.function("forward_and_backward")(graph)
    x, d = sample_arrays([(4, 8), (4, 8)])
    before = evaluate_nodes(graph, [x])
    after = evaluate_nodes(backward, [x, *[before[k] for k in forward.outputs[1:]], d])
    computed = [after[k] for k in live_nodes(backward) if backward.nodes[k].op != "input"]
    found = {
        node.op: any(np.array_equal(before[k], value) for value in computed)
        for k, node in enumerate(graph.nodes)
        if node.op in ("exp", *REDUCTIONS)
    }
    reduction = next(op for op in found if op != "exp")
    options = {
        (True, False): "exp, an element for each element of x",
        (False, True): f"{reduction}, a number for each row",
        (True, True): "both",
        (False, False): "neither",
    }
    right = options.pop((found["exp"], found[reduction]))
    mistakes = {
        f"{reduction}, a number for each row": "a reduction costs a pass, and is one number a row: it is saved",
        "both": "a reduction is saved",
        "neither": "a million elements cost more to store and load than to compute again",
    }
    return choose(
        rng,
        f"{text} is differentiated; x has shape (1000, 1000). Which values of exp and {reduction} does the backward kernel "
        "compute again, in place of loading them?",
        right,
        {option: mistakes[option] for option in options.values()},
        f"exp would be 8 MB to store and 8 MB to load; {reduction} is 8 kB. The backward graph for shape (4, 8), with x, "
        f"{reduction} and d as inputs:",
        drawing=short(backward),
        numbers={"text": text},
    )


def saved_bytes(rng: Random) -> Question:
    """Ask for the bytes of saved reductions."""
    rows, n = rng.choice([4, 10, 100, 1000]), rng.choice([8, 50, 200])
    text, function = rng.choice([(t, f) for t, f in FUNCTIONS.items() if ".exp() /" in t or ".max()" in t])
    graph = capture(function, (rows, n))
    forward, _ = oracle.function("forward_and_backward")(graph)
    shapes = [forward.nodes[k].shape for k in forward.outputs[1:]]
    answer = sum(8 * int(np.prod(s)) for s in shapes)
    return Question(
        f"{text} with x of shape ({rows}, {n}) in float64 saves {len(shapes)} "
        f"{'reduction' if len(shapes) == 1 else 'reductions'} for backward. How many bytes are that?",
        answer,
        f"A reduction is one number a row, of shape ({rows}, 1): {len(shapes)} * {rows} * 8 = {format_value(answer)}. An "
        f"elementwise value would be {format_value(8 * rows * n)}.",
        {
            8 * rows * n: "this is an elementwise value",
            8 * len(shapes): "there is one number for each row",
            rows: "an element has 8 bytes",
        },
        numbers={"text": text, "rows": rows, "n": n},
    )


def ties(rng: Random) -> Question:
    """Ask for the gradients of a maximum of equal operands."""
    a, d = rng.randint(1, 5), rng.choice([2, 4, 6, 10])
    b = rng.choice([a, a, a + 1, a - 1])
    graph = capture(lambda x, y: x.maximum(y), (1, 1), (1, 1))
    arrays = [np.array([[float(a)]]), np.array([[float(b)]])]
    answer = tuple(float(g.reshape(-1)[0]) for g in gradient(graph, arrays, np.array([[float(d)]])))
    even = (d / 2, d / 2)
    wrong: Wrong = {
        (d, d): "together the operands get d",
        (d, 0) if b >= a else (0, d): "the larger operand gets d, and equal ones share",
    }
    if answer != even:
        wrong[even] = "only equal operands share"
    return Question(
        f"y = maximum(a, b) with a = {a} and b = {b}, and y receives {d}. What do a and b receive?",
        answer,
        (
            f"Both are equal, so each gets half of {d}."
            if a == b
            else f"The larger one gets all of {d}; the other could move a little."
        )
        + f" {format_value(answer)}.",
        wrong,
        numbers={"a": a, "b": b, "d": d},
    )


def used_twice(rng: Random) -> Question:
    """Ask for the gradient of a value that is used twice."""
    x, d, c = rng.randint(2, 6), rng.choice([1, 2, 10]), rng.randint(2, 5)
    graph = capture(lambda x: x * x + x * float(c), (1, 1))
    answer = float(gradient(graph, [np.array([[float(x)]])], np.array([[float(d)]]))[0].reshape(-1)[0])
    return Question(
        f"x * x + x * {c} is captured, x is {x}, and the result receives {d}. What is the gradient of x?",
        answer,
        f"x is used three times: twice in x * x, once in x * {c}. Its gradient is the sum {d * x} + {d * x} + {d * c} = "
        f"{format_value(answer)}.",
        {
            d * c: "sums[k] = d replaces what is there; it should be added",
            d * (x + c): "x is used twice in x * x",
            2 * d * x: "x is used in both terms",
        },
        drawing=short(oracle.function("gradient_graph")(graph, ())),
        numbers={"x": x, "d": d, "c": c},
    )


def repeated(rng: Random) -> Question:
    """Ask for the gradient of an operand of shape (rows, 1)."""
    n, row = rng.randint(3, 4), [rng.randint(1, 6) for _ in range(4)]
    row = row[:n]
    d = [rng.randint(1, 4) for _ in range(n)]
    graph = capture(lambda x, s: x * s, (1, n), (1, 1))
    arrays = [np.array([row], float), np.array([[2.0]])]
    answer = float(gradient(graph, arrays, np.array([d], float))[1].reshape(-1)[0])
    rows = [(x, e, x * e) for x, e in zip(row, d, strict=True)]
    return Question(
        f"y = x * s, with x = [{row}] of shape (1, {n}) and s = [[2]] of shape (1, 1). y receives [{d}]. What is the "
        "gradient of s?",
        answer,
        f"s was repeated along the row, so its gradient is the sum over the row, d * x: {format_value(answer)}.",
        {
            sum(d): "each d is multiplied by the element that s was multiplied with",
            2 * sum(d): "this is the gradient of x, summed",
            sum(row): "each element is multiplied by its d",
        },
        drawing=table(rows, ("x", "d", "d * x")),
        numbers={"row": row, "d": d},
    )


QUESTIONS = (saved, again, saved_bytes, ties, used_twice, repeated)
