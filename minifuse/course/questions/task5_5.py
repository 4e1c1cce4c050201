"""Questions of task 5.5: the gradients of the operands of one operation, as a graph."""

from collections.abc import Sequence

from ...core.indexing import Shape
from ..fusion import Graph
from ..programs import TENSOR_FUNCTIONS, TensorLike
from ..student import Student


def pull_back_graph(student: Student, case: tuple[str, Sequence[Shape]]) -> tuple[Graph | None, object]:
    """Capture the student's gradients of the operands of an op, for (op, shapes of d and the operands).

    Return (graph, None); or (None, what pull_back returned) if it is not a tuple with a gradient for each operand.
    """
    op, shapes = case
    wrong: list[object] = []

    def run(d: TensorLike, *operands: TensorLike) -> object:
        parts = student.pull_back(op, d, TENSOR_FUNCTIONS[op](*operands), *operands)
        if not isinstance(parts, tuple) or len(parts) != len(operands):
            wrong.append(parts)
            return d
        return parts

    graph = student.capture(run, *shapes)
    return (None, wrong[0]) if wrong else (graph, None)


def pull_back_of_result(student: Student, case: tuple[str, Sequence[Shape]]) -> tuple[Graph | None, object]:
    """Capture the student's gradients of the operands of an op, for (op, shapes of d, the result and the operands)."""
    op, shapes = case
    return student.capture(lambda d, y, *operands: student.pull_back(op, d, y, *operands), *shapes), None
