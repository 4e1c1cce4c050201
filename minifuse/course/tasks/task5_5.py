"""Task 5.5: the gradients of a graph, as a graph; what its backward pass saves and what it computes again."""

from collections.abc import Callable, Hashable
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...core.indexing import Shape
from ..check import agreement, current
from ..fusion import BINARY, FOLDS, Graph
from ..oracle import Slot
from ..oracle.module5 import Traced, fit, gradients, pulled, recorded, split
from ..programs import Line, Program, demand, evaluated, graph_of, levels, needed, programs, row_programs, sample, samples
from ..strided import Array
from ..student import Student
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPS = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "lt", "sum", "max", "mul", "exp", "sum")
RULES = "each operation pulls its gradient back to its operands"
GRADIENTS = "the graph of gradients gives the gradient of each input"
BOTH = "forward and backward give the output and the gradients"
RECOMPUTED = "no reduction of the forward pass is computed again"
STEP = Program(((2, 3),), (Line("lt", (0, 0.5)), Line("mul", (0, 1))), (2,))
UNUSED = Program(((2, 3), (2, 3)), (Line("mul", (0, 0)),), (2,))
SAVED = "only reductions are saved, and only those that the backward pass needs"


class Rule(NamedTuple):
    """An operation of operands, some of whose elements may be equal."""

    op: str
    has_ties: bool

    def arrays(self) -> list[Array]:
        """d and the operands."""
        a, b = sample((3, 4), 1), sample((3, 4), 2)
        if self.op == "log":
            a = np.abs(a) + 0.1
        if self.has_ties:
            a[:, 1] = a[:, 3] = 2.5
            b[:, ::2] = a[:, ::2]
        d = sample((3, 1) if self.op in FOLDS else (3, 4), 3)
        return [d, a, b] if self.op in BINARY else [d, a]

    def __str__(self) -> str:
        return (
            f"y = {self.op}({', '.join('ab'[: len(self.arrays()) - 1])})" + ", where some elements are equal" * self.has_ties
        )


def rules() -> "SearchStrategy[Rule]":
    """All operations that have a gradient."""
    from hypothesis import strategies as st

    ops = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "sum", "max")
    return st.builds(Rule, st.sampled_from(ops), st.booleans()).filter(
        lambda r: not r.has_ties or r.op in ("maximum", "max")
    )


def by_rule(rule: Rule, pull: Slot) -> list[Array]:
    """Compute the gradients of operands, in their shapes."""

    def run(d: Traced, *operands: Traced) -> tuple[Traced, ...]:
        y = d.then(rule.op, *operands)
        parts = pull(rule.op, d, y, *operands)
        if not isinstance(parts, tuple) or len(parts) != len(operands):
            said = f"pull_back({rule.op!r}, ...) gives a tuple with a gradient for each operand"
            raise Wrong(said, told=str(rule), got=parts, kind="kind")
        return tuple(fit(part, x.shape) for part, x in zip(parts, operands, strict=True))

    arrays = rule.arrays()
    return evaluated(recorded(run, *[x.shape for x in arrays]), arrays)


def spaces() -> "SearchStrategy[tuple[Shape, ...]]":
    """Shapes (rows, n) and (rows, 1)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> tuple[Shape, ...]:
        rows, n = draw(st.integers(2, 3)), draw(st.integers(2, 4))
        return ((rows, n), *draw(st.lists(st.sampled_from([(rows, n), (rows, 1)]), max_size=2)))

    return case()


def cases() -> "SearchStrategy[Program]":
    """Programs with one output, (rows, n) or (rows, 1)."""
    from hypothesis import strategies as st

    drawn = programs(spaces(), OPS, most=7, most_outputs=1, gives=lambda shape, whole: shape in (whole, (whole[0], 1)))
    return st.sampled_from([*row_programs((2, 3)), STEP, UNUSED]) | drawn


def given(program: Program, saved: list[Array] | None = None) -> list[Array]:
    """Values of the inputs, what is saved, and d."""
    xs = samples(program.shapes)
    return [*xs, *(saved or []), sample(program.on(xs)[0].shape, 7)]


def as_graph(found: object, name: str, inputs: list[Shape], outputs: list[Shape]) -> Graph:
    """A graph of the student's with these inputs and outputs."""
    if not isinstance(found, Graph):
        raise Wrong(f"{name} is to be a Graph; this is of type {type(found).__name__}", told=current[0], kind="kind")
    has = [node.shape for node in found.nodes if node.op == "input"]
    if has != inputs:
        raise wrong(f"{name} has inputs of shapes {has}", found, "inputs", expected=inputs, got=has)
    shapes = [found.nodes[k].shape for k in found.outputs]
    if shapes != outputs:
        is_large = any(prod(one) > prod(other) for one, other in zip(shapes, outputs, strict=False))
        kind = "large" if is_large else "shapes"
        raise wrong(f"{name} gives values of shapes {shapes}", found, kind, expected=outputs, got=shapes)
    return found


