"""Questions on task 5.2: loads and stores of one kernel, strides, and what is computed once."""

from collections.abc import Callable
from random import Random
from typing import Any

from ...core.layout import row_major
from ..fusion import Graph
from ..kernel_groups import count_bytes, make_kernel, nodes_to_compute
from ..scheduled import unfused_cost
from .figures import table, terms
from .question import Question, choose, format_value
from .quiz5_1 import capture

CHAINS: dict[str, Callable[..., Any]] = {
    "(-(x * x)).exp() * 2.0 + y": lambda x, y: (-(x * x)).exp() * 2.0 + y,
    "(x + y).exp() * x": lambda x, y: (x + y).exp() * x,
    "(x * 0.5 - y).maximum(0.0)": lambda x, y: (x * 0.5 - y).maximum(0.0),
    "x.log() + y.log()": lambda x, y: x.log() + y.log(),
    "1.0 / ((-x).exp() + y)": lambda x, y: 1.0 / ((-x).exp() + y),
}


def loads(rng: Random) -> Question:
    """Ask for loads and stores of an element, unfused or fused."""
    text, function = rng.choice(list(CHAINS.items()))
    graph, is_fused = capture(function, (1, 8), (1, 8)), rng.random() < 0.5
    computed = nodes_to_compute(graph)
    kernels = [make_kernel(graph, {k}, computed) for k in computed]
    rows = [
        (f"%{k}  {graph.nodes[k].op}", len(kernel.loads), len(kernel.stores))
        for k, kernel in zip(computed, kernels, strict=True)
    ]
    whole = make_kernel(graph, computed, computed)
    unfused, fused = (sum(len(k.loads) + len(k.stores) for k in group) for group in (kernels, [whole]))
    answer, other = (fused, unfused) if is_fused else (unfused, fused)
    how = "one kernel for all operations" if is_fused else "a kernel for each operation"
    return Question(
        f"{text} is computed with {how}; all arrays have one shape, and a kernel loads a value once. How many loads and "
        "stores are that for an element of the result, together?",
        answer,
        f"One kernel keeps all values between in registers: {len(whole.loads)} loads and {len(whole.stores)} store. A "
        "kernel for each operation:",
        {
            other: "this is a kernel for each operation" if is_fused else "this is one kernel for all",
            **(
                {answer - 1: "the result is stored, too"} if is_fused else {len(computed): "each operation loads and stores"}
            ),
        },
        drawing=table(rows, ("operation", "loads", "stores")),
        numbers={"text": text, "fused": is_fused},
    )


def bytes_moved(rng: Random) -> Question:
    """Ask how many bytes fusion saves."""
    text, function = rng.choice(list(CHAINS.items()))
    n = rng.choice([10, 100, 1000])
    graph = capture(function, (1, n), (1, n))
    launches, unfused = unfused_cost(graph)
    fused = count_bytes(graph, [frozenset(nodes_to_compute(graph))])
    return Question(
        f"{text} moves {format_value(unfused)} bytes with a kernel for each operation; x and y have {format_value(n)} "
        "elements of float64. How many bytes does one kernel move?",
        fused,
        f"x and y are loaded once, and the result is stored once: 3 * {format_value(n)} * 8 = {format_value(fused)}.",
        {
            unfused // launches: "the operations do not all move the same",
            16 * n: "the result is stored, too",
            3 * n: "an element has 8 bytes",
        },
        drawing=table([(f"{launches} kernels", unfused), ("1 kernel", fused)], ("", "bytes")),
        numbers={"text": text, "n": n},
    )


