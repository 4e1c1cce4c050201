"""Questions on task 1.4: topological orders, sums over paths, and counts."""

from random import Random

from .. import oracle
from ..graph_cases import describe_misplaced, ladder, picture
from ..graphs import Graph, build_variables
from .question import Question, choose, format_value

WEIGHTS = (2, 3, 4, 5)


def diamond(rng: Random) -> tuple[Graph, list[int]]:
    """Draw a diamond below one node: y1 = a * x0; y2 = b * y1; y3 = c * y1; y4 = e * y2 + f * y3."""
    a, b, c, e, f = weights = [rng.choice(WEIGHTS[:3]) for _ in range(5)]
    return Graph(("leaf", ((0, a),), ((1, b),), ((1, c),), ((2, e), (3, f))), float(rng.choice([1, 2]))), weights


def leaf_gradient(graph: Graph) -> float:
    """Return the gradient of the first leaf after backpropagation."""
    nodes, _ = build_variables(graph)
    oracle.function("backpropagate")(nodes[-1], graph.d)
    return float(nodes[0].grad or 0.0)


def gradient(rng: Random) -> Question:
    """Ask for the gradient of the leaf of a diamond."""
    graph, (a, b, c, e, f) = diamond(rng)
    answer, d = leaf_gradient(graph), int(graph.d)
    left, right = d * e * b, d * f * c
    return Question(
        "A graph from its root down. Each variable is a sum of the variables behind the arrow, times these weights. The "
        f"root y4 receives {d}. How much does the leaf x0 receive?",
        answer,
        f"y1 waits for both: from y2 it receives {d} * {e} * {b} = {left}, from y3 {d} * {f} * {c} = {right}. It passes on "
        f"the sum {left + right}, times {a}: {format_value(answer)}.",
        {
            left * a: "y1 receives from y3, too",
            right * a: "y1 receives from y2, too",
            left * right * a: "what comes along two paths is added, not multiplied",
        },
        figure="\n".join(picture(graph)),
        drawing=f"y4 <- {d}\ny2 <- {d * e}   y3 <- {d * f}\ny1 <- {left} + {right}\nx0 <- {left + right} * {a}",
        numbers={"weights": (a, b, c, e, f), "d": d},
    )


def order(rng: Random) -> Question:
    """Ask which order is topological."""
    graph = Graph(("leaf", ((0, 2),), ((1, 3), (0, 1)), ((1, 2),), ((2, 1), (3, 1), (0, 1))))
    names = [graph.names[k] for k in range(5)]
    right, wrong = list[list[str]](), list[list[str]]()
    while len(right) < 1 or len(wrong) < 2:
        candidate = ["y4", *rng.sample(names[:4], 4)] if rng.random() < 0.9 else rng.sample(names, 5)
        group = wrong if describe_misplaced(graph, candidate) else right
        if candidate not in group and len(group) < (1 if group is right else 2):
            group.append(candidate)
    return choose(
        rng,
        "Which of these is a topological order of this graph, users first?",
        " ".join(right[0]),
        {" ".join(candidate): describe_misplaced(graph, candidate) for candidate in wrong},
        f"Each variable comes after all its users: {' '.join(right[0])}. Another order may do as well.",
        figure="\n".join(picture(graph)),
        numbers={"graph": graph, "orders": [*right, *wrong]},
    )


def paths(rng: Random) -> Question:
    """Ask for the number of paths through a ladder of diamonds."""
    rungs = rng.randint(3, 8)
    graph = ladder(rungs)
    answer = int(leaf_gradient(graph))
    return Question(
        f"{rungs} diamonds like this one are stacked. How many paths lead from the root to the leaf?",
        answer,
        f"Each diamond doubles the number of paths: 2 ** {rungs} = {answer}. All weights are 1, so that is the gradient of "
        "the leaf, too. With 40 diamonds, whoever follows paths does not finish.",
        {2 * rungs: "each diamond doubles the number, it does not add 2", rungs**2: "each diamond doubles the number"},
        figure="   y3\n  /  \\\ny1    y2\n  \\  /\n   x0",
        numbers={"rungs": rungs},
    )


def calls(rng: Random) -> Question:
    """Ask how many calls of backward a ladder needs."""
    rungs = rng.randint(3, 10)
    graph = ladder(rungs)
    nodes, watch = build_variables(graph)
    oracle.function("backpropagate")(nodes[-1], 1.0)
    answer = watch.backward_calls.total()
    return Question(
        f"{rungs} diamonds like this one are stacked; y1, y2 and y3 are calls, and the leaf x0 is none. How often is "
        "`backward` called when variables are taken in topological order?",
        answer,
        f"Each call is asked once, whatever the number of paths: 3 * {rungs} = {answer}. Along all paths it would be many "
        "more.",
        {
            3 * rungs + 1: "the leaf has no call",
            2**rungs: "this is the number of paths; each call is asked once",
            2 * rungs: "a diamond has three calls",
        },
        figure="   y3\n  /  \\\ny1    y2\n  \\  /\n   x0",
        numbers={"rungs": rungs},
    )


def gathered(rng: Random) -> Question:
    """Ask what a leaf has gathered after backward, with something there before."""
    a, b, d, before = rng.choice(WEIGHTS), rng.choice(WEIGHTS), rng.choice([1, 2, 3]), rng.choice([10, 20])
    graph = Graph(("leaf", ((0, a), (0, b))), float(d), float(before))
    nodes, watch = build_variables(graph)
    oracle.function("backpropagate")(nodes[-1], graph.d)
    answer, new = float(nodes[0].grad or 0.0), d * (a + b)
    assert all(count == 1 for count in watch.accumulations.values())
    return Question(
        f"The leaf x0 has gathered {before} before. Now the root y1 receives {d}. What has x0 gathered afterwards?",
        answer,
        f"x0 is used twice by one call and receives {d} * {a} + {d} * {b} = {new}, on top of {before}: "
        f"{format_value(answer)}.",
        {
            new: "what was gathered before stays",
            before + d * b: "x0 is used twice, and receives the sum",
            before + d * a: "x0 is used twice, and receives the sum",
        },
        figure="\n".join(picture(graph)),
        numbers={"a": a, "b": b, "d": d, "before": before},
    )


QUESTIONS = (gradient, order, paths, calls, gathered)
