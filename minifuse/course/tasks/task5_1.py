"""Task 5.1: capture a function of tensors as a graph."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from .. import oracle
from ..check import agreement, check_each, check_given, current, in_turn
from ..drawn_programs import DRAWN_NUMBERS, argument_shapes, capture_graph, evaluate, programs
from ..formula_links import page_link
from ..fusion import BINARY, REDUCTIONS, Graph, Node, shape_after
from ..graph_evaluation import evaluate_graph
from ..lookalikes import lookalikes
from ..programs import Line, Operand, Program, sample_arrays
from ..questions.task5_1 import (
    BRANCHING,
    CHANGING,
    EQUALITY,
    WHOLE_NUMBERS,
    TapeCall,
    capture_changing,
    capture_impossible,
    capture_program,
    capture_tuple,
    use_tape,
)
from ..strided import Array
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPS = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "lt", "sum", "max")
CHECK_VALUES = "the graph computes what the function computes"
CHECK_SHAPES = "every node has the shape of its value"
CHECK_NODES = "each operation that the function calls is a node, with its operands in their order"
CHECK_SHARING = "an expression that is written twice is one node"
CHECK_CONSTANTS = "a number that is met twice is one node; 0.0 and -0.0 are two"
CHECK_AGAIN = "each capture runs the function anew"
CHECK_BRANCHES = "a branch on a value is refused"
CHECK_EQUALITY = "x == y raises FuseError; it does not compare identities"
MIN_WORDS = 4  # of a message that says what to write instead
SIGNED_ZEROS = Program(((4,),), (Line("mul", (0, 0.0)), Line("mul", (0, -0.0)), Line("add", (1, 2))), (3,))


def cases(max_lines: int = 8, numbers: Sequence[float] = DRAWN_NUMBERS) -> "SearchStrategy[Program]":
    """Draw programs of all operations."""
    return programs(
        argument_shapes(),
        OPS,
        is_reducible=lambda shape, space_shape: bool(shape),
        is_output=lambda shape, space_shape: True,
        max_lines=max_lines,
        numbers=numbers,
    )


def written(seed: int, length: int, numbers: Sequence[float] = ()) -> Program:
    """Return a program of many lines, some of which repeat others, and outputs that may repeat; values do not matter."""
    random = Random(seed)
    shapes = tuple(random.choice([(3, 4), (3, 1), (1, 4), (4,), (1,)]) for _ in range(random.randint(1, 3)))
    numbers = numbers or [x for _ in range(3) for x in lookalikes(random)]
    lines = list[Line]()
    for count in range(len(shapes), len(shapes) + length):
        k, other = random.randrange(max(0, count - 40), count), random.randrange(count)
        operands: tuple[Operand, ...] = random.choice([(k, other), (other, k), (k, k), (k, random.choice(numbers))])
        op = random.choice(OPS)
        if lines and random.random() < 0.3:
            op, operands = random.choice(lines)
            operands = operands[::-1] if op in BINARY and random.random() < 0.3 else operands
        elif op not in BINARY:
            operands = (k,)
        elif random.random() < 0.3:
            operands = operands[::-1]
        if op == "maximum" and isinstance(operands[0], float):  # a float has no method `maximum`
            operands = operands[::-1]
        lines.append(Line(op, operands))
    outputs = [random.randrange(len(shapes) + length) for _ in range(random.randint(1, 3))]
    return Program(shapes, tuple(lines), (len(shapes) + length - 1, *outputs, *outputs[: random.randrange(2)]))


def all_written(least: int = 1, most: int = 12) -> "SearchStrategy[Program]":
    """Draw programs of any operations on any numbers, also on those that are easily taken for one another."""
    from hypothesis import strategies as st

    return st.builds(written, st.integers(0, 2**32), st.integers(least, most))


def tape_calls(most: int = 20) -> "SearchStrategy[list[TapeCall]]":
    """Draw calls of Tape.add: nodes differ in one part, or in none."""
    from hypothesis import strategies as st

    def call(seed: int) -> list[TapeCall]:
        random, calls = Random(seed), list[TapeCall]()
        numbers = [*(x for _ in range(4) for x in lookalikes(random)), *[math.nan] * 6]  # each time another nan
        for _ in range(random.randint(most // 2, most)):
            op, inputs, value, shape = random.choice(calls) if calls else ("input", (), 0, (4, 5))
            if op in ("constant", "input"):
                inputs = ()
            match random.choice((0, 1, 2, 2, 2, 2, 3, 4, 5)):
                case 0:
                    op, inputs, value, shape = "constant", (), random.choice(numbers), ()
                case 1:
                    op, inputs, value, shape = "input", (), random.randrange(3), random.choice([(4, 5), (4, 1), (5,)])
                case 2:
                    k, last = random.randrange(len(calls) + 1), len(calls)
                    op, inputs, value, shape = random.choice(BINARY), random.choice([(k, last), (last, k)]), None, (4, 5)
                case 3 if len(inputs) == 2:
                    inputs = inputs[::-1]
                case 4 if inputs:
                    op, inputs, shape = "expand", inputs[:1], random.choice([(4, 5), (5, 4), (2, 4, 5)])
            calls.append((op, inputs, value, shape))
        return [*calls, *random.sample(calls, len(calls) // 2)]

    return st.integers(0, 2**32).map(call)


def verified(program: Program, graph: object) -> Graph:
    """Check the types of the student's graph of a program, and return it."""
    if not isinstance(graph, Graph) or not all(isinstance(node, Node) for node in graph.nodes):
        raise Wrong("capture must return a Graph(nodes, outputs) of Nodes", case_text=current[0], got=graph, kind="kind")
    for k, node in enumerate(graph.nodes):
        arity = 2 if node.op in (*BINARY, "matmul") else 0 if node.op in ("input", "constant") else 1
        if len(node.inputs) != arity or not all(isinstance(i, int) and 0 <= i < k for i in node.inputs):
            message = f"%{k} is {node.op} of {node.inputs}; expected {arity} indices of earlier nodes"
            raise wrong(message, graph, "malformed")
        if node.op == "constant" and type(node.value) is not float:
            raise wrong(f"%{k} is a constant of {node.value!r}, expected a float", graph, "no float")
    inputs = tuple(Node("input", (), k, shape) for k, shape in enumerate(program.shapes))
    if tuple(graph.nodes[: len(inputs)]) != inputs or any(n.op == "input" for n in graph.nodes[len(inputs) :]):
        raise wrong(f"the first {len(inputs)} nodes must be the inputs, in order, used or not", graph, "malformed")
    if len(graph.outputs) != len(program.outputs) or not all(k in range(len(graph.nodes)) for k in graph.outputs):
        raise wrong(f"outputs are {graph.outputs}; the function returns {len(program.outputs)}", graph, "malformed")
    return graph


