"""Task 5.2: generate one kernel as text for an elementwise graph."""

from functools import partial
from math import prod
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...core.indexing import Shape
from ..check import agreement, check_each, check_given
from ..drawn_programs import argument_shapes, capture_graph, evaluate, programs
from ..emitted_kernels import KernelRun, Launch
from ..formula_links import page_link
from ..fusion import Graph
from ..graph_evaluation import live_nodes
from ..kernel_runs import check_compiled, completed, number_lines, wrong
from ..laid_out import LaidOutProgram, Layout, laid_out
from ..programs import Line, Program, sample_arrays
from ..questions.emitting import emit_and_compile, emit_and_run, emit_each
from ..special_values import SpecialProgram, identical, special_programs
from ..strided import Array
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPS = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "lt")
COMPUTES = "the kernel computes the graph for operands with any strides, broadcast operands included"
ONCE = "an element of an input is loaded once, an element of an output is stored once"
SHARED = "a value that is used twice is computed once"
SIZES = "the text does not depend on sizes"
EXACT = "constants, zeros of both signs, inf and nan are right to the last bit"
LONG = "a chain of 3,000 operations is one kernel too"
COMPILED = "Numba compiles the text, and the compiled kernel returns the same values"
run_points = partial(emit_and_run, "emit_points")
LONG_CHAIN_LENGTH = 3000  # operations
REPEATED_OUTPUT = Program(((2, 3),), (Line("exp", (0,)), Line("neg", (0,))), (1, 2, 1))
ALL_OPERATIONS = (
    Line("exp", (0,)),
    Line("mul", (3, 1)),
    Line("add", (4, 3.25)),
    Line("maximum", (5, 0.5)),
    Line("log", (6,)),
    Line("lt", (0, 2)),
    Line("sub", (7, 8)),
    Line("neg", (9,)),
    Line("div", (10, 2.0)),
)


def cases() -> "SearchStrategy[LaidOutProgram]":
    """Draw programs of elementwise operations, with layouts."""
    from hypothesis import strategies as st

    drawn = laid_out(programs(argument_shapes(), OPS, max_outputs=3))
    return drawn | st.just(LaidOutProgram(REPEATED_OUTPUT, (Layout(),)))


def large_shapes() -> "SearchStrategy[tuple[Shape, ...]]":
    """Draw many arguments, or many dims, or many elements."""
    from hypothesis import strategies as st

    def build(space_shape: Shape, masks: list[int]) -> tuple[Shape, ...]:
        others = [tuple(1 if mask >> d & 1 else n for d, n in enumerate(space_shape)) for mask in masks]
        return (space_shape, *[shape[mask % 3 :] or shape for shape, mask in zip(others, masks, strict=True)])

    many_dims = st.lists(st.integers(1, 3), min_size=4, max_size=5).map(tuple)
    spaces = many_dims | st.sampled_from([(301,), (3, 101), (67, 4), (2, 3, 37)])
    return st.builds(build, spaces, st.lists(st.integers(0, 31), min_size=8, max_size=13))


def large_cases() -> "SearchStrategy[LaidOutProgram]":
    """Draw programs of many operations and outputs on `large_shapes`."""
    from hypothesis import strategies as st

    def build(shapes: tuple[Shape, ...], count: int, seed: int) -> LaidOutProgram:
        random, lines = Random(seed), list[Line]()
        for k in range(len(shapes), len(shapes) + count):  # values stay small
            other = random.choice((random.randrange(k), random.randrange(len(shapes)), random.uniform(-1.0, 1.0)))
            line = random.choice((Line("add", (k - 1, other)), Line("sub", (k - 1, other)), Line("maximum", (k - 1, other))))
            lines.append(random.choice((line, Line("mul", (k - 1, 0.25)), Line("neg", (random.randrange(k),)))))
        lines += [Line("add", (k, 0)) for k in range(1, len(shapes))]
        first = len(shapes) + count
        outputs = tuple(random.choice((0, *range(first, first + len(shapes) - 1))) for _ in range(random.randint(1, 6)))
        return LaidOutProgram(
            Program(shapes, tuple(lines), outputs), tuple(Layout(k % 4, 1 + k % 3) for k in range(len(shapes)))
        )

    return st.builds(build, large_shapes(), st.integers(1, 40), st.integers(0, 2**32))


