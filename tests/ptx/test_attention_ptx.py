"""The kernels of attention, compiled for GPUs that need not be there: their instructions, registers and limits."""

import re
from functools import cache

import pytest

from minifuse.backends.cuda.attention.forward import LANES_ACROSS, LANES_DOWN, UNROLLED_STEPS, WIDTHS
from minifuse.backends.cuda.attention.launches import ATTENTION_KERNELS
from minifuse.backends.cuda.compiler import compile_ptx

REGISTERS = 65536  # of a multiprocessor
CASES = {
    f"{name} {width}": (known, known.tiles[width], width, "x4")
    for name, known in ATTENTION_KERNELS.items()
    for width in WIDTHS
}
CASES |= {f"{name} short": (known, known.short_tile, 64, "x") for name, known in ATTENTION_KERNELS.items()}
KERNELS = {name: known.make(tile, width, along) for name, (known, tile, width, along) in CASES.items()}
on_each = pytest.mark.parametrize("name", KERNELS)


@cache
def ptx_of(name, cc=(9, 0)):
    kernel = KERNELS[name]
    return compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, cc).ptx


def count(pattern, ptx):
    return len(re.findall(pattern, ptx))


@pytest.mark.sampled(6)
@on_each
def test_sums_stay_in_registers_and_in_float32(name):
    kernel, ptx = KERNELS[name], ptx_of(name)
    assert ".local" not in ptx
    assert ".f64" not in ptx
    assert f".maxntid {kernel.threads}" in ptx
    assert f".minnctapersm {kernel.blocks}" in ptx or kernel.blocks == 1
    assert "call" not in re.sub(r"//.*", "", ptx)


@pytest.mark.sampled(6)
@on_each
def test_the_assembler_finds_enough_registers(name):
    core = pytest.importorskip("cuda.core", reason='cuda.core is not installed: pip install "minifuse[cuda13]"')
    kernel = KERNELS[name]
    linker = core.Linker(
        core.ObjectCode.from_ptx(ptx_of(name).encode()), options=core.LinkerOptions(arch="sm_90", ptxas_options=["-v"])
    )
    linker.link("cubin")
    log = linker.get_info_log()
    assert int(re.search(r"(\d+) bytes spill stores", log)[1]) == 0, log
    assert int(re.search(r"Used (\d+) registers", log)[1]) * kernel.threads * kernel.blocks <= REGISTERS


@pytest.mark.sampled(6)
@on_each
def test_products_are_outer_products_of_16_byte_loads(name):
    """A step of a product loads groups of four from shared memory, and has an fma for each pair of them."""
    known, tile, width, _ = CASES[name]
    ptx, rows, columns, ahead = ptx_of(name), tile.rows // LANES_DOWN, tile.columns // LANES_ACROSS, width // LANES_ACROSS
    scores, others = (1, 1) if known.products == 2 else (2, known.products - 2)
    loads = UNROLLED_STEPS * (scores * (rows + columns) + others * (rows + ahead)) // 4
    assert loads <= count(r"ld\.shared\.v4\.[fb]32", ptx) <= loads + 2 * columns // 4
    fmas = UNROLLED_STEPS * rows * (scores * columns + others * ahead)
    assert fmas <= count(r"fma\.rn\.f32", ptx) <= fmas + rows * (columns + 16)  # one an exponential, and a logarithm a row
    assert count(r"ex2\.approx", ptx) in (rows * columns, rows * columns + rows)


@pytest.mark.sampled(6)
@on_each
def test_memory_is_reached_past_the_registers_and_in_16_bytes(name):
    known, tile, width, along = CASES[name]
    ptx, matrices = ptx_of(name), known.output_count - (known.products == 2)
    assert {int(n) for n in re.findall(r"cp\.async\.c[ag]\.shared\.global \[%r\d+\], \[%rd\d+\], (\d+)", ptx)} == (
        {4, 16} if along == "x4" else {4}
    )
    assert count(r"st\.global\.v4\.[fb]32", ptx) == matrices * (tile.rows // LANES_DOWN) * (width // LANES_ACROSS) // 4
    handed_over = 2 if known.products == 4 else 1
    assert (
        count(r"st\.shared\.v4\.[fb]32", ptx)
        == handed_over * (tile.rows // LANES_DOWN) * (tile.columns // LANES_ACROSS) // 4
    )


def test_gpus_without_asynchronous_copies():
    ptx = ptx_of("attention 64", (7, 5))
    assert "cp.async" not in ptx
    assert ".local" not in ptx
