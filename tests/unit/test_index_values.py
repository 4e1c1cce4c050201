"""Operands with a layout but no memory (index values), on every backend and in every kind of kernel."""

import numpy as np
import pytest

from minifuse.backends.cuda.codegen.select import generate_kernel
from minifuse.backends.parallel.compiler import kernel_text
from minifuse.backends.registry import get_backend
from minifuse.core.dtypes import BY_NUMPY, bool_, float32, int64
from minifuse.core.layout import Layout, row_major
from minifuse.core.operators import add, maximum, where
from minifuse.ir.kernel_ir import IndexValue, Kernel, Load, LoopNest, cast, reduce_expr, renumber_operands
from tests.steps import load

BACKENDS = ["python", "parallel", "cuda"]


def place_of(shape, strides, first):
    """What a Position is, as NumPy computes it."""
    steps = np.indices(shape) if shape else np.zeros((0,))
    return first + sum((i * s for i, s in zip(steps, strides, strict=True)), np.zeros(shape, np.int64))


def run(name, kernel, shape, dims, inputs):
    """The outputs of a kernel; inputs are arrays of the shape, or (strides, first) of positions."""
    backend = get_backend(name)
    kept, addresses, layouts = [], [], []
    for x in inputs:
        if isinstance(x, tuple):
            strides, first = x
            layouts.append(Layout(shape, strides, 0))
            addresses.append(first)
        else:
            buffer, address, layout = backend.from_numpy(x)
            kept.append(buffer)
            layouts.append(layout.expand(*shape))
            addresses.append(address)
    outputs, targets, seen = [], [], []
    for k, e in enumerate(kernel.outputs):
        rows = tuple(1 if d in dims else n for d, n in enumerate(shape)) if k >= len(kernel.pointwise_outputs) else shape
        layout = row_major(rows)
        buffer = backend.allocate(max(64, layout.size * e.dtype.itemsize))
        outputs.append((buffer, buffer.address, e.dtype, layout))
        targets.append(buffer.address)
        seen.append(layout.expand(*shape))
    load(backend, kernel, shape, dims, seen, layouts)(*targets, *addresses)
    return [np.array(backend.to_numpy(*x)) for x in outputs]


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(
    ("shape", "strides", "first"),
    [
        ((37,), (1,), 0),
        ((37,), (-3,), 100),
        ((5, 7), (7, 1), 0),  # one axis
        ((5, 7), (1, 0), 0),
        ((5, 7), (0, 1), 2),
        ((5, 7), (11, -2), -4),
        ((3, 4, 5), (0, 1, 0), 0),
        ((4, 8), (0, 0), 9),
        ((), (), 6),
        ((3, 0), (1, 1), 0),
        ((3, 40), (40, 1), 2**40),  # more than 32 bits
    ],
)
def test_an_index_value_is_the_offset_in_its_layout(name, shape, strides, first):
    (found,) = run(name, Kernel((IndexValue(0, int64),), ()), shape, (), [(strides, first)])
    assert np.array_equal(found, place_of(shape, strides, first))


def test_each_thread_knows_where_it_is():
    shape, strides = (30, 70_001), (70_001, 1)
    (found,) = run("parallel", Kernel((IndexValue(0, int64),), ()), shape, (), [(strides, 5)])
    assert np.array_equal(found, place_of(shape, strides, 5))


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("strides", [(0, 1), (1, 0), (9, 1), (2, 3)])
@pytest.mark.parametrize("turned", [False, True])
def test_it_mixes_with_operands_of_any_layout(name, strides, turned):
    shape = (19, 21)
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    x = np.asfortranarray(x) if turned else x
    a, i = Load(0, float32), IndexValue(1, int64)
    kernel = Kernel((a.apply(add, a, cast(i, float32)), a.apply(where, i.apply(maximum, i, 4) < 9, a, 0.5)), ())
    y, z = run(name, kernel, shape, (), [x, (strides, 3)])
    p = place_of(shape, strides, 3)
    assert np.array_equal(y, x + p.astype("f4"))
    assert np.array_equal(z, np.where(np.maximum(p, 4) < 9, x, np.float32(0.5)))


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("strides", [(0, 1), (1, 0), (3, 5)])
def test_it_can_be_reduced_and_stored(name, dims, strides):
    shape = (9, 34)
    x = np.random.default_rng(0).integers(-9, 9, shape)
    e = Load(0, int64).apply(add, Load(0, int64), IndexValue(1, int64))
    largest, position = run(
        name, Kernel((IndexValue(1, int64),), (reduce_expr(maximum, e),)), shape, dims, [x, (strides, 2)]
    )[::-1]
    p = place_of(shape, strides, 2)
    assert np.array_equal(largest, (x + p).max(dims, keepdims=True))
    assert np.array_equal(position, p)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dims", [(0,), (1,)])
def test_a_reduction_of_index_values_alone_reads_no_memory(name, dims):
    shape, strides = (6, 13), (13, 1)
    (found,) = run(name, Kernel((), (reduce_expr(add, IndexValue(0, int64)),)), shape, dims, [(strides, 0)])
    assert np.array_equal(found, place_of(shape, strides, 0).sum(dims, keepdims=True))


def test_renumbering_keeps_the_kinds_of_inputs():
    (e,), used = renumber_operands([Load(4, int64).apply(add, Load(4, int64), IndexValue(7, int64))])
    assert used == [4, 7]
    assert e.inputs == (Load(0, int64), IndexValue(1, int64))


def nest_of(shape, strides):
    return LoopNest(shape, (), [row_major(shape), row_major(shape), Layout(shape, strides, 0)])


def test_a_new_size_and_a_new_start_are_no_new_text():
    kernel = Kernel((Load(0, int64).apply(add, Load(0, int64), IndexValue(1, int64)),), ())
    texts = set()
    for shape in ((64, 101), (64, 103)):
        nest = nest_of(shape, (3, 1))
        texts.add((kernel_text(kernel, nest.row_axes, nest.stride_kinds), generate_kernel(kernel, nest).text))
    ((cpu, gpu),) = texts
    assert "base1 = args[2]" in cpu
    assert "out0[i0 * out0_0 + i1] = add(in0[i0 * in0_0 + i1], (base1 + i0 * base1_0 + i1))" in cpu
    assert "def kernel(out0, in0, base1, " in gpu


def test_index_values_do_not_prevent_vector_loads():
    kernel = Kernel((Load(0, int64).apply(add, Load(0, int64), IndexValue(1, int64)),), ())
    for strides in ((100, 1), (0, 1), (1, 0), (7, 3)):
        assert "load4(in0" in generate_kernel(kernel, nest_of((64, 100), strides)).text


def test_every_dtype_is_made_of_positions():
    for dtype in BY_NUMPY.values():
        (found,) = run("parallel", Kernel((cast(IndexValue(0, int64), dtype),), ()), (5,), (), [((1,), 0)])
        expected = np.arange(5) != 0 if dtype is bool_ else np.arange(5)
        assert found.dtype == dtype.numpy
        assert np.array_equal(found, expected)
