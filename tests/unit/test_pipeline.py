"""compiler.pipeline: passes change no argument, kernels run after those whose results they load."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.compiler.fusibility import why_not_fusible
from minifuse.compiler.graph import Graph
from minifuse.compiler.pipeline import PASSES, check_outputs, initial_graph, run_passes
from minifuse.compiler.plan import Plan
from minifuse.core.dtypes import float32
from minifuse.core.layout import row_major
from minifuse.ir.graph import Argument, Node, strip_views
from tests.examples import share

SIZE = 6
OPS = {
    "points": lambda a, b: mf.tanh(a) * b * 0.5,
    "columns": lambda a, b: a - a.sum(0, keepdim=True) + b,
    "rows": lambda a, b: a / (b.max(1, keepdim=True) + 3),
    "all": lambda a, b: a - b.mean(),
    "views": lambda a, b: a.T + b.flip(0),
    "copying views": lambda a, b: a.T.reshape(-1).reshape(SIZE, SIZE) + b,
    "product": lambda a, b: a @ b,
    "gather": lambda a, b: a.index_select(0, (b.sum(1) * 0).to("int64")),
}
PROGRAMS = st.lists(st.tuples(st.sampled_from(sorted(OPS)), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12)


def program(steps):
    """Return a function of two square matrices, in which each step reads two of the values so far."""

    def function(x, w):
        values = [x, w]
        for name, j, k in steps:
            values.append(OPS[name](values[j % len(values)], values[k % len(values)]))
        return tuple(values[-3:])

    return function


def plan_of(steps, has_gradients=False):
    rng = np.random.default_rng(len(steps))
    inputs = [mf.tensor(rng.normal(size=(SIZE, SIZE)), requires_grad=has_gradients) for _ in range(2)]
    return Plan(program(steps), inputs), inputs


def compiled(steps, has_gradients=False):
    """Return a report of each pass."""
    plan, inputs = plan_of(steps, has_gradients)
    graph = initial_graph(plan.graph, plan.backward, [x.meta.layout for x in inputs])
    return list(run_passes(graph, plan.backend)), plan


@pytest.mark.parametrize("run", PASSES, ids=lambda run: run.__name__)
def test_each_pass_has_an_example(run):
    assert ">>>" in run.__doc__


@share(1.2)
@given(PROGRAMS, st.booleans())
def test_kernels_run_after_those_whose_results_they_load(steps, has_gradients):
    reports, _ = compiled(steps, has_gradients)
    graph = reports[-1].after
    written = set(range(len(graph.arguments)))
    for step in graph.steps:
        read = {slot for slot, _ in (*step.inputs, *step.indexed_operands)}
        assert read - {-1} <= written
        written |= {slot for slot, _ in step.outputs}
    assert {graph.locate(node)[0] for node in graph.results} <= written


@share(1.2)
@given(PROGRAMS, st.booleans())
def test_no_pass_changes_its_argument(steps, has_gradients):
    plan, inputs = plan_of(steps, has_gradients)
    graph = initial_graph(plan.graph, plan.backward, [x.meta.layout for x in inputs])
    for run in PASSES:
        before = str(graph), graph.results, dict(graph.materialized), graph.kernels, graph.steps, dict(graph.buffers)
        operands = [step.buffer_views() for step in graph.steps]
        after = run(graph, plan.backend)
        assert before == (
            str(graph), graph.results, dict(graph.materialized), graph.kernels, graph.steps, dict(graph.buffers)
        )  # fmt: skip
        assert operands == [step.buffer_views() for step in graph.steps]
        graph = after


@share(1.2)
@given(PROGRAMS, st.booleans())
def test_a_pass_that_is_not_needed_would_change_nothing(steps, has_gradients):
    plan, inputs = plan_of(steps, has_gradients)
    graph = initial_graph(plan.graph, plan.backward, [x.meta.layout for x in inputs])
    for run in PASSES:
        after = run(graph, plan.backend)
        if not graph.may_change(run):
            assert str(after) == str(graph)
            assert after.steps == graph.steps
        graph = after


def test_an_addition_needs_two_passes():
    x = Node(Argument(0), (), (SIZE, SIZE), float32)
    graph = Graph((x + x,), arguments=(x,), layouts=(row_major((SIZE, SIZE)),))
    assert [run.__name__ for run in PASSES if graph.may_change(run)] == ["form_kernels", "emit_steps"]


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda a, b: mf.exp(a + b) * a, 1),
        (lambda a, b: (a + b, a * b), 1),
        (lambda a, b: (a + b).T + a, 1),
        (lambda a, b: (a + b) @ b, 1),
        (lambda a, b: ((a + b).sum(0), a), 1),
    ],
)
def test_kernels_of_short_calls(function, count):
    inputs = [mf.rand(SIZE, SIZE) for _ in range(2)]
    assert len(Plan(function, inputs).steps) == count


@share(1.2)
@given(PROGRAMS)
def test_each_stored_node_belongs_to_one_kernel(steps):
    reports, _ = compiled(steps)
    graph = next(report.after for report in reports if report.name == "form_kernels")
    members = [node for kernel in graph.kernels for node in kernel.members]
    assert len(members) == len(set(members))
    for kernel in graph.kernels:
        assert set(kernel.stored) <= set(kernel.members)
    stored = {node for kernel in graph.kernels for node in kernel.stored}
    assert all(strip_views(x) in stored | set(graph.arguments) for x in graph.results)


def test_refusals_are_pairs_of_different_kernels():
    reports, _ = compiled([("rows", 0, 0), ("columns", 2, 2), ("product", 3, 1)])
    graph = reports[-1].after
    kernel_of = {node: k for k, kernel in enumerate(graph.kernels) for node in kernel.members}
    assert graph.refusals
    for producer, consumer, reason in graph.refusals:
        assert kernel_of[producer] != kernel_of[consumer]
        assert reason[0].islower()
        assert not reason.endswith(".")


def test_a_node_joins_the_kernel_that_runs_last():
    """The result reads a sum of rows, and a sum of columns that waits for it: it joins the kernel of the columns."""

    def function(x):
        rows = x.sum(1, keepdim=True)
        columns = (x / rows).sum(0, keepdim=True)
        return x / rows / columns

    x = mf.tensor(np.random.default_rng(0).normal(size=(5, 4)) + 9)
    plan = Plan(function, [x])
    rows, columns = plan.steps
    assert (rows.dims, columns.dims, len(columns.outputs)) == ((1,), (0,), 1)
    a = x.numpy()
    rows = a.sum(1, keepdims=True)
    np.testing.assert_allclose(plan.run(x), a / rows / (a / rows).sum(0, keepdims=True))


def test_a_reduction_that_waits_for_no_kernel_joins_its_rows():
    """The kernel of the rows starts after that of the columns, so it can compute the whole quotient."""
    x, w = (mf.tensor(np.random.default_rng(k).normal(size=(5, 4)) + 9) for k in range(2))
    plan = Plan(lambda x, w: x / x.sum(1, keepdim=True) + w.sum(0), [x, w])
    assert len(plan.steps) == 2


@pytest.mark.parametrize(
    ("consumer", "reason"),
    [
        (lambda x: (x.sum(1, keepdim=True) + x).sum(1), None),
        (lambda x: (x.sum(1, keepdim=True) + x).sum(0), "it reduces (6, 6) along dim 1, and this kernel reduces"),
        (lambda x: x.sum(1).flip(0)[:, None] + x, "a view reorders or repeats these results"),
    ],
)
def test_edges_of_reductions(consumer, reason):
    x = Node(Argument(0), (), (SIZE, SIZE), float32)
    root = strip_views(consumer(x))
    (leaf,) = [y for y in Graph((root,)).nodes if strip_views(y).inputs and is_read_by(y, root)]
    found = why_not_fusible(leaf, root)
    assert found is None if reason is None else reason in found


def is_read_by(node, root):
    """Return whether a node is the reduction, or the last view of it, that the pointwise nodes below a root read."""
    is_reduction = type(strip_views(node).function).__name__ == "Reduce" and strip_views(node) is not root
    readers = [x for x in Graph((root,)).nodes if any(y is node for y in x.inputs)]
    return is_reduction and all(type(x.function).__name__ != "View" for x in readers)


@pytest.mark.parametrize(("shape", "count"), [((64, 32), 1), ((512, 256), 2)])
def test_large_columns_are_reduced_apart_from_other_values(shape, count):
    x = mf.tensor(np.random.default_rng(0).normal(size=shape))
    plan = Plan(lambda x: (mf.tanh(x), mf.tanh(x).sum(0)), [x])
    assert len(plan.steps) == count
    assert len(Plan(lambda x: (mf.tanh(x), mf.tanh(x).sum(1)), [x]).steps) == 1
    assert len(Plan(lambda x: x - x.mean(0), [x]).steps) == 1


def test_a_pass_that_loses_an_output_is_a_defect():
    x = Node(Argument(0), (), (3,), float32)
    with pytest.raises(
        AssertionError, match=r"lose: got outputs of shapes \[\], expected \[\(3,\)\]; a pass must keep them"
    ):
        check_outputs("lose", Graph((x,)), Graph(()))
