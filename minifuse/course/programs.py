"""Cases of module 5: functions of tensors that are drawn at random, their text, and what NumPy makes of them.

A program is a plain function: called with anything that has the operators, it applies them, line by line. So it can be
captured, and computed by NumPy.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ..core.indexing import Shape
from . import oracle
from .check import CaseT, agreement
from .fusion import BINARY, FOLDS, Graph
from .strided import Array
from .student import Student
from .task import Check

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Operand = int | float  # an int names a value: the arguments first, then a line each; a float is a constant
NAMES = "xyzuvw"
LARGEST = 60.0  # of a value in a sample; another operation is taken where one would lead out
NUMBERS = (-1.5, 0.5, 2.0, 3.25, 1 / 3, -0.0721)
WRITTEN = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "lt": "{} < {}", "matmul": "{} @ {}"}
APPLIED: dict[str, Callable[..., object]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "lt": operator.lt,
    "matmul": operator.matmul,
    "maximum": lambda x, y: x.maximum(y),
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "sum": lambda x: x.sum(),
    "max": lambda x: x.max(),
}
NUMPY: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "exp": np.exp,
    "log": np.log,
    "maximum": np.maximum,
    "lt": lambda x, y: np.less(x, y).astype(np.float64),
    "sum": lambda x: np.sum(x, -1, keepdims=True),
    "max": lambda x: np.max(x, -1, keepdims=True, initial=-np.inf),
    "matmul": np.matmul,
}


class TensorLike(Protocol):
    """An operand of the functions of module 5: a value with operators and a shape; it may have no elements yet."""

    @property
    def shape(self) -> Shape:
        """Return its shape."""

    def __add__(self, other: "TensorLike | float") -> "TensorLike": ...
    def __sub__(self, other: "TensorLike | float") -> "TensorLike": ...
    def __mul__(self, other: "TensorLike | float") -> "TensorLike": ...
    def __truediv__(self, other: "TensorLike | float") -> "TensorLike": ...
    def __radd__(self, other: float) -> "TensorLike": ...
    def __rsub__(self, other: float) -> "TensorLike": ...
    def __rmul__(self, other: float) -> "TensorLike": ...
    def __rtruediv__(self, other: float) -> "TensorLike": ...
    def __matmul__(self, other: "TensorLike") -> "TensorLike": ...
    def __lt__(self, other: "TensorLike | float") -> "TensorLike": ...
    def __neg__(self) -> "TensorLike": ...

    def exp(self) -> "TensorLike":
        """Return e to the power of each element."""

    def log(self) -> "TensorLike":
        """Return the logarithm of each element."""

    def maximum(self, other: "TensorLike | float") -> "TensorLike":
        """Return the larger of two elements."""

    def sum(self) -> "TensorLike":
        """Return the sum of each row."""

    def max(self) -> "TensorLike":
        """Return the largest element of each row."""


class Line(NamedTuple):
    """One statement of a program."""

    op: str
    operands: tuple[Operand, ...]


class Program(NamedTuple):
    """A function of tensors of these shapes."""

    shapes: tuple[Shape, ...]
    lines: tuple[Line, ...]
    outputs: tuple[int, ...]

    def __call__(self, *xs: object) -> object:
        """Apply the operators of what is given."""
        values = list(xs)
        for op, operands in self.lines:
            values.append(APPLIED[op](*[k if isinstance(k, float) else values[k] for k in operands]))
        found = tuple(values[k] for k in self.outputs)
        return found if len(found) > 1 else found[0]

    def on(self, arrays: Sequence[Array], table: Mapping[str, Callable[..., Array]] = NUMPY) -> list[Array]:
        """Evaluate it on arrays."""
        values = [np.asarray(x, np.float64) for x in arrays]
        with np.errstate(all="ignore"):
            for op, operands in self.lines:
                values.append(np.asarray(table[op](*[k if isinstance(k, float) else values[k] for k in operands])))
        return [values[k] for k in self.outputs]

    def name(self, k: Operand) -> str:
        """Of a value: x, y, ... for arguments, then a, b, ..."""
        if isinstance(k, float):
            return repr(k)
        later = k - len(self.shapes)
        return NAMES[k] if later < 0 else "abcdefghijklmnopqrst"[later] if later < 20 else f"t{later}"

    def __str__(self) -> str:
        arguments = ", ".join(f"{NAMES[k]} {shape}" for k, shape in enumerate(self.shapes))
        lines = [f"{self.name(len(self.shapes) + k)} = {self.written(line)}" for k, line in enumerate(self.lines)]
        if len(lines) > 24:
            lines = [*lines[:3], f"... {len(lines) - 4} more", lines[-1]]
        return "; ".join([f"of {arguments}", *lines, "return " + ", ".join(map(self.name, self.outputs))])

    def written(self, line: Line) -> str:
        """A statement's right side."""
        names = [self.name(k) for k in line.operands]
        if line.op in WRITTEN:
            return WRITTEN[line.op].format(*names)
        return f"-{names[0]}" if line.op == "neg" else f"{names[0]}.{line.op}({', '.join(names[1:])})"


