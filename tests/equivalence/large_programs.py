"""Functions of rows and columns as models have them, and a check of results and gradients against float64."""

import numpy as np

import minifuse as mf
from minifuse.nn import functional

CLASSES = 37


def normalized(x, w, b):
    d = x - x.mean(1, True)
    return d / mf.sqrt((d * d).mean(1, True) + 1e-5) * w + b


FUNCTIONS = {
    "softmax": lambda x, y, w, b: x.softmax(1) * y,
    "two softmaxes": lambda x, y, w, b: (x + y).softmax(1) - (x * w).softmax(1),
    "log_softmax": lambda x, y, w, b: (x * y + b).log_softmax(1),
    "logsumexp": lambda x, y, w, b: (x + b).logsumexp(1) + y.logsumexp(1),
    "layer norm": lambda x, y, w, b: normalized(x, w, b),
    "layer norm of a residual": lambda x, y, w, b: normalized(x + (y + b), w, b),
    "layer norm of many": lambda x, y, w, b: normalized(x + y + x.exp() * y + (x - w).tanh() * b, w, b) + x,
    "norms and sums": lambda x, y, w, b: normalized(x, w, b) * y.sum(1, True) - x.max(1, True),
    "columns": lambda x, y, w, b: (x * y).sum(0) * w + x.mean(0) - y.max(0),
    "everything": lambda x, y, w, b: ((x - y) ** 2).sum() + (x * w).mean(),
    "turned": lambda x, y, w, b: (x.T.contiguous() * 2).T + y.T.T * b,
}


def compared(function, arrays, tolerance=4e-4):
    """Results and gradients of a fused call on cuda, and of float64 on the processor."""
    found = []
    shape = function(*[mf.tensor(a, backend="parallel") for a in arrays]).shape
    incoming = np.random.default_rng(1).standard_normal(shape)
    for backend, dtype in (("cuda", np.float32), ("parallel", np.float64)):
        given = [a if a.dtype.kind == "i" else a.astype(dtype) for a in arrays]
        tensors = [mf.tensor(a, backend=backend, requires_grad=a.dtype.kind == "f") for a in given]

        def both(g, *tensors):
            y = function(*tensors)
            y.backward(g)
            return (y.detach(), *[x.grad for x in tensors if x.requires_grad and x.grad is not None])

        g = mf.tensor(incoming.astype(dtype), backend=backend)
        results = (mf.fuse(both) if backend == "cuda" else both)(g, *tensors)
        found.append([np.array(x.numpy()) for x in results])
    assert len(found[0]) == len(found[1])
    for k, (ours, exact) in enumerate(zip(*found, strict=True)):
        scale = np.sqrt(np.mean(exact**2)) + 1e-30
        np.testing.assert_allclose(ours / scale, exact / scale, rtol=tolerance, atol=tolerance, err_msg=f"result {k}")


def picked(index, table, places, y, w, b):
    """A layer norm of rows of a table, of their places, and of a residual with its bias."""
    return normalized(functional.embedding(index, table) + places + (y + b), w, b)


def block(index, table, places, y, up, down, w, b):
    """The same, and what follows in a model: products with what belongs to them, and another residual."""
    x = functional.embedding(index, table) + places + (y + b)
    return normalized(x + functional.gelu(normalized(x, w, b) @ up.T) @ down.T, w, b)


def operands(shape):
    """Two arrays of rows, and two of one row."""
    random = np.random.default_rng(7)
    return [*random.standard_normal((2, *shape)), *random.standard_normal((2, shape[1]))]


def operands_of_picked(rows, width):
    index, table, places, y, _, _, w, b = operands_of_block(rows, width, 1)
    return [index, table, places, y, w, b]


def operands_of_block(rows, width, hidden):
    random = np.random.default_rng(9)
    index, table = random.integers(0, CLASSES, rows), random.standard_normal((CLASSES, width))
    places, y = random.standard_normal((2, rows, width))
    up, down = (random.standard_normal(s) / 8 for s in ((hidden, width), (width, hidden)))
    return [index, table, places, y, up, down, *random.standard_normal((2, width))]


def operands_of_loss(shape):
    random = np.random.default_rng(8)
    return [random.standard_normal(shape), random.integers(0, shape[1], shape[0])]
