"""Questions of task 5.6: the kernels of groups of nodes."""

from collections.abc import Sequence

from ..fusion import Graph
from ..student import Student


def kernels_for(student: Student, case: tuple[Graph, Sequence[Sequence[int]]]) -> list[object]:
    """Return the student's kernel for each group of nodes of a graph."""
    graph, groups = case
    return [student.kernel_for(graph, list(group)) for group in groups]
