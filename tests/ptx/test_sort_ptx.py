"""The kernels of sorts and selections, compiled for GPUs that need not be there: keys in registers, within the bounds."""

import re

import pytest

from minifuse.backends.cuda.compiler import compile_ptx
from minifuse.backends.cuda.sort.launches import SortProblem
from minifuse.backends.cuda.sort.select_launches import SelectionProblem
from minifuse.core.dtypes import float32, float64
from minifuse.core.layout import row_major
from minifuse.ir import selection, sort

SORTED, SELECTED = (sort.VALUES, sort.INDICES), (selection.VALUES, selection.INDICES)


def sort_kernel(n, names, dtype):
    layouts = [row_major((100, n))] * (len(names) + 1)
    return SortProblem(sort.Sort(1, False, names), layouts, dtype, 132).plan().launches[-1].kernel


def selection_kernel(n, count, dtype):
    layouts = [row_major((100, count or 2))] * 2 + [row_major((100, n)), row_major((100, 2))][: 2 - bool(count)]
    return SelectionProblem(selection.Selection(1, False, SELECTED, count), layouts, dtype).plan.launches[-1].kernel


CASES = {
    "network": (sort_kernel, 60, SORTED, float32),
    "radix sort in a block": (sort_kernel, 8192, SORTED, float32),
    "radix sort of long rows": (sort_kernel, 1 << 20, SORTED[:1], float32),
    "first elements": (selection_kernel, 8192, 16, float32),
    "ranks of float64": (selection_kernel, 8192, None, float64),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_keys_are_in_registers(name):
    core = pytest.importorskip("cuda.core", reason='cuda.core is not installed: pip install "minifuse[cuda13]"')
    make, *arguments = CASES[name]
    kernel = make(*arguments)
    ptx = compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (9, 0)).ptx
    linker = core.Linker(
        core.ObjectCode.from_ptx(ptx.encode()), options=core.LinkerOptions(arch="sm_90", ptxas_options=["-v"])
    )
    linker.link("cubin")
    log = linker.get_info_log()
    assert re.search(r"(\d+) bytes stack frame", log)[1] == "0", log
