"""Chains of views that work on NumPy arrays, tensors and graph nodes. For random ones, see `strategies`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from ..core.indexing import Entry, Shape
from ..ir.array_methods import Array

V = TypeVar("V", np.ndarray, Array)
X = TypeVar("X", bound=np.ndarray | Array)
ViewArguments = tuple[Entry, ...]  # dims, sizes, or the entries of an index


def permute(x: V, order: tuple[int, ...]) -> V:
    """Permute the dims of an array or tensor."""
    return np.transpose(x, order) if isinstance(x, np.ndarray) else x.permute(order)


def expand(x: V, shape: Shape) -> V:
    """Expand an array or tensor to a shape, without a copy."""
    return np.broadcast_to(x, shape) if isinstance(x, np.ndarray) else x.expand(shape)


def index(x: V, entries: ViewArguments) -> V:
    """Index an array or tensor; the result is a view even for a single element."""
    return x[(*entries, ...)] if isinstance(x, np.ndarray) and Ellipsis not in entries else x[entries]


METHODS: Mapping[str, Callable[..., Any]] = {"permute": permute, "expand": expand, "index": index}


class Recipe:
    """A chain of views. Call it with an array, a tensor or a graph node of shape `base` to apply them.

    `training.Recipe` is another class: it describes a training run.

    Parameters
    ----------
    base : tuple of int
        The shape of the argument.
    steps : sequence of (str, tuple)
        The views in order: ("permute", dims), ("expand", shape) or ("index", entries).

    Examples
    --------
    >>> import minifuse as mf
    >>> recipe = Recipe((2, 3), (("permute", (1, 0)), ("index", (slice(None, None, -1),))))
    >>> recipe
    x.permute(1, 0)[::-1] of (2, 3)
    >>> recipe(np.arange(6).reshape(2, 3)).shape, recipe(mf.arange(6).reshape(2, 3)).strides
    ((3, 2), (-1, 3))
    """

    def __init__(self, base: Shape, steps: Iterable[tuple[str, ViewArguments]] = ()) -> None:
        self.base, self.steps = base, tuple(steps)

    def __call__(self, x: X) -> X:
        """Apply the views to an array, a tensor or a graph node of shape `base`."""
        for method, argument in self.steps:
            x = METHODS[method](x, argument)
        return x

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        shape: Shape = self(np.broadcast_to(np.int8(0), self.base)).shape
        return shape

    def __repr__(self) -> str:
        return "".join(["x", *[format_view(*step) for step in self.steps], f" of {self.base}"])


def format_view(method: str, argument: ViewArguments) -> str:
    """Format a view as Python source."""
    if method == "index":
        return f"[{', '.join(map(_entry, argument))}]"
    return f".{method}({', '.join(map(str, argument))})"


def _entry(x: object) -> str:
    """Format one entry of an index."""
    if not isinstance(x, slice):
        return "..." if x is Ellipsis else str(x)
    start, stop, step = ["" if part is None else str(part) for part in (x.start, x.stop, x.step)]
    return f"{start}:{stop}" + f":{step}" * bool(step)
