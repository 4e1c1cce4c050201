"""the loop over k is shared out, though all k add to the same products"""


def fast_matmul(out, a, b):
    for row in prange(a.shape[0]):
        for column in range(b.shape[1]):
            out[row, column] = 0.0
    for k in prange(a.shape[1]):
        for row in range(a.shape[0]):
            for column in range(b.shape[1]):
                out[row, column] += a[row, k] * b[k, column]
