"""Questions on task 5.3: passes over a row, and what begins where."""

import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from .. import oracle
from ..emitted_kernels import launch
from ..fusion import REDUCTIONS
from ..graph_evaluation import reduction_depths
from ..kernel_groups import count_bytes, nodes_to_compute
from ..scheduled import unfused_cost
from .figures import table
from .question import Question, Wrong, choose, format_value
from .quiz5_1 import capture

ROWS: dict[str, Callable[[Any], Any]] = {
    "softmax: e / e.sum() with e = (x - x.max()).exp()": lambda x: (x - x.max()).exp() / (x - x.max()).exp().sum(),
    "x - x.sum() / 8.0": lambda x: x - x.sum() / 8.0,
    "(x - x.max()) / x.sum()": lambda x: (x - x.max()) / x.sum(),
    "c * c with c = x - x.max(), plus c.sum()": lambda x: (x - x.max()) * (x - x.max()) + (x - x.max()).sum(),
    "x.max() + (x * x).sum()": lambda x: x.max() + (x * x).sum(),
    "c / v.log() with c = x - x.sum() / 8.0, v = (c * c).sum()": lambda x: (
        (x - x.sum() / 8.0) / ((x - x.sum() / 8.0) * (x - x.sum() / 8.0)).sum().log()
    ),
    "x * x + 1.0": lambda x: x * x + 1.0,
    "x + x.max() + x.sum() + (x * x).sum()": lambda x: x + x.max() + x.sum() + (x * x).sum(),
}
KERNEL = """
def kernel(shape, outs, ins, strides):
    rows, n = shape
    for i in range(rows):
        m = {begin}
        for j in range(n):
            m = maximum(m, ins[0][i * strides[0][0] + j * strides[0][1]])
        outs[0][i] = m
"""


def passes(rng: Random) -> Question:
    """Ask for the number of passes over a row."""
    text, function = rng.choice(list(ROWS.items()))
    graph = capture(function, (4, 8))
    depths = reduction_depths(graph)
    is_wide = graph.nodes[graph.outputs[0]].shape[-1] != 1
    answer = max(depths) + is_wide
    count = sum(node.op in REDUCTIONS for node in graph.nodes)
    levels = [(f"%{k}", f"{n.op}", depths[k]) for k, n in enumerate(graph.nodes) if n.op != "constant"]
    result = "an element for each element of x" if is_wide else "one number a row"
    return Question(
        f"A kernel computes {text}. The result has {result}. How many passes over a row must it make at least?",
        answer,
        f"The highest level is {max(depths)}: reductions of one level share a pass"
        + (", and one more pass stores the result. " if is_wide else ", and the result is stored behind the last. ")
        + "Levels:",
        {
            count + is_wide: "reductions of one level share a pass",
            max(depths) + (not is_wide): "the elements of the result need a pass of their own"
            if is_wide
            else "one number a row needs no pass of its own",
        }
        if count != max(depths)
        else {
            max(depths) + (not is_wide): "the elements of the result need a pass of their own"
            if is_wide
            else "one number a row needs no pass of its own",
            answer + 2: "passes are counted by levels of reductions",
        },
        drawing=table(levels, ("value", "op", "level")),
        numbers={"graph": graph},
    )


def level(rng: Random) -> Question:
    """Ask for the level of a value."""
    _, function = rng.choice([item for item in ROWS.items() if ".sum()" in item[0] or ".max()" in item[0]])
    graph = capture(function, (4, 8))
    depths = reduction_depths(graph)
    k = rng.choice([k for k, node in enumerate(graph.nodes) if node.op not in ("input", "constant")])
    before = depths[k] - (graph.nodes[k].op in REDUCTIONS)
    return Question(
        "A value has a level: 0 for inputs, that of its operands for an operation, one more for a reduction. Which level "
        f"has %{k}?",
        depths[k],
        f"%{k} is {graph.nodes[k].op} of values up to level {before}"
        + (", and a reduction: one more." if before != depths[k] else "."),
        {
            depths[k] + 1: "only a reduction has one level more than its operands",
            depths[k] - 1: "the level is the highest of the operands, and one more for a reduction",
        },
        figure=str(graph),
        drawing=table(
            [(f"%{j}", n.op, depths[j]) for j, n in enumerate(graph.nodes) if n.op != "constant"], ("value", "op", "level")
        ),
        numbers={"graph": graph, "k": k},
    )


