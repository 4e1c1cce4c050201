"""Task 5.2: generate one kernel as text for an elementwise graph."""

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...core.indexing import Shape
from ..check import agreement, current
from ..emitted_kernels import Counts, Launch, check_compiled, launch, number_lines, wrong
from ..programs import Line, Program, argument_shapes, capture_graph, check_each, live_nodes, programs, sample_arrays
from ..strided import Array
from ..student import Student
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPS = ("add", "sub", "mul", "div", "neg", "exp", "log", "maximum", "lt")
COMPUTES = "the kernel computes the graph for operands with any strides, broadcast operands included"
ONCE = "an element of an input is loaded once, an element of an output is stored once"
SHARED = "a value that is used twice is computed once"
SIZES = "the text does not depend on sizes"
LONG = "a chain of 600 operations is one kernel too"
COMPILED = "Numba compiles the text, and the compiled kernel returns the same values"
LONG_CHAIN_LENGTH = 600  # operations
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


class LaidOutProgram(NamedTuple):
    """A program, and the arguments that are stored in column-major order."""

    program: Program
    is_column_major: tuple[bool, ...]

    def __str__(self) -> str:
        names = [self.program.name(k) for k, flag in enumerate(self.is_column_major) if flag]
        return f"{self.program}" + f"   ({', '.join(names)} in column-major order)" * bool(names)

    def memory(self) -> tuple[list[Array], list[Shape]]:
        """Return the storage of each argument, and its strides in the iteration space."""
        storages, strides = [], []
        space_shape = self.program.shapes[0]
        for x, flag in zip(sample_arrays(self.program.shapes), self.is_column_major, strict=True):
            array = np.array(x, order="F" if flag else "C")
            storages.append(array.ravel("K"))
            steps = [0 if n == 1 else s // 8 for n, s in zip(x.shape, array.strides, strict=True)]
            strides.append(tuple([0] * (len(space_shape) - len(steps)) + steps))
        return storages, strides


def cases() -> "SearchStrategy[LaidOutProgram]":
    """Draw programs of elementwise operations, with layouts."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> LaidOutProgram:
        program = draw(programs(argument_shapes(), OPS, max_outputs=2))
        return LaidOutProgram(program, tuple(draw(st.sampled_from([False, False, True])) for _ in program.shapes))

    return case() | st.just(LaidOutProgram(REPEATED_OUTPUT, (False,)))


def text_of(student: Student, case: LaidOutProgram) -> object:
    """Return the text of the student's kernel for the graph of a case."""
    return student.emit_points(capture_graph(case.program))


def run(text: object, case: LaidOutProgram) -> Counts:
    """Run the text of a kernel, and count loads, stores and operations."""
    space_shape = case.program.shapes[0]
    return launch(text, space_shape, [space_shape] * len(case.program.outputs), *case.memory())


def expected(program: Program) -> list[Array]:
    """Compute the flat outputs with NumPy."""
    space_shape = program.shapes[0]
    return [np.broadcast_to(x, space_shape).ravel() for x in program.evaluate(sample_arrays(program.shapes))]


def check_accesses(student: Student, case: LaidOutProgram) -> None:
    """Raise `Wrong` if an element is loaded or stored more often than needed."""
    text = text_of(student, case)
    counts, size = run(text, case), prod(case.program.shapes[0])
    for k, reads in enumerate(counts.reads):
        if reads.total() > size:
            message = f"ins[{k}] is loaded {reads.total()} times for {size} elements of the output"
            raise wrong(message, text, kind="reads", expected=f"at most {size} loads", got=f"{reads.total()} loads")
    for k, writes in enumerate(counts.writes):
        if writes.total() != size:
            message = f"outs[{k}] is stored {writes.total()} times, and has {size} elements"
            raise wrong(message, text, kind="writes", expected=f"{size} stores", got=f"{writes.total()} stores")


def check_operations(student: Student, case: LaidOutProgram) -> None:
    """Raise `Wrong` if an operation runs more often than the graph needs."""
    text, graph = text_of(student, case), capture_graph(case.program)
    done, size = run(text, case).done, prod(case.program.shapes[0])
    for op in OPS:
        nodes = [k for k in live_nodes(graph) if graph.nodes[k].op == op]
        if done[op] > len(nodes) * size:
            message = f"{op} is computed {done[op]} times for {size} elements; the graph contains it {len(nodes)} times"
            raise wrong(message, text, kind="again", expected=len(nodes) * size, got=done[op])


def larger(program: Program) -> Program:
    """Enlarge the iteration space of a program; broadcast dims keep size 1."""
    return program._replace(shapes=tuple(tuple(n if n == 1 else 2 * n + 3 for n in shape) for shape in program.shapes))


def check_size_independence(student: Student, case: LaidOutProgram) -> None:
    """Raise `Wrong` if the text depends on sizes."""
    text, other = [student.emit_points(capture_graph(p)) for p in (case.program, larger(case.program))]
    if text != other:
        sizes = " and ".join(str(p.shapes[0]) for p in (case.program, larger(case.program)))
        lines = zip(str(text).splitlines(), str(other).splitlines(), strict=False)
        differs = next(((a.strip(), b.strip()) for a, b in lines if a != b), ("", ""))
        raise Wrong(
            f"for the spaces {sizes} the texts differ: each size would be compiled again",
            case_text=str(case),
            expected="one text for all sizes",
            got=f"{differs[0]}\n{differs[1]}",
            drawing=number_lines(text),
            kind="sizes",
        )


def check_long_chain(student: Student) -> None:
    """Raise `Wrong` if a long chain of operations computes wrong values."""
    lines = [Line(("add", "mul", "neg")[k % 3], (k + 1, 0.5)[: 1 + (k % 3 < 2)]) for k in range(LONG_CHAIN_LENGTH)]
    case = LaidOutProgram(Program(((3,), (3,)), tuple(lines), (LONG_CHAIN_LENGTH + 1,)), (False, False))
    text = text_of(student, case)
    got = run(text, case).outs
    if not np.allclose(got, expected(case.program)):
        raise wrong(
            f"a chain of {LONG_CHAIN_LENGTH} operations computes something else",
            text,
            expected=expected(case.program),
            got=got,
        )


def check_compilation(student: Student) -> None:
    """Compile a kernel of all operations once, and run it for two sizes."""
    small = Program(((3, 4), (3, 1), (4,)), ALL_OPERATIONS, (11, 8))
    cases = [LaidOutProgram(program, (True, False, False)) for program in (small, larger(small))]
    current[0] = str(cases[0])
    launches = [Launch(c.program.shapes[0], [c.program.shapes[0]] * 2, *c.memory(), expected(c.program)) for c in cases]
    check_compiled(text_of(student, cases[0]), launches)


def in_order_of_memory(case: LaidOutProgram) -> list[Array]:
    """Return the outputs if element k of each storage is loaded for element k of the output."""
    storages, _ = case.memory()
    space_shape, graph = case.program.shapes[0], capture_graph(case.program)
    loaded = {int(graph.nodes[k].value or 0) for k in live_nodes(graph) if graph.nodes[k].op == "input"}
    if any(len(storages[k]) < prod(space_shape) for k in loaded):
        raise IndexError
    return [x.ravel() for x in case.program.evaluate([np.resize(x, space_shape) for x in storages])]


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
            lambda s, c: run(text_of(s, c), c).outs,
            lambda c: expected(c.program),
            draw=lambda c, got, right: str(capture_graph(c.program)).splitlines(),
            link=lambda c: "fusion",
        ),
        check_each(ONCE, cases, check_accesses, share=0.5),
        check_each(SHARED, cases, check_operations, share=0.5),
        check_each(SIZES, cases, check_size_independence, share=0.5),
        Check(LONG, lambda s, e: check_long_chain(s)),
        Check(COMPILED, lambda s, e: check_compilation(s)),
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
            "values are stored in a list that begins with None",
            "In compiled code a variable has one type, as have all elements of a list. A variable per node needs no list, "
            "and becomes a register.",
            when=lambda w: w.kind == "numba",
            check=COMPILED,
        ),
    ),
    allows=frozenset({"minifuse.course.fusion"}),
)
