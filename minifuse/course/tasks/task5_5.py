"""Task 5.5: compute gradients as a graph, and choose which values to save for the backward pass."""

from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...core.indexing import Shape
from ..check import agreement, check_each, check_given, current, in_turn, is_near
from ..drawn_programs import capture_graph, evaluate, programs, row_programs
from ..formula_links import page_link
from ..fusion import BINARY, REDUCTIONS, Graph
from ..gradient_cases import RULED_OPS, Rule, by_rule, extreme_rules, many_reductions, many_uses, rules, with_shapes
from ..graph_evaluation import evaluate_graph, live_nodes, reduction_depths
from ..messages import type_name
from ..oracle.module5 import gradients, operand_gradients, split
from ..programs import Line, Program, sample_array, sample_arrays
from ..questions.calling import calls_with_one
from ..questions.task5_5 import pull_back_graph, pull_back_of_result
from ..strided import Array
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPS = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "lt", "sum", "max", "mul", "exp", "sum")
split_graph = calls_with_one("forward_and_backward")
RULES = "each operation pulls its gradient back to its operands"
GRADIENTS = "the graph of gradients gives the gradient of each input"
BOTH = "forward and backward give the output and the gradients"
RECOMPUTED = "no reduction of the forward pass is computed again"
STEP = Program(((2, 3),), (Line("lt", (0, 0.5)), Line("mul", (0, 1))), (2,))
UNUSED = Program(((2, 3), (2, 3)), (Line("mul", (0, 0)),), (2,))
ZEROS = Program(((2, 3), (2, 1), (2, 3)), (Line("lt", (0, 0.5)), Line("lt", (1, 2)), Line("sub", (3, 4))), (5,))
UNUSED_INPUTS = (UNUSED, STEP, ZEROS, Program(((2, 3), (2, 1)), (Line("exp", (0,)),), (2,)))
SAVED = "only reductions are saved, and only those that the backward pass needs"


def link(case: Rule | Program) -> str:
    """Return the page of the function of a case."""
    if isinstance(case, Rule):
        shapes = tuple(x.shape for x in case.arrays()[1:])
        case = Program(shapes, (Line(case.op, tuple(range(len(shapes)))),), (len(shapes),))
    return page_link("autodiff", capture_graph(case))


def pulled_back(rule: Rule, answer: tuple[Graph | None, object]) -> list[Array]:
    """Evaluate the student's gradients of the operands, and bring them into the operands' shapes."""
    graph, returned = answer
    if graph is None:
        message = f"pull_back({rule.op!r}, ...) must return a tuple with a gradient for each operand"
        raise Wrong(message, case_text=str(rule), got=returned, kind="kind")
    arrays = rule.arrays()
    return [fit_array(part, x.shape) for part, x in zip(evaluate_graph(graph, arrays), arrays[1:], strict=True)]


def fit_array(d: Array, shape: Shape) -> Array:
    """Sum or expand a gradient to the shape of its operand."""
    if d.shape == shape:
        return d
    return np.sum(d, -1, keepdims=True) if d.shape[-1] != 1 and shape[-1] == 1 else np.broadcast_to(d, shape)


