"""The reference interpreter of steps, and every backend compared with it."""

import numpy as np
import pytest

from minifuse.backends.registry import backends, get_backend
from minifuse.core import operators as op
from minifuse.core.dtypes import float64, int64
from minifuse.core.layout import Layout, row_major
from minifuse.ir.kernel_ir import (
    AtomicAdd,
    IndexedLoad,
    IndexedStore,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    ReadOutput,
    constant,
    reduce_expr,
)
from minifuse.ir.reference import run_step
from minifuse.ir.steps import NO_BUFFER, Step
from tests.nested_steps import NUMBERS, nested_step

x = Load(0, float64)


every_backend = pytest.mark.parametrize("backend", backends())


def reference_of(program):
    memory = {slot: np.copy(a) for slot, a in program.memory.items()}
    run_step(program.step, memory, NUMBERS)
    return memory


def test_a_softmax_is_three_passes():
    e = op.exp(x - reduce_expr(op.maximum, x))
    softmax, a = Kernel((e / reduce_expr(op.add, e),), ()), np.random.default_rng(0).normal(size=(3, 5))
    memory = {0: a.ravel(), 1: np.zeros(15)}
    run_step(Step(softmax, (3, 5), (1,), [(1, row_major((3, 5)))], [(0, row_major((3, 5)))]), memory)
    expected = np.exp(a) / np.exp(a).sum(1, keepdims=True)
    np.testing.assert_allclose(memory[1].reshape(3, 5), expected)


def test_forces_between_points_are_one_step():
    n, p = 5, np.random.default_rng(1).normal(size=(5, 3))
    shape = (n, n, 3, 3)
    layouts = [Layout(shape, strides, 0) for strides in ((0, 3, 1, 0), (3, 0, 1, 0), (0, 3, 0, 1), (3, 0, 0, 1))]
    a, b, c, d = (Load(k, float64) for k in range(4))
    r = reduce_expr(op.add, (c - d) * (c - d), (3,)) + KernelParameter(0, float64)
    force = reduce_expr(op.add, (a - b) / (r * op.sqrt(r)), (1,))
    step = Step(
        Kernel((), (force,)), shape, (1, 3), [(1, Layout(shape, (3, 0, 1, 0), 0))], [(0, x) for x in layouts], ["0.01"]
    )
    memory = {0: p.ravel(), 1: np.zeros(n * 3)}
    run_step(step, memory, [0.01])
    difference = p[None] - p[:, None]
    squares = (difference**2).sum(2, keepdims=True) + 0.01
    np.testing.assert_allclose(memory[1].reshape(n, 3), (difference / squares**1.5).sum(1))
    assert step.kernel.describe(shape, step.dims, []) == (
        "rows of (5, 5, 3, 3) along dim 1, with reductions along dim 3 inside"
    )


def test_values_are_read_before_they_are_overwritten():
    swap = Kernel((ReadOutput(1, float64), ReadOutput(0, float64)), ())
    memory = {0: np.arange(3.0), 1: -np.arange(3.0)}
    run_step(Step(swap, (3,), (), [(0, row_major((3,))), (1, row_major((3,)))], []), memory)
    assert memory[0].tolist() == [0, -1, -2]
    assert memory[1].tolist() == [0, 1, 2]


def test_effects_run_point_by_point_in_their_order():
    i = IndexValue(0, int64)
    first = IndexedStore(0, 0, (i, constant(2.0, float64)), float64)
    second = AtomicAdd(0, 1, (constant(0, int64), IndexedLoad(0, 1, (i,), float64)), float64)
    kernel = Kernel((), (), (first, second))
    step = Step(kernel, (3,), (), [], [(NO_BUFFER, Layout((3,), (1,), 0))], [], [(0, row_major((3,)))])
    memory = {0: np.zeros(3)}
    run_step(step, memory)
    assert memory[0].tolist() == [8, 2, 2]


@every_backend
@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(60))
def test_nested_reductions_agree_with_the_reference(seed, backend):
    program = nested_step(seed)
    if get_backend(backend).supports(program.step):
        pytest.skip(f"{backend} has no nested reductions")
    expected, got = reference_of(program), program.run(get_backend(backend))
    for slot in expected:
        np.testing.assert_allclose(got[slot], expected[slot], rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(3, each="backend")
@every_backend
@pytest.mark.parametrize("seed", range(10))
def test_empty_nested_reductions_are_identities(seed, backend):
    program = nested_step(100 + seed, sizes=(0, 1, 2, 3))
    if get_backend(backend).supports(program.step):
        pytest.skip(f"{backend} has no nested reductions")
    expected, got = reference_of(program), program.run(get_backend(backend))
    for slot in expected:
        np.testing.assert_allclose(got[slot], expected[slot], rtol=1e-9, atol=1e-9)
