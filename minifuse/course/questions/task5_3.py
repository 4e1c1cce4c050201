"""Questions of task 5.3: the student's softmax as a graph, and as a kernel."""

from collections.abc import Sequence

from ...core.indexing import Shape
from ..emitted_kernels import KernelRun, launch_over_rows, run_kernel
from ..fusion import Graph
from ..strided import Array
from ..student import Student


def softmax_graph(student: Student, shape: Shape) -> Graph:
    """Capture the student's softmax."""
    graph: Graph = student.capture(student.fused_softmax, shape)
    return graph


def run_softmax(student: Student, xs: Sequence[Array]) -> list[KernelRun]:
    """Generate the kernel of the student's softmax, and run it on arrays of one shape."""
    graph = softmax_graph(student, xs[0].shape)
    text = student.emit_rows(graph)
    return [run_kernel(text, launch_over_rows(graph, [x])) for x in xs]
