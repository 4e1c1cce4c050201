"""The monoids of the library: one entry for each reduction or scan whose combination is no operator of the table.

An entry has a name and an identity for each state, the combination of two values, and how the states are computed by
reductions with one state: `definition(reduce, *inputs)`, in which `reduce(operator, x)` reduces x along the same dims, to
size 1. The compiler uses the definition where its second sweep over the elements costs less than several accumulators. An
entry that only the compiler uses, where that is not so, needs no definition.

To add a reduction, add an entry, and call `reduce_states(entry.states[0], dims, inputs)` with an input for each state. To
add a scan, call `scan` of `ir.scan` in the same way; its combination need not be commutative, and it needs no definition.
"""

from math import inf
from typing import Any

from ..core.dtypes import DType, int32, int64
from ..core.operators import Operator, abs, eq, exp, ge, gt, le, log1p, lt, maximum, minimum, ne, where  # noqa: A004
from .monoid import Combine, Definition, Monoid


def first_extreme(is_better: Operator) -> Combine:
    """Return the combination of (value, index) that keeps the better value, or the lower index of equal values.

    NaN is better than all numbers, and equal to NaN.
    """

    def combine(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
        (x, i), (y, j) = a, b
        x_is_nan, y_is_nan = ne(x, x), ne(y, y)
        is_tie = eq(x, y) | (x_is_nan & y_is_nan)
        takes_b = is_better(y, x) | (y_is_nan & eq(x, x)) | (is_tie & lt(j, i))
        return where(takes_b, y, x), where(takes_b, j, i)

    return combine


def by_two_reductions(operator: Operator) -> Definition:
    """Return the definition of the first extreme: reduce the values, then the indices of those that equal the result."""

    def definition(reduce: Any, x: Any, index: Any) -> tuple[Any, Any]:
        extreme = reduce(operator, x)
        last = minimum.identity_for(index.dtype)
        return extreme, reduce(minimum, where(eq(x, extreme) | ne(x, x), index, last))

    return definition


# The operator of the values -> the monoid of (value, index).
FIRST_EXTREME = {
    maximum: Monoid(("max", "argmax"), (-inf, inf), first_extreme(gt), by_two_reductions(maximum)),
    minimum: Monoid(("min", "argmin"), (inf, inf), first_extreme(lt), by_two_reductions(minimum)),
}


def online_exp_sum(exponential: Operator) -> Combine:
    """Return the combination of (maximum, sum of exp(x - maximum)), of which an element is (x, 1).

    The sum with the smaller maximum is rescaled for the larger one. Equal maxima are not subtracted, since inf - inf is NaN:
    so the sum of a row whose maximum is infinite counts the elements that equal it.
    """

    def combine(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
        (x, s), (y, t) = a, b
        scale = where(eq(x, y), 1, exponential(-abs(x - y)))
        return maximum(x, y), where(gt(x, y), s + t * scale, s * scale + t)

    return combine


# The operator of the exponentials -> the monoid of (maximum, sum of exponentials): online softmax.
ONLINE_EXP_SUM: dict[Operator, Monoid] = {
    e: Monoid(("online_max", "online_exp_sum"), (-inf, 0.0), online_exp_sum(e)) for e in (exp, exp.fast) if e is not None
}


# Scans.


def last_extreme(is_not_worse: Operator) -> Combine:
    """Return the combination of (value, index) that keeps the better value, or the second of equal values; NaN is better."""

    def combine(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
        (x, i), (y, j) = a, b
        takes_b = is_not_worse(y, x) | ne(y, y)
        return where(takes_b, y, x), where(takes_b, j, i)

    return combine


# The operator of the values -> the monoid of (value, index), in the order of a scan.
LAST_EXTREME = {
    maximum: Monoid(("max", "argmax"), (-inf, 0), last_extreme(ge)),
    minimum: Monoid(("min", "argmin"), (inf, 0), last_extreme(le)),
}


def combine_logarithms(x: Any, y: Any) -> Any:
    """Return log(exp(x) + exp(y)). Equal numbers are not subtracted, since inf - inf is NaN."""
    return maximum(x, y) + log1p(exp(-abs(where(eq(x, y), 0, x - y))))


LOGADDEXP = Monoid(("logaddexp",), (-inf,), combine_logarithms)


def compose_recurrences(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the composition of y -> factor * y + term, first a and then b."""
    (factor_a, term_a), (factor_b, term_b) = a, b
    return factor_a * factor_b, term_a * factor_b + term_b


RECURRENCE = Monoid(("factor", "recurrence"), (1, 0), compose_recurrences)  # y[i] = factor[i] * y[i - 1] + term[i]


def index_dtype(size: int) -> DType:
    """Return the smallest dtype for the indices of some elements."""
    return int32 if size < 2**31 else int64
