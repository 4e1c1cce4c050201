"""The kernels of matrix products, compiled for GPUs that need not be there: their instructions, registers and limits."""

import re
from functools import cache

import pytest

from minifuse.backends.cuda.compiler import compile_ptx
from minifuse.backends.cuda.matmul.element_types import element_name, make_sum_parts
from minifuse.backends.cuda.matmul.epilogue import build_hooks, hook_expressions
from minifuse.backends.cuda.matmul.float64 import make_float64
from minifuse.backends.cuda.matmul.gemv import make_gemv_dots, make_gemv_rows
from minifuse.backends.cuda.matmul.ladder import LADDER, SIDE, make_matmul
from minifuse.backends.cuda.matmul.transpose_operand import make_transpose
from minifuse.backends.cuda.tile_shapes import LARGE, MIDDLE, NARROW, SLIM, SMALL, WIDE
from minifuse.core.dtypes import bool_, float32, float64, int32, int64
from minifuse.core.operators import exp, gelu, gt, relu, tanh
from minifuse.ir.kernel_ir import Accumulator, KernelParameter, Load, cast
from minifuse.ir.step_kernels import MatmulKernel

NEW, OLD = (9, 0), (7, 5)
REGISTERS = 65536  # of a multiprocessor
SHAPES = {"LARGE": LARGE, "SMALL": SMALL, "MIDDLE": MIDDLE, "NARROW": NARROW}
MODES = {"LARGE": ("k x4", "x4 k", "x x", "x4 x4"), "MIDDLE": ("k x4",)}
MODES |= {"SMALL": ("k x4", "k k", "x x"), "NARROW": ("k x4", "x4 x", "x x")}
TILES = {f"{name} {modes}": make_matmul(SHAPES[name], *modes.split()) for name, found in MODES.items() for modes in found}
TILES |= {f"{name} guarded": make_matmul(SHAPES[name], "k", "x4", True) for name in ("SMALL", "NARROW")}
EACH = ((float64, WIDE), (float64, SLIM), (int32, LARGE), (int64, WIDE), (bool_, SMALL))
OTHERS = {
    f"{dtype} {k}": make_matmul(shape, "k", "x4", element=element_name(dtype)) for k, (dtype, shape) in enumerate(EACH)
}
OTHERS |= {
    f"add parts of {dtype}, {tall}": make_sum_parts(dtype, tall) for dtype in (float32, bool_) for tall in (False, True)
}
OTHERS |= {f"add parts of {int64}": make_sum_parts(int64), f"turn {float32}": make_transpose(float32)}
FLAT = (
    (float32, True, 8),
    (float32, True, 1),
    (float32, False, 8),
    (float64, True, 4),
    (float64, True, 1),
    (bool_, False, 1),
)
OTHERS |= {f"rows of {dtype}, {wide}, {most}": make_gemv_rows(dtype, wide, most, 8) for dtype, wide, most in FLAT}
OTHERS |= {f"rows of {float32} along a warp": make_gemv_rows(float32, True, 8, 32)}
OTHERS |= {f"dots of {dtype}, {wide}, {most}": make_gemv_dots(dtype, wide, most, 8) for dtype, wide, most in FLAT}
OTHERS |= {f"dots of {float32} in a warp": make_gemv_dots(float32, True, 8, 1)}
DOUBLES = {f"float64, {a} {b}": make_float64(a, b) for a, b in (("k4", "x4"), ("x4", "k4"), ("k", "x"))}
OTHERS |= DOUBLES
RUNGS = {name: LADDER[name].kernel(64, 64, 64) for name in LADDER if name != "in_use"}
A, B, X, Y, DOT, P = *[Load(k, float32) for k in range(4)], Accumulator(float32), KernelParameter(0, float32)
ROW, COLUMN, MATRIX, BATCHES = "00010", "00s00", "00s10", "sss10"  # classes along two axes of a batch, rows, columns and K
EPILOGUES = {
    "bias, relu": ((relu(DOT + X),), (("in2", ROW),), "LARGE SMALL"),
    "bias, gelu": ((gelu(DOT + X),), (("in2", ROW),), "LARGE"),
    "tanh and residual": ((tanh(DOT * P + X) + Y,), (("in2", ROW), ("in3", MATRIX)), "SMALL NARROW rows dots parts"),
    "residuals of a batch": ((DOT + X,), (("in2", BATCHES),), "LARGE NARROW"),
    "two outputs, one bool": (
        (DOT * X, gt(DOT, Y)),
        (("in2", COLUMN), ("in3", ROW), ("out1", MATRIX)),
        "SMALL guarded rows dots parts",
    ),
    "another type": ((cast(DOT, int32),), (), "NARROW"),
}
PROLOGUES = {
    "of a": (relu(A), B, (), "LARGE dots"),
    "of both": (exp(A) * P, B * 2.0 + 1.0, (), "SMALL guarded rows"),
    "normalised": ((A - X) * Y, B, (("in2", COLUMN), ("in3", COLUMN)), "LARGE NARROW"),
}


