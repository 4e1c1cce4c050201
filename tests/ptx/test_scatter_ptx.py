"""The kernels of scatters and of stores at an index, compiled for a GPU that need not be there."""

import pytest

from minifuse.backends.cuda.compiler import compile_ptx
from minifuse.backends.cuda.index_update import make_clear, make_note, make_store
from minifuse.backends.cuda.integer_scatter import make_add, make_histogram
from minifuse.backends.cuda.sort.scatter import make_scatter
from minifuse.core.dtypes import float32, float64, int32, int64
from minifuse.core.operators import add, maximum

SCATTERS = [(add, float32, int32, False, 4), (add, float32, int32, False, 0), (maximum, int64, int64, True, 1)]
SCATTERS += [(add, float64, int32, True, 0)]


@pytest.mark.parametrize("arguments", SCATTERS, ids=str)
def test_no_kernel_of_a_scatter_computes_in_more_digits_than_its_dtype(arguments):
    kernel = make_scatter(*arguments)
    ptx = compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (9, 0)).ptx
    assert (".f64" in ptx) == (float64 in arguments)
    assert ".local" not in ptx


def test_stores_at_an_index_find_the_last_slice_by_an_atomic_maximum():
    for kernel in (make_clear(), make_note("i64"), make_store("f32", "i32")):
        ptx = compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (9, 0)).ptx
        assert (".max.s32" in ptx) == (kernel.name == "note_writers")


def test_histograms_add_in_shared_memory_first():
    for make, is_shared in ((make_histogram, True), (make_add, False)):
        kernel = make("i64", "i64")
        ptx = compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (9, 0)).ptx
        assert (".shared" in ptx) == is_shared
        assert ".local" not in ptx
