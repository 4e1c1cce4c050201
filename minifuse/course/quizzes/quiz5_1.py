"""Questions on task 5.1: nodes of a graph, their order of operands, and what cannot be captured."""

from collections.abc import Callable
from random import Random
from typing import Any

from ...core.errors import FuseError
from .. import oracle
from ..fusion import Graph
from .question import Question, Wrong, choose

Function = Callable[..., Any]
SHARED: dict[str, tuple[Function, int]] = {
    "(x + y) * (x + y)": (lambda x, y: (x + y) * (x + y), 3),
    "(x - x.max()).exp() / (x - x.max()).exp().sum()": (lambda x, y: (x - x.max()).exp() / (x - x.max()).exp().sum(), 8),
    "(x * y).exp() + (x * y).log()": (lambda x, y: (x * y).exp() + (x * y).log(), 5),
    "(x - y) * (x - y) + (y - x)": (lambda x, y: (x - y) * (x - y) + (y - x), 5),
    "-x * y + -x": (lambda x, y: -x * y + -x, 4),
    "x.exp() / (x.exp() + y.exp())": (lambda x, y: x.exp() / (x.exp() + y.exp()), 5),
    "(x * 2.0 + y) * (x * 2.0)": (lambda x, y: (x * 2.0 + y) * (x * 2.0), 4),
}
"""For each text: the function, and how many operations are written in it."""
CONSTANTS: dict[str, Function] = {
    "x * 2.0 + 2.0": lambda x: x * 2.0 + 2.0,
    "x * 2.0 + 3.0": lambda x: x * 2.0 + 3.0,
    "x / 0.0 + x / -0.0": lambda x: x / 0.0 + x / -0.0,
    "(x + 1.0) * (x - 1.0)": lambda x: (x + 1.0) * (x - 1.0),
    "(x + 0.5) * 0.5 + -0.5": lambda x: (x + 0.5) * 0.5 + -0.5,
    "x * 3.0 - 3.0 / x": lambda x: x * 3.0 - 3.0 / x,
    "(x + 1.0) * 2.0 + 1.0": lambda x: (x + 1.0) * 2.0 + 1.0,
}
BRANCHES: dict[str, Function] = {
    "x if x.sum() < 0.0 else -x": lambda x: x if x.sum() < 0.0 else -x,
    "max(x, 0.0)": lambda x: max(x, 0.0),
    "x and x.exp()": lambda x: x and x.exp(),
    "not x": lambda x: not x,
    "x.exp() if x.shape[0] > 3 else x": lambda x: x.exp() if x.shape[0] > 3 else x,
    "x.maximum(0.0)": lambda x: x.maximum(0.0),
    "x * (x < 0.0)": lambda x: x * (x < 0.0),
    "sum([x, x, x])": lambda x: sum([x, x, x]),
    "[x, -x][1]": lambda x: [x, -x][1],
}


def capture(function: Function, *shapes: tuple[int, ...]) -> Graph:
    """Capture a function with the reference tracer."""
    graph: Graph = oracle.function("capture")(function, *shapes)
    return graph


def operations(graph: Graph) -> int:
    """Return the number of nodes that compute something."""
    return sum(node.op not in ("input", "constant") for node in graph.nodes)


def nodes(rng: Random) -> Question:
    """Ask for the number of operations of a graph with shared expressions."""
    text, (function, written) = rng.choice(list(SHARED.items()))
    shape = (rng.randint(2, 5), rng.randint(2, 5))
    graph = capture(function, shape, shape)
    answer = operations(graph)
    wrong: Wrong = {written: "an expression that is written twice is one node"}
    if sum(n.op == "input" for n in graph.nodes) + answer != written:
        wrong[sum(n.op == "input" for n in graph.nodes) + answer] = "inputs are nodes, but no operations"
    return Question(
        f"{text} is captured. How many operations are in the graph? Inputs and constants do not count.",
        answer,
        f"{written} operations are written. Each new node is looked up before it is added, and {answer} are left:",
        wrong,
        drawing=str(graph),
        numbers={"text": text},
    )


