"""Cases of minifuse/functions/methods.py."""

CASES = """
sum: mf.sum(x, axis=1) = x.sum(1)
permute: mf.permute(t, (2, 0, 1)) = t.transpose(2, 0, 1)
"""
