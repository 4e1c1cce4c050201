"""Task 5.3: reductions inside a kernel, such as softmax."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...core.indexing import Shape
from .. import oracle
from ..check import agreement, current, in_turn
from ..emitted_kernels import Counts, Launch, check_compiled, launch, wrong
from ..fusion import REDUCTIONS, Graph
from ..programs import (
    NUMPY_FUNCTIONS,
    Line,
    Program,
    capture_graph,
    check_each,
    evaluate_graph,
    live_nodes,
    programs,
    reduction_depths,
    row_programs,
    sample_arrays,
)
from ..strided import Array
from ..student import Student
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPS = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "lt", "sum", "max", "sum", "max")
COMPUTES = "the kernel computes the graph, with its reductions"
PASSES = "a kernel makes as many passes over a row as its reductions need, and no more"
ROWS = "what belongs to a row is computed once for it"
STABLE = "fused_softmax is right for large values"
ONE = "softmax is one kernel with three passes over each row"
COMPILED = "Numba compiles the text, and the compiled kernel returns the same values"
TWO_OUTPUTS = (
    Line("max", (0,)),
    Line("sub", (0, 1)),
    Line("exp", (2,)),
    Line("sum", (3,)),
    Line("div", (3, 4)),
    Line("log", (4,)),
    Line("add", (6, 1)),
)
SCORES = np.array([[1000.0, 1001.0, 999.5, 998.0], [-1000.0, -1003.0, -1000.5, -2000.0], [0.5, -0.25, 3.0, 1.75]])


def argument_shapes() -> "SearchStrategy[tuple[Shape, ...]]":
    """Draw shapes (rows, n), and operands that are broadcast along either dim."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> tuple[Shape, ...]:
        rows, n = draw(st.integers(1, 4)), draw(st.integers(2, 6))
        others = draw(st.lists(st.sampled_from([(rows, n), (rows, 1), (1, n)]), max_size=2))
        return ((rows, n), *others)

    return case()


def common_programs() -> "SearchStrategy[Program]":
    """Draw one of a few common programs with reductions."""
    from hypothesis import strategies as st

    twice = Program(((3, 4),), (Line("max", (0,)), Line("sub", (0, 1))), (2, 1, 2))
    return st.sampled_from([*row_programs((3, 4)), twice])


def cases() -> "SearchStrategy[Program]":
    """Draw programs with reductions, common and random ones."""
    drawn = programs(
        argument_shapes(), OPS, max_lines=9, is_output=lambda shape, space_shape: shape in (space_shape, (space_shape[0], 1))
    )
    return common_programs() | drawn


