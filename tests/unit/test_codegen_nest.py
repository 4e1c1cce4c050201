"""backends.codegen.nest: the axes of expressions, the depth of reductions, and operands in memory."""

from minifuse.backends.codegen.nest import KernelNest, cost_of
from minifuse.core.dtypes import bool_, float32, int64
from minifuse.core.layout import Layout, row_major
from minifuse.core.operators import add, mul
from minifuse.ir.kernel_ir import IndexValue, Kernel, Load, LoopNest, reduce_expr

SHAPE = (5, 7)
X, ROW, COLUMN = Load(0, float32), Load(1, float32), Load(2, float32)
LAYOUTS = [row_major(SHAPE), Layout(SHAPE, (0, 1), 0), Layout(SHAPE, (1, 0), 0)]


def nest_of(points, rows, inputs=3):
    kernel = Kernel(points, rows)
    outputs = [row_major(SHAPE)] * len(points) + [Layout(SHAPE, (1, 0), 0)] * len(rows)
    return KernelNest(kernel, LoopNest(SHAPE, (1,), [*outputs, *LAYOUTS[:inputs]]))


def test_an_expression_depends_on_the_axes_of_its_loads():
    nest = nest_of((X + ROW * COLUMN,), (reduce_expr(add, ROW),))
    assert nest.axes_of[X] == {0, 1}
    assert nest.axes_of[ROW] == {1}
    assert nest.axes_of[COLUMN] == {0}
    assert nest.axes_of[ROW * COLUMN] == {0, 1}


def test_a_reduction_does_not_depend_on_the_axes_that_it_reduces():
    nest = nest_of((X - reduce_expr(add, X * ROW * COLUMN),), ())
    assert nest.reduced == {1}
    assert nest.axes_of[nest.reductions[0]] == {0}


def test_outputs_of_rows_have_no_reduced_axis():
    nest = nest_of((X * ROW + COLUMN,), (reduce_expr(add, X),))
    assert nest.output_axes(0) == {0, 1}
    assert nest.output_axes(1) == {0}


def test_the_depth_counts_reductions_in_a_row():
    total = reduce_expr(add, X)
    squares = reduce_expr(add, (X - total) * (X - total))
    nest = nest_of((), (squares,), inputs=1)
    assert (nest.depth[X], nest.depth[total], nest.depth[squares]) == (0, 1, 2)
    assert nest.sinks_of[X] == {0, 1}  # two stages need the row
    assert nest.sinks_of[total] == {1}


def test_index_values_are_not_in_memory():
    kernel = Kernel((Load(0, bool_),), (reduce_expr(add, IndexValue(1, int64)),))
    layouts = [row_major(SHAPE), Layout(SHAPE, (1, 0), 0), row_major(SHAPE), Layout(SHAPE, (0, 1), 0)]
    nest = KernelNest(kernel, LoopNest(SHAPE, (1,), layouts))
    assert nest.memory_operands() == [("out0", 1), ("out1", 8), ("in0", 1)]


def test_the_cost_is_that_of_operators():
    assert cost_of([X]) == 0
    assert cost_of(Kernel((X + ROW,), ()).order) == add.cost
    assert cost_of(Kernel((X + ROW * X,), ()).order) == add.cost + mul.cost
