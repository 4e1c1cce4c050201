"""The kernels of products on tensor cores, compiled for GPUs that need not be there: instructions, registers, limits."""

import re
from functools import cache

import pytest

from minifuse.backends.cuda.compiler import CUBIN_SECTION, compile_lto_cubin, compile_ptx
from minifuse.backends.cuda.matmul.epilogue import build_hooks, hook_expressions
from minifuse.backends.cuda.matmul.mma import MMA_LARGE, MMA_SMALL, make_mma
from minifuse.backends.cuda.matmul.pack_operands import make_pack
from minifuse.backends.cuda.matmul.wgmma import make_wgmma, pipeline_sizes
from minifuse.core.dtypes import float32
from minifuse.core.operators import gelu, relu
from minifuse.ir.kernel_ir import Accumulator, Load
from minifuse.ir.step_kernels import MatmulKernel

A, B, X, DOT = *[Load(k, float32) for k in range(3)], Accumulator(float32)
BIAS = build_hooks(hook_expressions(MatmulKernel(A, B, (gelu(DOT + X),)), (0, 1), False), (("in2", "00010"),))
CHANGE = build_hooks(hook_expressions(MatmulKernel(relu(A), B, (DOT,)), (0, 1), False), ())
WGMMA = {
    "tf32": make_wgmma("tf32"),
    "tf32 crosswise": make_wgmma("tf32", True),
    "tf32 crosswise, turned": make_wgmma("tf32", True, True),
    "bf16": make_wgmma("bf16"),
    "tf32, 64 columns": make_wgmma("tf32", False, False, 64),
    "bf16, 128 columns": make_wgmma("bf16", False, False, 128),
    "tf32 crosswise, 128 columns": make_wgmma("tf32", True, False, 128),
    "tf32 crosswise, turned, 64 columns": make_wgmma("tf32", True, True, 64),
    "tf32 with an epilogue": make_wgmma("tf32", hooks=BIAS),
    "tf32 crosswise, turned, with an epilogue": make_wgmma("tf32", True, True, hooks=BIAS),
}
MMA = {
    f"{name} {kind} {a} {b}": make_mma(shape, a, b, False, kind)
    for name, shape, a, b in (
        ("large", MMA_LARGE, "k", "x4"),
        ("large", MMA_LARGE, "x4", "k"),
        ("small", MMA_SMALL, "x", "k"),
    )
    for kind in ("tf32", "bf16")
}
MMA |= {"small guarded": make_mma(MMA_SMALL, "k", "x4", True), "small changed": make_mma(MMA_SMALL, "x4", "k", hooks=CHANGE)}
MMA |= {"large with an epilogue": make_mma(MMA_LARGE, "k", "x4", hooks=BIAS)}
COPIERS = {f"{kind} {along}": make_pack(kind, along) for kind in ("tf32", "bf16") for along in (True, False)}
NEW = (9, 0)


@cache
def ptx_of(kernel, cc):
    return compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, cc).ptx


def count(pattern, ptx):
    return len(re.findall(pattern, ptx))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WGMMA)
def test_wgmma(name):
    """A tile of 128 bytes along k in four steps; nothing is copied or added up by threads."""
    kernel = WGMMA[name]
    ptx = ptx_of(kernel, (*NEW, "a"))
    right = kernel.constants[3]
    shape = f"m64n{right}k{16 if 'bf16' in name else 8}"
    products = count(rf"wgmma\.mma_async\.sync\.aligned\.{shape}\.f32", ptx)
    assert products == count(r"wgmma\.mma_async", ptx)
    assert products in (4, 12), "the loop is unrolled"
    assert "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" in ptx
    assert count(r"mbarrier\.init", ptx) == 2 * pipeline_sizes(right)[0]
    assert count(r"setmaxnreg\.(inc|dec)", ptx) == 2
    assert not re.search(r"(?m)^\s*cp\.async\.c[ag]|fma\.rn\.f32.*acc|ld\.global\.v4\.f32.*left", ptx)
    assert count(r"ld\.shared\.v2\.b32", ptx) == (2 * products if "crosswise" in name else 0)
    assert ".local" not in ptx
    assert ".f64" not in ptx
    assert not re.search(r"(div|rem)\.[su]64", ptx), "a division of 64 bits is a call, and then no wgmma runs ahead"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WGMMA)
def test_linked_wgmma_keeps_its_registers_and_stays_asynchronous(name):
    core = pytest.importorskip("cuda.core", reason='cuda.core is not installed: pip install "minifuse[cuda13]"')
    from minifuse.backends.cuda.compiler import compile_with_numba

    kernel = WGMMA[name]
    code = compile_with_numba(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (*NEW, "a"), "ltoir")
    options = core.LinkerOptions(arch="sm_90a", link_time_optimization=True, ptxas_options=["-v"])
    linker = core.Linker(core.ObjectCode.from_ltoir(code), options=options)
    linker.link("cubin")
    log = linker.get_info_log()
    assert int(re.search(r"(\d+) bytes spill stores", log)[1]) == 0
    assert "Performance Loss" not in log, log


def test_the_name_of_a_linked_cubin():
    kernel = WGMMA["tf32"]
    name, _, cubin = compile_lto_cubin(kernel.function, kernel.signature, kernel.threads, kernel.blocks, NEW).partition(
        b"\n"
    )
    assert b"matmul_wgmma" in name
    assert set(CUBIN_SECTION.findall(cubin)) == {name}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("cc", [(8, 0), NEW])
@pytest.mark.parametrize("name", MMA)
def test_mma(name, cc):
    kernel = MMA[name]
    ptx = ptx_of(kernel, cc)
    is_half, (_, _, depth), (rows, columns) = "bf16" in name, MMA_LARGE.tile, (64, 64) if "large" in name else (32, 32)
    step = 16 if is_half else 8
    shape = "m16n8k16.row.col.f32.bf16.bf16.f32" if is_half else "m16n8k8.row.col.f32.tf32.tf32.f32"
    assert count(re.escape(f"mma.sync.aligned.{shape}"), ptx) == rows // 16 * (columns // 8) * depth // step
    assert count(r"ld\.shared\.v2\.[fb]32", ptx) == (rows + columns) // 16 * depth // 4
    rounded = (rows + columns) // 16 * 2 * depth // 4
    assert count(r"cvt\.rn\.bf16x2\.f32" if is_half else r"cvt\.rna\.tf32\.f32", ptx) == rounded // (2 if is_half else 1)
    assert "cp.async" in ptx
    assert ".local" not in ptx


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MMA)
def test_mma_finds_enough_registers(name):
    core = pytest.importorskip("cuda.core", reason='cuda.core is not installed: pip install "minifuse[cuda13]"')
    kernel = MMA[name]
    options = core.LinkerOptions(arch="sm_90", ptxas_options=["-v"])
    linker = core.Linker(core.ObjectCode.from_ptx(ptx_of(kernel, NEW).encode()), options=options)
    linker.link("cubin")
    log = linker.get_info_log()
    assert int(re.search(r"(\d+) bytes spill stores", log)[1]) == 0, log
    assert int(re.search(r"Used (\d+) registers", log)[1]) * kernel.threads * kernel.blocks <= 65536


@pytest.mark.parametrize("name", COPIERS)
def test_copies_are_stored_in_fours(name):
    ptx = ptx_of(COPIERS[name], NEW)
    if name.startswith("bf16"):
        assert count(r"cvt\.rn\.bf16x2\.f32", ptx) > 0
    else:
        assert count(r"st\.global\.v4\.[fb]32", ptx) > 0
    assert ".local" not in ptx
