"""A launch plan: all that one kernel launch is, before it happens.

The interpreter, the app, the tests and the hardware take the same plan, so a picture cannot drift from what runs.
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
    """One launch on a GPU, before it happens: what launches, the types and values of what it passes."""

    run: Any  # as `device.prepare` gives it
    kinds: tuple[str, ...]
    arguments: list[Any]
    owner: Any = None  # of memory that must live until the launch has ended
