"""Task 5.3: reductions inside a kernel, such as softmax."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from ...core.indexing import Shape
from ..check import agreement, check_each, check_given, current, in_turn
from ..drawn_programs import capture_graph, evaluate, programs, row_programs
from ..emitted_kernels import KernelRun, Launch, launch_over_rows
from ..formula_links import page_link
from ..fusion import Graph
from ..graph_evaluation import NUMPY_FUNCTIONS, evaluate_graph
from ..kernel_runs import check_compiled, completed, wrong
from ..programs import Line, Program, sample_arrays
from ..questions.emitting import emit_and_compile, emit_and_run
from ..questions.task5_3 import run_softmax, softmax_graph
from ..row_passes import operation_limits, passes
from ..special_values import ELEMENTWISE, SpecialProgram, identical, special_programs
from ..strided import Array
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPS = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "lt", "sum", "max", "sum", "max")
COMPUTES = "the kernel computes the graph, with its reductions"
PASSES = "a kernel makes as many passes over a row as its reductions need, and no more"
ROWS = "what belongs to a row is computed once for it"
EXACT = "the largest of a row, constants, inf and nan are right to the last bit"
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
TWO_INPUTS = (Line("mul", (0, 1)), Line("sum", (2,)), Line("div", (2, 3)))
SCORES = np.array([[1000.0, 1001.0, 999.5, 998.0], [-1000.0, -1003.0, -1000.5, -2000.0], [0.5, -0.25, 3.0, 1.75]])


APART = np.array([[0.0, -300.0, -700.0, -800.0], [-np.inf, 2.0, 1.0, 0.0], [1e300, -1e300, 1e299, 0.0]])
FAR = (0.0, 1e6, 1e12, 1e14, 1e15, 1e17, 1e300, -1e14, -1e300)


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


def wide_program(seed: int, rows: int, n: int) -> Program:
    """Return a program with several reductions and outputs of each level, which all need the level before."""
    random, shapes = Random(seed), ((rows, n), (rows, 1), (1, n))
    lines = list[Line]()

    def append(op: str, *operands: int | float) -> int:
        lines.append(Line(op, operands))
        return len(shapes) + len(lines) - 1

    elements, values = [0], [1]
    outputs = list[int]()
    for _ in range(random.choice((2, 7))):
        newest = elements[-1]
        elements += [append("mul", random.choice(elements), random.uniform(-0.5, 0.5)) for _ in range(random.randint(1, 3))]
        elements.append(append(random.choice(("add", "sub", "maximum")), newest, random.choice((1, 2))))
        reduced = [*random.choices(elements, k=random.randint(0, 4)), elements[-1], elements[-1]]
        for op, k in zip(random.choices(("sum", "max"), k=len(reduced)), reduced, strict=True):
            values.append(append("mul", append(op, k), 1 / n if op == "sum" else 0.5))
        values.append(append("add", values[-1], random.choice(values)))
        elements += [append("sub", random.choice(elements), random.choice(values)) for _ in range(random.randint(0, 3))]
        elements.append(append("sub", elements[-1], values[-1]))
        outputs += random.choices(elements, k=random.randint(0, 3)) + random.choices(values[1:], k=random.randint(0, 2))
    return Program(shapes, tuple(lines), (elements[-1], *outputs))


def wide_programs() -> "SearchStrategy[Program]":
    """Draw programs with many reductions and outputs."""
    from hypothesis import strategies as st

    shapes = st.sampled_from([(130, 4), (2, 270)])
    return st.builds(lambda seed, shape: wide_program(seed, *shape), st.integers(0, 2**32), shapes)


def special_launch(case: SpecialProgram) -> tuple[Graph, Launch]:
    """Return the graph of a program on special values, and the arguments of its kernel."""
    graph = capture_graph(case.program)
    return graph, launch_over_rows(graph, case.arrays())


def captured(program: Program) -> tuple[Graph, Launch]:
    """Return the graph of a program, and the arguments of its kernel."""
    graph = capture_graph(program)
    return graph, launch_over_rows(graph, sample_arrays(program.shapes))


def link(program: Program) -> str:
    """Return the page of a function."""
    return page_link("fusion", capture_graph(program))


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
        large=wide_programs,
        send=captured,
        read=lambda c, answer: completed(answer).outs,
        draw=lambda c, got, right: str(capture_graph(c)).splitlines(),
        link=link,
        at_once=True,
    )


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


def check_operations(program: Program, answer: KernelRun) -> None:
    """Raise `Wrong` if an operation runs more often than the passes and the rows need it."""
    run, (rows, n) = completed(answer), program.shapes[0]
    limits = operation_limits(capture_graph(program), rows, n)
    for op, count in run.done.items():
        if count > limits[op]:
            message = (
                f"{op} is computed {count} times for {rows} rows of {n} elements, and {limits[op]} are enough: once for "
                "each row if it belongs to the row, else once for each element in each pass that needs it"
            )
            raise wrong(message, run.text, kind="per element", expected=limits[op], got=count)


def right_softmax(x: Array) -> Array:
    """Compute softmax with NumPy."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def is_softmax(got: Array, x: Array) -> bool:
    """Return whether probabilities are right, also those that are tiny or 0."""
    right = right_softmax(x)
    return got.size == x.size and np.allclose(got.reshape(x.shape), right, rtol=1e-12, atol=0.0)


