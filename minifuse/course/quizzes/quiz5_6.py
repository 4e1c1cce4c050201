"""Questions on task 5.6: launches, bytes, and groups that wait for each other."""

from collections.abc import Callable
from itertools import combinations
from random import Random
from typing import Any

from .. import oracle
from ..fusion import Graph, Kernel, can_share
from ..kernel_groups import make_kernel, nbytes, nodes_to_compute, order_kernels
from ..scheduled import format_kernels, unfused_cost
from .figures import table
from .question import Question, choose
from .quiz5_1 import capture

Shapes = tuple[tuple[int, int], ...]


def programs(rng: Random) -> tuple[str, Graph]:
    """Draw a function of small tensors, and return its text and its graph."""
    m, n = rng.choice([3, 4, 6]), rng.choice([4, 5, 8])
    wide: Shapes = ((m, n), (n, n))
    options: list[tuple[str, Callable[..., Any], Shapes]] = [
        ("x.exp() @ w", lambda x, w: x.exp() @ w, wide),
        ("e + e @ w with e = x.exp()", lambda x, w: x.exp() + x.exp() @ w, wide),
        ("(x @ w).maximum(0.0)", lambda x, w: (x @ w).maximum(0.0), wide),
        ("(x @ w * 2.0 + x).exp()", lambda x, w: (x @ w * 2.0 + x).exp(), wide),
        ("e / e.sum() with e = (x - x.max()).exp()", lambda x: (x - x.max()).exp() / (x - x.max()).exp().sum(), wide[:1]),
        ("(x * 2.0 + 1.0).exp() @ w * 0.5", lambda x, w: (x * 2.0 + 1.0).exp() @ w * 0.5, wide),
        ("(x @ w) @ w + x", lambda x, w: (x @ w) @ w + x, wide),
        ("-(x * x) + x.exp()", lambda x: -(x * x) + x.exp(), wide[:1]),
    ]
    text, function, shapes = rng.choice(options)
    return text, capture(function, *shapes)


def best(graph: Graph) -> tuple[Kernel, ...]:
    """Return the schedule of the reference."""
    kernels: tuple[Kernel, ...] = oracle.function("schedule")(graph)
    return kernels


def launches(rng: Random) -> Question:
    """Ask for the fewest launches."""
    text, graph = programs(rng)
    kernels, unfused = best(graph), unfused_cost(graph)[0]
    matmuls = sum(node.op == "matmul" for node in graph.nodes)
    return Question(
        f"{text}: how many launches does this graph take at least? A matmul is a kernel of its own.",
        len(kernels),
        f"What walks over the same rows can share a kernel, before and after a matmul. {unfused} launches become "
        f"{len(kernels)}:",
        {
            unfused: "operations over the same rows can share a kernel",
            (1 if matmuls else len(kernels) + 1): "a matmul is a kernel of its own"
            if matmuls
            else "all of it walks over the same rows",
        },
        figure=str(graph),
        drawing="\n".join(format_kernels(kernels)),
        numbers={"graph": graph},
    )


def moved(rng: Random) -> Question:
    """Ask for the bytes of a kernel."""
    _, graph = programs(rng)
    kernels = best(graph)
    at = rng.randrange(len(kernels))
    kernel = kernels[at]
    answer = sum(nbytes(graph, k) for k in (*kernel.loads, *kernel.stores))
    rows = [
        ("loads" if k in kernel.loads else "stores", f"%{k}", graph.nodes[k].shape, nbytes(graph, k))
        for k in (*kernel.loads, *kernel.stores)
    ]
    inside = sum(nbytes(graph, k) for k in kernel.nodes if k not in kernel.stores)
    loaded = sum(nbytes(graph, k) for k in kernel.loads)
    return Question(
        f"In this schedule, how many bytes does kernel {at} load and store? Elements have 8 bytes.",
        answer,
        "A value that is used only within its kernel is not stored:",
        {
            **({answer + inside: "a value that is used only within its kernel is not stored"} if inside else {}),
            answer // 8: "an element has 8 bytes",
            loaded: "what it stores counts, too",
        },
        figure="\n".join([str(graph), "", *format_kernels(kernels)]),
        drawing=table(rows, ("", "value", "shape", "bytes")),
        numbers={"graph": graph, "nodes": kernel.nodes},
    )


