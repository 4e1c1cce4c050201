"""a call inside the chain computes one element at a time"""

from math import hypot


def fast_chain(out, a, b):
    for i in prange(len(out)):
        out[i] = hypot(a[i], b[i]) * 0.5 + a[i]
