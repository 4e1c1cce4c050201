"""The kernels of scans, compiled for GPUs that need not be there: vectors, registers and no stack."""

import re

import pytest

from minifuse.backends.cuda.compiler import compile_ptx
from minifuse.backends.cuda.scan.launches import ScanProblem
from minifuse.core.dtypes import float32, float64
from minifuse.core.layout import row_major
from minifuse.core.operators import add
from minifuse.ir.monoids import RECURRENCE
from minifuse.ir.scan import Scan
from minifuse.ir.step_kernels import plain_scan

LARGE = row_major((8192, 8192))
CASES = {
    "rows": (plain_scan(Scan(add, 1, False, (0,)), [float32]), [LARGE] * 2),
    "columns": (plain_scan(Scan(add, 0, True, (0,)), [float32]), [LARGE] * 2),
    "columns of float64": (plain_scan(Scan(add, 0, False, (0,)), [float64]), [LARGE] * 2),
    "short lines": (plain_scan(Scan(add, 1, False, (0,)), [float32]), [row_major((1 << 20, 91))] * 2),
    "chunks": (plain_scan(Scan(add, 0, False, (0,)), [float32]), [row_major((1 << 24,))] * 2),
    "recurrence": (plain_scan(Scan(RECURRENCE.states[0], 1, True, (1,)), [float32] * 2), [LARGE] * 3),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_elements_are_in_registers_and_move_in_vectors(name):
    core = pytest.importorskip("cuda.core", reason='cuda.core is not installed: pip install "minifuse[cuda13]"')
    problem = ScanProblem(*CASES[name], processors=132)
    for launch in problem.plan(is_aligned=True).launches:
        kernel = launch.kernel
        ptx = compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (9, 0)).ptx
        assert ".f64" not in ptx or "float64" in name
        is_wide = not (problem.is_columns or problem.staged) and kernel.name == "scan"
        assert bool(re.search(r"ld\.global(\.nc)?\.v4", ptx)) == is_wide
        linker = core.Linker(
            core.ObjectCode.from_ptx(ptx.encode()), options=core.LinkerOptions(arch="sm_90", ptxas_options=["-v"])
        )
        linker.link("cubin")
        log = linker.get_info_log()
        assert re.search(r"(\d+) bytes stack frame", log)[1] == "0", log


def test_few_lines_are_cut_into_chunks_for_all_multiprocessors():
    rows, columns, chunks = (ScanProblem(*CASES[name], processors=132) for name in ("rows", "columns", "chunks"))
    assert (rows.chunks, rows.block_count(), rows.workspace) == (1, 8192, 0)
    assert (columns.chunks, columns.block_count()) == (1, 256)
    assert (chunks.chunks, len(chunks.plan(is_aligned=True).launches)) == ((1 << 24) // 4096, 2)
    assert chunks.workspace == 2 * 4 * 4096 + 4 * 4096 + 16  # two totals and a flag of each tile, and the ticket
