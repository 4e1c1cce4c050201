"""Pytrees: nested tuples, lists and dicts of leaves. Named tuples keep their type. Independent of tensors."""

from collections.abc import Callable, Iterator
from typing import Any


class DynamicDict(dict[str, Any]):
    """A dict whose numbers may change between calls, such as the settings of an optimizer. Cache keys omit the numbers."""


def tree_map(tree: Any, function: Callable[[Any], object]) -> Any:
    """Apply a function to each leaf, and return the results in the same structure.

    Examples
    --------
    >>> tree_map({"a": (1, 2), "b": [3]}, lambda x: x + 1)
    {'a': (2, 3), 'b': [4]}
    """
    if isinstance(tree, tuple):
        parts = [tree_map(x, function) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if isinstance(tree, list):
        return [tree_map(x, function) for x in tree]
    if isinstance(tree, dict):
        return {key: tree_map(x, function) for key, x in tree.items()}
    return function(tree)


def tree_leaves(tree: object) -> Iterator[Any]:
    """Yield the leaves in order.

    Examples
    --------
    >>> list(tree_leaves({"a": (1, 2), "b": [3]}))
    [1, 2, 3]
    """
    if isinstance(tree, tuple | list | dict):
        for x in tree.values() if isinstance(tree, dict) else tree:
            yield from tree_leaves(x)
    else:
        yield tree