def launch_on_arrays(text: object, graph: Graph, arrays: list[Array]) -> Counts:
    """Run a kernel on row-major arrays."""
    space_shape = max(
        shape for shape in (node.shape for node in graph.nodes) if len(shape) == 2 and shape == arrays[0].shape
    )
    steps = [tuple(0 if n == 1 else s // 8 for n, s in zip(x.shape, x.strides, strict=True)) for x in arrays]
    outs = [graph.nodes[k].shape for k in graph.outputs]
    return launch(text, space_shape, outs, [x.ravel() for x in arrays], steps)


def run(student: Student, program: Program) -> tuple[object, Counts]:
    """Return the student's text for a program, and the counts of loads, stores and operations of its run."""
    graph = capture_graph(program)
    text = student.emit_rows(graph)
    return text, launch_on_arrays(text, graph, sample_arrays(program.shapes))


def flat(arrays: list[Array]) -> list[Array]:
    """Flatten arrays in row-major order."""
    return [np.asarray(x).ravel() for x in arrays]


def expected(program: Program) -> list[Array]:
    """Compute the flat outputs with NumPy."""
    return flat(program.evaluate(sample_arrays(program.shapes)))


def computes(drawn: Callable[[], "SearchStrategy[Program]"]) -> Check:
    """Return a check that kernels store what NumPy computes."""
    return agreement(
        COMPUTES,
        drawn,
        lambda s, c: run(s, c)[1].outs,
        expected,
        draw=lambda c, got, right: str(capture_graph(c)).splitlines(),
        link=lambda c: "fusion",
    )


def passes(graph: Graph) -> dict[int, int]:
    """Count the passes that must load each full-width input: for reductions that need it, and for the stores."""
    level, found = reduction_depths(graph), dict[int, set[int]]()
    wide = graph.nodes[0].shape[-1]
    live = live_nodes(graph)
    pass_ends = [(level[k] - 1, graph.nodes[k].inputs[0]) for k in live if graph.nodes[k].op in REDUCTIONS]
    pass_ends += [(level[k], k) for k in graph.outputs if graph.nodes[k].shape[-1] == wide]
    for pass_index, end in pass_ends:
        for k in nodes_per_element(graph, end):
            if graph.nodes[k].op == "input" and graph.nodes[k].shape[-1] == wide:
                found.setdefault(int(graph.nodes[k].value or 0), set()).add(pass_index)
    return {k: len(pass_indices) for k, pass_indices in found.items()}


def nodes_per_element(graph: Graph, end: int) -> set[int]:
    """Collect the nodes that a value needs for each element, up to reductions."""
    found, open_ = set[int](), [end]
    while open_:
        k = open_.pop()
        if k not in found:
            found.add(k)
            open_ += [] if graph.nodes[k].op in REDUCTIONS else graph.nodes[k].inputs
    return found


def check_pass_count(student: Student, program: Program) -> None:
    """Raise `Wrong` if an input is loaded in more passes than the reductions need."""
    text, counts = run(student, program)
    graph = capture_graph(program)
    rows, n = program.shapes[0]
    pass_counts = passes(graph)
    for k, reads in enumerate(counts.reads):
        shape = program.shapes[k]
        needed = pass_counts.get(k, 0)
        if shape[-1] == n and reads.total() > needed * rows * n:
            message = f"ins[{k}] is loaded {reads.total() / (rows * n):g} times for each element; {needed} is enough"
            raise wrong(
                message,
                text,
                kind="passes",
                expected=f"{needed * rows * n} loads",
                got=f"{reads.total()} loads",
            )
    for k, writes in enumerate(counts.writes):
        if any(count > 1 for count in writes.values()):
            raise wrong(f"an element of outs[{k}] is stored more than once", text, kind="writes")


def check_row_values(student: Student) -> None:
    """Raise `Wrong` if the logarithm of a sum is computed for each element instead of each row."""
    program = Program(((3, 7),), (Line("exp", (0,)), Line("sum", (1,)), Line("log", (2,)), Line("sub", (0, 3))), (4,))
    current[0] = str(program)
    text, counts = run(student, program)
    if counts.done["log"] > 3:
        message = f"the logarithm of the sum is computed {counts.done['log']} times for 3 rows; it is the same along a row"
        raise wrong(message, text, kind="per element", expected="3 logarithms", got=f"{counts.done['log']} logarithms")


def softmax_graph(student: Student, shape: Shape) -> Graph:
    """Capture the student's softmax."""
    graph: Graph = oracle.function("capture")(student.fused_softmax, shape)
    return graph


def right_softmax(x: Array) -> Array:
    """Compute softmax with NumPy."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def check_stability(student: Student) -> None:
    """Raise `Wrong` if softmax overflows for rows near 1000, -1000 or 0."""
    current[0] = f"x = {SCORES.tolist()}"
    for x, kind in ((SCORES[2:], "value"), (SCORES, "overflow")):
        graph = softmax_graph(student, x.shape)
        [got] = evaluate_graph(graph, [x])
        if got.shape != x.shape or not np.allclose(got, right_softmax(x)):
            shown = str(graph).splitlines()
            message = "fused_softmax returns something else" + " where elements are large: exp(1000) is inf" * (
                kind == "overflow"
            )
            raise Wrong(message, case_text=current[0], expected=right_softmax(x), got=got, drawing=shown, kind=kind)


def check_softmax_kernel(student: Student) -> None:
    """Run the student's softmax with the student's kernel, and check its passes."""
    graph = softmax_graph(student, SCORES.shape)
    text = student.emit_rows(graph)
    current[0] = "the kernel of fused_softmax"
    counts = launch_on_arrays(text, graph, [SCORES])
    if not np.allclose(counts.outs[0], right_softmax(SCORES).ravel()):
        raise wrong(
            "the kernel of softmax computes something else", text, expected=right_softmax(SCORES), got=counts.outs[0]
        )
    for shift in (1e6, 1e12):
        below = SCORES - shift
        got = launch_on_arrays(text, graph, [below]).outs[0]
        if not np.allclose(got, right_softmax(below).ravel()):
            message = f"the kernel of softmax computes something else for elements around {-shift:g}"
            raise wrong(message, text, expected=right_softmax(below), got=got, kind="far below")
    if counts.reads[0].total() > 3 * SCORES.size:
        load_count = counts.reads[0].total() / SCORES.size
        message = f"each element is loaded {load_count:g} times; the largest, the sum, the store are three"
        raise wrong(message, text, kind="passes")


def check_compilation(student: Student) -> None:
    """Compile a kernel of softmax and of the logarithm of its sum once, and run it for two sizes."""
    cases = [Program((shape,), TWO_OUTPUTS, (5, 7)) for shape in ((3, 4), (7, 40))]
    current[0] = str(cases[0])
    launches = []
    for program in cases:
        (x,), outs = sample_arrays(program.shapes), [program.shapes[0], (program.shapes[0][0], 1)]
        launches.append(Launch(x.shape, outs, [x.ravel()], [(x.shape[1], 1)], expected(program)))
    check_compiled(student.emit_rows(capture_graph(cases[0])), launches)


def stored_once(program: Program) -> list[Array]:
    """Store each node in the first output that has it only."""
    outputs, found = capture_graph(program).outputs, expected(program)
    return [np.full_like(found[at], np.nan) if k in outputs[:at] else found[at] for at, k in enumerate(outputs)]


def by(change: dict[str, Callable[..., Array]]) -> Callable[[Program], list[Array]]:
    """Return an answer that computes with other reductions."""

    def give(program: Program) -> list[Array]:
        return flat(program.evaluate(sample_arrays(program.shapes), {**NUMPY_FUNCTIONS, **change}))

    return give


def running(program: Program) -> list[Array]:
    """Compute with running reductions: each element sees only the elements up to it."""
    change = {"sum": lambda x: np.cumsum(x, -1), "max": lambda x: np.maximum.accumulate(x, -1)}
    found = program.evaluate(sample_arrays(program.shapes), {**NUMPY_FUNCTIONS, **change})
    rows, n = program.shapes[0]
    shapes = [capture_graph(program).nodes[k].shape for k in capture_graph(program).outputs]
    return flat([np.broadcast_to(x, (rows, n))[:, -of[-1] :] for x, of in zip(found, shapes, strict=True)])


TASK = Task(
    id="5.3",
    title="Fuse into a reduction",
    file="row_fusion.py",
    slots=("emit_rows", "fused_softmax"),
    points=8,
    text=(
        "Softmax is a reduction, then arithmetic, then a reduction, then arithmetic. As four kernels, the row goes through "
        "memory again and again; as one kernel, it is read in passes. Print the text of a kernel with any number of "
        "reductions: one pass for all that can be computed together, then the next, which uses them, and a last one that "
        "stores. And write softmax, so that it is right where exp alone is inf."
    ),
    hints=(
        "A reduction is known when its pass is over. So ask of each node: after how many passes is it known?",
        "level of an input or constant 0; of an operation the largest of its operands'; of a reduction one more. Pass s "
        "computes all that the reductions of level s + 1 need, from the inputs on, and reduces; values of the row are "
        "computed between passes; stores go into the pass of their level.",
        "docs/guide/fusion.md shows the three passes of a layer norm; needed(graph, numbers) and row_values(graph) are "
        "given: a pass loads nothing that only an earlier reduction needs.",
    ),
    reads=("docs/course/5.3-row-fusion.md", "docs/guide/fusion.md"),
    checks=(
        in_turn(COMPUTES, [computes(cases), computes(common_programs)]),
        in_turn(
            PASSES, [check_each(PASSES, cases, check_pass_count), check_each(PASSES, common_programs, check_pass_count)]
        ),
        Check(ROWS, lambda s, e: check_row_values(s)),
        Check(STABLE, lambda s, e: check_stability(s)),
        Check(ONE, lambda s, e: check_softmax_kernel(s)),
        Check(COMPILED, lambda s, e: check_compilation(s)),
    ),
    mistakes=(
        Mistake(
            "the largest of a row is looked for from a number on",
            "A row may have negative elements only, however far below 0. Begin where nothing is smaller: -inf.",
            wrong_answer=by({"max": lambda x: np.max(x, -1, keepdims=True, initial=0.0)}),
            when=lambda w: w.kind == "far below",
        ),
        Mistake(
            "reductions begin once, and not for each row",
            "The lines that set them to 0.0 and -inf belong into the loop over rows.",
            wrong_answer=by(
                {
                    "sum": lambda x: np.cumsum(np.sum(x, -1, keepdims=True), 0),
                    "max": lambda x: np.maximum.accumulate(np.max(x, -1, keepdims=True), 0),
                }
            ),
            check=COMPUTES,
        ),
        Mistake(
            "a reduction is used before its pass over the row has ended",
            "exp(x - m) needs the largest of all elements, not of those so far: it belongs into the next pass.",
            wrong_answer=running,
            check=COMPUTES,
        ),
        Mistake(
            "an output that is given twice is stored once",
            "Two outputs may be one node. Go through graph.outputs with enumerate: the position says which of outs it is; "
            "graph.outputs.index(k) gives the first position only.",
            wrong_answer=stored_once,
            check=COMPUTES,
        ),
        Mistake(
            "each reduction has a pass of its own",
            "sum(x) and max(x) need nothing of each other: one pass over the row computes both.",
            when=lambda w: w.kind == "passes",
        ),
        Mistake(
            "what belongs to the row is computed for each element",
            "A value that is computed from reductions alone is the same along the row: compute it between two passes.",
            when=lambda w: w.kind == "per element",
            check=ROWS,
        ),
        Mistake(
            "softmax goes without the largest element",
            "exp(x - m) / sum(exp(x - m)) is the same for every m. With m = x.max() nothing is larger than exp(0.0).",
            when=lambda w: w.kind == "overflow",
            check=STABLE,
        ),
        Mistake(
            "values are stored in a list that begins with None",
            "Compiled code gives a variable, and all elements of a list, one type. A variable for each node needs no list, "
            "and becomes a register.",
            when=lambda w: w.kind == "numba",
            check=COMPILED,
        ),
    ),
    allows=frozenset({"minifuse.course.fusion"}),
)
