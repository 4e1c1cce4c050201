"""compiler.rules.decompose: a composite op is one step if the backend supports it, else its definition; its gradients."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.base import Cost, Executable
from minifuse.backends.operand import Operand
from minifuse.backends.python import PythonBackend
from minifuse.compiler.graph import Graph
from minifuse.compiler.plan import get_inplace_plan
from minifuse.compiler.rules import decompose
from minifuse.core.dtypes import float32
from minifuse.core.operators import add
from minifuse.ir.array_functions import BoundFunction
from minifuse.ir.composite_op import CompositeOp, CompositeOutput
from minifuse.ir.graph import Argument, Node
from minifuse.ir.kernel_ir import Kernel
from minifuse.ir.reduction_bodies import reduce_dims
from minifuse.ir.step_kernels import CompositeKernel
from minifuse.testing import gradcheck


class Scaled(CompositeOp):
    """x * by, and its sum along the last dim. The second output has no VJP of its own."""

    __slots__ = ("by",)
    names = ("scaled", "summed")
    output_layout_like = (0, None)

    def __init__(self, by):
        self.by = by

    @property
    def parameters(self):
        return (self.by,)

    def infer(self, x):
        return (x.shape, x.dtype), (x.shape[:-1], x.dtype)

    def body(self, x):
        y = x * self.by
        return y, reduce_dims(y, (y.ndim - 1,), True, add).reshape(x.shape[:-1])

    def vjp(self, index, g, x):
        return None if index else (g * self.by,)


class Knowing(PythonBackend):
    """Supports `scaled` of float32, and counts how often it was bound and called."""

    name = "knowing"

    def __init__(self):
        self.bound, self.calls = 0, 0

    def compile(self, step):
        is_known = isinstance(step.kernel, CompositeKernel) and step.kernel.op.names[0] == "scaled"
        return KnownOp(self, step) if is_known else super().compile(step)


class KnownOp(Executable):
    """The executable of `scaled`."""

    def __init__(self, backend, step):
        super().__init__(step)
        self.backend = backend

    @property
    def refusal(self):
        return None if set(self.step.kernel.operand_dtypes()) == {float32} else "it computes in float32"

    @property
    def source(self):
        return f"# {self.backend.name}: {self.step.kernel.op}\n"

    def cost(self):
        return Cost(1)

    def load(self):
        backend, (by,), (outputs, inputs) = self.backend, self.step.kernel.op.parameters, self.step.layouts()
        backend.bound += 1

        def launch(*addresses):
            backend.calls += 1
            y, total, x = [
                Operand.at_address(a, float32, layout) for a, layout in zip(addresses, [*outputs, *inputs], strict=True)
            ]
            y.array()[...] = np.nan  # so that a wrong result shows if x is stored there, too
            y.array()[...] = x.array() * by
            total.array()[...] = (x.array() * by).sum(-1)

        return launch


def tripled(x):
    return x.apply(Scaled(3.0), x)


def both(x):
    """Return both outputs of one traced call."""
    return x.apply(BoundFunction(tripled, ()), x)


X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


@pytest.fixture
def knowing():
    return Knowing()


def test_a_supported_composite_op_is_one_step(knowing):
    y, total = mf.fuse(both)(mf.tensor(X, backend=knowing))
    np.testing.assert_array_equal(y.numpy(), 3 * X)
    np.testing.assert_array_equal(total.numpy(), 3 * X.sum(1))
    assert (knowing.bound, knowing.calls) == (1, 1)


def test_other_backends_and_dtypes_run_the_definition(knowing):
    for backend, dtype in (("python", "float32"), ("parallel", "float32"), (knowing, "float64")):
        y, total = mf.fuse(both)(mf.tensor(X, dtype, backend=backend))
        np.testing.assert_array_equal(y.numpy(), 3 * X)
        np.testing.assert_array_equal(total.numpy(), 3 * X.sum(1))
    assert knowing.calls == 0


def test_decomposition_replaces_unsupported_nodes(knowing):
    x = Node(Argument(0), (), (3, 4), float32)
    twice = Scaled(2.0).outputs(Scaled(3.0).outputs(x)[0])
    assert [node.function for node in twice] == [CompositeOutput(Scaled(2.0), 0), CompositeOutput(Scaled(2.0), 1)]
    assert decompose(Graph(twice), knowing).outputs[0] is twice[0]
    opened = decompose(Graph(twice), PythonBackend()).outputs
    assert opened[0] is x * 3.0 * 2.0
    assert decompose(Graph((x,)), PythonBackend()).outputs[0] is x


def test_outputs_have_the_layout_of_an_input(knowing):
    y, total = both(mf.tensor(X, backend=knowing).T)
    assert (y.strides, total.strides) == ((1, 4), (1,))
    np.testing.assert_array_equal(y.numpy(), 3 * X.T)
    np.testing.assert_array_equal(total.numpy(), 3 * X.sum(0))


def test_other_kernels_load_its_outputs(knowing):
    @mf.fuse
    def around(x, w):
        y, total = both(x + 1)
        return (y @ w).sum(), y[:, 1:].exp(), total * 2

    x, w = mf.tensor(X, backend=knowing), mf.tensor(X.T.copy(), backend=knowing)
    product, part, doubled = around(x, w)
    np.testing.assert_allclose(product.item(), (3 * (X + 1) @ X.T).sum(), 1e-6)
    np.testing.assert_allclose(part.numpy(), np.exp(3 * (X + 1))[:, 1:], 1e-5)
    np.testing.assert_allclose(doubled.numpy(), 6 * (X + 1).sum(1), 1e-6)
    assert knowing.calls == 1
    reasons = {x.reason for x in around.explain(x, w).refusals}
    assert "the backend computes this composite op with a kernel of its own" in reasons


def test_in_place_results_are_stored_in_arguments(knowing):
    """Directly if the op does not read the argument, else by a copy."""

    def first(t, x):
        return tripled(x)[0]

    x, t = mf.tensor(X, backend=knowing), mf.zeros(3, 4, backend=knowing)
    plan = get_inplace_plan(first, (0,), (0, 1), (t, x))
    assert [type(step.kernel) for step in plan.steps] == [CompositeKernel]
    plan.run(t, x)
    np.testing.assert_array_equal(t.numpy(), 3 * X)
    plan = get_inplace_plan(first, (0,), (0, 0), (t, t))
    assert [type(step.kernel) for step in plan.steps] == [CompositeKernel, Kernel]
    plan.run(t, t)
    np.testing.assert_array_equal(t.numpy(), 9 * X)


def test_in_place_changes_of_slices_are_traced(knowing):
    @mf.fuse
    def change(t, u, x):
        t.copy_(both(x)[0])
        u[1:].copy_(both(u[:2])[0])
        return t.sum()

    x, t, u = [mf.tensor(X, backend=knowing) for _ in range(3)]
    assert change(t, u, x).item() == 3 * X.sum()
    np.testing.assert_array_equal(t.numpy(), 3 * X)
    np.testing.assert_array_equal(u.numpy(), np.concatenate([X[:1], 3 * X[:2]]))


def test_explain_lists_it_like_any_other_kernel(knowing):
    fused, x = mf.fuse(lambda x: both(x)[0]), mf.tensor(X, backend=knowing)
    found = fused.explain(x)
    (kernel,) = found.forward.kernels
    assert kernel.formula == "scaled(x), summed(x)"
    assert kernel.form == "scaled of (3, 4)"
    assert (kernel.launches, kernel.nbytes, kernel.flops) == (1, 4 * (12 + 12 + 3), 0)
    assert found.nodes[-1].operation == "scaled(%0)"
    assert "# knowing: " in fused.source(x)
    with mf.profile() as p:
        fused(x)
    assert "scaled(x)" in str(p)


def test_gradients_of_the_vjp_and_of_the_definition_agree(knowing):
    def mixed(x):
        y, total = both(x)
        return (y * y).sum() + (total**3).sum()

    results = []
    for backend in (knowing, "parallel"):
        x = mf.tensor(X / 4, backend=backend, requires_grad=True)
        mf.fuse(mixed)(x).backward()
        results.append(x.grad.numpy())
    np.testing.assert_allclose(results[0], results[1], 1e-5)
    np.testing.assert_allclose(results[0], 18 * X / 4 + 3 * (3 * X.sum(1) / 4)[:, None] ** 2 * 3, 1e-5)
    assert gradcheck(mf.fuse(mixed), mf.tensor(X / 4, "float64", requires_grad=True), second=True)
