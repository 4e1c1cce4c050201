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
