"""Questions of task 7.1: a table that is used twice, by the first layer and by the last."""

from collections.abc import Callable
from typing import Any


def tied(slot: Callable[[str], Callable[..., Any]], table: Any, ids: Any, positions: Any) -> Any:
    """Embed ids, add positions, and compute the scores of all rows of the same table."""
    x = slot("add_positions")(slot("embed")(table, ids), positions)
    return slot("unembed")(x, table)