def with_hooks(name, kernel, classes, kinds):
    """The kernels of some kinds with a prologue and epilogue."""
    hooks = build_hooks(hook_expressions(kernel, (0, 1), False), classes)
    makers = {size: lambda size=size: make_matmul(SHAPES[size], "k", "x4", hooks=hooks) for size in SHAPES}
    makers |= {"guarded": lambda: make_matmul(NARROW, "x4", "k", True, hooks=hooks)}
    makers |= {"parts": lambda: make_sum_parts(float32, False, hooks)}
    makers |= {
        "rows": lambda: make_gemv_rows(float32, True, 8, 8, hooks),
        "dots": lambda: make_gemv_dots(float32, True, 8, 8, hooks),
    }
    return {f"{kind}: {name}": makers[kind]() for kind in kinds.split()}


WITH_EPILOGUE, WITH_PROLOGUE = {}, {}
for name, (elements, *more) in EPILOGUES.items():
    WITH_EPILOGUE |= with_hooks(name, MatmulKernel(A, B, elements), *more)
for name, (a, b, *more) in PROLOGUES.items():
    WITH_PROLOGUE |= with_hooks(name, MatmulKernel(a, b, (DOT,)), *more)
SPILLED = 128  # bytes of a thread, at most, where a prologue shares its registers with the sums: some addresses
KERNELS = RUNGS | TILES | OTHERS | WITH_EPILOGUE | WITH_PROLOGUE


@cache
def ptx_of(name, cc=NEW):
    kernel = KERNELS[name]
    return compile_ptx(kernel.function, kernel.signature, kernel.threads, kernel.blocks, cc).ptx


def count(pattern, ptx):
    return len(re.findall(pattern, ptx))


@pytest.mark.sampled(18)
@pytest.mark.parametrize("name", KERNELS)
def test_sums_stay_in_registers_and_in_their_type(name):
    kernel, ptx = KERNELS[name], ptx_of(name)
    assert ".local" not in ptx
    assert (".f64" in ptx) == ("*f64" in kernel.signature)
    assert f".maxntid {kernel.threads}" in ptx
    assert kernel.blocks == 1 or f".minnctapersm {kernel.blocks}" in ptx
    assert "call" not in re.sub(r"//.*", "", ptx)


@pytest.mark.sampled(18)
@pytest.mark.parametrize("name", KERNELS)
def test_the_assembler_finds_enough_registers(name):
    core = pytest.importorskip("cuda.core", reason='cuda.core is not installed: pip install "minifuse[cuda13]"')
    kernel, cc = KERNELS[name], NEW
    options = core.LinkerOptions(arch=f"sm_{cc[0]}{cc[1]}", ptxas_options=["-v"])
    linker = core.Linker(core.ObjectCode.from_ptx(ptx_of(name).encode()), options=options)
    linker.link("cubin")
    log = linker.get_info_log()
    spilled = int(re.search(r"(\d+) bytes spill stores", log)[1])
    assert spilled <= (SPILLED if name in WITH_PROLOGUE else 0), log
    registers = int(re.search(r"Used (\d+) registers", log)[1])
    assert registers * kernel.threads * kernel.blocks <= REGISTERS


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", TILES)
def test_tiles(name):
    """Each step of a tile: two groups of four values from shared memory, and an fma for each pair of values."""
    shape, ptx = SHAPES[name.split()[0]], ptx_of(name)
    (_, _, BK), (WM, WN), (LM, LN) = shape.tile, shape.warp, shape.lanes
    rows, columns = WM // LM, WN // LN
    assert count(r"fma\.rn\.f32", ptx) == rows * columns * BK
    assert count(r"ld\.shared\.v4\.[fb]32", ptx) == (rows + columns) // 4 * BK
    assert count(r"st\.global\.v4\.[fb]32", ptx) == rows * columns // 4
    assert count(r"cp\.async\.commit_group", ptx) >= 2
    assert count(rf"cp\.async\.wait_group {shape.stages - 2};", ptx) >= 1
    assert not re.search(r"ld\.global|st\.shared", ptx)  # copies do not go through registers
    sizes = {"x4": 16, "k": 4, "x": 4}
    modes = name.split()[1:] if "guarded" not in name else ["k", "x4"]
    assert {int(n) for n in re.findall(r"cp\.async\.c[ag]\.shared\.global \[%r\d+\], \[%rd\d+\], (\d+)", ptx)} == {
        sizes[mode] for mode in modes
    }