def wrong(message: str, graph: Graph, kind: str) -> Wrong:
    """Return a failure with a drawing of the graph."""
    return Wrong(message, case_text=current[0], drawing=shortened(graph), kind=kind)


def computed(program: Program, answer: object) -> list[Array]:
    """Evaluate the student's graph."""
    return evaluate_graph(verified(program, answer), sample_arrays(program.shapes))


def single_operations() -> "SearchStrategy[Program]":
    """Draw programs of one operation, including those with a number as left or right operand."""
    from hypothesis import strategies as st

    unary = [Line(op, (0,)) for op in OPS if op not in BINARY]
    binary = [Line(op, pair) for op in OPS if op in BINARY for pair in ((0, 1), (0, 0.5), (0.5, 0))]
    lines = [line for line in (*unary, *binary) if line != Line("maximum", (0.5, 0))]  # a float has no method `maximum`
    return st.sampled_from([Program(((2, 3), (2, 3)), (line,), (2,)) for line in lines])


def computes(drawn: Callable[[], "SearchStrategy[Program]"]) -> Check:
    """Return a check that graphs compute what NumPy does."""
    return agreement(
        CHECK_VALUES,
        drawn,
        capture_program,
        lambda c: evaluate(c, sample_arrays(c.shapes)),
        read=computed,
        draw=lambda c, got, expected: ["the graph as it should be", *str(capture_graph(c)).splitlines()],
        link=lambda c: page_link("fusion", capture_graph(c)),
    )


