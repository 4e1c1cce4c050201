"""Tracing, differentiation, scheduling, host programs and plans, counted in kernels, launches and bytes.

Kernels are counted here; their texts are in `test_loop_emitter`.
"""

import gc
import re
import weakref
from textwrap import dedent

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler import plan as plan_module
from minifuse.compiler.iteration_space import IterationSpace
from minifuse.compiler.plan import Plan, TensorMeta, call, plan_key, plans, runs
from minifuse.compiler.reduction_rules import CHUNK_SIZE
from minifuse.core import operators as op
from minifuse.core.dtypes import float32, float64, int64
from minifuse.core.errors import FuseError
from minifuse.core.layout import row_major
from minifuse.ir import graph as graph_module
from minifuse.ir.array_functions import Reduce, View
from minifuse.ir.graph import Argument, Literal, Node, Number, literal, strip_views
from minifuse.ir.kernel_ir import Kernel
from minifuse.ir.step_kernels import MatmulKernel
from minifuse.ir.vjp import Backward, differentiate
from minifuse.runtime.plan_cache import PlanCache, PlanTable


def array(*shape, dtype=float32, index=0):
    return Node(Argument(index), (), shape, dtype)


X = np.random.default_rng(0).uniform(0.5, 1.5, (16, 40))


def tensors(*arrays, requires_grad=False):
    return [mf.tensor(a, requires_grad=requires_grad) for a in arrays]


# Capture


def test_equal_nodes_are_one_object():
    x, y = array(2, 3), array(2, 3, index=1)
    assert mf.exp(x + y) * x is mf.exp(x + y) * x
    assert x + y is not y + x
    assert x.T.T is x.T.permute(1, 0)
    assert x + 1 is x + 1.0  # one number in float32
    assert x * 0.0 is not x * -0.0


def test_common_subexpressions_are_computed_once():
    x = mf.tensor(X)
    text = Plan(lambda x: mf.exp(x) + mf.exp(x) * mf.tanh(mf.exp(x)), [x]).source()
    assert text.count("exp(") == 1
    assert text.count("tanh(") == 1


def test_dtypes_and_shapes_meet_as_nodes():
    x, b = array(2, 3, dtype=int64), array(3, index=1)
    e = x + b
    assert (e.shape, e.dtype) == ((2, 3), float64)
    assert [n.shape for n in e.inputs] == [(2, 3), (2, 3)]
    assert all(n.dtype is float64 for n in e.inputs)
    assert strip_views(e.inputs[1]).inputs[0] is b


def test_views_that_change_nothing_are_no_nodes():
    x = array(2, 3)
    assert x.reshape(2, 3) is x.permute(0, 1) is x[:] is x.expand(2, 3) is x.to(float32) is x.contiguous() is x
    assert array(1, 3).permute(0, 1) is array(1, 3)


@pytest.mark.sampled(3, each="function")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, a, n: x * (a / 3),
        lambda x, a, n: (1 - a) * x,
        lambda x, a, n: x * (n + 1),
        lambda x, a, n: x * (n * 2 - n // 2 + n % 2),
        lambda x, a, n: mf.where(a * 2 > 0.1, x, a * 2),
    ],
    ids=["a / 3", "1 - a", "n + 1", "integers", "a * 2"],
)
def test_the_result_of_numbers_alone_is_a_number(function, dtype, backend):
    """It was a float32, so a float64 lost digits beside it, or an int64, so a float32 became a float64."""
    x = mf.tensor([1.0, 2.0, 3.0], dtype="float64", backend=backend).to(dtype)
    got, expected = x.apply(function, x, 0.1, 2), function(x, 0.1, 2)
    assert got.dtype is expected.dtype
    np.testing.assert_array_equal(got.numpy(), expected.numpy())


def test_numbers_are_weak_until_they_meet_an_array():
    n = Node(Number(0), (), (), float)
    assert (array(3) * n).dtype is float32
    assert (array(3, dtype=int64) * n).dtype is float64
    assert literal(3).dtype is int
    assert literal(3, float32).function is Literal("3.0")


def branching(x):
    return x if (x > 0).all() else -x


def test_a_branch_on_a_value_names_the_line_of_the_user():
    line = branching.__code__.co_firstlineno + 1
    with pytest.raises(FuseError, match=re.escape(f"{__file__}:{line}: cannot branch on the value of an array of shape ()")):
        Plan(branching, [mf.ones(3)])


def test_the_line_is_that_of_the_function_also_where_a_method_of_ours_asks():
    def inside(x):
        return max(x[0], x[1])

    line = inside.__code__.co_firstlineno + 1
    with pytest.raises(FuseError, match=re.escape(f"test_graph.py:{line}: cannot branch on the value")):
        Plan(inside, [mf.ones(3)])