@pytest.mark.parametrize("name", ["SMALL k x4", "NARROW x4 x"])
def test_gpus_without_asynchronous_copies(name):
    ptx = ptx_of(name, OLD)
    assert "cp.async" not in ptx
    assert re.search(r"ld\.global(\.nc)?\.v4\.[fb]32", ptx)
    assert re.search(r"st\.shared\.v4\.[fb]32", ptx)
    assert ".local" not in ptx


def test_vector_loads_of_the_ladder():
    scalar, vector = ptx_of("squares"), ptx_of("vector_loads")
    assert not re.search(r"ld\.(global|shared)(\.nc)?\.v4", scalar)
    assert count(r"ld\.global(\.nc)?\.v4\.[fb]32", vector) == 2
    assert count(r"ld\.shared\.v4\.[fb]32", vector) % (2 * SIDE // 4) == 0
    assert count(r"st\.global\.v4\.[fb]32", vector) == SIDE * SIDE // 4


@pytest.mark.parametrize(
    ("name", "loads"),
    [("rows of float32, True, 8", 12), ("rows of float32, True, 1", 10), ("dots of float32, True, 8", 12)],
)
def test_a_few_rows_are_loaded_16_bytes_at_a_time(name, loads):
    """Of rows, b four or eight k ahead, and as many of a; of dots, four columns of b and eight rows of a."""
    is_last = 4 if "8" in name.split(",")[-1] else 8  # loads of b at the end of K
    assert count(r"ld\.global(\.nc)?\.v4\.[fb]32", ptx_of(name)) == loads + is_last * ("rows" in name)
    assert not re.search(r"ld\.global(\.nc)?\.v4", ptx_of("rows of float32, False, 8"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", DOUBLES)
@pytest.mark.parametrize(("cc", "instruction", "count_of_it"), [(NEW, "m8n8k4", 128), (OLD, "", 0)])
def test_float64_by_tensor_cores(name, cc, instruction, count_of_it):
    """A step of 16 k of a warp's 64 x 32 sums; where there are no tensor cores, each lane's 64 sums by fma."""
    ptx = ptx_of(name, cc)
    assert count(r"mma\.sync", ptx) == count_of_it
    assert f"mma.sync.aligned.{instruction}.row.col.f64" in ptx or not instruction
    assert count(r"fma\.rn\.f64", ptx) == (0 if instruction else 64 * 16)
    assert ".local" not in ptx


def test_a_turn_loads_and_stores_16_bytes():
    ptx = ptx_of("turn float32")
    assert count(r"ld\.global(\.nc)?\.v4\.[fb]32", ptx) == 4
    assert count(r"st\.global\.v4\.[fb]32", ptx) == 4


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in WITH_EPILOGUE if name.split(":")[0] in SHAPES])
def test_four_neighbours_of_an_epilogue_at_once(name):
    """What lies along rows is loaded and stored in 16 bytes a thread; of bools, in 4."""
    size, epilogue = name.split(": ")
    (WM, WN), (LM, LN), ptx = SHAPES[size].warp, SHAPES[size].lanes, ptx_of(name)
    fours = WM // LM * (WN // LN) // 4
    elements, classes, _ = EPILOGUES[epilogue]
    loads = sum(operand.startswith("in") and kind[3] == "1" for operand, kind in classes)
    assert count(r"ld\.global(\.nc)?\.v4\.[fb]32", ptx) == fours * loads
    assert count(r"st\.global\.v4\.[fbu]32", ptx) == fours
    assert count(r"st\.global\.(v4\.[ub]8|[ub]32)", ptx) >= fours * (len(elements) - 1)
    assert "cp.async" in ptx


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [name for name in WITH_PROLOGUE if name.split(":")[0] in SHAPES])
def test_a_prologue_changes_tiles_where_they_are(name):
    """Copies still go past the registers; what is changed comes back to shared memory."""
    shape, ptx = SHAPES[name.split(":")[0]], ptx_of(name)
    assert "cp.async" in ptx
    assert "st.shared" in ptx
    (_, _, BK), (WM, WN), (LM, LN) = shape.tile, shape.warp, shape.lanes
    assert count(r"fma\.rn\.f32", ptx) >= WM // LM * (WN // LN) * BK


def test_an_epilogue_costs_few_instructions():
    """Beside 64 sums of 4096 products each, fewer than one in a hundred."""
    plain, more = [count(r"(?m)^\t@?[a-z%]", ptx_of(name)) for name in ("LARGE k x4", "LARGE: bias, relu")]
    assert 0 < more - plain < 64 * 4096 // 100