def reflected(program: Program) -> Program:
    """Return the program with reflected operands exchanged: `x - 2.0` for `2.0 - x`."""
    lines = [
        Line(op, operands[::-1]) if len(operands) == 2 and isinstance(operands[0], float) else Line(op, operands)
        for op, operands in program.lines
    ]
    return program._replace(lines=tuple(lines))


def check_shapes(program: Program, answer: object) -> None:
    """Raise `Wrong` if the shape of a node does not follow from those of its operands."""
    graph = verified(program, answer)
    for k, node in enumerate(graph.nodes):
        if node.op in ("input", "expand"):
            continue
        shape = shape_after(node.op, *[graph.nodes[i].shape for i in node.inputs]) if node.inputs else ()
        if node.shape != shape:
            message = f"%{k} = {node.op} has a value of shape {shape}, but its node has shape {node.shape}"
            kind = "reduction" if node.op in REDUCTIONS else "shape"
            raise wrong(message, graph, kind)


def expressions(graph: Graph, known: dict[object, int]) -> list[int]:
    """Return an ID for each value. Equal expressions have equal IDs in all graphs that share `known`.

    A number may be the first or the second operand of + and *.
    """
    found = list[int]()
    for node in graph.nodes:
        inputs = [found[i] for i in node.inputs]
        if node.op in ("add", "mul") and any(graph.nodes[i].op == "constant" for i in node.inputs):
            inputs.sort()
        found.append(known.setdefault((node.op, tuple(inputs), repr(node.value), tuple(node.shape)), len(known)))
    return found


def check_nodes(graph: Graph, right: Graph, text: str) -> None:
    """Raise `Wrong` if a graph has not the expressions and outputs of another one."""
    known: dict[object, int] = {}
    theirs, ours = expressions(graph, known), expressions(right, known)
    missing = next((k for k, place in enumerate(ours) if place not in theirs), None)
    surplus = next((k for k, place in enumerate(theirs) if place not in ours), None)
    drawing = [*shortened(graph), "", "as it should be", *shortened(right)]
    if missing is not None:
        node = right.nodes[missing]
        message = f"the function calls for %{missing} = {describe_node(node)} of the graph below, and your graph lacks it"
        kind = "number" if node.op == "constant" else "rewritten"
    elif surplus is not None:
        message = f"%{surplus} = {describe_node(graph.nodes[surplus])} is in your graph; the function does not call for it"
        kind = "rewritten"
    elif [theirs[k] for k in graph.outputs] != [ours[k] for k in right.outputs]:
        message = f"outputs are {graph.outputs}; expected as many as the function returns, in its order, repeated or not"
        kind = "outputs"
    else:
        return
    raise Wrong(message, case_text=text, drawing=drawing, kind=kind)


def shortened(graph: Graph, most: int = 16) -> list[str]:
    """Return a graph as lines, of a long one the first and the last."""
    lines = str(graph).splitlines()
    return lines if len(lines) <= most else [*lines[: most - 4], "...", *lines[-3:]]


def describe_node(node: Node) -> str:
    """Return a node as text."""
    return f"{node.op} {' '.join(f'%{k}' for k in node.inputs) if node.value is None else repr(node.value)}"


def check_program(program: Program, answer: object) -> None:
    """Raise `Wrong` if the nodes of a graph are not those that the program calls for."""
    check_nodes(verified(program, answer), capture_graph(program), current[0])


def check_again(text: str, answer: list[object]) -> None:
    """Raise `Wrong` if a later capture of a function does not have its nodes."""
    for function, graph in zip(CHANGING[text](), answer, strict=True):
        right = oracle.function("capture")(function, (4, 5))
        if not isinstance(graph, Graph):
            raise Wrong("capture must return a Graph(nodes, outputs) of Nodes", case_text=text, got=graph, kind="kind")
        check_nodes(graph, right, text)


