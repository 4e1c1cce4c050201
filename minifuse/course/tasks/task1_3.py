"""Task 1.3: the chain rule, for one call."""

from .. import oracle
from ..cases import autodiff_link
from ..check import agreement
from ..graph_cases import drawn_calls, picture
from ..graphs import Graph, build_variables
from ..questions.task1_3 import ask, pairs
from ..task import Mistake, Task

PAIRS = "each input that is no constant is paired with its derivative"


def by_hand(graph: Graph, d: float | None = None, with_constants: bool = False) -> list[tuple[str, float]]:
    """Compute the pairs of all inputs, by default without constants."""
    made_by = build_variables(graph)[0][-1].made_by
    assert made_by is not None
    weights = made_by.context.saved[0]
    d = graph.d if d is None else d
    return [
        (x.name, float(w * d)) for x, w in zip(made_by.inputs, weights, strict=True) if with_constants or not x.is_constant
    ]


def misaligned(graph: Graph) -> list[tuple[str, float]]:
    """Filter the inputs, then pair them with the first derivatives."""
    names = [name for name, _ in by_hand(graph)]
    return [(name, dx) for name, (_, dx) in zip(names, by_hand(graph, with_constants=True), strict=False)]


TASK = Task(
    id="1.3",
    title="The chain rule",
    file="autodiff.py",
    slots=("chain_rule",),
    points=2,
    text=(
        "A call remembers its function, its context and its inputs. Ask the function's backward what the inputs receive "
        "when its result receives d, and pair each input with its derivative. Constants receive nothing, so leave them "
        "out; a variable that is an input twice is there twice."
    ),
    hints=(
        "backward gives a tuple with one derivative for each input, in their order, for constants too.",
        "Call call.function.backward(call.context, d). Walk over inputs and derivatives together, and keep those pairs "
        "whose variable is no constant.",
        "minifuse/core/autograd.py does this for each call, in `gradients`; an edge that is None stands for a constant.",
    ),
    reads=("docs/guide/gradients.md", "minifuse/core/autograd.py"),
    checks=(
        agreement(
            PAIRS,
            drawn_calls,
            ask,
            lambda graph: pairs(oracle.function("chain_rule"), graph),
            describe=lambda graph: f"the last call of {graph}",
            draw=lambda graph, got, expected: picture(graph),
            link=lambda graph: autodiff_link(),
        ),
    ),
    mistakes=(
        Mistake(
            "constants are kept",
            "Nobody gathers derivatives for a constant: x.is_constant says which ones to leave out.",
            wrong_answer=lambda graph: by_hand(graph, with_constants=True),
        ),
        Mistake(
            "constants are left out before inputs and derivatives are paired",
            "backward gives a derivative for constants too. Leave out pairs, not inputs.",
            wrong_answer=misaligned,
        ),
        Mistake(
            "backward is told 1 in place of d",
            "d is what the result of this call receives, and everything behind is multiplied by it.",
            wrong_answer=lambda graph: by_hand(graph, 1.0),
        ),
        Mistake(
            "derivatives are multiplied by d twice",
            "backward multiplies by d already.",
            wrong_answer=lambda graph: [(name, dx * graph.d) for name, dx in by_hand(graph)],
        ),
        Mistake(
            "a variable that is an input twice is there once",
            "In x * x both inputs are x, and both derivatives count. A dict keeps only the last.",
            wrong_answer=lambda graph: list(dict(by_hand(graph)).items()),
        ),
    ),
)
