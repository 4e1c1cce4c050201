"""ir.softmax: values and gradients where exponentials overflow."""

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


@pytest.mark.sampled(2)
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


@pytest.mark.parametrize(
    ("function", "kept"),
    [
        (lambda x: x.softmax(1), [(6, 9)]),
        (lambda x: x.softmax(1).reshape(54), [(6, 9)]),
        (lambda x: x.softmax(1) * x, [(6, 9), (6, 1), (6, 1)]),  # x, and what its rows fold to
        (lambda x: (x.softmax(1), x.softmax(1) * x), [(6, 9), (6, 9)]),  # x and y
    ],
)
@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_backward_reads_the_stored_result(function, kept, backend):
    """And of what does not, x and two numbers a row."""
    x = mf.tensor(np.random.default_rng(2).standard_normal((6, 9), np.float32), requires_grad=True, backend=backend)
    y = mf.fuse(function)(x)
    y = y if isinstance(y, tuple) else (y,)
    assert [k.shape for k in y[0].grad_fn[0].saved_tensors] == kept
    x = mf.tensor(x.detach().numpy(), "float64", requires_grad=True)
    assert gradcheck(mf.fuse(lambda x: function(x)), x, second=True)


def test_a_gradient_inside_a_fused_function_is_one_kernel_with_it():
    @mf.fuse
    def step(x):
        y = x.softmax(1)
        (y * y).sum().backward()
        return x.grad

    x = mf.tensor(np.random.default_rng(3).standard_normal((5, 33), np.float32), requires_grad=True)
    y, _ = exact(x.detach().numpy().astype(np.float64), 0, 1)
    np.testing.assert_allclose(step(x).numpy(), y * (2 * y - (2 * y * y).sum(1, keepdims=True)), rtol=1e-4, atol=1e-6)
    assert len(step.explain(x).forward.kernels) == 1


def test_explain_does_not_count_it_as_an_operation():
    found = mf.fuse(lambda x: x.softmax(1)).explain(mf.tensor(np.eye(3, dtype=np.float32), requires_grad=True))
    assert found.nodes[-1].operation == "%5 / %7"
    assert "softmax over" not in str(found)
