"""Task 5.3: reductions inside a kernel; softmax is one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...core.indexing import Shape
from .. import oracle
from ..check import agreement, current, in_turn
from ..emitted_kernels import Counts, Launch, compiles, launched, wrong
from ..fusion import FOLDS, Graph
from ..programs import NUMPY, Line, Program, demand, evaluated, graph_of, levels, needed, programs, row_programs, samples
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
COMPILED = "Numba compiles the text, and the kernel computes the same then"
TWO_OUTPUTS = (
    Line("max", (0,)),
    Line("sub", (0, 1)),
    Line("exp", (2,)),
    Line("sum", (3,)),
    Line("div", (3, 4)),
    Line("log", (4,)),
    Line("add", (6, 1)),
)
X = np.array([[1000.0, 1001.0, 999.5, 998.0], [-1000.0, -1003.0, -1000.5, -2000.0], [0.5, -0.25, 3.0, 1.75]])


def spaces() -> "SearchStrategy[tuple[Shape, ...]]":
    """Shapes (rows, n), and operands that are repeated along either."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> tuple[Shape, ...]:
        rows, n = draw(st.integers(1, 4)), draw(st.integers(2, 6))
        others = draw(st.lists(st.sampled_from([(rows, n), (rows, 1), (1, n)]), max_size=2))
        return ((rows, n), *others)

    return case()


def of_networks() -> "SearchStrategy[Program]":
    """Programs with reductions that networks have: few enough for each of them to be asked."""
    from hypothesis import strategies as st

    twice = Program(((3, 4),), (Line("max", (0,)), Line("sub", (0, 1))), (2, 1, 2))
    return st.sampled_from([*row_programs((3, 4)), twice])


def cases() -> "SearchStrategy[Program]":
    """Programs with reductions: some that networks have, and some that are drawn."""
    drawn = programs(spaces(), OPS, most=9, gives=lambda shape, whole: shape in (whole, (whole[0], 1)))
    return of_networks() | drawn


