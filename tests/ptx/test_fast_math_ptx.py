"""Kernels with fast math, compiled for a GPU that need not be there: which instructions they have, and which they lack."""

import re

import pytest

import minifuse as mf
from minifuse.backends.cuda.codegen.select import generate_kernel
from minifuse.backends.cuda.compiler import PtxKernel, compile_ptx, link_cubin
from minifuse.backends.cuda.intrinsics.fast_math import BOUNDS
from minifuse.backends.cuda.matmul.epilogue import build_hooks, hook_expressions
from minifuse.backends.cuda.matmul.ladder import make_matmul
from minifuse.backends.cuda.tile_shapes import SMALL
from minifuse.compiler.plan import Plan
from minifuse.core.dtypes import float32
from minifuse.core.operators import TABLE
from minifuse.ir.kernel_ir import Accumulator, Load, LoopNest
from minifuse.ir.step_kernels import MatmulKernel

from ..cuda.simulated import simulated
from .test_kernels_ptx import NEW, OLD, ptx_of
from .test_matmul_ptx import ROW

FAST = [entry for entry in TABLE.values() if entry.fast]
# What an approximation replaces: IEEE division and root, and the scaling by powers of 2 of the exact exponential.
EXACT = r"\b(div\.rn|rcp\.rn|sqrt\.rn)\.f32|fma\.r[mn]\.f32|ex2\.approx\.ftz"


def compiled(function, *shapes, dtype="float32", is_fast=True, cc=NEW):
    """PTX of the only kernel of a function."""
    with mf.use_fast_math(is_fast):
        (step,) = Plan(function, [mf.zeros(*shape, dtype=dtype, backend=simulated()) for shape in shapes]).steps
    outputs, inputs = step.layouts()
    return ptx_of(generate_kernel(step.kernel, LoopNest(step.shape, step.dims, [*outputs, *inputs])), cc)


@pytest.mark.parametrize("cc", [NEW, OLD])
@pytest.mark.parametrize("entry", FAST, ids=repr)
def test_an_approximation_is_a_few_instructions(entry, cc):
    shapes = [(6, 8)] * entry.arity
    fast, exact = compiled(entry, *shapes, cc=cc), compiled(entry, *shapes, is_fast=False, cc=cc)
    names = ["fast_div", "fast_exp"] if entry.name == "sigmoid" else [f"fast_{entry.name}"]
    for instruction in ", ".join(BOUNDS[name].instructions for name in names).split(", "):
        assert instruction in fast
    assert not re.search(EXACT, fast)
    assert re.search(EXACT, exact)
    assert not re.search(r"\.ftz|\.f64|\.local|\bcall\b", fast)


@pytest.mark.parametrize("entry", FAST, ids=repr)
def test_float64_is_compiled_as_before(entry):
    shapes = [(6, 8)] * entry.arity
    assert compiled(entry, *shapes, dtype="float64") == compiled(entry, *shapes, dtype="float64", is_fast=False)


def test_four_elements_are_loaded_and_stored_at_once():
    ptx = compiled(lambda x, y: mf.exp(x) / y, (6, 8), (6, 8))
    assert len(re.findall(r"ld\.global(?:\.nc)?\.v4", ptx)) >= 2
    assert "st.global.v4" in ptx


def test_a_row_has_one_reciprocal():
    ptx = compiled(lambda x: x.softmax(1), (6, 600))
    assert len(re.findall(r"div\.full\.f32", ptx)) == 1
    assert "ex2.approx.f32" in ptx


def test_the_epilogue_of_a_matmul():
    dot, x = Accumulator(float32), Load(2, float32)
    kernel = MatmulKernel(Load(0, float32), Load(1, float32), (TABLE["sigmoid"].fast(dot + x),))
    hooks = build_hooks(hook_expressions(kernel, (0, 1), False), (("in2", ROW),))
    matmul = make_matmul(SMALL, "k", "x4", hooks=hooks)
    ptx = compile_ptx(matmul.function, matmul.signature, matmul.threads, matmul.blocks).ptx
    assert "div.full.f32" in ptx
    assert "ex2.approx.f32" in ptx
    assert "div.rn" not in ptx


@pytest.mark.parametrize("cc", [NEW, OLD])
def test_the_assembler_accepts_all_instructions(cc):
    pytest.importorskip("cuda.core", reason='cuda.core is not installed: pip install "minifuse[cuda13]"')
    ptx = compiled(lambda x, y: mf.exp(x) / y + mf.rsqrt(x) * mf.sigmoid(y), (6, 8), (6, 8), cc=cc)
    assert len(link_cubin(PtxKernel(ptx, "kernel"), cc)) > 1000
