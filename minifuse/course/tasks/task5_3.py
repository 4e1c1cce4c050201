"""Task 5.3: reductions inside a kernel, such as softmax."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...core.indexing import Shape
from ..check import agreement, check_each, check_given, current, in_turn
from ..drawn_programs import capture_graph, evaluate, programs, row_programs
from ..emitted_kernels import KernelRun, Launch, launch_over_rows
from ..fusion import REDUCTIONS, Graph
from ..graph_evaluation import NUMPY_FUNCTIONS, evaluate_graph, live_nodes, reduction_depths
from ..kernel_runs import check_compiled, completed, wrong
from ..programs import Line, Program, sample_arrays
from ..questions.emitting import emit_and_compile, emit_and_run
from ..questions.task5_3 import run_softmax, softmax_graph
from ..strided import Array
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
LOG_OF_SUM = Program(((3, 7),), (Line("exp", (0,)), Line("sum", (1,)), Line("log", (2,)), Line("sub", (0, 3))), (4,))
run_rows = partial(emit_and_run, "emit_rows")
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


def captured(program: Program) -> tuple[Graph, Launch]:
    """Return the graph of a program, and the arguments of its kernel."""
    graph = capture_graph(program)
    return graph, launch_over_rows(graph, sample_arrays(program.shapes))


def flat(arrays: list[Array]) -> list[Array]:
    """Flatten arrays in row-major order."""
    return [np.asarray(x).ravel() for x in arrays]


def expected(program: Program) -> list[Array]:
    """Compute the flat outputs with NumPy."""
    return flat(evaluate(program, sample_arrays(program.shapes)))


def computes(drawn: Callable[[], "SearchStrategy[Program]"]) -> Check:
    """Return a check that kernels store what NumPy computes."""
    return agreement(
        COMPUTES,
        drawn,
        run_rows,
        expected,
        send=captured,
        read=lambda c, answer: completed(answer).outs,
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


def check_pass_count(program: Program, answer: KernelRun) -> None:
    """Raise `Wrong` if an input is loaded in more passes than the reductions need."""
    run, pass_counts = completed(answer), passes(capture_graph(program))
    rows, n = program.shapes[0]
    for k, reads in enumerate(run.reads):
        shape, count = program.shapes[k], sum(reads.values())
        needed = pass_counts.get(k, 0)
        if shape[-1] == n and count > needed * rows * n:
            message = f"ins[{k}] is loaded {count / (rows * n):g} times for each element; {needed} is enough"
            raise wrong(message, run.text, kind="passes", expected=f"{needed * rows * n} loads", got=f"{count} loads")
    for k, writes in enumerate(run.writes):
        if any(count > 1 for count in writes.values()):
            raise wrong(f"an element of outs[{k}] is stored more than once", run.text, kind="writes")


def check_row_values(program: Program, answer: KernelRun) -> None:
    """Raise `Wrong` if the logarithm of a sum is computed for each element instead of each row."""
    run = completed(answer)
    count = run.done.get("log", 0)
    if count > 3:
        message = f"the logarithm of the sum is computed {count} times for 3 rows; it is the same along a row"
        raise wrong(message, run.text, kind="per element", expected="3 logarithms", got=f"{count} logarithms")


def right_softmax(x: Array) -> Array:
    """Compute softmax with NumPy."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def check_stability(x: Array, graph: Graph) -> None:
    """Raise `Wrong` if softmax overflows for rows near 1000, -1000 or 0."""
    [got] = evaluate_graph(graph, [x])
    if got.shape != x.shape or not np.allclose(got, right_softmax(x)):
        kind = "overflow" if x is SCORES else "value"
        message = "fused_softmax returns something else" + " where elements are large: exp(1000) is inf" * (x is SCORES)
        shown = str(graph).splitlines()
        raise Wrong(message, case_text=current[0], expected=right_softmax(x), got=got, drawing=shown, kind=kind)


def check_softmax_kernel(shifts: tuple[float, ...], answer: list[KernelRun]) -> None:
    """Raise `Wrong` if the student's kernel of the student's softmax is wrong for shifted scores, or makes many passes."""
    for shift, found in zip(shifts, answer, strict=True):
        run, right = completed(found), right_softmax(SCORES - shift)
        if not np.allclose(run.outs[0], right.ravel()):
            where, kind = (f" for elements around {-shift:g}", "far below") if shift else ("", "")
            message = f"the kernel of softmax computes something else{where}"
            raise wrong(message, run.text, expected=right, got=run.outs[0], kind=kind)
    load_count = sum(answer[0].reads[0].values()) / SCORES.size
    if load_count > 3:
        message = f"each element is loaded {load_count:g} times; the largest, the sum, the store are three"
        raise wrong(message, answer[0].text, kind="passes")


def check_compilation(cases: list[Program], answer: list[KernelRun]) -> None:
    """Raise `Wrong` if a kernel with outputs of both shapes cannot be compiled, or is wrong for one of two sizes."""
    check_compiled([captured(case)[1] for case in cases], [expected(case) for case in cases], answer)


def stored_once(program: Program) -> list[Array]:
    """Store each node in the first output that has it only."""
    outputs, found = capture_graph(program).outputs, expected(program)
    return [np.full_like(found[at], np.nan) if k in outputs[:at] else found[at] for at, k in enumerate(outputs)]


def by(change: dict[str, Callable[..., Array]]) -> Callable[[Program], list[Array]]:
    """Return an answer that computes with other reductions."""

    def give(program: Program) -> list[Array]:
        return flat(evaluate(program, sample_arrays(program.shapes), {**NUMPY_FUNCTIONS, **change}))

    return give


def running(program: Program) -> list[Array]:
    """Compute with running reductions: each element sees only the elements up to it."""
    change = {"sum": lambda x: np.cumsum(x, -1), "max": lambda x: np.maximum.accumulate(x, -1)}
    found = evaluate(program, sample_arrays(program.shapes), {**NUMPY_FUNCTIONS, **change})
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
            PASSES,
            [check_each(PASSES, drawn, run_rows, check_pass_count, send=captured) for drawn in (cases, common_programs)],
        ),
        check_given(ROWS, [LOG_OF_SUM], run_rows, check_row_values, send=captured),
        check_given(
            STABLE,
            [SCORES[2:], SCORES],
            softmax_graph,
            check_stability,
            send=lambda x: x.shape,
            describe=lambda x: f"x = {SCORES.tolist()}",
        ),
        check_given(
            ONE,
            [(0.0, 1e6, 1e12)],
            run_softmax,
            check_softmax_kernel,
            send=lambda shifts: [SCORES - shift for shift in shifts],
            describe=lambda shifts: "the kernel of fused_softmax",
        ),
        check_given(
            COMPILED,
            [[Program((shape,), TWO_OUTPUTS, (5, 7)) for shape in ((3, 4), (7, 40))]],
            partial(emit_and_compile, "emit_rows"),
            check_compilation,
            send=lambda c: (capture_graph(c[0]), [captured(case)[1] for case in c]),
            describe=lambda c: str(c[0]),
        ),
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
