"""A launch plan: everything that defines one kernel launch, before it runs.

The interpreter, the app, the tests and the hardware take the same plan, so a picture cannot differ from the run.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class LaunchPlan(NamedTuple):
    """One launch of a kernel."""

    kernel: Callable[..., Any]
    grid: tuple[int, ...]  # blocks along x, y, z
    block: tuple[int, ...]  # threads along x, y, z
    arguments: tuple[Any, ...]
    shared: int = 0  # bytes of dynamic shared memory


class ReadyLaunch(NamedTuple):
    """One launch on a GPU, before it runs: the prepared launch, and the types and values of its arguments."""

    run: Any  # as `device.prepare` returns it
    kinds: tuple[str, ...]
    arguments: list[Any]
    owner: Any = None  # owns memory that must stay allocated until the launch has ended
