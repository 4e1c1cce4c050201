"""Cases of module 5: randomly drawn functions of tensors, their text, and their values in NumPy.

A program is callable with any operands that have the operators: with tracers it is captured, with arrays it is computed.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ..core.indexing import Shape
from . import oracle
from .check import CaseT, agreement
from .fusion import BINARY, REDUCTIONS, Graph
from .strided import Array
from .student import Student
from .task import Check

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Operand = int | float  # an int is the index of a value (first the arguments, then one value per line); a float is a constant
ARGUMENT_NAMES = "xyzuvw"
# Largest absolute value in a program applied to the arrays of `sample_arrays`; lines with a larger result are not drawn.
MAX_ABS_VALUE = 60.0
DRAWN_NUMBERS = (-1.5, 0.5, 2.0, 3.25, 1 / 3, -0.0721)
OPERATOR_FORMATS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "lt": "{} < {}",
    "matmul": "{} @ {}",
}
TENSOR_FUNCTIONS: dict[str, Callable[..., object]] = {
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
NUMPY_FUNCTIONS: dict[str, Callable[..., Array]] = {
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
    """A value with operators and a shape: a tensor, or a tracer that has no elements yet."""

    @property
    def shape(self) -> Shape:
        """Return the sizes of the dims."""

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
        """Return the larger of each pair of elements."""

    def sum(self) -> "TensorLike":
        """Return the sum of each row."""

    def max(self) -> "TensorLike":
        """Return the largest element of each row."""


class Line(NamedTuple):
    """One statement of a program."""

    op: str
    operands: tuple[Operand, ...]


class Program(NamedTuple):
    """A function of tensors, as a list of statements."""

    shapes: tuple[Shape, ...]
    lines: tuple[Line, ...]
    outputs: tuple[int, ...]

    def __call__(self, *xs: object) -> object:
        """Run the lines, with the operators and methods of the arguments."""
        values = list(xs)
        for op, operands in self.lines:
            values.append(TENSOR_FUNCTIONS[op](*[k if isinstance(k, float) else values[k] for k in operands]))
        outputs = tuple(values[k] for k in self.outputs)
        return outputs if len(outputs) > 1 else outputs[0]

    def evaluate(self, arrays: Sequence[Array], table: Mapping[str, Callable[..., Array]] = NUMPY_FUNCTIONS) -> list[Array]:
        """Compute the outputs on arrays."""
        values = [np.asarray(x, np.float64) for x in arrays]
        with np.errstate(all="ignore"):
            for op, operands in self.lines:
                values.append(np.asarray(table[op](*[k if isinstance(k, float) else values[k] for k in operands])))
        return [values[k] for k in self.outputs]

    def name(self, k: Operand) -> str:
        """Return the name of a value: x, y, ... for arguments, then a, b, ..."""
        if isinstance(k, float):
            return repr(k)
        later = k - len(self.shapes)
        return ARGUMENT_NAMES[k] if later < 0 else "abcdefghijklmnopqrst"[later] if later < 20 else f"t{later}"

    def __str__(self) -> str:
        arguments = ", ".join(f"{ARGUMENT_NAMES[k]} {shape}" for k, shape in enumerate(self.shapes))
        lines = [f"{self.name(len(self.shapes) + k)} = {self.format_line(line)}" for k, line in enumerate(self.lines)]
        if len(lines) > 24:
            lines = [*lines[:3], f"... {len(lines) - 4} more", lines[-1]]
        return "; ".join([f"of {arguments}", *lines, "return " + ", ".join(map(self.name, self.outputs))])

    def format_line(self, line: Line) -> str:
        """Return the expression on the right side of a statement."""
        names = [self.name(k) for k in line.operands]
        if line.op in OPERATOR_FORMATS:
            return OPERATOR_FORMATS[line.op].format(*names)
        return f"-{names[0]}" if line.op == "neg" else f"{names[0]}.{line.op}({', '.join(names[1:])})"


def sample_array(shape: Shape, k: int) -> Array:
    """Return an array for argument k, with elements of both signs that occur in no other position or argument."""
    return np.random.default_rng(100 * k + len(shape)).uniform(-2.0, 2.0, shape)


def sample_arrays(shapes: Sequence[Shape]) -> list[Array]:
    """Return an array for each argument."""
    return [sample_array(shape, k) for k, shape in enumerate(shapes)]


def evaluate_nodes(
    graph: Graph, arrays: Sequence[Array], table: Mapping[str, Callable[..., Array]] = NUMPY_FUNCTIONS
) -> list[Array]:
    """Compute every value of a graph with NumPy."""
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


def evaluate_graph(
    graph: Graph, arrays: Sequence[Array], table: Mapping[str, Callable[..., Array]] = NUMPY_FUNCTIONS
) -> list[Array]:
    """Compute the outputs of a graph with NumPy."""
    values = evaluate_nodes(graph, arrays, table)
    return [values[k] for k in graph.outputs]


def is_well_conditioned(op: str, operands: Sequence[Array], result: Array) -> bool:
    """Return whether a result is finite and at most MAX_ABS_VALUE, and no operand of log and no divisor is near 0.

    A negative operand of log is not well conditioned either.
    """
    min_operand = {"log": 0.05, "div": 0.1}.get(op)
    if min_operand is not None and bool(np.any((operands[-1] if op == "log" else np.abs(operands[-1])) < min_operand)):
        return False
    return bool(np.all(np.isfinite(result)) and np.all(np.abs(result) <= MAX_ABS_VALUE))


def programs(
    shapes: "SearchStrategy[tuple[Shape, ...]]",
    ops: Sequence[str],
    *,
    max_lines: int = 8,
    numbers: Sequence[float] = DRAWN_NUMBERS,
    is_output: Callable[[Shape, Shape], bool] = operator.eq,
    max_outputs: int = 2,
    is_reducible: Callable[[Shape, Shape], bool] = operator.eq,
) -> "SearchStrategy[Program]":
    """Draw programs whose values on the sample arrays are well conditioned.

    Parameters
    ----------
    shapes : strategy
        Draws the shapes of the arguments. The first is the iteration space.
    ops : sequence of str
    max_lines : int
        Maximal number of drawn lines.
    numbers : sequence of float
        Constants to draw; none if empty.
    is_output, is_reducible : function of (shape of a value, shape of the space)
        Return whether a value may be an output, or the operand of a reduction.
    max_outputs : int
        Maximal number of outputs.
    """
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Program:
        drawn_shapes: tuple[Shape, ...] = draw(shapes)
        arrays = sample_arrays(drawn_shapes)
        lines: list[Line] = []

        def draw_operand(is_number: bool = False) -> Operand:
            if is_number:
                return float(draw(st.sampled_from(numbers)))
            last = len(arrays) - 1
            return int(draw(st.sampled_from([*range(len(arrays)), last, last])))

        def value_of(k: Operand) -> Array:
            return np.asarray(k) if isinstance(k, float) else arrays[k]

        def append_line(op: str, *operands: Operand) -> bool:
            values = [value_of(k) for k in operands]
            try:
                with np.errstate(all="ignore"):
                    result = np.asarray(NUMPY_FUNCTIONS[op](*values))
            except ValueError:  # these shapes do not broadcast
                return False
            if is_well_conditioned(op, values, result):
                lines.append(Line(op, operands))
                arrays.append(result)
                return True
            return False

        for _ in range(draw(st.integers(1, max_lines))):
            if lines and draw(st.integers(0, 4)) == 4:
                line = draw(st.sampled_from(lines))
                append_line(line.op, *line.operands)
                continue
            op = draw(st.sampled_from(list(ops)))
            if op == "matmul":
                append_line(op, draw_operand(), draw_operand())
            elif op in BINARY:
                constant_index = draw(st.sampled_from([None, None, 1, 0 if op != "maximum" else 1])) if numbers else None
                append_line(op, draw_operand(constant_index == 0), draw_operand(constant_index == 1))
            else:
                k = draw_operand()
                if op not in REDUCTIONS or is_reducible(arrays[int(k)].shape, drawn_shapes[0]):
                    append_line(op, k)
        argument_count = len(drawn_shapes)
        if arrays[-1].shape != drawn_shapes[0] and not is_output(arrays[-1].shape, drawn_shapes[0]):
            append_line("add", len(arrays) - 1, 0) or append_line("sub", 0, 0)
        if len(arrays) == argument_count:
            append_line("neg", 0)
        candidates = [k for k in range(argument_count, len(arrays)) if is_output(arrays[k].shape, drawn_shapes[0])]
        others = draw(st.lists(st.sampled_from(candidates), unique=True, max_size=max_outputs - 1)) if candidates[1:] else []
        return Program(drawn_shapes, tuple(lines), (candidates[-1], *others))

    return case()


def argument_shapes(ranks: tuple[int, int] = (1, 3), max_arguments: int = 3) -> "SearchStrategy[tuple[Shape, ...]]":
    """Draw the shapes of arguments: the iteration space, and others that broadcast to it."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> tuple[Shape, ...]:
        space_shape = tuple(draw(st.lists(st.integers(1, 5), min_size=ranks[0], max_size=ranks[1])))
        shapes = [space_shape]
        for _ in range(draw(st.integers(0, max_arguments - 1))):
            shape = tuple(1 if draw(st.booleans()) else n for n in space_shape)
            shapes.append(shape[draw(st.integers(0, len(space_shape) - 1)) if ranks[0] != ranks[1] else 0 :])
        return tuple(shapes)

    return case()


