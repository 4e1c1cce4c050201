"""Cases of minifuse/functions/elementwise.py."""

CASES = """
subtract: mf.subtract(x, y) = x - y
logaddexp: x.logaddexp(y) = np.logaddexp(x, y)
hypot: mf.hypot(x, 2.0) = np.hypot(x, 2.0)
eq: a.eq(b) = a == b
"""
