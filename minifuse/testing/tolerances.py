"""Tolerances: how far a result may be from the exact one. One table, with a reason for each entry, used by all checks.

A tolerance has two parts, as NumPy's `allclose`: |got - exact| <= atol + rtol * |exact|. Both depend on the precision of the
dtype and, for sums of many numbers, grow with the square root of their count, since rounding errors have random signs.

References
----------
N. J. Higham and T. Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41 (2019).
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..core.dtypes import DType, as_dtype, float32
from ..core.errors import MinifuseError


class Tolerance(NamedTuple):
    """A bound `atol + rtol * |exact|` of |got - exact|, and its reason."""

    rtol: float
    atol: float
    reason: str


class ErrorModel(NamedTuple):
    """An entry of the table: error bounds in ULP (2**-23 or 2**-52 of a number), and the reason for them."""

    float32: float
    float64: float
    cancels: bool  # leading digits may cancel, so errors are relative to the larger operands
    grows: bool  # the error grows with the square root of the number of terms
    reason: str


TOLERANCES = {
    "exact": ErrorModel(0, 0, False, False, "nothing is rounded: integers, bools, copies, comparisons and selections"),
    "rounded": ErrorModel(2, 2, False, False, "one rounding; two if a quotient is computed as a product with a reciprocal"),
    "transcendental": ErrorModel(
        4, 8, False, False, "the error of our polynomials is less than 3 ULP, that of C and of NumPy less than 4"
    ),
    "composed": ErrorModel(
        32, 32, True, False, "a few operations in a row; a difference of nearly equal values loses leading digits"
    ),
    "fold": ErrorModel(4, 4, True, True, "a rounding for each element, in any order of summation"),
    "product": ErrorModel(4, 4, True, True, "a rounding for each of K products and sums, in any order of summation"),
    "program": ErrorModel(256, 256, True, True, "any number of operations, with reductions over all elements"),
    "difference": ErrorModel(
        2.0**18, 2.0**27, True, False, "a derivative by central differences: rounding errors are divided by the small step"
    ),
}
"""How large the error of each kind of operation may be, in ULP, and why."""


def tolerance_for(kind: str, dtype: DType | str, n: int = 1, scale: float = 0.0) -> Tolerance:
    """Return the tolerance for the result of a kind of operation.

    Parameters
    ----------
    kind : str
        A key of `TOLERANCES`.
    dtype : DType or str
        Dtype of the result. Integers and bools are always exact.
    n : int
        Number of terms of a result: elements of a reduction, K of a matmul.
    scale : float
        The magnitude of the terms, if the result may be smaller: for a sum, the sum of their magnitudes. It is only used for
        operations that can cancel.

    Returns
    -------
    Tolerance
        `rtol`, `atol` and the reason. `atol` is at least a few times the smallest float, since subnormal floats have few
        digits.

    Raises
    ------
    MinifuseError
        The kind is unknown.

    Examples
    --------
    >>> tolerance_for("rounded", "float32").rtol == 2 * 2.0**-23
    True
    >>> tolerance_for("fold", "float64", n=100, scale=50.0).atol == 4 * 10 * 50 * 2.0**-52
    True
    """
    if kind not in TOLERANCES:
        raise MinifuseError(f"tolerance_for: unknown kind {kind!r}; expected one of {', '.join(TOLERANCES)}")
    dtype, entry = as_dtype(dtype), TOLERANCES[kind]
    units = entry.float32 if dtype is float32 else entry.float64
    if not dtype.is_float or not units:
        return Tolerance(0.0, 0.0, TOLERANCES["exact"].reason)
    limits = np.finfo(dtype.numpy)
    rtol = units * float(limits.eps) * (sqrt(max(n, 1)) if entry.grows else 1)
    return Tolerance(rtol, rtol * scale * entry.cancels + units * float(limits.smallest_subnormal), entry.reason)