def argument_shapes() -> "SearchStrategy[tuple[Shape, ...]]":
    """Draw shapes (rows, n) and (rows, 1)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> tuple[Shape, ...]:
        rows, n = draw(st.integers(2, 3)), draw(st.integers(2, 4))
        return ((rows, n), *draw(st.lists(st.sampled_from([(rows, n), (rows, 1)]), max_size=2)))

    return case()


def cases() -> "SearchStrategy[Program]":
    """Draw programs with one output of shape (rows, n) or (rows, 1)."""
    from hypothesis import strategies as st

    drawn = programs(
        argument_shapes(),
        OPS,
        max_lines=7,
        max_outputs=1,
        is_output=lambda shape, space_shape: shape in (space_shape, (space_shape[0], 1)),
    )
    return st.sampled_from([*row_programs((2, 3)), STEP, UNUSED]) | drawn


def large_cases() -> "SearchStrategy[Program]":
    """Draw programs with many reductions, and programs with many inputs and values."""
    from hypothesis import strategies as st

    return st.builds(lambda make, seed: make(seed), st.sampled_from([many_reductions, many_uses]), st.integers(0, 2**32))


def relatively_close(got: list[Array], expected: list[Array]) -> bool:
    """Return whether gradients are equal up to rounding, also where they are tiny."""
    return len(got) == len(expected) and all(map(is_near, got, expected))


EXPENSIVE = ("exp", "log", "max")
RESULTS: list[tuple[str, Sequence[Shape]]] = [
    (op, [*[(2, 1 if op in REDUCTIONS else 3)] * 2, *[(2, 3)] * (1 + (op in BINARY))]) for op in RULED_OPS
]
"""Operations, and the shapes of d, the result and the operands."""


def check_given_result(case: tuple[str, Sequence[Shape]], answer: tuple[Graph | None, object]) -> None:
    """Raise `Wrong` if a rule computes its operation again, or inverts it, although y and the operands are given."""
    op, graph = case[0], answer[0]
    assert graph is not None  # of `pull_back_of_result`
    for k in live_nodes(graph):
        if graph.nodes[k].op in EXPENSIVE:
            message = f"pull_back({op!r}, d, y, ...) computes {graph.nodes[k].op}; its operands and y are given"
            raise wrong(message, graph, "again")


def check_zeros(program: Program, answer: object) -> None:
    """Raise `Wrong` if an input on which the output does not depend gets something else than zeros."""
    graph, shapes = capture_graph(program), list(program.shapes)
    output = graph.nodes[graph.outputs[0]].shape
    found = as_graph(answer, "gradient_graph(graph)", [*shapes, output], shapes)
    unused = unused_inputs(graph)
    arrays = [
        np.resize([np.inf, -2.0, np.nan, -np.inf], shape) if k in unused else sample_array(shape, k)
        for k, shape in enumerate(shapes)
    ]
    d = np.resize([1.0, np.inf, -np.inf, np.nan, -1.0], output)
    for k, gradient in enumerate(evaluate_graph(found, [*arrays, d])):
        if k in unused and bool(np.any(gradient != 0.0)):
            message = f"the output does not depend on input {k}: its gradient must be 0.0, also where it or d is inf or nan"
            raise wrong(message, found, "zeros", expected=np.zeros(shapes[k]), got=gradient)


def graph_inputs(program: Program, saved: list[Array] | None = None) -> list[Array]:
    """Return the values of the inputs, the saved values, and d."""
    xs = sample_arrays(program.shapes)
    return [*xs, *(saved or []), sample_array(evaluate(program, xs)[0].shape, 7)]


def as_graph(found: object, name: str, inputs: list[Shape], outputs: list[Shape]) -> Graph:
    """Check that a student's graph has these inputs and outputs, and return it."""
    if not isinstance(found, Graph):
        raise Wrong(f"{name} must be a Graph; this is of type {type_name(found)}", case_text=current[0], kind="kind")
    input_shapes = [node.shape for node in found.nodes if node.op == "input"]
    if input_shapes != inputs:
        raise wrong(f"{name} has inputs of shapes {input_shapes}", found, "inputs", expected=inputs, got=input_shapes)
    shapes = [found.nodes[k].shape for k in found.outputs]
    if shapes != outputs:
        is_large = any(prod(one) > prod(other) for one, other in zip(shapes, outputs, strict=False))
        kind = "large" if is_large else "shapes"
        raise wrong(f"{name} returns values of shapes {shapes}", found, kind, expected=outputs, got=shapes)
    return found


def wrong(message: str, graph: Graph, kind: str, expected: object = None, got: object = None) -> Wrong:
    """Return a failure with a drawing of the graph."""
    return Wrong(message, case_text=current[0], drawing=str(graph).splitlines(), kind=kind, expected=expected, got=got)


def gradient_values(program: Program, answer: object) -> list[Array]:
    """Evaluate the student's graph of gradients."""
    graph, shapes = capture_graph(program), list(program.shapes)
    output = graph.nodes[graph.outputs[0]].shape
    found = as_graph(answer, "gradient_graph(graph)", [*shapes, output], shapes)
    return evaluate_graph(found, graph_inputs(program))


