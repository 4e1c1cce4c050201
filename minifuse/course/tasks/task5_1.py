"""Task 5.1: capture a function of tensors as a graph."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core.errors import FuseError, NotDoneYet
from ..check import agreement, current, in_turn
from ..fusion import BINARY, REDUCTIONS, Graph, Node, shape_after
from ..programs import (
    DRAWN_NUMBERS,
    Line,
    Program,
    argument_shapes,
    capture_graph,
    check_each,
    evaluate_graph,
    programs,
    sample_arrays,
)
from ..strided import Array
from ..student import Student
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Refused, Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPS = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "lt", "sum", "max")
CHECK_VALUES = "the graph computes what the function computes"
CHECK_SHAPES = "every node has the shape of its value"
CHECK_SHARING = "an expression that is written twice is one node"
CHECK_CONSTANTS = "a number that is met twice is one node; 0.0 and -0.0 are two"
CHECK_BRANCHES = "a branch on a value is refused"
CHECK_EQUALITY = "x == y raises FuseError; it does not compare identities"


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


def captured(student: Student, program: Program) -> Graph:
    """Capture a program with the student's function, and check the types of the graph."""
    graph = student.capture(program, *program.shapes)
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


def computed(student: Student, program: Program) -> list[Array]:
    """Evaluate the student's graph."""
    return evaluate_graph(captured(student, program), sample_arrays(program.shapes))


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
        computed,
        lambda c: c.evaluate(sample_arrays(c.shapes)),
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


def check_shapes(student: Student, program: Program) -> None:
    """Raise `Wrong` if the shape of a node does not follow from those of its operands."""
    graph = captured(student, program)
    for k, node in enumerate(graph.nodes):
        if node.op in ("input", "expand"):
            continue
        shape = shape_after(node.op, *[graph.nodes[i].shape for i in node.inputs]) if node.inputs else ()
        if node.shape != shape:
            message = f"%{k} = {node.op} has a value of shape {shape}, but its node has shape {node.shape}"
            kind = "reduction" if node.op in REDUCTIONS else "shape"
            raise wrong(message, graph, kind)


def check_no_twins(student: Student, program: Program) -> None:
    """Raise `Wrong` if two nodes are equal."""
    graph, seen = captured(student, program), dict[tuple[Node, str], int]()
    for k, node in enumerate(graph.nodes):
        first = seen.setdefault((node, repr(node.value)), k)
        if first != k:
            raise wrong(f"%{first} and %{k} are the same {node.op} of the same values", graph, f"twice: {node.op}")


def check_signed_zeros(student: Student, effort: Effort) -> None:
    """Raise `Wrong` if 0.0 and -0.0 are one constant: x / 0.0 differs from x / -0.0."""
    check_each(CHECK_CONSTANTS, lambda: cases(numbers=(2.0, -0.5), max_lines=6), check_no_twins).run(student, effort)
    program = Program(((4,),), (Line("mul", (0, 0.0)), Line("mul", (0, -0.0)), Line("add", (1, 2))), (3,))
    current[0] = str(program)
    constants = [repr(n.value) for n in captured(student, program).nodes if n.op == "constant"]
    if sorted(constants) != ["-0.0", "0.0"]:
        raise wrong(
            f"constants are {', '.join(constants)}; 0.0 == -0.0, and x / 0.0 is not x / -0.0: they are two numbers",
            student.capture(program, *program.shapes),
            "zeros",
        )


def check_raises(functions: dict[str, Callable[[Any], object]], kind: str) -> Callable[[Student, Effort], None]:
    """Return a check that each of these functions raises FuseError."""

    def run(student: Student, effort: Effort) -> None:
        for text, function in functions.items():
            current[0] = text
            message = "this needs the value of an element, which does not exist during capture: raise a FuseError"
            try:
                student.capture(function, (3, 4))
            except FuseError as error:
                if len(str(error)) < 10:
                    raise Wrong("the FuseError does not say what to write instead", case_text=text, kind="silent") from error
                continue
            except (NotDoneYet, Refused):
                raise
            except Exception as error:
                message += f"; got {type(error).__name__}: {error}"
            raise Wrong(message, case_text=text, expected="FuseError", kind=kind)

    return run


BRANCHING: dict[str, Callable[[Any], object]] = {
    "def f(x): return x if x.sum() < 0.0 else -x": lambda x: x if x.sum() < 0.0 else -x,
    "def f(x): return x.max() and x * 2.0": lambda x: x.max() and x * 2.0,
    "def f(x): return max(x, x * 2.0)": lambda x: max(x, x * 2.0),
    "def f(x): return x * (not x.max())": lambda x: x * (not x.max()),
}
EQUALITY: dict[str, Callable[[Any], object]] = {
    "def f(x): return x if x == 0.0 else x * 2.0": lambda x: x if x == 0.0 else x * 2.0,
    "def f(x): return x + (x.sum() == x.max())": lambda x: x + (x.sum() == x.max()),
}

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
        check_each(CHECK_SHAPES, cases, check_shapes),
        check_each(CHECK_SHARING, lambda: cases(numbers=()), check_no_twins),
        Check(CHECK_CONSTANTS, check_signed_zeros),
        Check(CHECK_BRANCHES, check_raises(BRANCHING, "branch")),
        Check(CHECK_EQUALITY, check_raises(EQUALITY, "equality")),
    ),
    mistakes=(
        Mistake(
            "a number on the left is taken for one on the right",
            "Python calls x.__rsub__(2.0) for 2.0 - x, and x.__gt__(2.0) for 2.0 < x: the number is the first operand "
            "there.",
            wrong_answer=lambda c: reflected(c).evaluate(sample_arrays(c.shapes)),
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
