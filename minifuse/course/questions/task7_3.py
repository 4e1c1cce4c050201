"""Questions of task 7.3: heads that are split and merged around attention."""

from collections.abc import Callable
from typing import Any


def split_and_merge(slot: Callable[[str], Callable[..., Any]], x: Any, heads: int) -> Any:
    """Split x into heads, double each element, and merge."""
    return slot("merge_heads")(slot("split_heads")(x, heads) * 2.0)