def expected(program: Program, mistake: str = "") -> list[Array]:
    """Compute the gradients, or those of a known mistake."""
    return evaluate_graph(gradients(capture_graph(program), mistake=mistake), graph_inputs(program))


def halves(program: Program, found: object) -> tuple[Graph, Graph]:
    """Check the types of the student's forward and backward graphs, and return them."""
    graph = capture_graph(program)
    if not isinstance(found, tuple) or len(found) != 2:
        raise Wrong("forward_and_backward must return two Graphs", case_text=current[0], got=found, kind="kind")
    forward, backward = found
    shapes, output = list(program.shapes), graph.nodes[graph.outputs[0]].shape
    if not isinstance(forward, Graph) or not forward.outputs:
        raise Wrong("forward must be a Graph with outputs (output, *saved)", case_text=current[0], got=forward, kind="kind")
    saved = [forward.nodes[k].shape for k in forward.outputs[1:]]
    as_graph(forward, "forward", shapes, [output, *saved])
    return forward, as_graph(backward, "backward", [*shapes, *saved, output], shapes)


def both_values(program: Program, answer: object) -> list[Array]:
    """Run both graphs, one after the other."""
    forward, backward = halves(program, answer)
    output, *saved = evaluate_graph(forward, sample_arrays(program.shapes))
    return [output, *evaluate_graph(backward, graph_inputs(program, saved))]


def expression_ids(graph: Graph, known: dict[Hashable, int], inputs: dict[int, int]) -> list[int]:
    """Return an ID for each value. Equal expressions have equal IDs in all graphs that share `known`.

    `inputs` maps the number of an input to its ID, if it is known.
    """
    found: list[int] = []
    for node in graph.nodes:
        place = inputs.get(int(node.value or 0)) if node.op == "input" else None
        name = (node.op, tuple(found[i] for i in node.inputs), repr(node.value), node.shape)
        found.append(known.setdefault(name, len(known)) if place is None else place)
    return found


def check_recomputation(program: Program, answer: object) -> None:
    """Raise `Wrong` if the backward graph repeats a reduction of the forward graph."""
    forward, backward = halves(program, answer)
    known: dict[Hashable, int] = {}
    forward_ids = expression_ids(forward, known, {})
    count = len(program.shapes)
    saved = {count + at: forward_ids[k] for at, k in enumerate(forward.outputs[1:])}
    d = max(int(n.value or 0) for n in backward.nodes if n.op == "input")
    backward_ids = expression_ids(backward, known, saved | {d: -1})
    reductions = {forward_ids[k]: k for k in live_nodes(forward) if forward.nodes[k].op in REDUCTIONS}
    for k in live_nodes(backward):
        if backward.nodes[k].op in REDUCTIONS and backward_ids[k] in reductions:
            passes = [
                1 + max(reduction_depths(g)[i] for i in g.outputs) for g in (backward, split(capture_graph(program))[1])
            ]
            message = (
                f"%{k} of the backward graph computes %{reductions[backward_ids[k]]} of the forward graph again; save it. "
                f"The backward kernel makes {passes[0]} passes over each row; {passes[1]} are enough"
            )
            raise wrong(message, backward, "refold")


def check_saved_values(program: Program, answer: object) -> None:
    """Raise `Wrong` if a saved value is not a reduction, is not used, or is saved twice."""
    forward, backward = halves(program, answer)
    for k in forward.outputs[1:]:
        if forward.nodes[k].op not in REDUCTIONS:
            message = (
                f"%{k} = {forward.nodes[k].op} of shape {forward.nodes[k].shape} is saved; it can be computed again at once"
            )
            raise wrong(message, forward, "saved")
    count, used = (
        len(program.shapes),
        {backward.nodes[k].value for k in live_nodes(backward) if backward.nodes[k].op == "input"},
    )
    for at, k in enumerate(forward.outputs[1:]):
        if count + at not in used:
            raise wrong(f"%{k} is saved, and the backward graph does not use it", forward, "unneeded")
    if len(set(forward.outputs[1:])) != len(forward.outputs) - 1:
        raise wrong("a value is saved twice", forward, "unneeded")


