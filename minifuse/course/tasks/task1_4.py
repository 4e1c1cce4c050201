"""Task 1.4: topological order and backpropagation."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from .. import oracle
from ..check import LARGE_SHARE, agreement, check_each, current, in_turn
from ..graph_cases import (
    chain,
    describe_misplaced,
    drawn_graphs,
    graph_link,
    graphs_with_shared_gradients,
    ladder,
    large_graphs,
    picture,
    reachable,
)
from ..graphs import Graph
from ..questions.task1_4 import (
    ask_amounts,
    ask_derivatives,
    ask_gradients,
    ask_order,
    ask_orders,
    count_calls,
    derivatives,
    names_in_order,
)
from ..student import Student
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import StudentError, Wrong

SHARE = 0.5  # of the usual number of examples
DEEP, DEEPER, RUNGS = 5_000, 12_000, 40
ORDER, DEPTH, LEAVES, ONCE, TENSORS = (
    "each variable comes once, and before those it was computed from",
    f"a chain of {DEEP:,} calls, {RUNGS} diamonds in a row and graphs of hundreds of variables are walked through once",
    "each leaf receives the sum over all ways that lead to it",
    "each call is asked for its derivatives once, and each leaf accumulates once",
    "derivatives may be anything that can be added",
)


class Order(list[str]):
    """A right order. Any other order for which `fits` is True is right too."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(names_in_order(oracle.function("topological_order"), graph))
        self.graph = graph

    def __str__(self) -> str:
        return f"{', '.join(self) or 'nothing'}   (or another order in which users come first)"

    def fits(self, order: list[str]) -> bool:
        """Return whether an order has the same names, each once and after its users."""
        return Counter(order) == Counter(self) and not describe_misplaced(self.graph, order)


def fits(got: list[str], expected: Order) -> bool:
    """Return whether an order is right."""
    return expected.fits(got)


def right_derivatives(graph: Graph) -> dict[str, float | None]:
    """Return the right gradients of the variables, by name."""
    return derivatives(oracle.function("backpropagate"), graph)


def drawn_order(graph: Graph, got: list[str] | None, expected: Order) -> list[str]:
    """Draw the graph, and describe the first wrong place of the order."""
    fault = describe_misplaced(graph, got or [])
    return [*picture(graph), *["", fault] * bool(fault)]


def is_upside_down(wrong: Wrong) -> bool:
    """Return whether the reversed order would be right."""
    is_list = isinstance(wrong.expected, Order) and isinstance(wrong.got, list)
    return is_list and bool(wrong.expected.fits(wrong.got[::-1]))


def is_of_the_last(wrong: Wrong) -> bool:
    """Return whether each leaf has the gradient along one path only, where several paths lead to it."""
    graph, got = wrong.case, wrong.got
    arrived: list[set[float]] = [set() for _ in graph.nodes]
    arrived[-1] = {graph.d}
    for k in reversed(range(len(graph.nodes))):
        for i, weight in () if isinstance(graph.nodes[k], str) else graph.nodes[k]:
            arrived[i] |= {weight * d for d in arrived[k]}
    before = graph.gathered or 0.0
    ways = {name: {before + d for d in arrived[k]} for k, name in enumerate(graph.names)}
    return got.keys() == wrong.expected.keys() and all(d in (ways[name] or {before}) for name, d in got.items())


def from_one(graph: Graph) -> dict[str, float | None]:
    """Backpropagate from 1 instead of d."""
    return derivatives(oracle.function("backpropagate"), Graph(graph.nodes, 1.0, graph.gathered))


def replaced(graph: Graph) -> dict[str, float | None]:
    """Drop the gradients that leaves had before."""
    new = derivatives(oracle.function("backpropagate"), Graph(graph.nodes, graph.d))
    return {name: new.get(name, graph.gathered) for name in right_derivatives(graph)}


def is_in_computed(wrong: Wrong) -> bool:
    """Return whether a computed variable has a gradient."""
    return isinstance(wrong.got, dict) and any(name[0] == "y" for name in wrong.got)


