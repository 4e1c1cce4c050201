"""A small part of everything that runs on a GPU, for compute-sanitizer: python -m tests.cuda.sanitized

    compute-sanitizer --tool memcheck --report-api-errors no python -m tests.cuda.sanitized

Sizes are small, since each access is checked, and odd, so that guards have something to guard.
"""

import numpy as np

import minifuse as mf


def programs():
    """(what it is, a function, what NumPy makes of the same, arrays) of each form of kernel."""
    random = np.random.default_rng(0)

    def floats(*shape):
        return random.uniform(-2, 2, shape).astype("f4")

    a, b = floats(33, 67), floats(33, 67)
    yield "wide", lambda x, y: x * y + x, lambda x, y: x * y + x, (a, b)
    yield (
        "narrow",
        lambda x, y: x[:, ::2] + y[:, 1:].T[::2].T,
        lambda x, y: x[:, ::2][:, :33] + y[:, 1:].T[::2].T,
        (a[:, :66], b),
    )
    yield "begins anywhere", lambda x: x[1:] + x[:-1], lambda x: x[1:] + x[:-1], (floats(1031),)
    yield "repeated", lambda x, y: x + y, lambda x, y: x + y, (a, floats(67))
    yield "turned over", lambda x, y: x + y.T, lambda x, y: x + y.T, (a, floats(67, 33))
    yield "bytes", lambda x, y: (x > y) | (x < 0), lambda x, y: (x > y) | (x < 0), (a, b)
    yield "rows", lambda x: x.sum(1), lambda x: x.sum(1), (a,)
    yield "long rows", lambda x: x.max(1), lambda x: x.max(1), (floats(3, 1031),)
    yield "columns", lambda x: x.sum(0), lambda x: x.sum(0), (a,)
    yield "several dims", lambda x: x.sum((0, 2)), lambda x: x.sum((0, 2)), (floats(5, 6, 33),)
    yield "softmax", lambda x: x.softmax(1), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), (a,)
    yield "softmax of columns", lambda x: x.softmax(0), lambda x: np.exp(x) / np.exp(x).sum(0, keepdims=True), (a,)
    for m, k, n in ((33, 17, 35), (65, 70, 130), (128, 32, 128), (40, 1031, 5)):
        yield f"product {m} x {k} x {n}", lambda x, y: x @ y, lambda x, y: x @ y, (floats(m, k), floats(k, n))
    yield (
        "product of float64",
        lambda x, y: x @ y,
        lambda x, y: x @ y,
        (floats(65, 33).astype(float), floats(33, 70).astype(float)),
    )
    yield "product turned over", lambda x, y: x.T @ y.T, lambda x, y: x.T @ y.T, (floats(33, 65), floats(35, 33))
    yield "batch", lambda x, y: x @ y, lambda x, y: x @ y, (floats(3, 33, 17), floats(3, 17, 9))


def run() -> None:
    """Run them all, and hold each against NumPy."""
    for name, function, numpy, arrays in programs():
        got = function(*[mf.tensor(a, backend="cuda") for a in arrays]).numpy()
        expected = numpy(*[a.astype(float) for a in arrays])
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3, err_msg=name)
    x = mf.tensor(np.ones((65, 67), "f4"), backend="cuda")
    x[1:, 1:] += 1
    assert x.sum().item() == 65 * 67 + 64 * 66


if __name__ == "__main__":
    run()
    print("all right")