def sample(shape: Shape, k: int) -> Array:
    """Values for argument k: of both signs, all different, and none twice over the arguments."""
    return np.random.default_rng(100 * k + len(shape)).uniform(-2.0, 2.0, shape)


def samples(shapes: Sequence[Shape]) -> list[Array]:
    """Values for all arguments."""
    return [sample(shape, k) for k, shape in enumerate(shapes)]


def values_of(graph: Graph, arrays: Sequence[Array], table: Mapping[str, Callable[..., Array]] = NUMPY) -> list[Array]:
    """Every value of a graph, by NumPy."""
    values: list[Array] = []
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            operands = [values[k] for k in node.inputs]
            if node.op == "input":
                values.append(np.asarray(arrays[int(node.value or 0)], np.float64))
            elif node.op == "constant":
                values.append(np.asarray(node.value, np.float64))
            elif node.op == "expand":
                values.append(np.broadcast_to(operands[0], node.shape))
            else:
                values.append(np.asarray(table[node.op](*operands)))
    return values


def evaluated(graph: Graph, arrays: Sequence[Array], table: Mapping[str, Callable[..., Array]] = NUMPY) -> list[Array]:
    """Evaluate the outputs of a graph with NumPy."""
    values = values_of(graph, arrays, table)
    return [values[k] for k in graph.outputs]


def is_tame(op: str, operands: Sequence[Array], result: Array) -> bool:
    """Return whether a value is finite and of middling size, and safely so: no logarithm or quotient near 0."""
    near = {"log": 0.05, "div": 0.1}.get(op)
    if near is not None and bool(np.any((operands[-1] if op == "log" else np.abs(operands[-1])) < near)):
        return False
    return bool(np.all(np.isfinite(result)) and np.all(np.abs(result) <= LARGEST))


def programs(
    shapes: "SearchStrategy[tuple[Shape, ...]]",
    ops: Sequence[str],
    *,
    most: int = 8,
    numbers: Sequence[float] = NUMBERS,
    gives: Callable[[Shape, Shape], bool] = operator.eq,
    most_outputs: int = 2,
    reduces: Callable[[Shape, Shape], bool] = operator.eq,
) -> "SearchStrategy[Program]":
    """Programs whose values are tame on the samples.

    Parameters
    ----------
    shapes : strategy
        Of the arguments' shapes; the first is that of the whole space.
    ops : sequence of str
    most : int
        Lines that are drawn.
    numbers : sequence of float
        Constants; none if empty.
    gives, reduces : function of (shape of a value, shape of the space)
        Whether a value may be an output, an operand of a reduction.
    most_outputs : int
        The same value may be two of them.
    """
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Program:
        sizes: tuple[Shape, ...] = draw(shapes)
        arrays = samples(sizes)
        lines: list[Line] = []

        def operand(is_number: bool = False) -> Operand:
            if is_number:
                return float(draw(st.sampled_from(numbers)))
            last = len(arrays) - 1
            return int(draw(st.sampled_from([*range(len(arrays)), last, last])))

        def value(k: Operand) -> Array:
            return np.asarray(k) if isinstance(k, float) else arrays[k]

        def write(op: str, *operands: Operand) -> bool:
            given = [value(k) for k in operands]
            try:
                with np.errstate(all="ignore"):
                    result = np.asarray(NUMPY[op](*given))
            except ValueError:  # shapes that do not fit
                return False
            if is_tame(op, given, result):
                lines.append(Line(op, operands))
                arrays.append(result)
                return True
            return False

        for _ in range(draw(st.integers(1, most))):
            if lines and draw(st.integers(0, 4)) == 4:
                line = draw(st.sampled_from(lines))
                write(line.op, *line.operands)
                continue
            op = draw(st.sampled_from(list(ops)))
            if op == "matmul":
                write(op, operand(), operand())
            elif op in BINARY:
                place = draw(st.sampled_from([None, None, 1, 0 if op != "maximum" else 1])) if numbers else None
                write(op, operand(place == 0), operand(place == 1))
            else:
                k = operand()
                if op not in FOLDS or reduces(arrays[int(k)].shape, sizes[0]):
                    write(op, k)
        n = len(sizes)
        if arrays[-1].shape != sizes[0] and not gives(arrays[-1].shape, sizes[0]):
            write("add", len(arrays) - 1, 0) or write("sub", 0, 0)
        if len(arrays) == n:
            write("neg", 0)
        able = [k for k in range(n, len(arrays)) if gives(arrays[k].shape, sizes[0])]
        others = draw(st.lists(st.sampled_from(able), unique=True, max_size=most_outputs - 1)) if able[1:] else []
        return Program(sizes, tuple(lines), (able[-1], *others))

    return case()


