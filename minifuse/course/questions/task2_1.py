"""Questions of task 2.1: where an element is stored."""

from ..strided import Strided
from ..student import Student
from ..verdicts import Wrong
from .calling import made_where_another_was
from .work import limited_lines

Permutation = tuple[Strided, tuple[int, ...]]  # (tensor, order of its dims)
MAX_LINES = 1000  # of a call of index_of: a division for each dim takes far fewer


def ask_index(student: Student, case: tuple[int, tuple[int, ...]]) -> object:
    """Return the index that the student finds; raise `Wrong` if it takes too much work."""
    with limited_lines(student, "index_of", MAX_LINES, "divide by the sizes; do not count up to the ordinal"):
        return student.index_of(*case)


def ask_permuted(student: Student, case: Permutation) -> object:
    """Return shape, strides and offset of the student's view; raise `Wrong` if it does not share the storage."""
    given, dims = case
    x = made_where_another_was(
        lambda: given._replace(storage=given.storage.copy()),
        lambda other: student.permuted(other, dims),
        lambda: Strided._make(given),
    )
    view = student.permuted(x, dims)
    if not isinstance(view, Strided):
        raise Wrong(f"permuted returns a value of type {type(view).__name__}; expected a Strided", kind="type")
    storage, *layout = tuple.__iter__(view)
    if storage is not given.storage:
        raise Wrong(
            "permuted returns another storage; a view shares the storage of the tensor, and nothing is copied",
            kind="storage",
        )
    shape, strides, _ = layout
    for name, part in (("shape", shape), ("strides", strides)):
        if isinstance(part, list):
            raise Wrong(f"the {name} of the view: a list; expected a tuple", kind="type")
    return tuple(layout)
