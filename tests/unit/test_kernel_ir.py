"""ir.kernel_ir: expressions are interned, functions are traced, and a loop nest has few axes and kinds of strides."""

import math

import pytest

from minifuse.core import operators as op
from minifuse.core.dtypes import bool_, float32, float64, int32, int64
from minifuse.core.errors import FuseError
from minifuse.core.layout import Layout, row_major
from minifuse.ir.kernel_ir import (
    Constant,
    Kernel,
    KernelParameter,
    Load,
    LoopNest,
    Op,
    ReadOutput,
    ReduceExpr,
    cast,
    constant,
    reduce_expr,
    replace,
    stride_kind,
)
from minifuse.ir.kernel_tracing import trace

x, y = Load(0, float32), Load(1, float32)

# Expressions


def test_equal_expressions_are_one_object():
    assert (x + y) * x is (Load(0, float32) + y) * x
    assert x + y is not y + x
    assert Load(0, float64) is not x
    assert Kernel((x + y,), ()) is Kernel((x + y,), ())
    assert Kernel((x,), ()) is not Kernel((), (x,))


def test_literals_that_are_equal_and_differ_stay_apart():
    assert constant(0.0, float32) is not constant(-0.0, float32)
    assert constant(1, float32) is constant(1.0, float32)
    assert constant(1, int64) is not constant(True, bool_)
    assert [constant(v, d).value for v, d in ((0.1, float32), (-math.inf, float64), (3, int32), (True, bool_))] == [
        0.1,
        -math.inf,
        3,
        True,
    ]


def test_operands_meet_in_one_dtype():
    i = Load(0, int32)
    e = i + 2.5
    assert e.dtype is float64
    assert [a.dtype for a in e.inputs] == [float64, float64]
    assert e.inputs[0] is cast(i, float64)
    assert cast(i, int32) is i
    assert (x > 0).dtype is bool_
    assert [a.dtype for a in op.where(x > 0, i, 1).inputs] == [bool_, int32, int32]


def test_a_body_of_operators_is_expanded():
    assert op.relu(x) is op.maximum(x, 0)
    names = [e.operator.name for e in Kernel((op.sigmoid(x),), ()).find_all(Op)]
    assert names == ["neg", "exp", "add", "div"]
    assert op.detach(x) is x


def test_bools_have_operators_of_their_own():
    a, b = Load(0, bool_), Load(1, bool_)
    assert (a + b) is (a | b)
    assert (a * b) is (a & b)
    assert reduce_expr(op.maximum, a) is ReduceExpr(op.or_, (a,), bool_)
    assert reduce_expr(op.maximum, x) is ReduceExpr(op.maximum, (x,), float32)


def test_an_element_has_no_truth_while_it_is_traced():
    with pytest.raises(FuseError, match=r"cannot branch on the value of an element.*use where\(c, a, b\)"):
        trace(lambda x: 1 if x > 0 else 2, [float32])


def test_equality_is_traced_like_any_comparison():
    zero = trace(lambda x: x == 0, [float32])
    assert (zero.operator.name, zero.dtype) == ("eq", bool_)


# Functions of numbers


def test_a_function_is_traced_to_an_expression():
    assert trace(lambda a, b: a * b + 1, [float32, float32]) is x * y + 1
    assert trace(op.tanh, [float32]) is op.tanh(x)
    assert trace(lambda a: 2.5, [float32]) is constant(2.5, float32)


def test_untraceable_functions_are_errors_with_a_reason():
    with pytest.raises(FuseError, match="branch on the value"):
        trace(lambda a: a if a > 0 else -a, [float32])
    with pytest.raises(TypeError):
        trace(math.sin, [float32])


# Kernels


def test_inputs_precede_users_and_outputs_have_an_index():
    total = reduce_expr(op.add, Load(1, float32) * KernelParameter(0, float32))
    kernel = Kernel((x / total, ReadOutput(1, float32)), (total,))
    order = kernel.order
    assert all(order.index(a) < order.index(e) for e in order for a in e.inputs)
    assert kernel.find_all(Load) == [Load(0, float32), Load(1, float32)]
    assert kernel.find_all(ReduceExpr) == [total]
    assert kernel.outputs == (x / total, ReadOutput(1, float32), total)


def test_the_cost_counts_shared_subexpressions_once():
    e = op.exp(x)
    assert Kernel((x,), ()).cost() == 1
    assert Kernel((e,), ()).cost() == 1 + op.exp.cost
    assert Kernel((e * e,), ()).cost() == 1 + op.exp.cost + 1
    assert Kernel((), (reduce_expr(op.add, e),)).cost() == 1 + op.exp.cost + 1
    assert Kernel((x + constant(1, float32),), ()).cost() == 3


# Nests


def nest(shape, dims, *layouts):
    return LoopNest(shape, dims, layouts)


def test_contiguous_operands_are_one_axis():
    layout = row_major((4, 6, 5))
    n = nest((4, 6, 5), (), layout, layout)
    assert (n.sizes, n.stride_kinds, n.row_axes, n.points) == ([120], ("1", "1"), 0, 120)
    assert n.runtime_strides() == []


def test_the_order_of_memory_counts_not_that_of_dims():
    transposed = row_major((6, 4)).permute(1, 0)
    n = nest((4, 6), (), transposed, transposed)
    assert (n.sizes, n.stride_kinds) == ([24], ("1", "1"))


def test_a_repeated_operand_keeps_its_axis():
    n = nest((4, 6), (), row_major((4, 6)), row_major((6,)).expand(4, 6), row_major((4, 1)).expand(4, 6))
    assert (n.sizes, n.stride_kinds, n.row_axes) == ([4, 6], ("s1", "01", "10"), 1)
    assert n.runtime_strides() == [6]


