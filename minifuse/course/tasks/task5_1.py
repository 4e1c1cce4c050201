"""Task 5.1: capture a function of tensors as a graph."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..check import agreement, check_each, check_given, current, in_turn
from ..drawn_programs import DRAWN_NUMBERS, argument_shapes, capture_graph, evaluate, programs
from ..fusion import BINARY, REDUCTIONS, Graph, Node, shape_after
from ..graph_evaluation import evaluate_graph
from ..programs import Line, Program, sample_arrays
from ..questions.task5_1 import BRANCHING, EQUALITY, capture_impossible, capture_program
from ..strided import Array
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPS = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "lt", "sum", "max")
CHECK_VALUES = "the graph computes what the function computes"
CHECK_SHAPES = "every node has the shape of its value"
CHECK_SHARING = "an expression that is written twice is one node"
CHECK_CONSTANTS = "a number that is met twice is one node; 0.0 and -0.0 are two"
CHECK_BRANCHES = "a branch on a value is refused"
CHECK_EQUALITY = "x == y raises FuseError; it does not compare identities"
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
            raise wrong(f"%{k} is a constant of {node.value!r}, expected a float", graph, "malformed")
    inputs = tuple(Node("input", (), k, shape) for k, shape in enumerate(program.shapes))
    if tuple(graph.nodes[: len(inputs)]) != inputs or any(n.op == "input" for n in graph.nodes[len(inputs) :]):
        raise wrong(f"the first {len(inputs)} nodes must be the inputs, in order, used or not", graph, "malformed")
    if len(graph.outputs) != len(program.outputs) or not all(k in range(len(graph.nodes)) for k in graph.outputs):
        raise wrong(f"outputs are {graph.outputs}; the function returns {len(program.outputs)}", graph, "malformed")
    return graph


def wrong(message: str, graph: Graph, kind: str) -> Wrong:
    """Return a failure with a drawing of the graph."""
    return Wrong(message, case_text=current[0], drawing=str(graph).splitlines(), kind=kind)


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
        link=lambda c: "fusion",
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


def check_no_twins(program: Program, answer: object) -> None:
    """Raise `Wrong` if two nodes are equal."""
    graph, seen = verified(program, answer), dict[tuple[Node, str], int]()
    for k, node in enumerate(graph.nodes):
        first = seen.setdefault((node, repr(node.value)), k)
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
            if is_fuse_error and len(error_text) < 10:
                raise Wrong("the FuseError does not say what to write instead", case_text=text, kind="silent")
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
                check_given(CHECK_CONSTANTS, [SIGNED_ZEROS], capture_program, check_signed_zeros),
            ],
        ),
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