def check_stability(x: Array, graph: Graph) -> None:
    """Raise `Wrong` if softmax is wrong: for rows near 1000 or -1000, far from 0, or with elements far apart."""
    [got] = evaluate_graph(graph, [x])
    if got.shape != x.shape or not is_softmax(got, x):
        kind = "overflow" if x is SCORES else "value"
        message = "fused_softmax returns something else" + " where elements are large: exp(1000) is inf" * (x is SCORES)
        shown = str(graph).splitlines()
        raise Wrong(message, case_text=current[0], expected=right_softmax(x), got=got, drawing=shown, kind=kind)


def check_softmax_kernel(shifts: tuple[float, ...], answer: list[KernelRun]) -> None:
    """Raise `Wrong` if the student's kernel of the student's softmax is wrong for shifted scores, or makes many passes."""
    for shift, found in zip(shifts, answer, strict=True):
        run, right = completed(found), right_softmax(SCORES - shift)
        if not is_softmax(run.outs[0], SCORES - shift):
            where, kind = (f" for elements around {-shift:g}", "far below") if shift else ("", "")
            message = f"the kernel of softmax computes something else{where}"
            raise wrong(message, run.text, expected=right, got=run.outs[0], kind=kind)
    load_count = sum(answer[0].reads[0].values()) / SCORES.size
    if load_count > 3:
        message = f"each element is loaded {load_count:g} times; the largest, the sum, the store are three"
        raise wrong(message, answer[0].text, kind="passes")
    exponentials = answer[0].done.get("exp", 0) / SCORES.size
    if exponentials > 2:
        message = (
            f"exp is computed {exponentials:g} times for each element; once for the sum and once for the store are enough"
        )
        raise wrong(message, answer[0].text, kind="per element", expected=2, got=exponentials)


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
            [
                check_each(
                    PASSES, drawn, run_rows, check_pass_count, large=wide_programs, send=captured, link=link, at_once=True
                )
                for drawn in (cases, common_programs)
            ],
        ),
        in_turn(
            ROWS,
            [
                check_given(ROWS, [LOG_OF_SUM], run_rows, check_row_values, send=captured),
                check_each(
                    ROWS, cases, run_rows, check_operations, large=wide_programs, send=captured, link=link, at_once=True
                ),
            ],
        ),
        check_given(
            STABLE,
            [SCORES[2:], SCORES, SCORES[:, :1], APART, *(SCORES - shift for shift in FAR)],
            softmax_graph,
            check_stability,
            send=lambda x: x.shape,
            describe=lambda x: f"x = {x.tolist()}",
        ),
        check_given(
            ONE,
            [FAR],
            run_softmax,
            check_softmax_kernel,
            send=lambda shifts: [SCORES - shift for shift in shifts],
            describe=lambda shifts: "the kernel of fused_softmax",
        ),
        agreement(
            EXACT,
            lambda: special_programs(argument_shapes(), (*ELEMENTWISE, "max", "max")),
            run_rows,
            SpecialProgram.outputs,
            send=special_launch,
            read=lambda c, answer: [c.comparable(x) for x in completed(answer).outs],
            agree=identical,
            at_once=True,
            draw=lambda c, got, right: str(capture_graph(c.program)).splitlines(),
            link=lambda c: link(c.program),
        ),
        check_given(
            COMPILED,
            [
                [Program((shape,), TWO_OUTPUTS, (5, 7)) for shape in ((3, 4), (7, 40))],
                [Program(((rows, n), (1, n)), TWO_INPUTS, (4,)) for rows, n in ((3, 4), (2, 9))],
            ],
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
            "values are stored in a list",
            "A list takes memory, as long as the row or not, and in compiled code all its elements have one type. A "
            "variable for each node needs no list, and becomes a register; a later pass loads an element again.",
            when=lambda w: w.kind == "memory",
        ),
    ),
    allows=frozenset({"minifuse.course.fusion"}),
)