def strides(rng: Random) -> Question:
    """Ask for the strides with which a kernel reads a broadcast operand."""
    m, n = rng.sample(range(2, 8), 2)
    small = rng.choice([(n,), (m, 1)])
    view = row_major(small).expand(m, n)
    return Question(
        f"A kernel runs over the shape ({m}, {n}) and reads an operand y of shape {small}, stored row-major. Which strides "
        "does it get for y?",
        view.strides,
        f"y is repeated where its stride is 0, so the kernel needs no case of its own: y[i * {view.strides[0]} + j * "
        f"{view.strides[1]}].",
        {
            row_major((m, n)).strides: "these are the strides of the output",
            view.strides[::-1]: "the repeated dim has stride 0",
        },
        numbers={"shape": (m, n), "small": small},
    )


def position(rng: Random) -> Question:
    """Ask for the position at which a kernel reads a column-major operand."""
    m, n = rng.sample(range(3, 8), 2)
    layout = row_major((n, m)).permute(1, 0)
    at = (rng.randint(1, m - 1), rng.randint(1, n - 1))
    return Question(
        f"A kernel over the shape ({m}, {n}) reads x with strides {layout.strides}, and stores its output row-major. From "
        f"which position of x does it load for the output at (i, j) = {at}?",
        layout.position(at),
        f"i * strides[0] + j * strides[1] = {terms(list(zip(at, layout.strides, strict=True)))} = {layout.position(at)}. "
        f"The output goes to {at[0]} * {n} + {at[1]} = {row_major((m, n)).position(at)}.",
        {row_major((m, n)).position(at): "operands are read with their strides, not at the flat index of the output"},
        numbers={"shape": (m, n), "strides": layout.strides, "index": at},
    )


def pasted_size(graph: Graph, k: int) -> int:
    """Return the number of operations if each value is pasted in where it is used."""
    node = graph.nodes[k]
    return int(node.op not in ("input", "constant")) + sum(pasted_size(graph, i) for i in node.inputs)


def once(rng: Random) -> Question:
    """Ask how many operations are computed if values are pasted in."""
    rounds, op = rng.randint(2, 4), rng.choice(["t * t", "t + t"])

    def function(x: Any) -> Any:
        t = x + 1.0
        for _ in range(rounds):
            t = t * t if op == "t * t" else t + t
        return t

    graph = capture(function, (2, 3))
    good, bad = len(nodes_to_compute(graph)), pasted_size(graph, graph.outputs[0])
    return Question(
        f"t = x + 1.0, and then {rounds} times t = {op}. Somebody pastes the text of t in where it is used, in place of a "
        "line for each node. How many operations are computed for an element?",
        bad,
        "Each round doubles what is there, and adds one: "
        f"{' -> '.join(str(pasted_size(graph, k)) for k in nodes_to_compute(graph))}. With a line for each node there are "
        f"{good}.",
        {
            good: "this is a line for each node",
            2 * good: "each round doubles all that is there before",
            2**rounds: "this counts x + 1.0 only",
        },
        drawing=str(graph),
        numbers={"rounds": rounds},
    )


def digits(rng: Random) -> Question:
    """Ask which text keeps a number."""
    value = rng.choice([1 / 3, 0.1, 2 / 3, 1e-7, 1 / 7, 123456.789])
    texts = {
        "repr(value)": repr(value),
        'f"{value:.2f}"': f"{value:.2f}",
        'f"{value:g}"': f"{value:g}",
        'f"{value:.8f}"': f"{value:.8f}",
    }
    keeps = [name for name, text in texts.items() if float(text) == value]
    others = {name: f"it is read as {text}" for name, text in texts.items() if name not in keeps}
    assert "repr(value)" in keeps
    return choose(
        rng,
        f"The number {value!r} goes into the text of a kernel. Which way to print it is safe for every number?",
        "repr(value)",
        {name: others.get(name, "it keeps this number, and loses others") for name in texts if name != "repr(value)"},
        f"repr loses nothing: float(repr(value)) == value. For {value!r}:",
        drawing=table([(name, text, "equal" if float(text) == value else "different") for name, text in texts.items()]),
        numbers={"value": value},
    )


QUESTIONS = (loads, bytes_moved, strides, position, once, digits)
