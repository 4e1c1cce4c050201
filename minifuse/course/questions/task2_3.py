"""Questions of task 2.3: map, zip and reduce over strides."""

import math
from collections.abc import Callable
from typing import Any

from ..loops import FUNCTIONS, Case, operands_of
from ..recorded_storage import RecordedStorage
from ..strided import Array, Strided
from ..student import Student

Facts = tuple[Array, dict[int, int], int, list[int]]
"""The storage of the output, the number of writes by position, of calls of fn, and of reads of each operand."""
ALL_FUNCTIONS: dict[str, Callable[..., float]] = FUNCTIONS | {
    "copysign(1, x)": lambda x: math.copysign(1.0, x),
    "3 * x": lambda x: 3.0 * x,
    "copysign(1, x) + y": lambda x, y: math.copysign(1.0, x) + y,
}
"""Those of all loops, and some that tell 0.0 from -0.0."""


def run_slot(slot: str, student: Student, case: Case) -> Facts:
    """Run a loop of the student's over recorded storages. Operands with one storage share the recorded one."""
    calls = 0

    def fn(*numbers: float) -> float:
        nonlocal calls
        calls += 1
        return ALL_FUNCTIONS[case[0]](*numbers)

    def record(x: Strided, name: str) -> Any:
        return x._replace(storage=RecordedStorage(x.storage, name))  # type: ignore[arg-type]  # indexed like an array

    out = record(case[1], "out")
    made: dict[int, Any] = {}  # the same tensor twice is the same object
    operands = [
        made.setdefault(id(x), record(x, name)) if isinstance(x, Strided) else x
        for x, name in zip(operands_of(case), "abc", strict=False)
    ]
    getattr(student, slot)(fn, out, *operands)
    reads = [x.storage.reads for x in made.values()]
    return out.storage.values, dict(out.storage.writes), calls, reads
