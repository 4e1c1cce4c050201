"""Task 1.4: the order of going backward, and backpropagation."""

from collections import Counter

from .. import oracle
from ..cases import autodiff_link
from ..check import agreement
from ..graphs import Graph, built, chain, drawn_graphs, ladder, misplaced, picture, reached
from ..student import Student
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

DEEP, RUNGS = 5_000, 40
ORDER, DEPTH, LEAVES, ONCE, TENSORS = (
    "each variable comes once, and before those it was computed from",
    f"a chain of {DEEP:,} calls, and a ladder of {RUNGS} diamonds, are walked through once",
    "each leaf receives the sum over all ways that lead to it",
    "each call is asked for its derivatives once, and each leaf accumulates once",
    "derivatives may be anything that can be added",
)


def names_in_order(topological_order: oracle.Slot, graph: Graph) -> list[str]:
    """The order, by names."""
    return [getattr(x, "name", repr(x)) for x in topological_order(built(graph)[0][-1])]


class Order(list[str]):
    """An order that is right; so is any other for which `fits`."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(names_in_order(oracle.function("topological_order"), graph))
        self.graph = graph

    def __str__(self) -> str:
        return f"{', '.join(self) or 'nothing'}   (or another order in which users come first)"

    def fits(self, order: list[str]) -> bool:
        """Return whether an order has the same names once each, and users first."""
        return Counter(order) == Counter(self) and not misplaced(self.graph, order)


def drawn_order(graph: Graph, got: list[str] | None, expected: Order) -> list[str]:
    """The graph, and what stands in the way."""
    fault = misplaced(graph, got or [])
    return [*picture(graph), *["", fault] * bool(fault)]


def derivatives(backpropagate: oracle.Slot, graph: Graph) -> dict[str, float | None]:
    """Run backpropagation, and return the derivatives that variables have gathered."""
    nodes, _ = built(graph)
    backpropagate(nodes[-1], graph.d)
    return {nodes[k].name: nodes[k].grad for k in range(len(nodes)) if nodes[k].grad is not None}


def is_of_the_last(wrong: Wrong) -> bool:
    """Return whether each leaf has gathered the derivative along one way only, where several lead to it."""
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
    """Begin with 1 in place of d."""
    return derivatives(oracle.function("backpropagate"), Graph(graph.nodes, 1.0, graph.gathered))


def replaced(graph: Graph) -> dict[str, float | None]:
    """Lose the derivatives that leaves had before."""
    new = derivatives(oracle.function("backpropagate"), Graph(graph.nodes, graph.d))
    return {name: new.get(name, graph.gathered) for name in derivatives(oracle.function("backpropagate"), graph)}


def is_in_computed(wrong: Wrong) -> bool:
    """Return whether a variable that was computed has gathered something."""
    return isinstance(wrong.got, dict) and any(name[0] == "y" for name in wrong.got)


def walk_far(student: Student, effort: Effort) -> None:
    """Deep and wide graphs. `history` of their variables counts who looks."""
    for graph, what in (
        (chain(DEEP), f"a chain of {DEEP:,} calls"),
        (ladder(RUNGS), f"{RUNGS} diamonds on top of each other"),
    ):
        try:
            order = names_in_order(student.topological_order, graph)
        except RecursionError as error:
            raise Wrong(
                f"{what}: Python's stack is not deep enough for a function that calls itself once for each variable",
                told=what,
                kind="RecursionError",
            ) from error
        if not Order(graph).fits(order):
            raise Wrong(
                f"{what}: {misplaced(graph, order) or f'{len(order):,} variables'}", told=what, expected=len(reached(graph))
            )
        nodes, _ = built(graph)
        try:
            student.backpropagate(nodes[-1], 1.0)
        except RecursionError as error:
            raise Wrong(f"{what}: backpropagate calls itself too often", told=what, kind="RecursionError") from error
        expected = 1.0 if graph.nodes == chain(DEEP).nodes else 2.0**RUNGS
        if nodes[0].grad != expected:
            raise Wrong(f"{what}: the leaf has another derivative", told=what, expected=expected, got=nodes[0].grad)


def asked_once(student: Student, effort: Effort) -> None:
    """Count how often each call of a ladder is asked, and how often its leaf is told to accumulate."""
    graph = ladder(4)
    nodes, watch = built(graph)
    student.backpropagate(nodes[-1], graph.d)
    most, count = watch.asked.most_common(1)[0]
    if count > 1:
        raise Wrong(
            f"the call that made {most} was asked {count} times; its derivative is passed on before all of it has arrived",
            told=str(graph),
            expected=1,
            got=count,
            drawing=picture(graph),
            link=autodiff_link(),
            kind="asked again",
        )
    graph = Graph(("leaf", ((0, 1), (0, 2)), ((0, 3), (1, 1))))
    nodes, watch = built(graph)
    student.backpropagate(nodes[-1], graph.d)
    if watch.told["x0"] != 1:
        raise Wrong(
            f"the leaf x0 was told to accumulate {watch.told['x0']} times; it is to hear of its total, once",
            told=str(graph),
            expected=1,
            got=watch.told["x0"],
            drawing=picture(graph),
            link=autodiff_link(),
            kind="asked again",
        )


class Word:
    """A derivative that can be added, to another one or to 0, and nothing else."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: "Word") -> "Word":
        return Word("+".join(sorted([*self.text.split("+"), *other.text.split("+")])))

    def __radd__(self, other: float) -> "Word":
        return self

    def __rmul__(self, weight: int) -> "Word":
        return Word("+".join([self.text] * weight))


def of_words(student: Student, effort: Effort) -> None:
    """Derivatives that are no numbers, as a tensor's are none."""
    graph = Graph(("leaf", ((0, 1),), ((0, 1),), ((1, 1), (2, 1))))
    nodes, _ = built(graph)
    case = f"{graph}, where that is an object that can only be added to another one, as a tensor's derivative is"
    try:
        student.backpropagate(nodes[-1], Word("d"))
    except TypeError as error:
        raise Wrong(f"TypeError: {error}", told=case, kind="TypeError") from error
    got = getattr(nodes[0].grad, "text", nodes[0].grad)
    if got != "d+d":
        raise Wrong(TENSORS, told=case, expected="d+d", got=got)


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
            lambda s, graph: names_in_order(s.topological_order, graph),
            Order,
            agree=lambda got, expected: expected.fits(got),
            draw=drawn_order,
            link=lambda graph: autodiff_link(),
            share=2,
        ),
        agreement(
            LEAVES,
            lambda: drawn_graphs(with_gathered=True),
            lambda s, graph: derivatives(s.backpropagate, graph),
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
                and bool(misplaced(w.expected.graph, w.got))
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
            gives=from_one,
            check=LEAVES,
        ),
        Mistake(
            "what a leaf has gathered before is lost",
            "Two losses may go backward before a step. leaf.accumulate(total) adds; an assignment to leaf.grad does not.",
            gives=replaced,
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
