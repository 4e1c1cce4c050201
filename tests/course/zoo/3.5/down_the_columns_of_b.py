"""the product walks down the columns of b"""


def fast_matmul(out, a, b):
    for row in prange(a.shape[0]):
        for column in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[row, k] * b[k, column]
            out[row, column] = total
