"""Questions of task 2.1: where an element is stored."""

from ..strided import Strided
from ..student import Student
from ..verdicts import Wrong

Permutation = tuple[Strided, tuple[int, ...]]  # (tensor, order of its dims)


def ask_permuted(student: Student, case: Permutation) -> object:
    """Return shape, strides and offset of the student's view; raise `Wrong` if it does not share the storage."""
    view = student.permuted(*case)
    if isinstance(view, Strided) and view.storage is not case[0].storage:
        raise Wrong(
            "permuted returns another storage; a view shares the storage of the tensor, and nothing is copied",
            kind="storage",
        )
    return view[1:]
