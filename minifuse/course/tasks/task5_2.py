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
COMPUTES = "the kernel computes the graph, operands of any strides and broadcast"
ONCE = "an element of an input is loaded once, an element of an output is stored once"
SHARED = "what is used twice is computed once"
SIZES = "the text does not know the sizes"
LONG = "a chain of 600 operations is one kernel too"
COMPILED = "Numba compiles the text, and the kernel computes the same then"
LENGTH = 600
TWICE = Program(((2, 3),), (Line("exp", (0,)), Line("neg", (0,))), (1, 2, 1))
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


class Laid(NamedTuple):
    """A program, and the arguments that are stored in column-major order."""

    program: Program
    is_turned: tuple[bool, ...]

    def __str__(self) -> str:
        turned = [self.program.name(k) for k, flag in enumerate(self.is_turned) if flag]
        return f"{self.program}" + f"   ({', '.join(turned)} column by column)" * bool(turned)

    def memory(self) -> tuple[list[Array], list[Shape]]:
        """Return the storage of each argument, and its strides in the iteration space."""
        storages, strides = [], []
        whole = self.program.shapes[0]
        for x, flag in zip(sample_arrays(self.program.shapes), self.is_turned, strict=True):
            laid = np.array(x, order="F" if flag else "C")
            storages.append(laid.ravel("K"))
            steps = [0 if n == 1 else s // 8 for n, s in zip(x.shape, laid.strides, strict=True)]
            strides.append(tuple([0] * (len(whole) - len(steps)) + steps))
        return storages, strides


def cases() -> "SearchStrategy[Laid]":
    """Draw programs of elementwise operations, with layouts."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Laid:
        program = draw(programs(argument_shapes(), OPS, most_outputs=2))
        return Laid(program, tuple(draw(st.sampled_from([False, False, True])) for _ in program.shapes))

    return case() | st.just(Laid(TWICE, (False,)))


def text_of(student: Student, case: Laid) -> object:
    """Return the student's text."""
    return student.emit_points(capture_graph(case.program))


def run(text: object, case: Laid) -> Counts:
    """Run the kernel."""
    whole = case.program.shapes[0]
    return launch(text, whole, [whole] * len(case.program.outputs), *case.memory())


def expected(program: Program) -> list[Array]:
    """Compute the flat outputs with NumPy."""
    whole = program.shapes[0]
    return [np.broadcast_to(x, whole).ravel() for x in program.evaluate(sample_arrays(program.shapes))]


def loads_once(student: Student, case: Laid) -> None:
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


def computes_once(student: Student, case: Laid) -> None:
    """Raise `Wrong` if an operation runs more often than the graph needs."""
    text, graph = text_of(student, case), capture_graph(case.program)
    done, size = run(text, case).done, prod(case.program.shapes[0])
    for op in OPS:
        nodes = [k for k in live_nodes(graph) if graph.nodes[k].op == op]
        if done[op] > len(nodes) * size:
            message = f"{op} is done {done[op]} times for {size} elements; the graph has it {len(nodes)} times"
            raise wrong(message, text, kind="again", expected=len(nodes) * size, got=done[op])


def larger(program: Program) -> Program:
    """Enlarge the iteration space of a program; broadcast dims keep size 1."""
    return program._replace(shapes=tuple(tuple(n if n == 1 else 2 * n + 3 for n in shape) for shape in program.shapes))


def knows_no_sizes(student: Student, case: Laid) -> None:
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


def long_chain(student: Student) -> None:
    """Check a long chain of additions and multiplications."""
    lines = [Line(("add", "mul", "neg")[k % 3], (k + 1, 0.5)[: 1 + (k % 3 < 2)]) for k in range(LENGTH)]
    case = Laid(Program(((3,), (3,)), tuple(lines), (LENGTH + 1,)), (False, False))
    text = text_of(student, case)
    got = run(text, case).outs
    if not np.allclose(got, expected(case.program)):
        raise wrong(
            f"a chain of {LENGTH} operations computes something else", text, expected=expected(case.program), got=got
        )


def is_compiled(student: Student) -> None:
    """Compile a kernel of all operations once, and run it for two sizes."""
    small = Program(((3, 4), (3, 1), (4,)), ALL_OPERATIONS, (11, 8))
    cases = [Laid(program, (True, False, False)) for program in (small, larger(small))]
    current[0] = str(cases[0])
    launches = [Launch(c.program.shapes[0], [c.program.shapes[0]] * 2, *c.memory(), expected(c.program)) for c in cases]
    check_compiled(text_of(student, cases[0]), launches)


def in_order_of_memory(case: Laid) -> list[Array]:
    """Load element k of the storage of each input for element k of the output."""
    storages, _ = case.memory()
    whole, graph = case.program.shapes[0], capture_graph(case.program)
    loaded = {int(graph.nodes[k].value or 0) for k in live_nodes(graph) if graph.nodes[k].op == "input"}
    if any(len(storages[k]) < prod(whole) for k in loaded):
        raise IndexError
    return [x.ravel() for x in case.program.evaluate([np.resize(x, whole) for x in storages])]


def with_few_digits(case: Laid) -> list[Array]:
    """Compute with constants rounded to two digits."""
    lines = [Line(op, tuple(float(f"{x:.2f}") if isinstance(x, float) else x for x in xs)) for op, xs in case.program.lines]
    return expected(case.program._replace(lines=tuple(lines)))


def stored_once(case: Laid) -> list[Array]:
    """Store each node in the first output that has it only."""
    outputs, found = capture_graph(case.program).outputs, expected(case.program)
    return [np.full_like(found[at], np.nan) if k in outputs[:at] else found[at] for at, k in enumerate(outputs)]


def with_one_output(case: Laid) -> list[Array]:
    """Store only the first output."""
    first, *others = expected(case.program)
    return [first, *[np.full_like(x, np.nan) for x in others]]


TASK = Task(
    id="5.2",
    title="Compose a chain into one kernel",
    file="compose.py",
    slots=("emit_points",),
    points=6,
    text=(
        "A chain of elementwise operations, one after the other, writes each value to memory and reads it back. Print the "
        "text of one kernel that computes the whole graph: loops over the space; for each element one load of each input, "
        "one variable for each value, one store for each output. Operands are read with their strides, of which those of "
        "repeated dims are 0. The text knows the number of dims, and no sizes."
    ),
    hints=(
        "Nodes come in an order in which each has its operands before it: a line of text for each node is the whole body.",
        "A head with the loops; then for each node that an output needs: `t5 = in0[...]` for an input, `t7 = t5 * t6` for "
        "an operation, nothing for a constant, which stands as repr(value) where it is used; then the stores.",
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
        check_each(ONCE, cases, loads_once, share=0.5),
        check_each(SHARED, cases, computes_once, share=0.5),
        check_each(SIZES, cases, knows_no_sizes, share=0.5),
        Check(LONG, lambda s, e: long_chain(s)),
        Check(COMPILED, lambda s, e: is_compiled(s)),
    ),
    mistakes=(
        Mistake(
            "operands are read at the place of the output",
            "Element (i0, i1) of an input is at i0 * strides[k][0] + i1 * strides[k][1]; a stride of 0 repeats it.",
            wrong_answer=in_order_of_memory,
            when=lambda w: w.kind == "IndexError",
            check=COMPUTES,
        ),
        Mistake(
            "numbers lose digits on their way into the text",
            "repr(value) gives as many digits as it takes to read the same number again.",
            wrong_answer=with_few_digits,
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
            "only the first output is stored",
            "A graph may give several values: outs has an array for each, in the order of graph.outputs.",
            wrong_answer=with_one_output,
            check=COMPUTES,
        ),
        Mistake(
            "an input is loaded wherever it is used",
            "Give what was loaded a name, once for each element; later lines use the name.",
            when=lambda w: w.kind == "reads",
            check=ONCE,
        ),
        Mistake(
            "a value is written out wherever it is used",
            "Then its operations are done once for each use, and the text grows without bounds. One variable for each node.",
            when=lambda w: w.kind == "again",
            check=SHARED,
        ),
        Mistake(
            "sizes stand in the text",
            "shape[0] and shape[1] say them when the kernel runs; one text then serves all sizes.",
            when=lambda w: w.kind == "sizes",
            check=SIZES,
        ),
        Mistake(
            "values that are used once are nested into one expression",
            "Python reads about 200 nested parentheses, and nobody reads twenty. One line for each node.",
            when=lambda w: w.kind == "nested",
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