def check_floats(text: str, answer: list[object]) -> None:
    """Raise `Wrong` if the value of a constant is not a float."""
    for graph in (x for x in answer if isinstance(x, Graph)):
        for k, node in enumerate(graph.nodes):
            if node.op == "constant" and type(node.value) is not float:
                message = f"%{k} is a constant of {node.value!r}, expected a float"
                raise Wrong(message, case_text=text, drawing=shortened(graph), kind="no float")


def check_tape(calls: list[TapeCall], answer: tuple[list[object], list[object]]) -> None:
    """Raise `Wrong` if a tape takes two nodes for one, or one for two."""
    right = oracle.function("Tape")()
    for at, (call, number) in enumerate(zip(calls, answer[0], strict=True)):
        expected = right.add(*call)
        if number != expected:
            before = [f"add{given!r} returned {n}" for given, n in zip(calls[:at], answer[0], strict=False)]
            raise Wrong(
                f"tape.add{call!r} returns {number}, after the calls below",
                case_text=f"{at + 1} calls of add of a new tape",
                expected=expected,
                got=number,
                drawing=before[-12:],
                kind="tape",
            )
    if list(map(repr, answer[1])) != list(map(repr, right.nodes)):
        raise Wrong("tape.nodes must be the list of the nodes", expected=right.nodes, got=answer[1], kind="tape")


def check_no_twins(program: Program, answer: object) -> None:
    """Raise `Wrong` if two nodes are equal."""
    graph, seen = verified(program, answer), dict[str, int]()
    for k, node in enumerate(graph.nodes):
        first = seen.setdefault(repr(node), k)
        if first != k:
            raise wrong(f"%{first} and %{k} are the same {node.op} of the same values", graph, f"twice: {node.op}")


def check_signed_zeros(program: Program, answer: object) -> None:
    """Raise `Wrong` if 0.0 and -0.0 are one constant: x / 0.0 differs from x / -0.0."""
    graph = verified(program, answer)
    constants = [repr(n.value) for n in graph.nodes if n.op == "constant"]
    if sorted(constants) != ["-0.0", "0.0"]:
        raise wrong(
            f"constants are {', '.join(constants)}; 0.0 == -0.0, and x / 0.0 is not x / -0.0: they are two numbers",
            graph,
            "zeros",
        )


def check_raises(name: str, texts: Sequence[str], kind: str) -> Check:
    """Return a check that capture raises FuseError for each of these functions."""

    def examine(text: str, answer: tuple[bool, str, str] | None) -> None:
        message = "this needs the value of an element, which does not exist during capture: raise a FuseError"
        if answer is not None:
            is_fuse_error, error, error_text = answer
            if is_fuse_error and len(error_text.split()) < MIN_WORDS:
                message = f"the FuseError must say what to write instead, in a sentence of {MIN_WORDS} words or more"
                raise Wrong(message, case_text=text, got=error_text, kind="silent")
            if is_fuse_error:
                return
            message += f"; got {error}: {error_text}"
        raise Wrong(message, case_text=text, expected="FuseError", kind=kind)

    return check_given(name, texts, capture_impossible, examine)