def test_a_slice_and_a_flip_are_other_strides():
    base = row_major((8, 10))
    n = nest((8, 5), (), row_major((8, 5)), base.slice((0, 1, 8), (0, 2, 5)), base.slice((7, -1, 8), (0, 1, 5)))
    assert (n.sizes, n.stride_kinds) == ([8, 5], ("s1", "ss", "s1"))
    assert n.runtime_strides() == [5, 10, 2, -10]


def test_reduced_axes_are_innermost():
    out, layout = row_major((1, 6, 1)).expand(4, 6, 5), row_major((4, 6, 5))
    n = nest((4, 6, 5), (0, 2), out, layout)
    assert (n.sizes, n.stride_kinds, n.row_axes) == ([6, 4, 5], ("100", "ss1"), 1)
    everything = nest((4, 6, 5), (0, 1, 2), row_major((1, 1, 1)).expand(4, 6, 5), layout)
    assert (everything.sizes, everything.stride_kinds, everything.row_axes) == ([1, 120], ("00", "01"), 1)


def test_sizes_do_not_reach_the_classes():
    first, second = [nest((n, m), (1,), row_major((n, 1)).expand(n, m), row_major((n, m))) for n, m in ((4, 6), (33, 1025))]
    assert first.stride_kinds == second.stride_kinds
    assert first.row_axes == second.row_axes
    assert first.runtime_strides() == [6]
    assert second.runtime_strides() == [1025]


def test_nothing_and_one_element():
    assert nest((), (), row_major(())).sizes == [1]
    assert nest((0, 5), (), row_major((0, 5))).is_empty
    of_nothing = nest((5, 0), (1,), row_major((5, 1)).expand(5, 0), row_major((5, 0)))
    assert not of_nothing.is_empty  # five rows, each the fold of nothing
    assert of_nothing.sizes == [5, 0]
    assert of_nothing.points == 0
    assert of_nothing.stride_kinds == ("10", "11")  # the input moves along the row, so nobody reads it before the row begins
    assert nest((0, 1), (0, 1), row_major((1, 1)).expand(0, 1), row_major((0, 1))).stride_kinds == ("00", "01")
    assert nest((5, 4, 0), (1, 2), row_major((5, 1, 1)).expand(5, 4, 0), row_major((5, 4, 0))).sizes == [5, 0]


def test_there_are_three_classes_of_strides():
    assert [stride_kind(s) for s in (0, 1, 2, -1, 1000)] == ["0", "1", "s", "s", "s"]


def test_the_offset_is_not_seen():
    a, b = Layout((4,), (2,), 0), Layout((4,), (2,), 7)
    assert nest((4,), (), a).stride_kinds == nest((4,), (), b).stride_kinds == ("s",)


def test_subexpressions_have_a_dtype():
    assert KernelParameter(0, float64).dtype is float64
    assert isinstance(constant(1, float32), Constant)
    assert reduce_expr(op.add, Load(0, int64)).dtype is int64


# Nested reductions


def forces():
    """Forces between points in three dims: a sum of three squares in a sum over all points."""
    shape = (5, 5, 3, 3)
    layouts = [Layout(shape, strides, 0) for strides in ((3, 0, 1, 0), (0, 3, 1, 0), (3, 0, 0, 1), (0, 3, 0, 1))]
    a, b, c, d = (Load(k, float32) for k in range(4))
    r = reduce_expr(op.add, (c - d) * (c - d), (3,))
    return Kernel((), (reduce_expr(op.add, (a - b) / r, (1,)),)), shape, [layouts[0], *layouts]


def test_a_reduction_keeps_its_dims_when_it_is_rebuilt():
    kernel, _, _ = forces()
    (rebuilt,) = (replace(e, Load, lambda load: Load(load.index + 1, load.dtype)) for e in kernel.row_outputs)
    assert [e.dims for e in Kernel((), (rebuilt,)).find_all(ReduceExpr)] == [(3,), (1,)]
    plain = reduce_expr(op.add, x)
    assert replace(plain, Load, lambda load: load) is plain
    assert plain is not reduce_expr(op.add, x, (1,))


def test_axes_of_outer_reductions_precede_those_of_inner_ones():
    kernel, shape, layouts = forces()
    assert kernel.reductions((1, 3)) == [(3,), (1,)]
    n = LoopNest(shape, (1, 3), layouts, kernel.reductions((1, 3)))
    assert n.sizes == [5, 3, 5, 3]
    assert n.axis_dims == [(0,), (2,), (1,), (3,)]
    assert (n.row_axes, n.reduced_axes((1,)), n.reduced_axes((3,))) == (2, (2,), (3,))


def test_dims_merge_only_if_the_same_reductions_reduce_them():
    layouts = [Layout((2, 3, 4), (1, 0, 0), 0), row_major((2, 3, 4))]
    assert LoopNest((2, 3, 4), (1, 2), layouts).axis_dims == [(0,), (1, 2)]
    assert LoopNest((2, 3, 4), (1, 2), layouts, [(2,), (1,)]).axis_dims == [(0,), (1,), (2,)]
    assert LoopNest((2, 3, 4), (1, 2), layouts, [(1, 2)]).axis_dims == [(0,), (1, 2)]


def test_a_kernel_without_nested_reductions_lists_none():
    kernel = Kernel((), (reduce_expr(op.add, x),))
    assert not kernel.is_nested
    assert kernel.reductions((0, 1)) == []