def begin(rng: Random) -> Question:
    """Ask for the result of a maximum that begins at a number."""
    row, start = [-rng.randint(1, 9) for _ in range(4)], rng.choice(["0.0", "-5.0", "-inf"])
    if rng.random() < 0.3:
        row[rng.randrange(4)] = rng.randint(1, 5)
    x = np.array(row, float)
    counts = launch(KERNEL.format(begin=start), (1, 4), [(1, 1)], [x], [(4, 1)])
    answer = float(counts.outs[0][0])
    true = float(x.max())
    wrong: Wrong = {float(x.min()): "this is the smallest one"}
    if answer != true:
        wrong[true] = f"m begins at {start}, and {format_value(true)} is less"
    elif start != "-inf":
        wrong[float(start)] = f"{format_value(true)} is larger than what it began with"
    why = "right" if answer == true else f"wrong: the largest element is {format_value(true)}, which never got its turn"
    return Question(
        f"A kernel looks for the largest element of the row {row}, and begins with m = {start}. What does it find?",
        answer,
        f"maximum(m, x) never goes below what it begins with, {start}. So it finds {format_value(answer)}, which is {why}. "
        "Begin at -inf.",
        wrong,
        numbers={"row": row, "start": start},
    )


def exponents(rng: Random) -> Question:
    """Ask for the exponents of a stable softmax."""
    base = rng.choice([0, 100, 1000, -1000])
    row = [base + rng.randint(-5, 5) for _ in range(4)]
    fused = capture(oracle.function("fused_softmax"), (1, 4))
    from ..graph_evaluation import evaluate_nodes

    values = evaluate_nodes(fused, [np.array([row], float)])
    k = next(k for k, node in enumerate(fused.nodes) if node.op == "exp")
    answer = tuple(int(v) for v in values[fused.nodes[k].inputs[0]].reshape(-1))
    return Question(
        f"fused_softmax gets the row {row}. Of which four numbers does it compute exp?",
        answer,
        f"The largest, {max(row)}, is subtracted: {format_value(answer)}. So no exponential is above exp(0) = 1.",
        {
            tuple(row): f"exp({max(row)}) is "
            f"{'inf' if max(row) > 709 else '0' if max(row) < -745 else f'{math.exp(max(row)):.2g}'}; less the largest, "
            "none is above 1",
            tuple(v - min(row) for v in row): "the largest is subtracted, not the smallest",
        },
        numbers={"row": row},
    )


def saved_bytes(rng: Random) -> Question:
    """Ask for the bytes that one kernel for a softmax moves."""
    rows, n = rng.choice([2, 4, 10]), rng.choice([5, 10, 50, 100])
    graph = capture(oracle.function("fused_softmax"), (rows, n))
    launches, unfused = unfused_cost(graph)
    fused = count_bytes(graph, [frozenset(nodes_to_compute(graph))])
    return Question(
        f"A softmax of shape ({rows}, {n}) in float64 takes {launches} kernels if there is one for each operation. How "
        "many bytes does it move as one kernel, if the row stays in the cache?",
        fused,
        f"x is loaded and the result is stored: 2 * {rows} * {n} * 8 = {format_value(fused)}. exp(x - m) is computed "
        "twice, which is cheaper than to store it.",
        {
            fused // 2: "the result is stored, too",
            fused + 8 * 2 * rows: "the largest and the sum of a row stay in registers",
            3 * rows * n * 8: "two of the three loads of a row come from the cache",
        },
        drawing=table([(f"{launches} kernels", unfused), ("1 kernel", fused)], ("", "bytes")),
        numbers={"rows": rows, "n": n},
    )


def why(rng: Random) -> Question:
    """Ask which two reductions share a pass."""
    pairs: dict[str, Callable[[Any], Any]] = {
        "x.sum() and x.max()": lambda x: x.sum() + x.max(),
        "x.max() and (x - x.max()).exp().sum()": lambda x: x.max() + (x - x.max()).exp().sum(),
        "(x * x).sum() and x.sum()": lambda x: (x * x).sum() + x.sum(),
        "x.sum() and (x / x.sum()).max()": lambda x: x.sum() + (x / x.sum()).max(),
        "x.exp().sum() and (-x).max()": lambda x: x.exp().sum() + (-x).max(),
        "x.sum() and (x - x.sum()).sum()": lambda x: x.sum() + (x - x.sum()).sum(),
    }
    levels = {}
    for text, function in pairs.items():
        graph = capture(function, (4, 8))
        depths = reduction_depths(graph)
        levels[text] = tuple(depths[k] for k, node in enumerate(graph.nodes) if node.op in REDUCTIONS)
    shared = [text for text, found in levels.items() if len(set(found)) == 1]
    right = rng.choice(shared)
    others = rng.sample([text for text in pairs if text not in shared], 2)
    return choose(
        rng,
        "Which two reductions can share one pass over the row?",
        right,
        {text: f"the second needs the first: levels {levels[text][0]} and {levels[text][1]}" for text in others},
        f"Both of {right} have level {levels[right][0]}: neither needs the other to be complete.",
        drawing=table([(text, levels[text]) for text in (right, *others)], ("reductions", "levels")),
        numbers={"right": right, "others": others},
    )


QUESTIONS = (passes, level, begin, exponents, saved_bytes, why)