TASK = Task(
    id="5.1",
    title="Capture a graph",
    file="capture.py",
    slots=("Tape", "Traced", "capture"),
    points=5,
    text=(
        "Before anything can be fused, one must know what a function does. Call it once, with objects that stand for "
        "tensors and have no elements: each operation on them appends a node to a tape and returns a new object. Implement "
        "Tape, Traced and capture. The tape stores equal nodes once, a number becomes a constant node, and the inputs are "
        "the first nodes. An operation that needs the value of an element, such as a branch or ==, raises a FuseError."
    ),
    hints=(
        "The function needs no change: Python calls __add__ for x + y, and the function continues with the object that "
        "__add__ returns.",
        "add: keep a dict from (op, inputs, value, shape) to the index of the node; append a node only if it is not there. "
        "record: get the node index of each operand (add a constant node for a float), compute the shape with "
        "shape_after, add the node, and return a Traced for it. For 2.0 - x Python calls x.__rsub__(2.0).",
        "docs/guide/fusion.md, 'The life of a fused call'; print a graph to look at it.",
    ),
    reads=("docs/course/5.1-capture.md", "docs/guide/fusion.md"),
    checks=(
        in_turn(CHECK_VALUES, [computes(cases), computes(single_operations)]),
        check_each(CHECK_SHAPES, cases, capture_program, check_shapes),
        check_each(CHECK_SHARING, lambda: cases(numbers=()), capture_program, check_no_twins),
        in_turn(
            CHECK_CONSTANTS,
            [
                check_each(
                    CHECK_CONSTANTS, lambda: cases(numbers=(2.0, -0.5), max_lines=6), capture_program, check_no_twins
                ),
                check_given(CHECK_CONSTANTS, [WHOLE_NUMBERS], capture_changing, check_floats),
                check_given(CHECK_CONSTANTS, [SIGNED_ZEROS], capture_program, check_signed_zeros),
                check_each(
                    CHECK_CONSTANTS,
                    lambda: all_written(6, 12),
                    capture_tuple,
                    check_no_twins,
                    share=0.5,
                ),
            ],
        ),
        in_turn(
            CHECK_NODES,
            [
                check_each(CHECK_NODES, all_written, capture_tuple, check_program, large=partial(all_written, 150, 400)),
                check_each(CHECK_NODES, tape_calls, use_tape, check_tape, large=partial(tape_calls, 5000), share=0.5),
            ],
        ),
        check_given(CHECK_AGAIN, list(CHANGING), capture_changing, check_again),
        check_raises(CHECK_BRANCHES, list(BRANCHING), "branch"),
        check_raises(CHECK_EQUALITY, list(EQUALITY), "equality"),
    ),
    mistakes=(
        Mistake(
            "a number on the left is taken for one on the right",
            "Python calls x.__rsub__(2.0) for 2.0 - x, and x.__gt__(2.0) for 2.0 < x: the number is the first operand "
            "there.",
            wrong_answer=lambda c: evaluate(reflected(c), sample_arrays(c.shapes)),
            check=CHECK_VALUES,
        ),
        Mistake(
            "a result has the shape of its first operand",
            "Operands broadcast: shape_after(op, *shapes) returns the shape of the result.",
            when=lambda w: w.kind in ("shape", "reduction"),
            check=CHECK_SHAPES,
        ),
        Mistake(
            "the tracer simplifies what the function calls for",
            "x - x is not 0.0 where x is inf, and a + b is another node than b + a. A tracer notes what is called, with the "
            "operands in their order; rewriting a graph is the work of a later pass.",
            when=lambda w: w.kind == "rewritten",
            check=CHECK_NODES,
        ),
        Mistake(
            "a constant is not a float",
            "The value of its node is float(x): 2 and 2.0 are then one node.",
            when=lambda w: w.kind == "no float",
        ),
        Mistake(
            "an earlier graph is returned again",
            "A function may read variables that change, or other numbers with the same code: run it for each capture.",
            when=lambda w: w.kind in ("rewritten", "number"),
            check=CHECK_AGAIN,
        ),
        Mistake(
            "each operation is a new node",
            "Look up the node on the tape first: two nodes with the same op and the same inputs have the same values.",
            when=lambda w: w.kind.startswith("twice"),
            check=CHECK_SHARING,
        ),
        Mistake(
            "each number is a new constant",
            "Then x * 2.0 and x * 2.0 have different inputs, and no expression with a number is ever shared.",
            when=lambda w: w.kind.startswith("twice"),
            check=CHECK_CONSTANTS,
        ),
        Mistake(
            "0.0 and -0.0 are one constant",
            "A dict treats keys that compare equal as one key, and 0.0 == -0.0. repr(value) distinguishes them.",
            when=lambda w: w.kind == "zeros",
        ),
        Mistake(
            "a branch is decided without a value",
            "An object without __bool__ is true for Python: one side is captured, for all elements. Raise in __bool__.",
            when=lambda w: w.kind == "branch",
        ),
        Mistake(
            "== compares identities",
            "Without __eq__, Python compares whether two objects are identical, so a branch on the result always goes "
            "the same way.",
            when=lambda w: w.kind == "equality",
        ),
    ),
    allows=frozenset({"minifuse.course.fusion"}),
)
