"""One function, unchanged, on arrays of NumPy, minifuse, and CuPy where it is installed."""

import importlib

import numpy as np

import minifuse as mf


def attention(q, k, v):
    """Return the mean of the values, weighted by the softmax of the scores."""
    xp = q.__array_namespace__()
    scores = xp.matmul(q, xp.matrix_transpose(k)) / q.shape[-1] ** 0.5
    weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return xp.matmul(weights / xp.sum(weights, axis=-1, keepdims=True), v)


def main():
    """Compute the same on each kind of array."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(5, 8)) for _ in range(3)]
    expected = attention(*arrays)
    tensors = [mf.tensor(x) for x in arrays]
    for function in (attention, mf.fuse(attention)):
        y = function(*tensors)
        assert isinstance(y, mf.Tensor)
        np.testing.assert_allclose(y.numpy(), expected)
    try:
        cupy = importlib.import_module("cupy")
        on_gpu = [cupy.asarray(x) for x in arrays]
    except Exception:  # CuPy is not installed, or finds no GPU
        return
    np.testing.assert_allclose(cupy.asnumpy(attention(*on_gpu)), expected)


if __name__ == "__main__":
    main()