def wrong(said: str, graph: Graph, kind: str, expected: object = None, got: object = None) -> Wrong:
    """Build a failure that shows the graph."""
    return Wrong(said, told=current[0], drawing=str(graph).splitlines(), kind=kind, expected=expected, got=got)


def gradient_values(student: Student, program: Program) -> list[Array]:
    """Evaluate the student's graph of gradients."""
    graph, shapes = graph_of(program), list(program.shapes)
    output = graph.nodes[graph.outputs[0]].shape
    found = as_graph(student.gradient_graph(graph), "gradient_graph(graph)", [*shapes, output], shapes)
    return evaluated(found, given(program))


def expected(program: Program, mistake: str = "") -> list[Array]:
    """The gradients, or those of somebody who makes a mistake."""
    return evaluated(gradients(graph_of(program), mistake=mistake), given(program))


def halves(student: Student, program: Program) -> tuple[Graph, Graph]:
    """The student's forward and backward."""
    graph = graph_of(program)
    found = student.forward_and_backward(graph)
    if not isinstance(found, tuple) or len(found) != 2:
        raise Wrong("forward_and_backward gives two Graphs", told=current[0], got=found, kind="kind")
    forward, backward = found
    shapes, output = list(program.shapes), graph.nodes[graph.outputs[0]].shape
    if not isinstance(forward, Graph) or not forward.outputs:
        raise Wrong("forward is to be a Graph with outputs (output, *saved)", told=current[0], got=forward, kind="kind")
    saved = [forward.nodes[k].shape for k in forward.outputs[1:]]
    as_graph(forward, "forward", shapes, [output, *saved])
    return forward, as_graph(backward, "backward", [*shapes, *saved, output], shapes)


def both_values(student: Student, program: Program) -> list[Array]:
    """Run both graphs, one after the other."""
    forward, backward = halves(student, program)
    output, *saved = evaluated(forward, samples(program.shapes))
    return [output, *evaluated(backward, given(program, saved))]


def identities(graph: Graph, known: dict[Hashable, int], inputs: dict[int, int]) -> list[int]:
    """A number for each value of a graph, the same for the same expression in all graphs that share `known`."""
    found: list[int] = []
    for node in graph.nodes:
        place = inputs.get(int(node.value or 0)) if node.op == "input" else None
        name = (node.op, tuple(found[i] for i in node.inputs), repr(node.value), node.shape)
        found.append(known.setdefault(name, len(known)) if place is None else place)
    return found


def recomputes_no_reduction(student: Student, program: Program) -> None:
    """Compare the reductions of the backward graph with those of the forward graph; passes tell the cost."""
    forward, backward = halves(student, program)
    known: dict[Hashable, int] = {}
    own = identities(forward, known, {})
    count = len(program.shapes)
    saved = {count + at: own[k] for at, k in enumerate(forward.outputs[1:])}
    d = max(int(n.value or 0) for n in backward.nodes if n.op == "input")
    theirs = identities(backward, known, saved | {d: -1})
    reductions = {own[k]: k for k in needed(forward) if forward.nodes[k].op in FOLDS}
    for k in needed(backward):
        if backward.nodes[k].op in FOLDS and theirs[k] in reductions:
            passes = [1 + max(levels(g)[i] for i in g.outputs) for g in (backward, split(graph_of(program))[1])]
            said = (
                f"%{k} of the backward graph is %{reductions[theirs[k]]} of the forward graph, computed again; save it. "
                f"The backward kernel makes {passes[0]} passes over each row; {passes[1]} would do"
            )
            raise wrong(said, backward, "refold")


def saves_reductions(student: Student, program: Program) -> None:
    """Check that all saved values are small, and needed."""
    forward, backward = halves(student, program)
    for k in forward.outputs[1:]:
        if forward.nodes[k].op not in FOLDS:
            said = (
                f"%{k} = {forward.nodes[k].op} of shape {forward.nodes[k].shape} is saved; it can be computed again at once"
            )
            raise wrong(said, forward, "saved")
    count, used = len(program.shapes), {backward.nodes[k].value for k in needed(backward) if backward.nodes[k].op == "input"}
    for at, k in enumerate(forward.outputs[1:]):
        if count + at not in used:
            raise wrong(f"%{k} is saved, and the backward graph does not use it", forward, "unneeded")
    if len(set(forward.outputs[1:])) != len(forward.outputs) - 1:
        raise wrong("a value is saved twice", forward, "unneeded")


def has_unused(graph: Graph) -> bool:
    """Return whether the output does not depend on some input, or only by way of lt."""
    live = needed(graph._replace(nodes=tuple(node._replace(inputs=()) if node.op == "lt" else node for node in graph.nodes)))
    return any(node.op == "input" and k not in live for k, node in enumerate(graph.nodes))


