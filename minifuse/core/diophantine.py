"""Solve linear Diophantine equations with bounded unknowns.

They determine the index of the element at an offset in memory, and whether strided regions overlap.
"""

from collections.abc import Iterator, Sequence
from math import gcd


def bounded_solutions(total: int, terms: Sequence[tuple[int, int]]) -> Iterator[tuple[int, ...] | None]:
    """Yield each solution x of sum(a * x) = total with 0 <= x < n, for (a, n) in `terms`, and None at each dead end.

    The coefficients are positive, the smallest first. A caller that needs only one solution may stop after some dead ends.

    Notes
    -----
    This is a depth-first search, as in NumPy's `mem_overlap.c`. It begins with the unknown that has the largest coefficient,
    and tries only values for which the other terms can add up to the remaining total, and for which the greatest common
    divisor of their coefficients divides that total. If each coefficient is larger than the largest sum of the terms before
    it, as for the strides of a slice of a contiguous array, at most one value remains for each unknown.

    Examples
    --------
    >>> list(bounded_solutions(8, [(1, 6), (6, 4)]))
    [(2, 1)]
    >>> list(bounded_solutions(7, [(2, 9), (4, 9)])), list(bounded_solutions(5, [(2, 2), (3, 2)]))
    ([None], [(1, 1)])
    """
    if not terms:
        yield () if total == 0 else None
        return
    *inner, (a, n) = terms
    inner_max, divisor = sum(b * (m - 1) for b, m in inner), gcd(*[b for b, _ in inner])
    low, high, step = max(0, -((inner_max - total) // a)), min(n - 1, total // a), 1
    common = gcd(a, divisor)
    if total % common:
        yield None
        return
    if divisor:  # a * x = total, modulo the divisor
        step = divisor // common
        low += (total // common * pow(a // common, -1, step) - low) % step
    if low > high:
        yield None
    for x in range(low, high + 1, step):
        for solution in bounded_solutions(total - a * x, inner):
            yield None if solution is None else (*solution, x)
