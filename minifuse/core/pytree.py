"""Nested tuples, lists and dicts: how people group tensors. Named tuples stay what they are. Knows nothing of tensors."""

from collections.abc import Callable, Iterator
from typing import Any


class DynamicDict(dict[str, Any]):
    """A dict whose numbers are read anew by each call, such as the settings of an optimizer: they are no part of a key."""


def tree_map(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The same nest with each leaf changed.

    Examples
    --------
    >>> mapped({"a": (1, 2), "b": [3]}, lambda x: x + 1)
    {'a': (2, 3), 'b': [4]}
    """
    if isinstance(tree, tuple):
        parts = [tree_map(x, change) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if isinstance(tree, list):
        return [tree_map(x, change) for x in tree]
    if isinstance(tree, dict):
        return {key: tree_map(x, change) for key, x in tree.items()}
    return change(tree)


def tree_leaves(tree: Any) -> Iterator[Any]:
    """The leaves, in order.

    Examples
    --------
    >>> list(leaves_of({"a": (1, 2), "b": [3]}))
    [1, 2, 3]
    """
    if isinstance(tree, tuple | list | dict):
        for x in tree.values() if isinstance(tree, dict) else tree:
            yield from tree_leaves(x)
    else:
        yield tree
