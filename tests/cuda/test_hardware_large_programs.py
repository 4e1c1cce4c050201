"""Fused functions, and their gradients, at sizes that small tests do not reach: full grids, blocks of many rows, long rows.

Which kernel, and how many threads and how much shared memory it gets, depends on sizes. Each result is held against the
same function in float64, computed on the processor.
"""

import numpy as np
import pytest

import minifuse as mf
from minifuse.nn import functional

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

SHAPES = [(2048, 256), (65_537, 5), (16_384, 64), (1500, 1001), (1100, 2052), (300, 8192), (1200, 12_289), (40, 50_257)]
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
    """Results and gradients of a fused call on the GPU, and of float64 on the processor."""
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


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_rows_and_columns(name, shape):
    random = np.random.default_rng(7)
    x, y = random.standard_normal((2, *shape))
    w, b = random.standard_normal((2, shape[1]))
    compared(FUNCTIONS[name], [x, y, w, b])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy(shape):
    random = np.random.default_rng(8)
    x, y = random.standard_normal(shape), random.integers(0, shape[1], shape[0])
    compared(functional.cross_entropy, [x, y])


@pytest.mark.parametrize(("rows", "width"), [(2048, 256), (9000, 64), (3000, 100)])
def test_embeddings_and_layers(rows, width):
    """Rows that are picked, a residual sum, a layer norm, and products with what belongs to them."""
    random = np.random.default_rng(9)
    index, table = random.integers(0, CLASSES, rows), random.standard_normal((CLASSES, width))
    y, up, down = (random.standard_normal(s) / 8 for s in ((rows, width), (4 * width, width), (width, 4 * width)))
    w, b = random.standard_normal((2, width))

    def block(index, table, y, up, down, w, b):
        x = functional.embedding(index, table) + (y + b)
        return normalized(x + functional.gelu(normalized(x, w, b) @ up.T) @ down.T, w, b)

    compared(block, [index, table, y, up, down, w, b], tolerance=1e-3)
