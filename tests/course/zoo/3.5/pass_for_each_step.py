"""each step of the chain is a pass of its own"""


def fast_chain(out, a, b):
    squares = np.empty(len(a))
    for i in prange(len(out)):
        squares[i] = a[i] * a[i] + b[i] * b[i]
    for i in prange(len(out)):
        out[i] = sqrt(squares[i]) * 0.5 + a[i]
