"""A reduction that is computed inside the kernels that read it. It is never stored.

The compiler lowers a short reduction to this op if recomputing it costs less than storing it. Like a pointwise op, a kernel
computes it wherever it needs an element, and a view of the result is a view of the input.
"""

from typing import TYPE_CHECKING

from ..core.operators import Operator
from .array_functions import Function, PadSlice, ShapeDtype, View

if TYPE_CHECKING:
    from .array_methods import Array

LIFTABLE_VIEWS = frozenset({"expand", "permute", "reshape", "slice", "unflatten"})  # methods that `lift_view` accepts

Shape = tuple[int, ...]


class NestedReduce(Function):
    """Reduce the last `count` dims with an operator that has an identity, and drop them."""

    __slots__ = ("count", "operator")

    def __init__(self, operator: Operator, count: int) -> None:
        self.operator, self.count = operator, count

    def infer(self, x: "Array") -> ShapeDtype:
        """Return the shape without the reduced dims."""
        return x.shape[: -self.count], x.dtype

    def __repr__(self) -> str:
        return f"nested reduce {self.operator} over the last {self.count} dims"


def lift_view(view: View, rank: int, trailing: Shape) -> View:
    """Return the view of an array with more dims at the end, which it keeps: view(reduce(x)) = reduce(lifted view(x)).

    `rank` is the number of dims of the array that `view` is applied to.

    >>> lift_view(View("reshape", (4, 5)), 1, (3,)), lift_view(View("permute", (1, 0)), 2, (3,))
    (reshape(4, 5, 3), permute(1, 0, 2))
    """
    match view.method:
        case "reshape" | "expand":
            return View(view.method, (*view.parameters, *trailing))
        case "permute":
            return View("permute", (*view.parameters, *range(rank, rank + len(trailing))))
        case "slice":
            return View("slice", (*view.parameters, *[(0, 1, n) for n in trailing]))
    assert view.method in LIFTABLE_VIEWS
    return view


def with_leading_dims(function: View | PadSlice, leading: Shape) -> View | PadSlice | None:
    """Return the view or padding of an array with more dims in front, which it keeps; None if there is none.

    >>> with_leading_dims(View("sliding_windows", (1, 3, 2, 1)), (5,)), with_leading_dims(View("permute", (1, 0)), (5,))
    (sliding_windows(2, 3, 2, 1), permute(0, 2, 1))
    """
    count, whole = len(leading), tuple((0, 1, n) for n in leading)
    if isinstance(function, PadSlice):
        return PadSlice((*leading, *function.shape), (*whole, *function.ranges))
    match function.method, function.parameters:
        case ("reshape", shape):
            return View("reshape", (*leading, *shape))
        case "permute", dims:
            return View("permute", (*range(count), *[d + count for d in dims]))
        case "slice", ranges:
            return View("slice", (*whole, *ranges))
        case (("sliding_windows" | "unflatten"), (dim, *numbers)):
            return View(function.method, (dim + count, *numbers))
        case "skew", (dim, along, *numbers):
            return View("skew", (dim + count, along + count, *numbers))
    return None
