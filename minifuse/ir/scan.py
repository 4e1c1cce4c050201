"""Scans: the combination of all elements up to each one, along a dim. Running sums, products, extremes, recurrences.

    y[0] = x[0]        y[i] = combine(y[i - 1], x[i])

The combination is associative, so a scan of n elements need not take n steps in a row: the scans of its parts are computed
side by side, and then each part is combined with the total of all parts before it. An operator of the table scans one array;
the combination of a `Monoid` may have several states, with an array for each. No combination needs to be commutative.

All gradients are scans, and most of them the same one: the linear recurrence s[i] = a[i] * s[i - 1] + b[i], whose gradient
is a linear recurrence from the other end. So there are gradients of any order, and none divides by an element.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING

from ..core.errors import GradientError
from ..core.operators import Operator, add, eq, exp, log, maximum, minimum, mul, ne, where
from .array_functions import A, Full, Gradients, ShapeDtype, SliceUpdate, View
from .composite_op import CompositeOp, CompositeOutput
from .monoids import LAST_EXTREME, LOGADDEXP, RECURRENCE

if TYPE_CHECKING:
    from .array_methods import Array
    from .graph import Node


class Scan(CompositeOp):
    """Inclusive scan along a dim, from its start or, in `reverse`, from its end.

    Parameters
    ----------
    operator : Operator
        An operator of the table with an identity, or a state of a monoid. There is an input for each state.
    dim : int
    reverse : bool
    kept : tuple of int
        The states that are outputs. The others are needed only to compute them.
    """

    __slots__ = ("dim", "kept", "names", "operator", "output_layout_like", "reverse")

    def __init__(self, operator: Operator, dim: int, reverse: bool, kept: tuple[int, ...]) -> None:
        self.operator, self.dim, self.reverse, self.kept = operator, dim, reverse, kept
        self.names = tuple(f"scan_{operator.states[k].name}" for k in kept)
        self.output_layout_like = (0,) * len(kept)

    @property
    def parameters(self) -> tuple[Operator, int, bool]:
        """The operator, the dim and the direction."""
        return self.operator, self.dim, self.reverse

    def infer(self, *inputs: "Array") -> tuple[ShapeDtype, ...]:
        """Return the shapes and dtypes of the inputs whose states are kept."""
        return tuple((inputs[k].shape, inputs[k].dtype) for k in self.kept)

    def vjp(self, index: int, g: "Array", *inputs: "Array") -> Gradients:
        """Return the gradient of the combination of this scan, which is a scan in the other direction."""
        rule = SCAN_VJPS.get(self.operator)
        if rule is None:
            raise GradientError(f"backward: no gradient is defined for a scan by {self.operator}; use x.detach()")
        return rule(self, g, *inputs)

    def backward(self, factor: "Array", term: "Array") -> "Array":
        """Compute s[i] = term[i] + factor[i + 1] * s[i + 1], where i + 1 is the next element of this scan."""
        return recurrence(self.shift(factor, -1, 0), term, self.dim, not self.reverse)

    def shift(self, x: "Array", by: int, fill: float) -> "Array":
        """Return x[i - by] for each i in the direction of the scan, or `fill` where that is outside. `by` is 1 or -1."""
        n, filled = x.shape[self.dim], x.apply(Full(x.shape, x.dtype), fill)
        if n < 2:
            return filled
        starts = (1, 0) if (by > 0) != self.reverse else (0, 1)
        to, source = (
            View("slice", tuple((start, 1, n - 1) if d == self.dim else (0, 1, m) for d, m in enumerate(x.shape)))
            for start in starts
        )
        return filled.apply(SliceUpdate((to,)), filled, source(x))


def scan(
    operator: Operator, inputs: Sequence[A], dim: int, reverse: bool = False, kept: tuple[int, ...] | None = None
) -> tuple[A, ...]:
    """Scan arrays, of which there is one for each state of an operator, and return the kept states: all, by default.

    >>> import minifuse as mf
    >>> scan(add, [mf.tensor([1.0, 2.0, 3.0])], 0, reverse=True)
    (tensor([6., 5., 3.]),)
    """
    states = operator.states
    return Scan(states[0], dim, reverse, tuple(range(len(states))) if kept is None else kept)(*inputs)


def is_scan(node: "Node") -> bool:
    """Return whether a node is an output of a scan."""
    return isinstance(node.function, CompositeOutput) and isinstance(node.function.op, Scan)


def recurrence(factor: A, term: A, dim: int, reverse: bool = False) -> A:
    """Compute y[i] = factor[i] * y[i - 1] + term[i] along a dim, starting from 0.

    >>> import minifuse as mf
    >>> recurrence(mf.tensor([0.0, 0.5, 0.5]), mf.tensor([8.0, 0.0, 1.0]), 0)
    tensor([8., 4., 3.])
    """
    return scan(RECURRENCE.states[0], (factor, term), dim, reverse, (1,))[0]


# Gradients: rule(scan, g, *inputs) -> the gradient of each input, given that of the output.


def sum_vjp(op: Scan, g: "Array", x: "Array") -> Gradients:
    """Sum the gradients of this output and of all later ones."""
    return scan(add, (g,), op.dim, not op.reverse)


def product_vjp(op: Scan, g: "Array", x: "Array") -> Gradients:
    """Multiply the product of all earlier elements by the sum of g[j] times the product of those from here to j."""
    (y,) = op.outputs(x)
    return (op.shift(y, 1, 1) * op.backward(x, g),)


def extreme_vjp(op: Scan, g: "Array", x: "Array", *index: "Array") -> Gradients:
    """Give an element the gradients of all outputs until the next element that is selected."""
    y = op.outputs(x, *index)[0]
    is_selected = eq(x, y) | (ne(x, x) & ne(y, y))
    s = op.backward(where(is_selected, 0, 1).to(g.dtype), g)
    return (where(is_selected, s, 0), *[None for _ in index])


def logsumexp_vjp(op: Scan, g: "Array", x: "Array") -> Gradients:
    """Sum g[j] * exp(x[i] - y[j]) over this output and all later ones: a scan of logarithms, for each sign of g.

    A product of the ratios of neighboring outputs would be a recurrence, too, but adds up the rounding of each.
    """
    (y,) = op.outputs(x)

    def of_positive(g: "Array") -> "Array":
        is_positive = (g > 0) & (y > -inf)
        (sums,) = scan(op.operator, (where(is_positive, log(where(is_positive, g, 1)) - y, -inf),), op.dim, not op.reverse)
        return exp(x + sums)

    return (of_positive(g) - of_positive(-g),)


def recurrence_vjp(op: Scan, g: "Array", factor: "Array", term: "Array") -> Gradients:
    """Run the recurrence backwards for the gradient s of the terms; that of a factor is s times the output before it."""
    (y,) = op.outputs(factor, term)
    s = op.backward(factor, g)
    return s * op.shift(y, 1, 0), s


SCAN_VJPS: dict[Operator, Callable[..., Gradients]] = {
    add: sum_vjp,
    mul: product_vjp,
    maximum: extreme_vjp,
    minimum: extreme_vjp,
    **{monoid.states[0]: extreme_vjp for monoid in LAST_EXTREME.values()},
    LOGADDEXP.states[0]: logsumexp_vjp,
    RECURRENCE.states[0]: recurrence_vjp,
}
