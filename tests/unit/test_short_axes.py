"""backends.codegen.short_axes: which short rows are unrolled, and which are processed in blocks of columns."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.codegen.short_axes import short_literals
from minifuse.core import operators as op
from minifuse.core.dtypes import float32
from minifuse.core.layout import Layout, row_major
from minifuse.ir.kernel_ir import Kernel, Load, LoopNest, reduce_expr


@pytest.mark.parametrize(
    ("row", "columns", "is_stored", "is_unrolled"),
    [
        (8, 32, True, True),
        (8, 96, True, False),  # the strides are not in the text
        (16, 32, True, False),  # too many stores
        (16, 12, True, True),  # too few columns for a block
        (16, 96, False, True),  # nothing is stored along the row
    ],
)
def test_short_rows_are_unrolled_if_stores_can_be_vectorized(row, columns, is_stored, is_unrolled):
    shape = (50, columns, row)
    x = Load(0, float32)
    total = reduce_expr(op.add, x, (1,))
    kernel = Kernel((x - total,), ()) if is_stored else Kernel((), (total,))
    layout = row_major((50, row, columns)).permute((0, 2, 1))
    out = layout if is_stored else Layout(shape, (columns, 1, 0), 0)
    nest = LoopNest(shape, (2,), [out, layout])
    assert (("n2", row) in short_literals(kernel, nest)) == is_unrolled


@pytest.mark.parametrize("shape", [(171, 3, 96), (70, 8, 40), (11, 16, 333)])
def test_softmax_along_a_short_axis_is_that_of_numpy(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    e = np.exp(x.astype(float))
    y = mf.from_numpy(x, backend="parallel").softmax(1).numpy()
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
