"""Chains of views that mean the same on NumPy arrays, tensors and graph nodes. No data, no choice: see `strategies`."""

from collections.abc import Iterable
from typing import Any

import numpy as np

Shape = tuple[int, ...]


def permute(x: Any, order: tuple[int, ...]) -> Any:
    """The dims of an array or tensor in another order."""
    return np.transpose(x, order) if isinstance(x, np.ndarray) else x.permute(order)


def expand(x: Any, shape: Shape) -> Any:
    """An array or tensor repeated to a shape, without a copy."""
    return np.broadcast_to(x, shape) if isinstance(x, np.ndarray) else x.expand(shape)


def index(x: Any, entries: tuple[Any, ...]) -> Any:
    """Part of the elements, as a view also where one is left."""
    return x[(*entries, ...)] if isinstance(x, np.ndarray) and Ellipsis not in entries else x[entries]


METHODS = {"permute": permute, "expand": expand, "index": index}


class Recipe:
    """Views, one after the other, of something of shape `base`. Called with an array, a tensor or a node, it shows them.

    Parameters
    ----------
    base : tuple of int
        The shape of what is seen.
    steps : sequence of (str, tuple)
        Each ("permute", dims), ("expand", shape) or ("index", entries).

    Examples
    --------
    >>> import minifuse as mf
    >>> recipe = Recipe((2, 3), (("permute", (1, 0)), ("index", (slice(None, None, -1),))))
    >>> recipe
    x.permute(1, 0)[::-1] of (2, 3)
    >>> recipe(np.arange(6).reshape(2, 3)).shape, recipe(mf.arange(6).reshape(2, 3)).strides
    ((3, 2), (-1, 3))
    """

    def __init__(self, base: Shape, steps: Iterable[tuple[str, tuple[Any, ...]]] = ()) -> None:
        self.base, self.steps = base, tuple(steps)

    def __call__(self, x: Any) -> Any:
        """Something of shape `base`, seen."""
        for method, argument in self.steps:
            x = METHODS[method](x, argument)
        return x

    @property
    def shape(self) -> Shape:
        """The shape of what is shown."""
        shape: Shape = self(np.broadcast_to(np.int8(0), self.base)).shape
        return shape

    def __repr__(self) -> str:
        return "".join(["x", *[written(*step) for step in self.steps], f" of {self.base}"])


def written(method: str, argument: tuple[Any, ...]) -> str:
    """A view as Python source, after what it is a view of."""
    if method == "index":
        return f"[{', '.join(map(_entry, argument))}]"
    return f".{method}({', '.join(map(str, argument))})"


def _entry(x: Any) -> str:
    """One entry of an index as it is written."""
    if not isinstance(x, slice):
        return "..." if x is Ellipsis else str(x)
    start, stop, step = ["" if part is None else str(part) for part in (x.start, x.stop, x.step)]
    return f"{start}:{stop}" + f":{step}" * bool(step)
