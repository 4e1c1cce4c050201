"""A backend of four methods from outside the package: it passes `minifuse equivalence`, and runs fused functions."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.base import Backend
from minifuse.backends.registry import registry
from minifuse.ir.kernel_ir import Kernel
from minifuse.ir.step_kernels import BatchedKernel, CompositeKernel, MatmulKernel
from tests.equivalence.stranger import Stranger

FOUR_METHODS = {"map", "zip", "reduce", "matmul"}


@pytest.fixture(autouse=True)
def stranger(monkeypatch):
    monkeypatch.setattr(registry, "factories", dict(registry.factories))
    monkeypatch.setattr(registry, "instances", dict(registry.instances))
    backend = Stranger()
    mf.register_backend(backend)
    return backend


def test_it_defines_four_methods_and_a_name():
    assert {name for name in vars(Stranger) if not name.startswith("__")} == FOUR_METHODS | {"name"}
    assert Stranger.__bases__ == (Backend,)


def test_it_passes_the_equivalence_check(capsys):
    from minifuse.cli.equivalence import run

    assert run(["stranger"], None, True) == 0
    assert "stranger" in capsys.readouterr().out


def test_a_backend_with_a_wrong_method_fails_the_equivalence_check(monkeypatch, capsys):
    from minifuse.cli.equivalence import run

    def wrong(self, a, b, out):
        out.array()[...] = a.array() @ b.array() + 1

    monkeypatch.setattr(Stranger, "matmul", wrong)
    assert run(["stranger"], None, True) != 0
    capsys.readouterr()


def layer(x, w, bias, index):
    """A matmul with an epilogue, a softmax of one slice, and a gather."""
    h = (x @ w + bias).relu()
    return (h.softmax(1) * h[:, 1:2]).index_select(0, index)


def test_a_monoid_that_is_no_operator_reduces():
    norm = mf.reduction(map=abs, combine=lambda a, b: mf.sqrt(a * a + b * b), identity=0.0)
    assert norm(mf.tensor([[3.0, -4.0], [0.0, -2.0]], backend="stranger"), dim=1).tolist() == [5.0, 2.0]


def test_a_fused_function_and_its_gradients_agree_with_the_python_backend():
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape) for shape in ((5, 4), (4, 6), (6,))]
    found = {}
    for name in ("python", "stranger"):
        inputs = [mf.tensor(a, backend=name, requires_grad=True) for a in arrays]
        y = mf.fuse(layer)(*inputs, mf.tensor([3, 0, 3], backend=name))
        (y * y).sum().backward()
        found[name] = [y.detach().numpy(), *[x.grad.numpy() for x in inputs]]
    h = np.maximum(arrays[0] @ arrays[1] + arrays[2], 0)
    expected = np.exp(h) / np.exp(h).sum(1, keepdims=True) * h[:, 1:2]
    np.testing.assert_allclose(found["stranger"][0], expected[[3, 0, 3]], rtol=1e-12)
    for a, b in zip(found["stranger"], found["python"], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_fused_slice_update_changes_the_argument():
    @mf.fuse
    def update(y, x):
        y[:, 1:3] = x[:, :2].softmax(1)

    x, y = np.random.default_rng(1).standard_normal((2, 4, 5))
    given, changed = mf.tensor(x, backend="stranger"), mf.tensor(y, backend="stranger")
    update(changed, given)
    y[:, 1:3] = np.exp(x[:, :2]) / np.exp(x[:, :2]).sum(1, keepdims=True)
    np.testing.assert_allclose(changed.numpy(), y, rtol=1e-12)


def test_each_step_of_its_plans_is_a_kernel_or_a_matmul(stranger):
    """A composite op has no kernel there, and launches are not batched, so the compiler makes other steps."""
    q = mf.tensor(np.ones((2, 3, 16), np.float32), backend=stranger)
    xs = [mf.ones(n, backend=stranger) for n in (3, 5)]
    attention, update = mf.fuse(mf.nn.scaled_dot_product_attention), mf.fuse(lambda xs: [x * 2 for x in xs])
    kernels = [step.kernel for step in (*attention.plan(q, q, q).steps, *update.plan(xs).steps)]
    assert {type(kernel) for kernel in kernels} == {Kernel, MatmulKernel}
    assert not any(isinstance(kernel, CompositeKernel | BatchedKernel) for kernel in kernels)


def test_the_stages_of_an_executable(stranger):
    """Text, cost and launcher, in the order of JAX's ahead-of-time compilation."""
    x = mf.tensor(np.arange(6.0).reshape(2, 3), backend=stranger)
    plan = mf.fuse(lambda x: (x @ x.T + 1).relu()).plan(x)
    (step,) = plan.steps
    executable = stranger.compile(step)
    assert executable.refusal is stranger.supports(step) is None
    assert executable.source == "# stranger: matmul of (2, 3) and (3, 2), float64\n"
    assert executable.cost() == (2, 2 * 2 * 8, 2 * 2 * 2 * 3)
    out = np.zeros((2, 2))
    executable.load()(out.ctypes.data, x.address, x.address)
    np.testing.assert_array_equal(out, x.numpy() @ x.numpy().T + 1)
