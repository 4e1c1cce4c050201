"""Task 1.3: the chain rule, for one call."""

import math
from typing import TYPE_CHECKING, Any

from .. import oracle
from ..cases import among
from ..check import agreement, check_each, same
from ..graph_cases import drawn_calls, graph_link, picture
from ..graphs import Graph, build_variables
from ..questions.task1_3 import AnyCall, ask, ask_any, pairs
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

PAIRS, PASSED_ON = (
    "each input that is no constant is paired with its derivative",
    "backward is asked once, and what it returns is passed on as it is, be it a number or not",
)


def any_calls(least: int = 1) -> "SearchStrategy[AnyCall]":
    """Draw calls whose derivatives are 0, infinite, not a number, or no numbers at all."""
    from hypothesis import strategies as st

    numbers = among(None, 0.0, -0.0, 1e300, -2e7, 1e-200, math.inf, math.nan, 3.0)

    @st.composite
    def case(draw: st.DrawFn) -> AnyCall:
        few = draw(st.lists(st.tuples(st.integers(0, 4), numbers), min_size=1, max_size=6))
        several = few * (1 + least // len(few))
        ds = tuple(draw(numbers) for _ in range(2))
        return AnyCall(tuple(k for k, _ in several), tuple(x for _, x in several), ds)

    return case()


def describe_any(case: AnyCall) -> str:
    """Return a call as text."""
    inputs = ", ".join(f"x{k}{' (constant)' * (k % 2)}" for k in case.inputs[:8]) + ", ..." * (len(case.inputs) > 8)
    texts = [f"{x:g}" if x is not None else "an object" for x in (*case.derivatives[:8], *case.ds)]
    return f"inputs {inputs}; backward returns {', '.join(texts[:-2])}; d {texts[-2]}, then {texts[-1]}"


def examine_any(case: AnyCall, answers: list[tuple[Any, int, bool]]) -> None:
    """Raise `Wrong` for other pairs, or if `backward` is not asked once for each d."""
    for round_, (found, count, is_told) in enumerate(answers):
        if count != 1:
            raise Wrong(f"backward was called {count} times for one d", expected="1 call", kind="calls")
        if not is_told:
            raise Wrong("backward received another context or another d than the call's", kind="told")
        texts = [f"derivative {k}" if x is None else x for k, x in enumerate(case.derivatives)]
        right = zip(case.inputs, texts[::-1] if round_ else texts, strict=True)
        expected = [(f"x{k}", dx) for k, dx in right if k % 2 == 0]
        if not same(found, expected):
            raise Wrong(PASSED_ON, expected=expected, got=found)


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
    reads=("docs/course/1.3-chain-rule.md", "docs/guide/gradients.md", "minifuse/core/autograd.py"),
    checks=(
        agreement(
            PAIRS,
            drawn_calls,
            ask,
            lambda graph: pairs(oracle.function("chain_rule"), graph),
            describe=lambda graph: f"the last call of {graph}",
            draw=lambda graph, got, expected: picture(graph),
            link=graph_link,
        ),
        check_each(PASSED_ON, any_calls, ask_any, examine_any, large=lambda: any_calls(100), describe=describe_any),
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
        Mistake(
            "backward is not asked exactly once",
            "One call of backward returns the derivatives for all inputs. For each d it has to be asked anew.",
            when=lambda w: w.kind == "calls",
            check=PASSED_ON,
        ),
        Mistake(
            "backward is called without the context",
            "backward is a static method: call.function.backward(call.context, d).",
            when=lambda w: w.kind == "TypeError" and "missing 1 required positional argument" in w.message,
        ),
        Mistake(
            "a derivative is taken for a number",
            "Derivatives of tensors are tensors. Pass them on, and ask nothing of them, not even whether they are 0.",
            when=lambda w: w.kind == "TypeError" and "positional argument" not in w.message,
            check=PASSED_ON,
        ),
    ),
)