def operands(rng: Random) -> Question:
    """Ask how an operation with a number on the left is noted."""
    c = float(rng.randint(2, 9))
    kind = rng.choice(["-", "/", "<"])
    function = {"-": lambda x: c - x, "/": lambda x: c / x, "<": lambda x: c < x}[kind]
    op = {"-": "sub", "/": "div", "<": "lt"}[kind]
    graph = capture(function, (2, 3))
    node = graph.nodes[-1]
    names = {k: "x" if graph.nodes[k].op == "input" else f"{c}" for k in node.inputs}
    right = f"{node.op} {' '.join(names[k] for k in node.inputs)}"
    method = {"-": "__rsub__", "/": "__rtruediv__", "<": "__gt__"}[kind]
    return choose(
        rng,
        f"{c} {kind} x is captured. Which operation is in the graph?",
        right,
        {
            f"{op} x {c}": "the number is the first operand",
            f"{op} {c} {c}": "x is an operand, too",
            f"{'neg' if kind == '-' else 'mul'} x": "each operator is noted as it is written",
        },
        f"The number has no method for that, so Python calls x.{method}({c}). The operands stay in the order in which they "
        "are written:",
        drawing=str(graph),
        numbers={"c": c, "kind": kind, "right": right},
    )


def shape(rng: Random) -> Question:
    """Ask for the shape of a node."""
    m, n = rng.sample(range(2, 8), 2)
    text, function, shapes = rng.choice(
        [
            ("x + y", lambda x, y: x + y, ((n,), (m, n))),
            ("x * y", lambda x, y: x * y, ((m, 1), (1, n))),
            ("(x + y).sum()", lambda x, y: (x + y).sum(), ((m, 1), (n,))),
            ("x - y.max()", lambda x, y: x - y.max(), ((n,), (m, n))),
            ("x.sum() * y.sum()", lambda x, y: x.sum() * y.sum(), ((m, n), (1, n))),
        ]
    )
    graph = capture(function, *shapes)
    answer = graph.nodes[graph.outputs[0]].shape
    wrong: Wrong = {shapes[0]: "a result does not take the shape of its first operand"} if answer != shapes[0] else {}
    wrong |= {answer[:-1]: "a reduced dim stays, with size 1"} if answer[-1] == 1 else {}
    wrong |= {(n, m): "shapes are aligned at their last dim"}
    return Question(
        f"{text} is captured, with x of shape {shapes[0]} and y of shape {shapes[1]}. Reductions go along the last dim. "
        "Which shape has the result?",
        answer,
        "Every node has the shape of its value, broadcast and reduced:",
        wrong,
        drawing=str(graph),
        numbers={"text": text, "shapes": shapes},
    )


def constants(rng: Random) -> Question:
    """Ask for the number of constants in a graph."""
    text, function = rng.choice(list(CONSTANTS.items()))
    graph = capture(function, (2, 3))
    values = [node.value for node in graph.nodes if node.op == "constant"]
    written = sum(part.strip("()-").replace(".", "").isdigit() for part in text.split())
    wrong: Wrong = {}
    if written != len(values):
        wrong[written] = "a number that is met twice is one node"
    if len(set(values)) != len(values):
        wrong[len(set(values))] = "0.0 and -0.0 are two: x / 0.0 and x / -0.0 are not the same"
    wrong[len(values) + (1 if written == len(values) else -1 if len(values) > 1 else 2)] = (
        "each different number is one node"
    )
    return Question(
        f"{text} is captured. How many constants are in the graph?",
        len(values),
        f"Each different number is one node: {', '.join(map(str, values))}.",
        wrong,
        drawing=str(graph),
        numbers={"text": text},
    )


def is_captured(function: Function) -> bool:
    """Return whether a function can be captured."""
    try:
        capture(function, (4, 5))
    except FuseError:
        return False
    return True


def branch(rng: Random) -> Question:
    """Ask which function cannot be captured."""
    good = [text for text, function in BRANCHES.items() if is_captured(function)]
    right = rng.choice([text for text in BRANCHES if text not in good])
    mistakes = {
        "x.exp() if x.shape[0] > 3 else x": "a shape is known while a function is captured",
        "sum([x, x, x])": "Python's loop runs, and notes additions",
    }
    return choose(
        rng,
        "Which function cannot be captured, so that FuseError is raised?",
        right,
        {text: mistakes.get(text, "it needs no element of x") for text in rng.sample(good, 3)},
        f"{right} needs to know whether something is true, and there are no elements yet. Without the error Python would "
        "take one side, once and for all.",
        numbers={"right": right, "good": good},
    )


QUESTIONS = (nodes, operands, shape, constants, branch)