def spaces(ranks: tuple[int, int] = (1, 3), most_arguments: int = 3) -> "SearchStrategy[tuple[Shape, ...]]":
    """Shapes of arguments: a whole space, and others that broadcast to it."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> tuple[Shape, ...]:
        whole = tuple(draw(st.lists(st.integers(1, 5), min_size=ranks[0], max_size=ranks[1])))
        found = [whole]
        for _ in range(draw(st.integers(0, most_arguments - 1))):
            part = tuple(1 if draw(st.booleans()) else n for n in whole)
            found.append(part[draw(st.integers(0, len(whole) - 1)) if ranks[0] != ranks[1] else 0 :])
        return tuple(found)

    return case()


def row_programs(shape: Shape) -> list[Program]:
    """Functions with reductions that every network has: the simple ones first."""
    texts = {
        "total": "sum 0",
        "the largest of negative values": "exp 0, neg 1, max 2",
        "both reductions": "sum 0, max 0, sub 1 2",
        "shares": "sum 0, div 0 1",
        "from the largest": "max 0, sub 0 1",
        "logsumexp": "max 0, sub 0 1, exp 2, sum 3, log 4, add 5 1",
        "softmax": "max 0, sub 0 1, exp 2, sum 3, div 3 4",
        "logsoftmax": "max 0, sub 0 1, exp 2, sum 3, log 4, sub 2 5",
        "sums of squares": "mul 0 0, sum 1, add 2 0.5, div 0 3",
        "layer norm": "sum 0, mul 1 0.25, sub 0 2, mul 3 3, sum 4, add 5 0.1, div 3 6",
    }
    found = []
    for text in texts.values():
        words = [line.split() for line in text.split(", ")]
        lines = [Line(op, tuple(float(x) if "." in x else int(x) for x in xs)) for op, *xs in words]
        found.append(Program((shape,), tuple(lines), (len(lines),)))
    return found


def demand(
    name: str,
    cases: Callable[[], "SearchStrategy[CaseT]"],
    look: Callable[[Student, CaseT], None],
    told: Callable[[CaseT], str] = str,
    share: float = 1.0,
) -> Check:
    """The demand that a look at what the student's function does finds nothing wrong: it raises `Wrong` where it does."""
    return agreement(name, cases, look, lambda case: None, told=told, share=share)


def graph_of(program: Program) -> Graph:
    """The graph of a program, captured by the judge."""
    found: Graph = oracle.function("capture")(program, *program.shapes)
    return found


def levels(graph: Graph) -> list[int]:
    """Count, for each value, the passes over a row after which it is known: a reduction needs one more than its operand."""
    found: list[int] = []
    for node in graph.nodes:
        found.append(max([found[k] for k in node.inputs], default=0) + (node.op in FOLDS))
    return found


def needed(graph: Graph, of: Sequence[int] | None = None) -> list[int]:
    """The nodes that outputs, or these values, depend on, in order."""
    found = set(graph.outputs if of is None else of)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in found:
            found.update(graph.nodes[k].inputs)
    return sorted(found)