def drawn_kernel(rng: Random) -> tuple[Graph, list[int], Kernel]:
    """Draw a kernel of up to three nodes, and return it with its graph and all nodes that kernels compute."""
    _, graph = programs(rng)
    computed = nodes_to_compute(graph)
    groups = [pair for size in (1, 2, 3) for pair in combinations(computed, size) if can_share(graph, pair)]
    return graph, computed, make_kernel(graph, rng.choice(groups), computed)


def loads(rng: Random) -> Question:
    """Ask for the values that a kernel loads."""
    graph, _, kernel = drawn_kernel(rng)
    group = kernel.nodes
    listed = tuple(i for k in group for i in graph.nodes[k].inputs if i not in group and graph.nodes[i].op != "constant")
    every = tuple(sorted({i for k in group for i in graph.nodes[k].inputs if graph.nodes[i].op != "constant"}))
    with_constants = tuple(sorted({i for k in group for i in graph.nodes[k].inputs if i not in group}))
    names = ", ".join(f"%{k}" for k in group)
    mistakes = [
        (every, "a value that it computes itself is not loaded"),
        (with_constants, "a constant is in the text of the kernel"),
        (tuple(sorted(listed)), "a value that is used twice is loaded once"),
        (kernel.stores, "these are the values that it stores"),
        (group, "these are the values that it computes"),
    ]
    return Question(
        f"One kernel computes {names}. Which values does it load? Write their numbers in order.",
        kernel.loads,
        f"{' '.join(format_kernels([kernel])).partition(': ')[2]}.",
        {value: text for value, text in mistakes if value != kernel.loads},
        figure=str(graph),
        numbers={"graph": graph, "group": group},
    )


def stores(rng: Random) -> Question:
    """Ask for the values that a kernel stores."""
    graph, computed, kernel = drawn_kernel(rng)
    group = kernel.nodes
    names = ", ".join(f"%{k}" for k in group)
    users = [
        (
            f"%{k}",
            ", ".join(f"%{u}" for u in computed if k in graph.nodes[u].inputs) or "-",
            "yes" if k in graph.outputs else "no",
            "stored" if k in kernel.stores else "not stored",
        )
        for k in group
    ]
    inside = tuple(k for k in group if k not in kernel.stores)
    return Question(
        f"One kernel computes {names}, and other kernels the rest. Which values does it store? Write their numbers in "
        "order.",
        kernel.stores,
        "A value is stored if another kernel needs it, or if the graph returns it:",
        {group: "what is used only within the kernel is not stored", inside: "these stay in registers"}
        if inside
        else {group[:1]: "the others are needed outside, too", group[-1:]: "the others are needed outside, too"},
        figure=str(graph),
        drawing=table(users, ("value", "used by", "returned", "")),
        numbers={"graph": graph, "group": group},
    )


def cycle(rng: Random) -> Question:
    """Ask which grouping can never run."""
    size = rng.choice([4, 6])
    graph = capture(lambda x, w: x.exp() * 0.5 + x.exp() @ w, (size, size), (size, size))
    computed = nodes_to_compute(graph)
    matmul = next(k for k in computed if graph.nodes[k].op == "matmul")
    rest = [k for k in computed if k != matmul]
    texts: dict[bool, list[str]] = {True: [], False: []}
    groupings: dict[str, list[frozenset[int]]] = {}
    for count in range(len(rest) + 1):
        for first in combinations(rest, count):
            second = [k for k in rest if k not in first]
            groups = [frozenset(g) for g in (first, (matmul,), second) if g]
            if first and rest[0] not in first:
                continue
            text = "  ".join("{" + " ".join(f"%{k}" for k in sorted(g)) + "}" for g in groups)
            groupings[text] = groups
            texts[order_kernels(graph, groups) is not None].append(text)
    right, others = rng.choice(texts[False]), rng.sample(texts[True], 2)
    bad = next(
        g
        for g in groupings[right]
        if matmul not in g and len(g) > 1 and order_kernels(graph, [g, frozenset({matmul})]) is None
    )
    needs = next(k for k in sorted(bad) if matmul in graph.nodes[k].inputs)
    gives = graph.nodes[matmul].inputs[0]
    return choose(
        rng,
        "Three ways to group this graph into kernels. Which one can never run?",
        right,
        dict.fromkeys(others, "its kernels can run one after the other"),
        f"The kernel with %{gives} and %{needs} waits for the matmul %{matmul}, which %{needs} needs, and the matmul waits "
        f"for %{gives}.",
        figure=str(graph),
        numbers={"graph": graph, "groupings": {text: groupings[text] for text in (right, *others)}},
    )


QUESTIONS = (launches, moved, loads, stores, cycle)
