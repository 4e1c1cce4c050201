"""Kernels that users write, compiled for a GPU that need not be there: atomics are one instruction, combine is inlined."""

import pytest

import minifuse as mf
from minifuse.backends.cuda.codegen.base import MAX_COLUMN_THREADS
from minifuse.backends.cuda.codegen.select import generate_kernel
from minifuse.backends.cuda.compiler import compile_ptx
from minifuse.backends.cuda.launcher import python_kernel
from minifuse.compiler.plan import Plan
from minifuse.core.dtypes import BY_NAME, bool_
from minifuse.core.layout import Layout, row_major
from minifuse.custom_kernels.indexed import IndexedPlan
from minifuse.ir.kernel_ir import IndexValue, Kernel, LoopNest, cast

NEW, OLD = (9, 0), (7, 5)
ATOMICS = {"int32": "u32", "int64": "u64", "float32": "f32", "float64": "f64"}


def ptx_of(text, cc):
    threads = text.schedule.threads if text.schedule else MAX_COLUMN_THREADS
    return compile_ptx(python_kernel(text), [kind for _, kind in text.parameters], threads, cc=cc).ptx


def of_raw(kernel, *inputs, shape=None):
    """The text of a kernel with raw arguments."""
    form, values, names = kernel.bind_arguments(inputs, {})
    step = IndexedPlan(form, values, names, kernel.raw, shape).step
    outputs, inputs = step.layouts()
    nest = LoopNest(step.shape, step.dims, [*outputs, *inputs])
    return generate_kernel(step.kernel, nest, step.indexed_layouts())


@pytest.mark.parametrize("cc", [NEW, OLD])
@pytest.mark.parametrize("dtype", ATOMICS)
def test_an_atomic_addition_is_one_instruction(dtype, cc):
    add = mf.elementwise(lambda x, k, t: mf.atomic_add(t, k, x), raw="t")
    ptx = ptx_of(of_raw(add, mf.zeros(5, dtype=dtype), mf.zeros(5, dtype=mf.int32), mf.zeros(3, dtype=dtype)), cc)
    assert f".add.{ATOMICS[dtype]}" in ptx.replace("global.", "")
    assert "atom" in ptx or "red" in ptx
    assert ".local" not in ptx


@pytest.mark.parametrize("dtype", BY_NAME)
def test_every_element_type_is_loaded_and_stored(dtype):
    @mf.elementwise(raw=("x", "y"))
    def copy(x, y):
        i, j = mf.index(0), mf.index(1)
        y[j, i] = x[i, j]
        return x[i, 0], i

    text = of_raw(copy, mf.zeros(5, 7, dtype=dtype), mf.zeros(7, 5, dtype=dtype), shape=(5, 7))
    ptx = ptx_of(text, NEW)
    assert "ld.global" in ptx
    assert "st.global" in ptx
    assert ".local" not in ptx


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", BY_NAME)
def test_a_combine_of_ones_own_is_a_part_of_the_kernel(dtype, dim):
    is_bool = BY_NAME[dtype] is bool_
    own = mf.reduction(
        combine=(lambda a, b: a != b) if is_bool else (lambda a, b: mf.where(abs(a) > abs(b), a, b)),
        identity=False if is_bool else 0,
    )
    x = mf.zeros(200, 300, dtype=dtype)
    (step,) = Plan(own.bind_arguments((x,), dim, False), (x,)).steps
    outputs, inputs = step.layouts()
    ptx = ptx_of(generate_kernel(step.kernel, LoopNest(step.shape, step.dims, [*outputs, *inputs])), NEW)
    assert "shfl.sync" in ptx if dim else "bar.sync" in ptx
    assert ".func" not in ptx
    assert ".local" not in ptx


@pytest.mark.parametrize("strides", [(1, 0), (0, 1), (7, 3)])
def test_positions_take_no_memory(strides):
    shape = (64, 100)
    kernel = Kernel((cast(IndexValue(0, mf.int64), mf.float32),), ())
    text = generate_kernel(kernel, LoopNest(shape, (), [row_major(shape), Layout(shape, strides, 0)]))
    assert "ld.global" not in ptx_of(text, NEW)
