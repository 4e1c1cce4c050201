"""One operation at all sizes: where the cost of a call ends, where threads begin, where the caches end."""

from ..row import formula, normal

GROUP = "sweep"
EXPONENTS = range(8, 25, 2)


ROWS = [formula(f"a + b, 2^{k}", GROUP, normal((1 << k,), (1 << k,)), lambda a, b: a + b) for k in EXPONENTS]
