"""How far a result may lie from the exact one: one table, a reason for each entry. All checks read it.

A tolerance has two parts, as NumPy's `allclose`: |got - exact| <= atol + rtol * |exact|. Both grow with the precision of the
dtype and, where many numbers are added up, with the root of how many: rounding errors are as often up as down.

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
    """What |got - exact| may be: `atol + rtol * |exact|`, and why."""

    rtol: float
    atol: float
    reason: str


class Kind(NamedTuple):
    """An entry of the table: errors in units of the spacing of floats (2**-23 and 2**-52 of a number), and why so many."""

    float32: float
    float64: float
    cancels: bool  # the leading digits of what meets may cancel, so that errors are those of the larger numbers
    grows: bool  # with the root of how many numbers meet in one
    reason: str


TOLERANCES = {
    "exact": Kind(0, 0, False, False, "nothing is rounded: integers, bools, moves, comparisons and choices"),
    "rounded": Kind(2, 2, False, False, "one rounding; a second one where a quotient is a product with a reciprocal"),
    "transcendental": Kind(
        4, 8, False, False, "polynomials err by less than 3 ULP, C and NumPy, which judges, by less than 4"
    ),
    "composed": Kind(
        32, 32, True, False, "a few operations in a row, of which one may cancel the leading digits of another"
    ),
    "fold": Kind(4, 4, True, True, "a rounding for each element, in any order of summation"),
    "product": Kind(4, 4, True, True, "a rounding for each of K products and sums, in any order of summation"),
    "program": Kind(256, 256, True, True, "any number of operations and folds over all elements"),
    "difference": Kind(
        2.0**18, 2.0**27, True, False, "a derivative by central differences: the step divides rounding errors"
    ),
}


def tolerance_for(kind: str, dtype: DType | str, n: int = 1, scale: float = 0.0) -> Tolerance:
    """The tolerance of a kind of operation that gives a dtype.

    Parameters
    ----------
    kind : str
        A key of `TOLERANCES`.
    dtype : DType or str
        Of the result. Integers and bools are always exact.
    n : int
        How many numbers meet in one result: elements of a fold, K of a product.
    scale : float
        The magnitude of what is added up, where the result may be smaller: of a sum, the sum of the magnitudes. It plays
        no part where nothing cancels.

    Returns
    -------
    Tolerance
        `rtol`, `atol` and the reason. `atol` is never below a few of the smallest floats, which have no digits to spare.

    Raises
    ------
    MinifuseError
        There is no such kind.

    Examples
    --------
    >>> tolerance_for("rounded", "float32").rtol == 2 * 2.0**-23
    True
    >>> tolerance_for("fold", "float64", n=100, scale=50.0).atol == 4 * 10 * 50 * 2.0**-52
    True
    """
    if kind not in TOLERANCES:
        raise MinifuseError(f"there is no tolerance of the kind {kind!r}; there are {', '.join(TOLERANCES)}")
    dtype, entry = as_dtype(dtype), TOLERANCES[kind]
    units = entry.float32 if dtype is float32 else entry.float64
    if not dtype.is_float or not units:
        return Tolerance(0.0, 0.0, TOLERANCES["exact"].reason)
    limits = np.finfo(dtype.numpy)
    rtol = units * float(limits.eps) * (sqrt(max(n, 1)) if entry.grows else 1)
    return Tolerance(rtol, rtol * scale * entry.cancels + units * float(limits.smallest_subnormal), entry.reason)