def mistaken(name: str) -> Callable[[Rule | Program], list[Array]]:
    """Compute with this mistake."""

    def give(case: Rule | Program) -> list[Array]:
        if isinstance(case, Rule):
            return by_rule(case, lambda op, d, y, a, b=None: pulled(op, d, y, a, b, mistake=name))
        return expected(case, name)

    return give


TASK = Task(
    id="5.5",
    title="The fused backward",
    file="fused_backward.py",
    slots=("pull_back", "gradient_graph", "forward_and_backward"),
    points=8,
    text=(
        "The gradient of a graph is a graph: walk the nodes from the last to the first, pull each gradient back to the "
        "operands by a rule, sum where a value is used twice. Captured, it is scheduled and fused like any other. What does "
        "it take from the forward pass? A reduction costs a pass over the row, so it is saved, a number a row; an "
        "elementwise value costs a few operations, less than to load it, so it is computed again."
    ),
    hints=(
        "You need no new kind of graph: inside capture, compute the values of the forward graph, then the gradients, by the "
        "operators of 5.1. Equal nodes become one.",
        "sums = {output: d}; for each node from the last to the first: parts = pull_back(...); each part, in the shape of "
        "its operand, is added to the operand's sum. A part that is too large is summed, one that is too small is "
        "expanded. For what is saved: let all reductions be inputs, and look which of them are asked for.",
        "docs/guide/gradients.md, 'Saved tensors'.",
    ),
    reads=("docs/course/5.5-fused-backward.md", "docs/guide/gradients.md"),
    checks=(
        agreement(RULES, rules, lambda s, c: by_rule(c, s.pull_back), lambda c: by_rule(c, pulled)),
        agreement(
            GRADIENTS,
            cases,
            gradient_values,
            expected,
            draw=lambda c, got, right: ["the forward graph", *str(graph_of(c)).splitlines()],
            link=lambda c: "autodiff",
        ),
        agreement(
            BOTH,
            cases,
            both_values,
            lambda c: [*c.on(samples(c.shapes)), *expected(c)],
            draw=lambda c, got, right: ["the forward graph", *str(graph_of(c)).splitlines()],
        ),
        demand(RECOMPUTED, cases, recomputes_no_reduction),
        demand(SAVED, cases, saves_reductions),
    ),
    mistakes=(
        Mistake(
            "the second operand of a difference gets its gradient with the wrong sign",
            "When b grows, a - b falls.",
            gives=mistaken("sign"),
            check=RULES,
        ),
        Mistake(
            "the divisor gets its gradient with the wrong sign",
            "When b grows, a / b falls: -d * a / (b * b).",
            gives=mistaken("quotient"),
            check=RULES,
        ),
        Mistake(
            "each of several largest elements gets the whole gradient",
            "Then it is counted twice. Share it: divide by how many there are.",
            gives=mistaken("ties"),
            check=RULES,
        ),
        Mistake(
            "a gradient is overwritten where a value is used twice",
            "A value changes the output by all the ways on which it is used: their gradients are added.",
            gives=mistaken("overwritten"),
            check=GRADIENTS,
        ),
        Mistake(
            "gradients keep the shape of the result",
            "An operand of shape (rows, 1) was repeated along the row, so its gradient is a sum along the row.",
            gives=mistaken("shape"),
            when=lambda w: w.kind == "large",
            check=GRADIENTS,
        ),
        Mistake(
            "an input that the output does not depend on is forgotten",
            "A change of it changes nothing: its gradient is 0 everywhere, in its shape.",
            when=lambda w: w.kind != "" and isinstance(w.case, Program) and has_unused(graph_of(w.case)),
            check=GRADIENTS,
        ),
        Mistake(
            "a gradient goes through lt",
            "lt gives 0.0 or 1.0, and a small change of an operand changes neither: nothing goes back to its operands.",
            when=lambda w: isinstance(w.case, Program) and any(line.op == "lt" for line in w.case.lines),
            check=GRADIENTS,
        ),
        Mistake(
            "reductions that the backward pass needs are not saved",
            "Then the backward kernel first computes the reductions of the forward pass again. Save them: a number a row.",
            when=lambda w: w.kind == "refold",
            check=RECOMPUTED,
        ),
        Mistake(
            "elementwise values are saved",
            "To store and load one costs 16 bytes for each element, to compute it again a few operations.",
            when=lambda w: w.kind == "saved",
            check=SAVED,
        ),
        Mistake(
            "reductions are saved that nobody asks for",
            "The gradient of a sum does not need the sum. Look which inputs the backward graph uses.",
            when=lambda w: w.kind == "unneeded",
            check=SAVED,
        ),
    ),
    allows=frozenset({"minifuse.course.fusion"}),
)