def link(case: LaidOutProgram | SpecialProgram) -> str:
    """Return the page of the function of a case."""
    return page_link("fusion", capture_graph(case.program))


def launch_of(case: LaidOutProgram) -> Launch:
    """Return the arguments of the kernel of a case."""
    space_shape = case.program.shapes[0]
    return Launch(space_shape, [space_shape] * len(case.program.outputs), *case.memory())


def captured(case: LaidOutProgram) -> tuple[Graph, Launch]:
    """Return the graph of a case, and the arguments of its kernel."""
    return capture_graph(case.program), launch_of(case)


def special_launch(case: SpecialProgram) -> tuple[Graph, Launch]:
    """Return the graph of a program on special values, and the arguments of its kernel."""
    arrays, space_shape = case.arrays(), case.program.shapes[0]
    placed = [Layout().place(x, len(space_shape)) for x in arrays]
    launch = Launch(space_shape, [space_shape] * len(case.program.outputs), [x for x, _ in placed], [s for _, s in placed])
    return capture_graph(case.program), launch


def expected(program: Program) -> list[Array]:
    """Compute the flat outputs with NumPy."""
    space_shape = program.shapes[0]
    return [np.broadcast_to(x, space_shape).ravel() for x in evaluate(program, sample_arrays(program.shapes))]


def check_accesses(case: LaidOutProgram, answer: KernelRun) -> None:
    """Raise `Wrong` if an element is loaded or stored more often than needed."""
    run, size = completed(answer), prod(case.program.shapes[0])
    for k, reads in enumerate(run.reads):
        count = sum(reads.values())
        if count > size:
            message = f"ins[{k}] is loaded {count} times for {size} elements of the output"
            raise wrong(message, run.text, kind="reads", expected=f"at most {size} loads", got=f"{count} loads")
    for k, writes in enumerate(run.writes):
        count = sum(writes.values())
        if count != size:
            message = f"outs[{k}] is stored {count} times, and has {size} elements"
            raise wrong(message, run.text, kind="writes", expected=f"{size} stores", got=f"{count} stores")


def check_operations(case: LaidOutProgram, answer: KernelRun) -> None:
    """Raise `Wrong` if an operation runs more often than the graph needs."""
    run, graph, size = completed(answer), capture_graph(case.program), prod(case.program.shapes[0])
    for op in OPS:
        nodes = [k for k in live_nodes(graph) if graph.nodes[k].op == op]
        done = run.done.get(op, 0)
        if done > len(nodes) * size:
            message = f"{op} is computed {done} times for {size} elements; the graph contains it {len(nodes)} times"
            raise wrong(message, run.text, kind="again", expected=len(nodes) * size, got=done)


def larger(program: Program, factor: int = 2) -> Program:
    """Enlarge the iteration space of a program; dims along which an argument is broadcast keep size 1 in it.

    Equal sizes become different ones.
    """
    space = program.shapes[0]

    def enlarged(shape: Shape) -> Shape:
        own = space[len(space) - len(shape) :]
        additions = range(3 + len(own), 3, -1)
        return tuple(factor * n + more if n == size else 1 for n, size, more in zip(shape, own, additions, strict=True))

    return program._replace(shapes=tuple(enlarged(shape) for shape in program.shapes))


def two_sizes(case: "SizedProgram") -> list[Graph]:
    """Return the graphs of a program and of the enlarged one."""
    return [capture_graph(program) for program in (case.program, larger(case.program, case.factor))]


class SizedProgram(NamedTuple):
    """A program, and a factor of its sizes."""

    program: Program
    factor: int

    def __str__(self) -> str:
        return str(self.program)


def sized_cases() -> "SearchStrategy[SizedProgram]":
    """Draw programs, and by how much they are enlarged."""
    from hypothesis import strategies as st

    return st.builds(SizedProgram, cases().map(lambda case: case.program), st.sampled_from([2, 2, 1, 30, 1000, 10**5]))


def check_size_independence(case: SizedProgram, answer: list[object]) -> None:
    """Raise `Wrong` if the text depends on sizes."""
    text, other = answer
    if text != other:
        sizes = " and ".join(str(p.shapes[0]) for p in (case.program, larger(case.program, case.factor)))
        lines = zip(str(text).splitlines(), str(other).splitlines(), strict=False)
        differs = next(((a.strip(), b.strip()) for a, b in lines if a != b), ("", ""))
        raise Wrong(
            f"for the spaces {sizes} the texts differ: each size would be compiled again",
            case_text=str(case),
            expected="one text for all sizes",
            got=f"{differs[0]}\n{differs[1]}",
            drawing=number_lines(str(text)),
            kind="sizes",
        )