def launch(text: object, graph: Graph, arrays: list[Array]) -> Counts:
    """The kernel, run over row-major arrays."""
    whole = max(shape for shape in (node.shape for node in graph.nodes) if len(shape) == 2 and shape == arrays[0].shape)
    steps = [tuple(0 if n == 1 else s // 8 for n, s in zip(x.shape, x.strides, strict=True)) for x in arrays]
    outs = [graph.nodes[k].shape for k in graph.outputs]
    return launched(text, whole, outs, [x.ravel() for x in arrays], steps)


def run(student: Student, program: Program) -> tuple[object, Counts]:
    """The text and what it did."""
    graph = graph_of(program)
    text = student.emit_rows(graph)
    return text, launch(text, graph, samples(program.shapes))


def flat(arrays: list[Array]) -> list[Array]:
    """Flatten arrays, in row-major order."""
    return [np.asarray(x).ravel() for x in arrays]


def expected(program: Program) -> list[Array]:
    """Compute with NumPy, flat."""
    return flat(program.on(samples(program.shapes)))


def computes(drawn: Callable[[], "SearchStrategy[Program]"]) -> Check:
    """The demand that kernels of programs store what NumPy does."""
    return agreement(
        COMPUTES,
        drawn,
        lambda s, c: run(s, c)[1].outs,
        expected,
        draw=lambda c, got, right: str(graph_of(c)).splitlines(),
        link=lambda c: "fusion",
    )


def passes(graph: Graph) -> dict[int, int]:
    """Count the passes that must load each input of full width: those of reductions that need it, and of the stores."""
    level, found = levels(graph), dict[int, set[int]]()
    wide = graph.nodes[0].shape[-1]
    live = needed(graph)
    ends = [(level[k] - 1, graph.nodes[k].inputs[0]) for k in live if graph.nodes[k].op in FOLDS]
    ends += [(level[k], k) for k in graph.outputs if graph.nodes[k].shape[-1] == wide]
    for pass_index, end in ends:
        for k in within(graph, end):
            if graph.nodes[k].op == "input" and graph.nodes[k].shape[-1] == wide:
                found.setdefault(int(graph.nodes[k].value or 0), set()).add(pass_index)
    return {k: len(some) for k, some in found.items()}


def within(graph: Graph, end: int) -> set[int]:
    """Collect the nodes that a value needs for each element; reductions end the walk."""
    found, open_ = set[int](), [end]
    while open_:
        k = open_.pop()
        if k not in found:
            found.add(k)
            open_ += [] if graph.nodes[k].op in FOLDS else graph.nodes[k].inputs
    return found


def few_passes(student: Student, program: Program) -> None:
    """Compare the loads of each input with the passes that the reductions need."""
    text, counts = run(student, program)
    graph = graph_of(program)
    rows, n = program.shapes[0]
    most = passes(graph)
    for k, reads in enumerate(counts.reads):
        shape = program.shapes[k]
        if shape[-1] == n and reads.total() > most.get(k, 0) * rows * n:
            said = f"ins[{k}] is loaded {reads.total() / (rows * n):g} times for each element, and {most.get(k, 0)} would do"
            raise wrong(
                said, text, kind="passes", expected=f"{most.get(k, 0) * rows * n} loads", got=f"{reads.total()} loads"
            )
    for k, writes in enumerate(counts.writes):
        if any(count > 1 for count in writes.values()):
            raise wrong(f"an element of outs[{k}] is stored more than once", text, kind="writes")


def rows_once(student: Student) -> None:
    """The logarithm of a sum belongs to the row."""
    program = Program(((3, 7),), (Line("exp", (0,)), Line("sum", (1,)), Line("log", (2,)), Line("sub", (0, 3))), (4,))
    current[0] = str(program)
    text, counts = run(student, program)
    if counts.done["log"] > 3:
        said = f"the logarithm of the sum is computed {counts.done['log']} times for 3 rows; it is the same along a row"
        raise wrong(said, text, kind="per element", expected="3 logarithms", got=f"{counts.done['log']} logarithms")


def softmax_graph(student: Student, shape: Shape) -> Graph:
    """The student's softmax, captured."""
    found: Graph = oracle.function("capture")(student.fused_softmax, shape)
    return found


def right_softmax(x: Array) -> Array:
    """By NumPy."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def is_stable(student: Student) -> None:
    """Rows around 1000, around -1000, and around 0."""
    current[0] = f"x = {X.tolist()}"
    for x, kind in ((X[2:], "value"), (X, "overflow")):
        graph = softmax_graph(student, x.shape)
        [got] = evaluated(graph, [x])
        if got.shape != x.shape or not np.allclose(got, right_softmax(x)):
            shown = str(graph).splitlines()
            said = "fused_softmax gives something else" + " where elements are large: exp(1000) is inf" * (
                kind == "overflow"
            )
            raise Wrong(said, told=current[0], expected=right_softmax(x), got=got, drawing=shown, kind=kind)


def one_kernel(student: Student) -> None:
    """The student's softmax through the student's kernel, counted."""
    graph = softmax_graph(student, X.shape)
    text = student.emit_rows(graph)
    current[0] = "the kernel of fused_softmax"
    counts = launch(text, graph, [X])
    if not np.allclose(counts.outs[0], right_softmax(X).ravel()):
        raise wrong("the kernel of softmax gives something else", text, expected=right_softmax(X), got=counts.outs[0])
    for shift in (1e6, 1e12):
        below = X - shift
        got = launch(text, graph, [below]).outs[0]
        if not np.allclose(got, right_softmax(below).ravel()):
            said = f"the kernel of softmax gives something else for elements around {-shift:g}"
            raise wrong(said, text, expected=right_softmax(below), got=got, kind="far below")
    if counts.reads[0].total() > 3 * X.size:
        said = (
            f"each element is loaded {counts.reads[0].total() / X.size:g} times; the largest, the sum, the store are three"
        )
        raise wrong(said, text, kind="passes")


def is_compiled(student: Student) -> None:
    """The text of softmax, and of the logarithm of its sum beside it, compiled once, and run for two sizes."""
    cases = [Program((shape,), TWO_OUTPUTS, (5, 7)) for shape in ((3, 4), (7, 40))]
    current[0] = str(cases[0])
    launches = []
    for program in cases:
        (x,), outs = samples(program.shapes), [program.shapes[0], (program.shapes[0][0], 1)]
        launches.append(Launch(x.shape, outs, [x.ravel()], [(x.shape[1], 1)], expected(program)))
    compiles(student.emit_rows(graph_of(cases[0])), launches)


def stored_once(program: Program) -> list[Array]:
    """By somebody who stores each node in the first of its outputs."""
    outputs, found = graph_of(program).outputs, expected(program)
    return [np.full_like(found[at], np.nan) if k in outputs[:at] else found[at] for at, k in enumerate(outputs)]


def by(change: dict[str, Callable[..., Array]]) -> Callable[[Program], list[Array]]:
    """Compute with NumPy, with other reductions."""

    def give(program: Program) -> list[Array]:
        return flat(program.on(samples(program.shapes), {**NUMPY, **change}))

    return give


def running(program: Program) -> list[Array]:
    """Compute with a reduction before its pass has ended: each element sees the elements up to it."""
    change = {"sum": lambda x: np.cumsum(x, -1), "max": lambda x: np.maximum.accumulate(x, -1)}
    found = program.on(samples(program.shapes), {**NUMPY, **change})
    rows, n = program.shapes[0]
    shapes = [graph_of(program).nodes[k].shape for k in graph_of(program).outputs]
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
        in_turn(COMPUTES, [computes(cases), computes(of_networks)]),
        in_turn(PASSES, [demand(PASSES, cases, few_passes), demand(PASSES, of_networks, few_passes)]),
        Check(ROWS, lambda s, e: rows_once(s)),
        Check(STABLE, lambda s, e: is_stable(s)),
        Check(ONE, lambda s, e: one_kernel(s)),
        Check(COMPILED, lambda s, e: is_compiled(s)),
    ),
    mistakes=(
        Mistake(
            "the largest of a row is looked for from a number on",
            "A row may have negative elements only, however far below 0. Begin where nothing is smaller: -inf.",
            gives=by({"max": lambda x: np.max(x, -1, keepdims=True, initial=0.0)}),
            when=lambda w: w.kind == "far below",
        ),
        Mistake(
            "reductions begin once, and not for each row",
            "The lines that set them to 0.0 and -inf belong into the loop over rows.",
            gives=by(
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
            gives=running,
            check=COMPUTES,
        ),
        Mistake(
            "an output that is given twice is stored once",
            "Two outputs may be one node. Go through graph.outputs with enumerate: the position says which of outs it is; "
            "graph.outputs.index(k) gives the first position only.",
            gives=stored_once,
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
