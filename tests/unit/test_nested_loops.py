"""backends.codegen.nested_loops: each value is computed in the outermost loops in which its axes are bound."""

import numpy as np
import pytest

from minifuse.backends.registry import backends, get_backend
from minifuse.core import operators as op
from minifuse.core.dtypes import float32
from minifuse.core.layout import Layout
from minifuse.ir.kernel_ir import Kernel, Load, constant, reduce_expr
from minifuse.ir.steps import Step

LOADS = [Load(k, float32) for k in range(4)]


def forces_step(n):
    """Return the step of forces between points: a sum of three squares in a sum over all points."""
    shape = (n, n, 3, 3)
    layouts = [Layout(shape, strides, 0) for strides in ((0, 3, 1, 0), (3, 0, 1, 0), (0, 3, 0, 1), (3, 0, 0, 1))]
    a, b, c, d = LOADS
    r = reduce_expr(op.add, (c - d) * (c - d), (3,)) + constant(0.01, float32)
    force = reduce_expr(op.add, (a - b) / (r * op.sqrt(r)), (1,))
    outputs, inputs = [(1, Layout(shape, (3, 0, 1, 0), 0))], [(0, x) for x in layouts]
    return Step(Kernel((), (force,)), shape, (1, 3), outputs, inputs)


def softmax_step():
    """Return the step of a softmax of distances between points, which is stored along the row."""
    shape = (33, 31, 4)
    a, b = LOADS[:2]
    distance = reduce_expr(op.add, abs(a - b), (2,))
    e = op.exp(reduce_expr(op.minimum, distance, (1,)) - distance)
    softmax = e / reduce_expr(op.add, e, (1,))
    inputs = [(0, Layout(shape, (4, 0, 1), 0)), (1, Layout(shape, (0, 4, 1), 0))]
    return Step(Kernel((softmax,), ()), shape, (1, 2), [(2, Layout(shape, (31, 1, 0), 0))], inputs)


def distances_step(rows, length, size):
    """Return the step of the sum over all y of exp(-|x - y|)."""
    shape, (a, b) = (rows, length, size), LOADS[:2]
    total = reduce_expr(op.add, op.exp(-reduce_expr(op.add, abs(a - b), (2,))), (1,))
    inputs = [(0, Layout(shape, (size, 0, 1), 0)), (1, Layout(shape, (0, size, 1), 0))]
    return Step(Kernel((), (total,)), shape, (1, 2), [(2, Layout(shape, (1, 0, 0), 0))], inputs)


def text_of(step):
    return get_backend("parallel").compile(step).source


def test_a_reduction_is_computed_once_for_a_short_row_axis(golden):
    golden(text_of(forces_step(1001)))


def test_an_output_is_stored_along_the_outer_row(golden):
    golden(text_of(softmax_step()))


def test_a_long_reduction_is_computed_for_a_block_of_points(golden):
    golden(text_of(distances_step(5, 3000, 20)))


def test_only_sizes_of_unrolled_loops_are_in_the_text():
    assert text_of(distances_step(5, 3000, 20)) == text_of(distances_step(7, 3001, 20))
    assert "n2 = 8" in text_of(distances_step(5, 3000, 8))
    assert "n2 = args" in text_of(distances_step(5, 3000, 9))


def test_a_reduction_that_the_row_shares_is_outside_its_loop():
    shape, (a, b) = (5, 7, 4), LOADS[:2]
    norm = reduce_expr(op.add, a * a, (2,))
    total = reduce_expr(op.add, b * norm, (1,))
    inputs = [(0, Layout(shape, (4, 0, 1), 0)), (1, Layout(shape, (7, 1, 0), 0))]
    lines = text_of(Step(Kernel((), (total,)), shape, (1, 2), [(2, Layout(shape, (1, 0, 0), 0))], inputs)).splitlines()
    loops = [line for line in lines if line.lstrip().startswith("for ")]
    assert loops == [
        "    for i0 in range(start, stop):",
        "        for i2 in range(n2):",
        "        for i1 in range(n1):",
    ]


def test_only_a_new_size_of_an_inner_loop_is_a_new_text():
    texts = {text_of(forces_step(n)) for n in (7, 1001)}
    assert len(texts) == 1
    assert "n3 = 3" in texts.pop()


@pytest.mark.parametrize("backend", backends())
def test_forces_agree_with_numpy(backend):
    n, (step, target) = 65, (forces_step(65), get_backend(backend))
    if target.supports(step):
        pytest.skip(f"{backend} has no nested reductions")
    p, out = np.random.default_rng(0).normal(size=(n, 3)).astype("f4"), np.zeros((n, 3), "f4")
    target.compile(step).load()(out.ctypes.data, *[p.ctypes.data] * 4)
    d = (p[None] - p[:, None]).astype(float)
    r = (d**2).sum(2, keepdims=True) + 0.01
    np.testing.assert_allclose(out, (d / r**1.5).sum(1), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("backend", backends())
def test_a_softmax_of_distances_agrees_with_numpy(backend):
    step, target, random = softmax_step(), get_backend(backend), np.random.default_rng(0)
    if target.supports(step):
        pytest.skip(f"{backend} has no nested reductions")
    x, y = (random.normal(size=(n, 4)).astype("f4") for n in (33, 31))
    out = np.zeros((33, 31), "f4")
    target.compile(step).load()(out.ctypes.data, x.ctypes.data, y.ctypes.data)
    e = np.exp(-np.abs(x[:, None] - y).astype(float).sum(2))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(("length", "size"), [(1, 20), (1023, 3), (1024, 20), (1025, 20), (2049, 9), (2049, 8)])
def test_blocks_of_points_agree_with_numpy(length, size):
    random = np.random.default_rng(length)
    x, y = (random.normal(size=(n, size)).astype("f4") for n in (3, length))
    out = np.zeros(3, "f4")
    launch = get_backend("parallel").compile(distances_step(3, length, size)).load()
    launch(out.ctypes.data, x.ctypes.data, y.ctypes.data)
    expected = np.exp(-np.abs(x[:, None] - y).astype(float).sum(2)).sum(1)
    np.testing.assert_allclose(out, expected, rtol=1e-4)
