"""Task 1.4: topological order and backpropagation."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from .. import oracle
from ..cases import autodiff_link
from ..check import agreement
from ..graph_cases import chain, describe_misplaced, drawn_graphs, ladder, picture, reachable
from ..graphs import Graph
from ..questions.task1_4 import ask_derivatives, ask_order, ask_word, count_calls, derivatives, names_in_order
from ..student import Student
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import StudentError, Wrong

DEEP, RUNGS = 5_000, 40
ORDER, DEPTH, LEAVES, ONCE, TENSORS = (
    "each variable comes once, and before those it was computed from",
    f"a chain of {DEEP:,} calls, and a ladder of {RUNGS} diamonds, are walked through once",
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


def drawn_order(graph: Graph, got: list[str] | None, expected: Order) -> list[str]:
    """Draw the graph, and describe the first wrong place of the order."""
    fault = describe_misplaced(graph, got or [])
    return [*picture(graph), *["", fault] * bool(fault)]


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
    return {name: new.get(name, graph.gathered) for name in derivatives(oracle.function("backpropagate"), graph)}


def is_in_computed(wrong: Wrong) -> bool:
    """Return whether a computed variable has a gradient."""
    return isinstance(wrong.got, dict) and any(name[0] == "y" for name in wrong.got)


def walk_far(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if deep or wide graphs take too long or fail. Variables count the accesses to `history`."""
    for graph, what, expected in (
        (chain(DEEP), f"a chain of {DEEP:,} calls", 1.0),
        (ladder(RUNGS), f"{RUNGS} diamonds on top of each other", 2.0**RUNGS),
    ):
        message = f"{what}: Python's stack is not deep enough for a function that calls itself once for each variable"
        order = ask_despite("RecursionError", student, ask_order, graph, what, message)
        if not Order(graph).fits(order):
            raise Wrong(
                f"{what}: {describe_misplaced(graph, order) or f'{len(order):,} variables'}",
                case_text=what,
                expected=len(reachable(graph)),
            )
        message = f"{what}: backpropagate calls itself too often"
        found = ask_despite("RecursionError", student, ask_derivatives, graph, what, message)
        got = found.get(graph.names[0])
        if got != expected:
            raise Wrong(f"{what}: the leaf has another derivative", case_text=what, expected=expected, got=got)


def ask_despite(
    kind: str,
    student: StudentProcess,
    question: Callable[[Student, Graph], object],
    graph: Graph,
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


def asked_once(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a call of a ladder runs backward twice, or its leaf accumulates twice."""
    graph = ladder(4)
    backward_calls, _ = student.ask(count_calls, graph)
    most = max(backward_calls, key=backward_calls.get, default="")
    count = backward_calls.get(most, 0)
    if count > 1:
        raise Wrong(
            f"backward of the call of {most} ran {count} times; its gradient is passed on before all parts of it are added",
            case_text=str(graph),
            expected=1,
            got=count,
            drawing=picture(graph),
            link=autodiff_link(),
            kind="asked again",
        )
    graph = Graph(("leaf", ((0, 1), (0, 2)), ((0, 3), (1, 1))))
    _, accumulations = student.ask(count_calls, graph)
    count = accumulations.get("x0", 0)
    if count != 1:
        raise Wrong(
            f"accumulate of the leaf x0 was called {count} times; call it once, with the sum",
            case_text=str(graph),
            expected=1,
            got=count,
            drawing=picture(graph),
            link=autodiff_link(),
            kind="asked again",
        )


def of_words(student: StudentProcess, effort: Effort) -> None:
    """Run backpropagation with gradients that are not numbers, like those of tensors."""
    graph = Graph(("leaf", ((0, 1),), ((0, 1),), ((1, 1), (2, 1))))
    case = f"{graph}, where that is an object that can only be added to another one, as a tensor's derivative is"
    got = ask_despite("TypeError", student, ask_word, graph, case)
    if got != "d+d":
        raise Wrong(TENSORS, case_text=case, expected="d+d", got=got)


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
    reads=("docs/guide/gradients.md", "minifuse/core/interning.py", "minifuse/core/autograd.py"),
    checks=(
        agreement(
            ORDER,
            drawn_graphs,
            ask_order,
            Order,
            agree=lambda got, expected: expected.fits(got),
            draw=drawn_order,
            link=lambda graph: autodiff_link(),
            share=2,
        ),
        agreement(
            LEAVES,
            lambda: drawn_graphs(with_gathered=True),
            ask_derivatives,
            lambda graph: derivatives(oracle.function("backpropagate"), graph),
            draw=lambda graph, got, expected: picture(graph),
            link=lambda graph: autodiff_link(),
            share=2,
        ),
        Check(ONCE, asked_once),
        Check(TENSORS, of_words),
        Check(DEPTH, walk_far),
    ),
    mistakes=(
        Mistake(
            "a variable that two others need comes twice",
            "Note which variables you have seen, and pass by them the second time.",
            when=lambda w: w.kind == "walks" or (isinstance(w.got, list) and max(Counter(w.got).values(), default=0) > 1),
            check=ORDER,
        ),
        Mistake(
            "a variable is noted when it is found, not when all that it is for has been",
            "The first way to a variable need not be the longest. A variable may be noted once all its inputs have been; in "
            "the end, turn the list round.",
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
            "a derivative is taken for a number",
            "Derivatives of tensors are tensors. Add them, pass them on, and ask nothing else of them.",
            when=lambda w: w.kind == "TypeError",
            check=TENSORS,
        ),
    ),
)
