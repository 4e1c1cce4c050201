"""The launches of the page of threads and blocks: teaching kernels, and operations of the library."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import minifuse as mf
from minifuse.backends.cuda.launch_plan import LaunchPlan
from minifuse.inspect.dry_run import launches_of

from . import kernels

Shape = tuple[int, ...]
Numbers = npt.NDArray[Any]


class Subject(NamedTuple):
    """A kernel or operation, with the number of dims and the way to launch it."""

    dims: int
    kernel: Callable[..., None] | None
    """A teaching kernel; None for an operation of the library, which chooses its kernel."""
    operation: Callable[..., Any]
    """The expected result of NumPy or the library, from the inputs."""
    threads_over: int = 1
    """The number of elements per thread."""
    traced_as: str = ""
    """The name and options of the operation for `minifuse trace`; empty if it has none."""


SUBJECTS = {
    "a thread for each element": Subject(1, kernels.scale, lambda a: 2 * a),
    "the same without its guard": Subject(1, kernels.scale_unguarded, lambda a: 2 * a),
    "two elements for each thread": Subject(1, kernels.scale_in_strides, lambda a: 2 * a, 2),
    "neighbours take turns": Subject(1, kernels.scale_by_turns, lambda a: np.where(np.arange(a.size) % 2, -a, 2 * a)),
    "reversed through shared memory": Subject(1, kernels.reverse, lambda a: a[::-1]),
    "a matrix, in two dims": Subject(2, kernels.scale_2d, lambda a: 2 * a),
    "minifuse: exp(x)": Subject(1, None, lambda x: mf.exp(x), traced_as="exp"),
    "minifuse: x * y + 1, y in one row": Subject(
        2, None, kernels.multiply_add, traced_as="project/views/kernels.py:multiply_add"
    ),
    "minifuse: sum of each row": Subject(2, None, lambda x: x.sum(1), traced_as="sum --dim 1"),
}


def plan_launch(subject: Subject, shape: Shape, block: Shape) -> tuple[LaunchPlan | None, Numbers, Numbers | None]:
    """Return the launch, its expected result, and the array that it writes, if known."""
    a = (np.arange(prod(shape), dtype=np.float32) / 4).reshape(shape)
    if subject.kernel is not None:
        grid = tuple(-(-n // (b * subject.threads_over)) for n, b in zip(reversed(shape), block, strict=False))
        out = np.zeros_like(a)
        plan = LaunchPlan(subject.kernel, grid, block[: len(shape)], (out, a)) if a.size else None
        return plan, np.asarray(subject.operation(a), np.float32), out
    inputs = [
        mf.tensor(a, backend="python"),
        *[mf.tensor(a[0] if len(a) else np.zeros(shape[1:], np.float32), backend="python")] * ("y" in input_names(subject)),
    ]
    plans = launches_of(subject.operation, *inputs)
    return plans[0] if plans and a.size else None, subject.operation(*inputs).numpy(), None


def input_names(subject: Subject) -> tuple[str, ...]:
    """Return the names of the local variables of the operation, inputs first."""
    return subject.operation.__code__.co_varnames