def unused_inputs(graph: Graph) -> list[int]:
    """Return the inputs on which the output does not depend, or only through lt."""
    live = live_nodes(
        graph._replace(nodes=tuple(node._replace(inputs=()) if node.op == "lt" else node for node in graph.nodes))
    )
    return [int(node.value or 0) for k, node in enumerate(graph.nodes) if node.op == "input" and k not in live]


def mistaken(name: str) -> Callable[[Rule | Program], list[Array]]:
    """Return a function that answers a case with this mistake."""

    def answer(case: Rule | Program) -> list[Array]:
        if isinstance(case, Rule):
            return by_rule(case, lambda op, d, y, a, b=None: operand_gradients(op, d, y, a, b, mistake=name))
        return expected(case, name)

    return answer


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
        in_turn(
            RULES,
            [
                agreement(
                    RULES,
                    drawn,
                    pull_back_graph,
                    lambda c: by_rule(c, operand_gradients),
                    send=with_shapes,
                    read=pulled_back,
                    agree=relatively_close,
                    link=link,
                    at_once=True,
                )
                for drawn in (rules, extreme_rules)
            ]
            + [
                check_given(
                    RULES,
                    RESULTS,
                    pull_back_of_result,
                    check_given_result,
                )
            ],
        ),
        in_turn(
            GRADIENTS,
            [
                agreement(
                    GRADIENTS,
                    cases,
                    calls_with_one("gradient_graph"),
                    expected,
                    large=large_cases,
                    send=capture_graph,
                    read=gradient_values,
                    at_once=True,
                    draw=lambda c, got, right: ["the forward graph", *str(capture_graph(c)).splitlines()],
                    link=link,
                ),
                check_given(GRADIENTS, UNUSED_INPUTS, calls_with_one("gradient_graph"), check_zeros, send=capture_graph),
            ],
        ),
        agreement(
            BOTH,
            cases,
            split_graph,
            lambda c: [*evaluate(c, sample_arrays(c.shapes)), *expected(c)],
            large=large_cases,
            send=capture_graph,
            read=both_values,
            link=link,
            at_once=True,
            draw=lambda c, got, right: ["the forward graph", *str(capture_graph(c)).splitlines()],
        ),
        check_each(
            RECOMPUTED,
            cases,
            split_graph,
            check_recomputation,
            large=large_cases,
            send=capture_graph,
            link=link,
            at_once=True,
        ),
        check_each(
            SAVED,
            cases,
            split_graph,
            check_saved_values,
            large=large_cases,
            send=capture_graph,
            link=link,
            at_once=True,
        ),
    ),
    mistakes=(
        Mistake(
            "the second operand of a difference gets its gradient with the wrong sign",
            "When b grows, a - b falls.",
            wrong_answer=mistaken("sign"),
            check=RULES,
        ),
        Mistake(
            "the divisor gets its gradient with the wrong sign",
            "When b grows, a / b falls: -d * y / b. (b * b may be 0 or inf where this is not.)",
            wrong_answer=mistaken("quotient"),
            check=RULES,
        ),
        Mistake(
            "each of several largest elements gets the whole gradient",
            "Then it is counted twice. Share it: divide by how many there are.",
            wrong_answer=mistaken("ties"),
            check=RULES,
        ),
        Mistake(
            "a gradient is overwritten where a value is used twice",
            "A value changes the output by all the ways on which it is used: their gradients are added.",
            wrong_answer=mistaken("overwritten"),
            check=GRADIENTS,
        ),
        Mistake(
            "gradients keep the shape of the result",
            "An operand of shape (rows, 1) was repeated along the row, so its gradient is a sum along the row.",
            wrong_answer=mistaken("shape"),
            when=lambda w: w.kind == "large",
            check=GRADIENTS,
        ),
        Mistake(
            "an input that the output does not depend on is forgotten",
            "A change of it changes nothing: its gradient is 0 everywhere, in its shape.",
            when=lambda w: w.kind != "" and isinstance(w.case, Program) and bool(unused_inputs(capture_graph(w.case))),
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