def row_programs(shape: Shape) -> list[Program]:
    """Return common functions with reductions, such as softmax and layer norm, the simplest first."""
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
    result = list[Program]()
    for text in texts.values():
        words = [line.split() for line in text.split(", ")]
        lines = [Line(op, tuple(float(x) if "." in x else int(x) for x in xs)) for op, *xs in words]
        result.append(Program((shape,), tuple(lines), (len(lines),)))
    return result


def check_each(
    name: str,
    cases: Callable[[], "SearchStrategy[CaseT]"],
    check_case: Callable[[Student, CaseT], None],
    describe: Callable[[CaseT], str] = str,
    share: float = 1.0,
) -> Check:
    """Return a check that calls `check_case` on each drawn case; `check_case` raises `Wrong` on a failure.

    `share` is the fraction of the usual number of examples that is tried.
    """
    return agreement(name, cases, check_case, lambda case: None, describe=describe, share=share)


def capture_graph(program: Program) -> Graph:
    """Capture a program with the reference tracer."""
    graph: Graph = oracle.function("capture")(program, *program.shapes)
    return graph


def reduction_depths(graph: Graph) -> list[int]:
    """Return, for each value, the number of passes over a row that it needs: a reduction needs one more than its operand."""
    depths: list[int] = []
    for node in graph.nodes:
        depths.append(max([depths[k] for k in node.inputs], default=0) + (node.op in REDUCTIONS))
    return depths


def live_nodes(graph: Graph, roots: Sequence[int] | None = None) -> list[int]:
    """Return the indices of the nodes on which `roots` (default: the outputs) depend, in order, with the roots."""
    live = set(graph.outputs if roots is None else roots)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in live:
            live.update(graph.nodes[k].inputs)
    return sorted(live)
