"""each step of the chain is a pass of its own"""


def fast_chain(out, a, b):
    for i in prange(len(out)):
        out[i] = a[i] * a[i] + b[i] * b[i]
    for i in prange(len(out)):
        out[i] = sqrt(out[i]) * 0.5 + a[i]
