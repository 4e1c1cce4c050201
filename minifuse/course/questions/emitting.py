"""Questions of tasks 5.2 and 5.3: the text of a student's kernel, and its runs."""

from collections.abc import Sequence

from ..emitted_kernels import KernelRun, Launch, run_compiled, run_kernel
from ..fusion import Graph
from ..student import Student


def emit_and_run(slot: str, student: Student, case: tuple[Graph, Launch]) -> KernelRun:
    """Generate the kernel of a graph with a slot, and run it in Python."""
    graph, given = case
    return run_kernel(getattr(student, slot)(graph), given)


def emit_and_compile(slot: str, student: Student, case: tuple[Graph, Sequence[Launch]]) -> list[KernelRun]:
    """Generate the kernel of a graph with a slot, compile it once, and run it for each launch up to one that fails."""
    graph, launches = case
    return list(run_compiled(getattr(student, slot)(graph), launches))


def emit_each(slot: str, student: Student, graphs: Sequence[Graph]) -> list[object]:
    """Return the texts of the kernels of several graphs."""
    return [getattr(student, slot)(graph) for graph in graphs]
