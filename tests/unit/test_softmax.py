import numpy as np
import pytest

import minifuse as mf
from minifuse.testing import gradcheck

CASES = [((5, 7), 1), ((5, 7), 0), ((3, 4, 5), 1), ((33, 1025), 1), ((6,), 0), ((0, 4), 1), ((4, 0), 1), ((1, 3), 1)]


def exact(x, g, dim):
    """Softmax and its gradient in float64."""
    e = np.exp(x - x.max(dim, keepdims=True, initial=-np.inf))
    y = e / e.sum(dim, keepdims=True)
    return y, y * (g - (g * y).sum(dim, keepdims=True))


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
@pytest.mark.parametrize(("shape", "dim"), CASES)
def test_values_and_gradients(backend, shape, dim):
    if backend != "parallel" and np.prod(shape) > 1000:
        shape = (3, 70)
    draw = np.random.default_rng(0)
    x, g = 5 * draw.standard_normal(shape, np.float32), draw.standard_normal(shape, np.float32)
    t = mf.tensor(x, requires_grad=True, backend=backend)
    t.softmax(dim).backward(mf.tensor(g, backend=backend))
    y, dx = exact(x.astype(np.float64), g.astype(np.float64), dim)
    np.testing.assert_allclose(t.softmax(dim).detach().numpy(), y, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(t.grad.numpy(), dx, rtol=1e-4, atol=1e-6)


def test_its_gradient_has_gradients():
    x = mf.tensor(np.random.default_rng(1).standard_normal((3, 4)), requires_grad=True)
    assert gradcheck(lambda x: x.softmax(1), x, second=True)
    assert gradcheck(mf.fuse(lambda x: (x.softmax(0) * x).sum(1)), x, second=True)


def test_numbers_of_other_kinds():
    assert mf.tensor([1, 1]).softmax(0).tolist() == [0.5, 0.5]
    assert mf.tensor([2**60 + 1, 2**60 + 1, 2**60]).softmax(0).tolist()[:2] == [1 / (2 + np.exp(-1))] * 2
    with pytest.raises(mf.DTypeError, match="convert bools first"):
        mf.tensor([True, True]).softmax(0)
    assert mf.tensor(3.0).softmax(None).item() == 1
    y = mf.tensor([1e30, -1e30, 1e30]).softmax(0)
    assert y.tolist() == [0.5, 0, 0.5]
    assert mf.tensor([[1.0, 1], [1, 1]]).softmax(None).tolist() == [[0.25, 0.25]] * 2