def long_chain() -> LaidOutProgram:
    """Return a chain of LONG_CHAIN_LENGTH operations."""
    lines = [Line(("add", "mul", "neg")[k % 3], (k + 1, 0.5)[: 1 + (k % 3 < 2)]) for k in range(LONG_CHAIN_LENGTH)]
    return LaidOutProgram(Program(((3,), (3,)), tuple(lines), (LONG_CHAIN_LENGTH + 1,)), (Layout(), Layout()))


def check_long_chain(case: LaidOutProgram, answer: KernelRun) -> None:
    """Raise `Wrong` if a long chain of operations computes wrong values."""
    run = completed(answer)
    if not np.allclose(run.outs, expected(case.program)):
        raise wrong(
            f"a chain of {LONG_CHAIN_LENGTH} operations computes something else",
            run.text,
            expected=expected(case.program),
            got=run.outs,
        )


def to_compile() -> list[tuple[LaidOutProgram, LaidOutProgram]]:
    """Return programs in two sizes: of all operations, and short ones in one dim and in four."""
    two_dims = Program(((3, 4), (3, 1), (4,)), ALL_OPERATIONS, (11, 8))
    one_dim = Program(((5,),), (Line("mul", (0, 0.1)),), (1,))
    four_dims = Program(((2, 3, 2, 2), (3, 1, 2), (2, 1)), (Line("add", (0, 1)), Line("sub", (3, 2))), (4, 3, 4))
    return [
        (LaidOutProgram(one, layouts), LaidOutProgram(larger(one), layouts))
        for one, layouts in (
            (two_dims, (Layout(1), Layout(), Layout())),
            (one_dim, (Layout(0, 2),)),
            (four_dims, (Layout(2), Layout(), Layout())),
        )
    ]


def check_compilation(cases: tuple[LaidOutProgram, LaidOutProgram], answer: list[KernelRun]) -> None:
    """Raise `Wrong` if a kernel of all operations cannot be compiled, or computes wrong values for one of two sizes."""
    check_compiled([launch_of(case) for case in cases], [expected(case.program) for case in cases], answer)


def in_order_of_memory(case: LaidOutProgram) -> list[Array]:
    """Return the outputs if element k of each storage is loaded for element k of the output."""
    storages, _ = case.memory()
    space_shape, graph = case.program.shapes[0], capture_graph(case.program)
    loaded = {int(graph.nodes[k].value or 0) for k in live_nodes(graph) if graph.nodes[k].op == "input"}
    if any(len(storages[k]) < prod(space_shape) for k in loaded):
        raise IndexError
    return [x.ravel() for x in evaluate(case.program, [np.resize(x, space_shape) for x in storages])]


def with_few_digits(case: LaidOutProgram) -> list[Array]:
    """Return the outputs for constants that are rounded to two digits."""
    lines = [Line(op, tuple(float(f"{x:.2f}") if isinstance(x, float) else x for x in xs)) for op, xs in case.program.lines]
    return expected(case.program._replace(lines=tuple(lines)))


def stored_once(case: LaidOutProgram) -> list[Array]:
    """Return the outputs if a node that is several outputs is stored only in the first of them."""
    outputs, arrays = capture_graph(case.program).outputs, expected(case.program)
    return [np.full_like(arrays[n], np.nan) if k in outputs[:n] else arrays[n] for n, k in enumerate(outputs)]


def with_one_output(case: LaidOutProgram) -> list[Array]:
    """Return the outputs if only the first is stored."""
    first, *others = expected(case.program)
    return [first, *[np.full_like(x, np.nan) for x in others]]


