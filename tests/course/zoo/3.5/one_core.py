"""one of the loops runs on one core"""


def fast_chain(out, a, b):
    for i in range(len(out)):
        out[i] = sqrt(a[i] * a[i] + b[i] * b[i]) * 0.5 + a[i]
