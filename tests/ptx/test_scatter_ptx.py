"""The kernels of scatters and of stores at an index, compiled for a GPU that need not be there."""

import pytest

from minifuse.backends.cuda.compiler import compile_ptx
from minifuse.backends.cuda.index_update import make_clear, make_mark, make_note, make_store, make_store_marked
from minifuse.backends.cuda.integer_scatter import make_add, make_histogram
from minifuse.backends.cuda.sort.scatter import make_scatter
from minifuse.core.dtypes import float32, float64, int32, int64
from minifuse.core.operators import add, maximum
from minifuse.ir.inline_slices import AXES
from minifuse.ir.kernel_ir import IndexedLoad, Load

MESSAGES = Load(0, float32) * IndexedLoad(1, 0, (Load(2, int64), AXES[2]), float32)  # a row of an array, scaled
LEAVES = (float32, (0, 1, 0)), (float32, (1, 1)), (int64, (0, 1, 0))
VALUE = {dtype: (Load(0, dtype), ((dtype, (0, 1, 1)),)) for dtype in (float32, float64, int64)}
SCATTERS = [
    (add, MESSAGES, LEAVES, int32, False, 4),
    (add, *VALUE[float32], int32, False, 0),
    (maximum, *VALUE[int64], int64, True, 1),
    (add, *VALUE[float64], int32, True, 0),
]


@pytest.mark.parametrize("arguments", SCATTERS, ids=["messages", "crossing runs", "maxima", "float64"])
def test_no_kernel_of_a_scatter_computes_in_more_digits_than_its_dtype(arguments):
    kernel = make_scatter(*arguments)
    ptx = compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (9, 0)).ptx
    assert (".f64" in ptx) == (arguments[1].dtype is float64)
    assert ".local" not in ptx


def test_stores_at_an_index_find_the_last_slice_by_an_atomic_maximum():
    for kernel in (make_clear(-1), make_note("i64"), make_store("f32", "i32"), make_mark("i64")):
        ptx = compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (9, 0)).ptx
        assert (".max.s32" in ptx) == (kernel.name == "note_writers")
    for is_last in (False, True):
        kernel = make_store_marked("f32", "i64", is_last)
        ptx = compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (9, 0)).ptx
        assert (".max.s32" in ptx) != is_last


def test_histograms_add_in_shared_memory_first():
    for make, is_shared in ((make_histogram, True), (make_add, False)):
        kernel = make("i64", "i64")
        ptx = compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (9, 0)).ptx
        assert (".shared" in ptx) == is_shared
        assert ".local" not in ptx
