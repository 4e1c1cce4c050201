"""Online sums of exponentials: compute the sum of exp(x - m) in the same pass as the maximum m of the row.

A pass for the maximum and another one for the sum would read the row twice. But a sum for an older m is corrected by one
multiplication. So each thread keeps the largest value so far and the sum for it, and corrects the sum when the maximum grows
(Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018, https://arxiv.org/abs/1805.02867). This module
finds these pairs of reductions in a kernel, and contains their device functions; `online_softmax` contains the template.
"""

import math
from typing import NamedTuple

import numpy as np

from ....core.operators import add, exp, maximum, mul, sub
from ....ir.kernel_ir import Constant, Expression, Kernel, KernelParameter, Op, ReduceExpr, is_op
from ....simt.arithmetic import RealNumber
from ...codegen.loop_emitter import inputs_in_pass
from ..intrinsics.base import cast_like, device


class Exponent(NamedTuple):
    """The value that is subtracted from x before exp: the maximum of all x, or a value computed from it alone."""

    top: ReduceExpr
    base: Expression


def sums_of_exponentials(kernel: Kernel) -> dict[ReduceExpr, Exponent]:
    """Return the sums of exp(x - base), or of its product with an expression without reductions.

    Examples
    --------
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.kernel_ir import Load, reduce_expr
    >>> x = Load(0, float32)
    >>> top = reduce_expr(maximum, x)
    >>> total = reduce_expr(add, exp(x - top))
    >>> sums_of_exponentials(Kernel((), (total,))) == {total: Exponent(top, top)}
    True
    >>> sums_of_exponentials(Kernel((), (reduce_expr(add, exp(x - 1) + top),)))
    {}
    """
    sums = [e for e in kernel.find_all(ReduceExpr) if e.operator is add]
    return {e: found for e in sums if (found := exponent_of(e.inputs[0])) is not None}


def exponent_of(e: Expression) -> Exponent | None:
    """Return the base that is subtracted from x in a product with exp(x - base); None for any other expression."""
    if not isinstance(e, Op):
        return None
    if e.operator is mul:
        a, b = e.inputs
        found = [exponent_of(x) for x, other in ((a, b), (b, a)) if not Kernel((other,), ()).find_all(ReduceExpr)]
        return next((x for x in found if x is not None), None)
    difference = e.inputs[0]
    if not is_op(e, exp) or not is_op(difference, sub):
        return None
    x, base = difference.inputs
    leaves = [part for part in inputs_in_pass(base) if not isinstance(part, Op | Constant | KernelParameter)]
    top = leaves[0] if len(leaves) == 1 else None
    return Exponent(top, base) if isinstance(top, ReduceExpr) and top.operator is maximum and top.inputs[0] is x else None


@device
def finite(top: RealNumber) -> RealNumber:
    """Return a maximum that can be subtracted: 0 instead of an infinity, since inf - inf is NaN."""
    return cast_like(top, 0) if abs(top) == math.inf else top


@device
def moved_sum(total: np.floating, old: np.floating, new: np.floating) -> np.floating:
    """Convert a sum of exp(x - old) to a sum of exp(x - new). If old equals new, also -inf, the sum does not change."""
    return total if old == new else total * math.exp(old - new)


DEVICE_FUNCTIONS: dict[str, object] = {"finite": finite, "moved_sum": moved_sum}