@pytest.mark.parametrize(
    "ask",
    [float, int, lambda x: x.item(), lambda x: x.tolist(), np.asarray, lambda x: x.numpy(), range, lambda x: [1, 2][x]],
)
def test_every_read_of_a_traced_value_is_an_error(ask):
    with pytest.raises(FuseError, match=r"test_graph.py:\d+: cannot read the value of an array of shape \(\) while tracing"):
        Plan(lambda x: ask(x.sum()) and x, [mf.ones(3)])


def test_branches_on_shapes_and_loops_are_python():
    def f(x):
        for row in x:
            if row.shape[0] > 2:
                x = x + row
        return x.sum() / len(x)

    x = mf.tensor(X[:3])
    assert call(f, x).item() == pytest.approx(f(X[:3]))


def test_tensors_that_a_function_refers_to_are_hidden_inputs():
    weight = mf.tensor([1.0, 2.0, 3.0], requires_grad=True)
    table = np.array([10.0, 20.0, 30.0], np.float32)

    def f(x):
        return x * weight + table + weight

    x = mf.ones(3)
    plan = Plan(f, [x])
    assert plan.hidden[0] is weight
    assert len(plan.hidden) == 2  # each once
    assert len(plan.steps) == 1
    y = plan.run(x)
    assert y.tolist() == [12, 24, 36]
    y.sum().backward()
    assert weight.grad.tolist() == [2, 2, 2]
    with mf.no_grad():
        weight *= 10
    assert plan.run(x).tolist() == [30, 60, 90]  # what it holds now


def test_a_capture_inside_a_capture_finds_its_own_hidden_inputs():
    weight = mf.tensor([1.0, 2.0])

    def outer(x):
        inner = call(lambda y: y + weight, mf.ones(2))  # concrete: it is computed now
        return x * inner

    assert call(outer, mf.tensor([10.0, 10.0])).tolist() == [20, 30]


# Schedule: how many kernels

KERNELS = {
    "softmax": (lambda x: x.softmax(1), 1),
    "softmax along columns": (lambda x: x.softmax(0), 1),
    "log_softmax": (lambda x: x.log_softmax(1), 1),
    "layer norm": (lambda x: (d := x - x.mean(1, True)) / mf.sqrt((d * d).mean(1, True) + 1e-5) * 1.5 + 0.5, 1),
    "variance": (lambda x: x.var(1), 1),
    "logsumexp": (lambda x: x.logsumexp(1), 1),
    "chain": (lambda x: mf.tanh(mf.relu(x + 1.5) * x).exp().log1p() * 0.5, 1),
    "squared differences": (lambda x: ((x - 2.5) * (x - 2.5)).sum(), 1),
    "a mean of columns, used": (lambda x: mf.exp(x.mean(0)) * 2.5, 1),
    "a transpose, used": (lambda x: mf.exp(x.T) * 2, 1),
    "two outputs of rows": (lambda x: (x.softmax(1), x.logsumexp(1)), 1),
    "two outputs of elements": (lambda x: (mf.exp(x), mf.exp(x) * 2), 1),
    "argmax": (lambda x: x.argmax(1), 1),
    "slices": (lambda x: x[:, 1:] - x[:, :-1], 1),
    "a column repeated": (lambda x: x * x[:, :1] + x[0], 1),
    "linear and relu": (lambda x: mf.relu(x @ x.T + 1.5), 1),
    "a sum of a sum": (lambda x: (x.sum(1) * 2).sum(), 2),
    "rows and columns": (lambda x: (x.sum(0), x.sum(1)), 2),
    "nothing": (lambda x: x.T, 0),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_number_of_kernels(name):
    function, count = KERNELS[name]
    x = mf.tensor(X)
    plan = Plan(function, [x])
    assert len(plan.steps) == count
    result = plan.run(x)
    slow = Plan(function, [x.to("python")]).run(x.to("python"))
    for y, z in zip(*(r if isinstance(r, tuple) else (r,) for r in (result, slow)), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-12)


BACKWARDS = {
    "softmax(x) * x": (lambda x: x.softmax(1) * x, 1),
    "chain": (lambda x: mf.tanh(x * 1.5) * x, 1),
    "log_softmax": (lambda x: x.log_softmax(1), 1),
    "layer norm": (lambda x: (d := x - x.mean(1, True)) / mf.sqrt((d * d).mean(1, True) + 1e-5), 1),
    "squared differences": (lambda x: ((x - 2.5) * (x - 2.5)).sum(), 1),
    "transposed": (lambda x: mf.exp(x.T), 1),
    "matmul": (lambda x: x @ x.T, 2),
}


@pytest.mark.parametrize("name", BACKWARDS)
def test_the_number_of_kernels_of_a_gradient(name):
    function, count = BACKWARDS[name]
    (x,) = tensors(X, requires_grad=True)
    y = call(function, x)
    known = set(plans.values())
    y.backward(mf.tensor(np.ones(y.shape)))
    (backward,) = [plan for plan in plans.values() if plan not in known]
    assert len(backward.steps) == count
    h = 1e-6
    direction = np.random.default_rng(1).standard_normal(X.shape)
    up, down = [call(function, mf.tensor(X + sign * h * direction)).sum().item() for sign in (1, -1)]
    assert (x.grad.numpy() * direction).sum() == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-6)