def walk_far(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if deep or wide graphs take too many steps, or fail.

    Variables count the accesses to `history`, and comparisons. The second graph consists of the objects of the first one,
    in another order.
    """
    graphs = [chain(DEEP), ladder(DEEP // 4), ladder(RUNGS), chain(DEEPER)]
    texts = [
        f"a chain of {DEEP:,} calls",
        f"{DEEP // 4:,} diamonds on top of each other",
        f"{RUNGS} diamonds on top of each other",
        f"a chain of {DEEPER:,} calls",
    ]
    for first, last in ((0, 2), (2, 3), (3, 4)):
        what = texts[last - 1]
        current[0] = what
        message = "Python's stack is not deep enough for a function that calls itself once for each variable"
        orders = ask_despite("RecursionError", student, ask_orders, graphs[first:last], what, message)
        for graph, text, order in zip(graphs[first:last], texts[first:last], orders, strict=True):
            if not Order(graph).fits(order):
                raise Wrong(
                    describe_misplaced(graph, order) or f"{len(order):,} variables are listed",
                    case_text=text,
                    expected=f"{len(reachable(graph)):,} variables",
                )
    graphs, texts = [graphs[0], graphs[2], graphs[3]], [texts[0], texts[2], texts[3]]
    for graph, text, expected in zip(graphs, texts, (1.0, 2.0**RUNGS, 1.0), strict=True):
        current[0] = text
        message = "backpropagate calls itself too often"
        (found,) = ask_despite("RecursionError", student, ask_gradients, [graph], text, message)
        got = found.get(graph.names[0])
        if got != expected:
            raise Wrong("the leaf has another gradient", case_text=text, expected=expected, got=got)


def ask_despite(
    kind: str,
    student: StudentProcess,
    question: Callable[[Student, Any], object],
    graph: object,
    case_text: str,
    message: str = "",
) -> Any:
    """Ask a question; raise `Wrong` for an exception of one class, with a message or the text of the exception."""
    try:
        return student.ask(question, graph)
    except StudentError as error:
        if error.kind != kind:
            raise
        raise Wrong(message or str(error), case_text=case_text, kind=kind) from None


def examine_counts(graph: Graph, counts: tuple[dict[str, int], dict[str, int]]) -> None:
    """Raise `Wrong` if a call does not run backward once, or a leaf does not accumulate once."""
    names = [graph.names[k] for k in reachable(graph)]
    for (what, letter), found in zip((("backward of the call of", "y"), ("accumulate of", "x")), counts, strict=True):
        for name in names:
            count = found.get(name, 0)
            if name[0] == letter and count != 1:
                raise Wrong(
                    f"{what} {name} was called {count} times; call it once, when all parts of its gradient are added",
                    case_text=str(graph),
                    expected="1 call",
                    drawing=picture(graph),
                    link=graph_link(graph),
                    kind="asked again" if count else "not asked",
                )


def examine_amounts(graph: Graph, answer: tuple[dict[str, float], float]) -> None:
    """Raise `Wrong` for other gradients, or if d was changed."""
    expected = right_derivatives(graph)
    text = f"{graph}, where gradients are objects that can only be added to each other, as tensors can"
    if answer[0] != expected:
        name = next(name for name in [*expected, *answer[0]] if answer[0].get(name) != expected.get(name))
        message = f"{name} received {answer[0].get(name)}; expected {expected.get(name)}"
        raise Wrong(message, case_text=text, drawing=picture(graph), kind="in place")
    if answer[1] != graph.d:
        raise Wrong("d itself was changed; it belongs to the caller", case_text=text, expected=graph.d, kind="in place")


TASK = Task(
    id="1.4",
    title="Backpropagation",
    file="autodiff.py",
    slots=("topological_order", "backpropagate"),
    points=6,
    text=(
        "A result was computed from variables, those from others, and so on, down to leaves. Put all of them in an order "
        "in which each comes before those that it was computed from. Then go through it: when it is a variable's turn, all "
        "that it receives has arrived, so its call is asked once, and what its inputs receive is added to what they have. "
        "A leaf accumulates its total. Variables may be shared, used twice, constant, and thousands of calls away."
    ),
    hints=(
        "A variable may pass on its derivative only when all its users have. That is what the order is for.",
        "The order: go as deep as you can, and note a variable after all its inputs are noted; turn the list round. With a "
        "stack of your own instead of calls, it can be as deep as memory. Backward: a dict from variable to what has "
        "arrived; begin with root: d; for each variable in order take its total, and give it to the leaf or to chain_rule.",
        "minifuse/core/interning.py has the order, minifuse/core/autograd.py the walk; "
        "the page Autodiff of `minifuse app` plays its steps.",
    ),
    reads=(
        "docs/course/1.4-backpropagation.md",
        "docs/guide/gradients.md",
        "minifuse/core/interning.py",
        "minifuse/core/autograd.py",
    ),
    checks=(
        agreement(
            ORDER,
            drawn_graphs,
            ask_order,
            Order,
            agree=fits,
            draw=drawn_order,
            link=graph_link,
        ),
        agreement(
            LEAVES,
            lambda: drawn_graphs(with_gathered=True),
            ask_derivatives,
            right_derivatives,
            draw=lambda graph, got, expected: picture(graph),
            link=graph_link,
        ),
        check_each(ONCE, drawn_graphs, count_calls, examine_counts, share=SHARE),
        in_turn(
            TENSORS,
            [
                check_each(TENSORS, graphs_with_shared_gradients, ask_amounts, examine_amounts),
                check_each(TENSORS, drawn_graphs, ask_amounts, examine_amounts, share=SHARE),
            ],
        ),
        in_turn(
            DEPTH,
            [
                Check(DEPTH, walk_far),
                agreement(DEPTH, large_graphs, ask_order, Order, agree=fits, share=LARGE_SHARE),
                agreement(DEPTH, large_graphs, ask_derivatives, right_derivatives, share=LARGE_SHARE),
                check_each(DEPTH, large_graphs, count_calls, examine_counts, share=LARGE_SHARE),
                check_each(DEPTH, large_graphs, ask_amounts, examine_amounts, share=LARGE_SHARE),
            ],
        ),
    ),
    mistakes=(
        Mistake(
            "a variable that two others need comes twice",
            "Note which variables you have seen, and pass by them the second time.",
            when=lambda w: w.kind == "walks" or (isinstance(w.got, list) and max(Counter(w.got).values(), default=0) > 1),
            check=ORDER,
        ),
        Mistake(
            "the list is upside down: inputs come before their users",
            "Turn it round in the end.",
            when=is_upside_down,
            check=ORDER,
        ),
        Mistake(
            "a variable comes before one of its users",
            "The first path to a variable need not be the longest, so don't list it when you find it. List it when all its "
            "inputs are listed, and turn the list round in the end.",
            when=lambda w: (
                isinstance(w.expected, Order)
                and isinstance(w.got, list)
                and Counter(w.got) == Counter(w.expected)
                and bool(describe_misplaced(w.expected.graph, w.got))
            ),
            check=ORDER,
        ),
        Mistake(
            "constants are in the order",
            "Nothing is gathered for a constant: x.is_constant.",
            when=lambda w: isinstance(w.got, list) and not set(w.expected) >= set(w.got) <= set(w.expected.graph.names),
            check=ORDER,
        ),
        Mistake(
            "a function calls itself once for each variable on the way",
            "Python allows about a thousand calls within each other. Keep a list of what is still to be done, and take from "
            "its end.",
            when=lambda w: w.kind == "RecursionError",
            check=DEPTH,
        ),
        Mistake(
            "a derivative that arrives replaces what has arrived before",
            "A variable that is used twice receives twice, and the sum counts.",
            when=is_of_the_last,
            check=LEAVES,
        ),
        Mistake(
            "variables that were computed gather derivatives too",
            "Only a leaf, whose history is None, accumulates.",
            when=is_in_computed,
            check=LEAVES,
        ),
        Mistake(
            "it begins with 1, not with d",
            "The root receives d, and so does everything behind it.",
            wrong_answer=from_one,
            check=LEAVES,
        ),
        Mistake(
            "what a leaf has gathered before is lost",
            "Two losses may go backward before a step. leaf.accumulate(total) adds; an assignment to leaf.grad does not.",
            wrong_answer=replaced,
            check=LEAVES,
        ),
        Mistake(
            "derivatives are passed on before all have arrived",
            "Go through topological_order(root), and give each variable its turn when its total is complete.",
            when=lambda w: w.kind in ("asked again", "walks"),
        ),
        Mistake(
            "all variables are gone through for each of them",
            "A list is searched from its beginning. A set knows at once whether it has a variable, and a dict what has "
            "arrived for it.",
            when=lambda w: w.kind == "searches",
        ),
        Mistake(
            "derivatives are added in place",
            "One derivative may belong to several variables: Add passes d on twice. received + dx makes a new one, += may "
            "change that of another variable.",
            when=lambda w: w.kind == "in place",
            check=TENSORS,
        ),
        Mistake(
            "the first gradient is added to 0",
            "A gradient may be a tensor, and can be added to another gradient only. Store the first one, and add the "
            "others.",
            when=lambda w: w.kind == "TypeError" and "not to 0" in w.message,
            check=TENSORS,
        ),
        Mistake(
            "a derivative is taken for a number",
            "Derivatives of tensors are tensors. Add them, pass them on, and ask nothing else of them.",
            when=lambda w: w.kind == "TypeError",
            check=TENSORS,
        ),
    ),
)