TASK = Task(
    id="5.2",
    title="Compose a chain into one kernel",
    file="compose.py",
    slots=("emit_points",),
    points=6,
    text=(
        "A chain of elementwise operations, one after the other, writes each value to memory and reads it back. Return "
        "the text of one kernel that computes the whole graph: loops over the space; per element one load of each input, "
        "one variable for each value, one store for each output. Operands are read with their strides, which are 0 "
        "along broadcast dims. The text depends on the number of dims, but not on sizes."
    ),
    hints=(
        "In the list of nodes, operands precede their users: one line of text per node is the whole body.",
        "A head with the loops; then for each node that an output needs: `t5 = in0[...]` for an input, `t7 = t5 * t6` for "
        "an operation, nothing for a constant, which is written as repr(value) where it is used; then the stores.",
        "docs/guide/fusion.md: `source` prints what the library makes of a function.",
    ),
    reads=("docs/course/5.2-compose.md", "docs/guide/fusion.md"),
    checks=(
        agreement(
            COMPUTES,
            cases,
            run_points,
            lambda c: expected(c.program),
            large=large_cases,
            send=captured,
            read=lambda c, answer: completed(answer).outs,
            draw=lambda c, got, right: str(capture_graph(c.program)).splitlines(),
            link=link,
            at_once=True,
        ),
        check_each(ONCE, cases, run_points, check_accesses, large=large_cases, send=captured, link=link, at_once=True),
        check_each(SHARED, cases, run_points, check_operations, large=large_cases, send=captured, link=link, at_once=True),
        check_each(
            SIZES,
            sized_cases,
            partial(emit_each, "emit_points"),
            check_size_independence,
            send=two_sizes,
            share=0.5,
            at_once=True,
        ),
        agreement(
            EXACT,
            lambda: special_programs(argument_shapes((1, 2))),
            run_points,
            SpecialProgram.outputs,
            send=special_launch,
            read=lambda c, answer: [c.comparable(x) for x in completed(answer).outs],
            agree=identical,
            at_once=True,
            draw=lambda c, got, right: str(capture_graph(c.program)).splitlines(),
            link=link,
        ),
        check_given(LONG, [long_chain()], run_points, check_long_chain, send=captured, describe=lambda c: ""),
        check_given(
            COMPILED,
            to_compile(),
            partial(emit_and_compile, "emit_points"),
            check_compilation,
            send=lambda c: (capture_graph(c[0].program), [launch_of(case) for case in c]),
            describe=lambda c: str(c[0]),
        ),
    ),
    mistakes=(
        Mistake(
            "operands are read at the flat index of the output, without strides",
            "Element (i0, i1) of an input is at i0 * strides[k][0] + i1 * strides[k][1]; a stride of 0 repeats it.",
            wrong_answer=in_order_of_memory,
            when=lambda w: w.kind == "IndexError",
            check=COMPUTES,
        ),
        Mistake(
            "constants lose digits in the text",
            "repr(value) has enough digits to read the same number again.",
            wrong_answer=with_few_digits,
            check=COMPUTES,
        ),
        Mistake(
            "a number or an operation is replaced by one that is almost the same",
            "repr(value) has all digits, and FORMATS has the operations: 0.0 - x is not -x at 0.0, and a comparison is not "
            "maximum where one is nan.",
            when=lambda w: not w.kind,
            check=EXACT,
        ),
        Mistake(
            "an output that is returned twice is stored once",
            "Two outputs may be one node. Go through graph.outputs with enumerate: its position is the index into outs; "
            "graph.outputs.index(k) returns the first position only.",
            wrong_answer=stored_once,
            check=COMPUTES,
        ),
        Mistake(
            "only the first output is stored",
            "A graph may have several outputs: outs has an array for each, in the order of graph.outputs.",
            wrong_answer=with_one_output,
            check=COMPUTES,
        ),
        Mistake(
            "an input is loaded wherever it is used",
            "Assign the loaded element to a variable; later lines use the variable.",
            when=lambda w: w.kind == "reads",
            check=ONCE,
        ),
        Mistake(
            "the expression of a value is repeated wherever the value is used",
            "Its operations are then computed for each use, and the text grows without bounds. Write one variable per node.",
            when=lambda w: w.kind == "again",
            check=SHARED,
        ),
        Mistake(
            "the text contains sizes",
            "Read shape[0] and shape[1] when the kernel runs; one text then serves all sizes.",
            when=lambda w: w.kind == "sizes",
            check=SIZES,
        ),
        Mistake(
            "values that are used once are nested into one expression",
            "Python's parser fails at about 200 nested parentheses. Write one line for each node.",
            when=lambda w: w.kind == "nested",
        ),
        Mistake(
            "values are stored in a list",
            "A list takes memory for each element, and in compiled code all its elements have one type. A variable per node "
            "needs no list, and becomes a register.",
            when=lambda w: w.kind == "memory",
        ),
    ),
    allows=frozenset({"minifuse.course.fusion"}),
)