def test_a_long_chain_is_one_kernel():
    def long(x):
        for _ in range(300):
            x = x * 0.99 + 0.5
        return x

    x = mf.tensor(X)
    plan = Plan(long, [x])
    assert len(plan.steps) == 1
    np.testing.assert_allclose(plan.run(x), long(X), rtol=1e-12)


def test_a_reduction_of_a_reduction_is_split_too():
    for shape, dim in (((8 * CHUNK_SIZE,), 0), ((CHUNK_SIZE, 128), 0)):
        plan = Plan(lambda x, dim=dim: ((x - x.mean(dim)) ** 2).sum(dim), [mf.zeros(*shape)])
        longest = [max(step.shape[d] for d in step.dims) for step in plan.steps]
        assert len(longest) == 4
        assert max(longest) <= CHUNK_SIZE
        assert all(step.shape != shape for step in plan.steps)


@pytest.mark.parametrize(
    ("shape", "nests"),
    [
        ((64, 256, 256), [((64, 256, 256), (1,)), ((64, 1, 256), (0,))]),  # each example is a piece
        ((8, 2048, 256), [((8, 8, 256, 256), (2,)), ((8, 8, 1, 256), (0, 1, 2))]),  # each of few is cut
        ((1000, 4, 128), [((100, 10, 4, 128), (1, 2)), ((100, 1, 1, 128), (0, 1, 2))]),  # several together, without a rest
    ],
)
def test_pieces_of_columns_are_one_array(shape, nests):
    a = np.random.default_rng(0).standard_normal(shape)
    plan = Plan(lambda x: x.sum((0, 1)), [x := mf.tensor(a)])
    assert [(step.shape, step.dims) for step in plan.steps] == nests
    np.testing.assert_allclose(plan.run(x), a.sum((0, 1)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", [1, 31, CHUNK_SIZE, 4 * CHUNK_SIZE - 1, 4 * CHUNK_SIZE, 4 * CHUNK_SIZE + 5, 10 * CHUNK_SIZE])
def test_large_reductions_are_split(n):
    array = np.random.default_rng(0).standard_normal(n)
    x = mf.tensor(array, requires_grad=True)
    plan = Plan(lambda x: (x * x).sum(), [x.detach()])
    assert len(plan.steps) == (1 if n < 4 * CHUNK_SIZE else 2 + bool(n % CHUNK_SIZE))
    y = (x * x).sum() + x.max()
    assert y.item() == pytest.approx((array * array).sum() + array.max())
    y.backward()
    np.testing.assert_allclose(x.grad, 2 * array + (array == array.max()), rtol=1e-12)


def test_a_kernel_reduces_only_its_own_rows():
    space = IterationSpace((4, 6), (1,))
    x = array(4, 6)
    own = Reduce(op.add, (1,))(x)
    assert space.rows == (4, 1)
    assert space.contains_shape((4, 6))
    assert space.contains_shape((4,))
    assert not space.contains_shape((6,))
    assert space.is_own_reduction(own.expand(4, 6))
    assert space.is_own_reduction(own.reshape(4))
    assert not space.is_own_reduction(Reduce(op.add, (0,))(x).expand(4, 6))
    assert not space.is_own_reduction(own.flip(0).expand(4, 6))
    assert not space.is_own_reduction(x)


def test_steps_list_the_buffers_they_read_and_write():
    plan = Plan(lambda x: mf.relu(x[:, 1:] @ x[:, 1:].T).sum(0) * 1.5, [mf.tensor(X)])
    product, launch = plan.steps
    assert isinstance(product.kernel, MatmulKernel)
    assert isinstance(launch.kernel, Kernel)
    assert [offset for _, offset in product.address_offsets()] == [0, 8, 8]
    assert launch.inputs == product.outputs
    assert launch.numbers == ["1.5"]
    assert "(16, 39)" in plan.backend.compile(product).source


# Differentiation


def test_intermediates_saved_for_backward():
    x = array(3, 4)
    wanted = [x]

    def kept(y):
        backward = Backward([x], [y], wanted)
        return len(backward.saved), backward.inputs

    assert kept(x * 2) == (0, [])  # a number times a number
    assert kept(x * x) == (0, [0])  # the input
    assert kept(mf.exp(x)) == (1, [])  # the output, which exists anyway
    assert kept(mf.tanh(mf.exp(x)))[0] <= 1  # exp is computed again, or the output is enough
    assert kept(mf.sin(x + 1)) == (0, [0])  # the sum is computed again


def test_backward_of_softmax_saves_row_sums_and_output_only():
    x = array(3, 4)
    e = mf.exp(x - x.max(1, keepdim=True).detach())
    y = e / e.sum(1, keepdim=True)
    saved = Backward([x], [y], [x]).saved
    assert {node.shape for node in saved if node is not y} == {(3, 1)}
    assert any(node is y for node in saved)


def test_a_softmax_keeps_its_output_alone():
    x = array(3, 4)
    y = x.softmax(1)
    backward = Backward([x], [y], [x])
    assert backward.saved == [y]
    assert backward.inputs == []


def test_the_input_of_max_is_saved_bit_by_bit():
    x = array(3, 4)
    hidden = mf.exp(x * 1.1)
    backward = Backward([x], [Reduce(op.maximum, (1,))(hidden)], [x])
    assert hidden in backward.saved


def test_nothing_flows_where_nothing_is_wanted():
    x, y = array(3), array(3, index=1)
    g = array(3, index=2)
    assert differentiate([x * y], [g], [y]) == [g * x]
    assert differentiate([x * 2], [g], [y]) == [None]
    assert differentiate([x.detach() * x], [g], [x]) == [g * x.detach()]
    assert differentiate([(x > 0).to(float32)], [g], [x]) == [None]


def test_paths_of_a_gradient_add_up():
    x, g = array(3), array(3, index=1)
    (found,) = differentiate([x + x], [g], [x])
    assert found is g + g


def test_only_requested_gradients_are_computed():
    x, y = tensors(X, X + 1)
    y.requires_grad = True
    z = call(lambda x, y: x * y, x, y)
    backward = plans[key_of_last(z)].backward
    assert backward.arguments_with_grad == [1]
    assert backward.inputs == [0]
    z.sum().backward()
    assert x.grad is None
    np.testing.assert_array_equal(y.grad, X)


def key_of_last(z):
    return next(key for key, plan in reversed(list(plans.items())) if plan is z.grad_fn[0].plan)


# Host program


def host(function, *inputs, targets=()):
    return Plan(function, inputs, targets).text


def test_a_host_program_allocates_launches_and_wraps():
    assert host(lambda x: mf.exp(x) * 0.5, mf.ones(100, 10)) == dedent("""\
        def run(x0):
            m0 = allocate(4096)
            launch0(m0.address, x0.address, 0.5)
            y0 = Tensor(m0, m0.address, meta0)
            return y0
        """)


def test_temporaries_go_after_their_last_use():
    assert host(lambda x: mf.relu(x @ x.T).sum(0) @ x, mf.ones(10, 10)) == dedent("""\
        def run(x0):
            m0 = allocate(448)
            launch0(m0.address, x0.address, x0.address)
            m1 = allocate(64)
            launch1(m1.address, m0.address)
            del m0
            m2 = allocate(64)
            launch2(m2.address, m1.address, x0.address)
            del m1
            y0 = Tensor(m2, m2.address, meta0)
            return y0
        """)


def test_views_are_offsets_and_outputs_may_be_views():
    assert host(lambda x: (x[1:].T, x[1:] + 1), mf.ones(3, 4)) == dedent("""\
        def run(x0):
            m0 = allocate(64)
            launch0(m0.address, x0.address + 16)
            y0 = Tensor(x0.buffer, x0.address + 16, meta0)
            y1 = Tensor(m0, m0.address, meta1)
            return y0, y1,
        """)


def test_numbers_pass_through():
    text = host(lambda x, c: x * c + 3.5, mf.ones(3), 2.5)
    assert "def run(x0, x1):" in text
    assert "launch0(m0.address, x0.address, x1, 3.5)" in text


def test_a_call_is_recorded_where_a_gradient_is_wanted():
    x = mf.ones(3, requires_grad=True)
    lines = host(lambda x: mf.exp(x), x).splitlines()
    assert "    call = Call(plan, (x0.grad_fn or x0, ), (y1, ))" in lines
    assert "    y0.grad_fn = call, 0" in lines
    assert "Call" not in host(lambda x: mf.exp(x), mf.ones(3))
    with mf.no_grad():
        assert "Call" not in host(lambda x: mf.exp(x), x)


def test_in_place_allocates_nothing():
    assert host(lambda x: x * 2, mf.ones(3), targets=(0,)) == "def run(x0):\n    launch0(x0.address)\n    return None\n"


# Plans


def test_a_spec_is_all_of_a_tensor_but_its_data():
    x = mf.ones(3, 4)
    assert mf.zeros(3, 4).meta is x.meta
    assert x[1:].meta is mf.ones(2, 4).meta  # where it starts is its address
    assert len({x.meta, x.T.meta, x.to(float64).meta, mf.ones(3, 4, requires_grad=True).meta, x.to("python").meta}) == 5
    assert TensorMeta(row_major((3, 4)), float32, x.meta.backend, False) is x.meta


def test_a_plan_key_contains_all_that_the_plan_depends_on():
    x = mf.ones(3)
    keys = [plan_key(op.add, v) for v in ([x, x], [x, 1], [x, 1.0], [x, True], [1, x])]
    keys += [plan_key(op.mul, [x, x])]
    with mf.no_grad():
        keys.append(plan_key(op.add, [x, x]))
    assert len(set(keys)) == 7
    assert plan_key(op.add, [x, 2.5]) == plan_key(op.add, [mf.zeros(3), -1.5])


def test_a_call_that_is_repeated_is_planned_once():
    x, function = mf.tensor(X), lambda x: mf.exp(x) - 0.125
    call(function, x)
    before = dict(plans)
    for k in range(5):
        call(function, x + k)
    assert {key: plan for key, plan in plans.items() if key[0] is function} == {
        key: plan for key, plan in before.items() if key[0] is function
    }


def test_evicted_plans_are_made_again(monkeypatch):
    cache = PlanCache()
    table = PlanTable(cache)
    monkeypatch.setattr(plan_module, "plans", table)
    monkeypatch.setattr(plan_module, "runs", table.fast_path)
    x = mf.ones(100, backend="python")
    cache.set_limit(0.2)
    for n in range(1, 100):
        assert (x[:n] + 1).shape == (n,)
    assert 2 <= len(table) < 40
    assert cache.stats().nbytes <= cache.limit
    assert [key[2].layout.shape for key in table] == [(n,) for n in range(100 - len(table), 100)]  # the oldest went
    assert (x[:1] + 1).tolist() == [2]


def test_eager_calls_have_plans():
    mf.ones(3) + 1
    assert runs
    assert runs.keys() <= plans.keys()


def test_plans_keep_no_tensor_of_a_call_alive():
    x = mf.ones(100, requires_grad=True)
    y = mf.exp(x * 1.5)
    y.sum().backward()
    seen = [weakref.ref(v) for v in (x, y, x.grad)]
    del x, y
    gc.collect()
    assert [ref() for ref in seen] == [None] * 3


def test_a_failed_plan_leaves_nothing_behind():
    x, before = mf.ones(3), len(plans)

    def fails(x):
        raise LookupError("in the function")

    for _ in range(2):
        with pytest.raises(LookupError):
            call(fails, x)
    assert len(plans) == before
    assert graph_module.wrapper_stack.wrappers == []
    assert (x + 1).tolist() == [2, 2, 2]


def test_source_shows_the_host_program_and_each_kernel():
    text = Plan(lambda x: mf.relu(x @ x.T).sum(0), [mf.tensor(X)]).source()
    heads = [line for line in text.splitlines() if line.startswith(("def run", "# launch"))]
    assert heads == ["def run(x0):", "# launch0", "# launch1"]
    assert "def kernel(start, stop, args):" in text


def test_outputs_may_be_the_inputs_and_numbers():
    x = mf.tensor([1.0, 2.0])
    same, view = Plan(lambda x: (x, x[::-1]), [x]).run(x)
    assert same.buffer is view.buffer is x.buffer
    assert view.tolist() == [2, 1]


def test_a_view_of_a_computed_value_is_computed_once():
    text = Plan(lambda x: (e := mf.exp(x)) + e.T, [mf.ones(8, 8)]).source()
    assert text.count("def kernel") == 1


def test_view_nodes_know_their_base():
    x = array(4, 6)
    assert strip_views(x.T[1:].reshape(20)) is x
    assert strip_views(x + 1) is x + 1
    assert x.T.function is View("permute", (1, 0))
