"""Cases of module 5: drawn programs, what they should return, and their graphs.

This module belongs to the judge: the process of a student's code does not import it.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.indexing import Shape
from . import oracle
from .fusion import BINARY, REDUCTIONS, Graph
from .graph_evaluation import NUMPY_FUNCTIONS
from .programs import Line, Operand, Program, sample_arrays
from .strided import Array

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

# Largest absolute value in a program applied to the arrays of `sample_arrays`; lines with a larger result are not drawn.
MAX_ABS_VALUE = 60.0
DRAWN_NUMBERS = (-1.5, 0.5, 2.0, 3.25, 1 / 3, -0.0721)


def evaluate(
    program: Program, arrays: Sequence[Array], table: Mapping[str, Callable[..., Array]] = NUMPY_FUNCTIONS
) -> list[Array]:
    """Compute the outputs of a program on arrays."""
    values = [np.asarray(x, np.float64) for x in arrays]
    with np.errstate(all="ignore"):
        for op, operands in program.lines:
            values.append(np.asarray(table[op](*[k if isinstance(k, float) else values[k] for k in operands])))
    return [values[k] for k in program.outputs]


def capture_graph(program: Program) -> Graph:
    """Capture a program with the reference tracer."""
    graph: Graph = oracle.function("capture")(program, *program.shapes)
    return graph


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
