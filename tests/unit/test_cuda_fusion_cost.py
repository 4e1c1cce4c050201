"""backends.cuda.matmul.fusion_cost: which prologues and epilogues are fused into a matmul, and why others are not."""

import re

import numpy as np
import pytest

from minifuse.backends.cuda.matmul.fusion_cost import MAX_EPILOGUE_ARRAYS, MAX_EPILOGUE_COST, why_not_fused_matmul
from minifuse.backends.cuda.planned_launcher import CudaMatmulLauncher
from minifuse.backends.fallback import MatmulSequence
from minifuse.core.dtypes import float32, float64, int64
from minifuse.core.layout import row_major
from minifuse.core.operators import abs as absolute
from minifuse.core.operators import exp, gelu, log, relu, sin
from minifuse.ir.kernel_ir import Accumulator, IndexValue, KernelParameter, Load, cast
from minifuse.ir.step_kernels import MatmulKernel
from tests.steps import matmul_step

from ..cuda.simulated import simulated
from .test_cuda_matmul_launches import address_of, layout_of

DOT, A, B = Accumulator(float32), Load(0, float32), Load(1, float32)


def refused(kernel, M, N, K, **vectors):
    """Why a product of dense matrices is refused; what is loaded besides a and b is dense too, or one of `vectors`."""
    (of_a, of_b, others), inputs = kernel.loads(), {}
    for loads, shape in ((of_a, (M, K)), (of_b, (K, N)), (others, (M, N))):
        inputs |= {x.index: vectors.get(f"x{x.index}", row_major(shape)) for x in loads}
    return why_not_fused_matmul(
        kernel, [row_major((M, N))] * len(kernel.pointwise_outputs), [inputs[k] for k in sorted(inputs)]
    )


EPILOGUES = [
    DOT,
    relu(DOT),
    gelu(DOT + Load(2, float32)),
    DOT * KernelParameter(0, float32) + Load(2, float32),
    exp(DOT) / DOT,
]


@pytest.mark.parametrize("sizes", [(4096, 4096, 4096), (1, 4096, 4096), (64, 64, 8192), (0, 5, 7), (5, 7, 0)], ids=str)
def test_epilogues_are_part_of_the_product(sizes):
    for e in EPILOGUES:
        assert refused(MatmulKernel(A, B, (e,)), *sizes) == ""


def test_an_epilogue_that_reads_too_much():
    loads = [Load(k, float32) for k in range(2, 2 + MAX_EPILOGUE_ARRAYS)]
    assert refused(MatmulKernel(A, B, (sum(loads[:-1], DOT),)), 512, 512, 512) == ""
    found = refused(MatmulKernel(A, B, (sum(loads, DOT),)), 512, 512, 512)
    assert re.search(
        rf"epilogue loads and stores {MAX_EPILOGUE_ARRAYS + 1} arrays; with more than {MAX_EPILOGUE_ARRAYS} the", found
    )


def test_an_epilogue_that_computes_too_much():
    e = DOT
    for _ in range(4):
        e = sin(e) + 1.0
    assert re.search(
        f"epilogue costs [0-9]+ additions per element; above {MAX_EPILOGUE_COST}, ",
        refused(MatmulKernel(A, B, (e,)), 64, 64, 64),
    )


def test_a_prologue_pays_where_few_blocks_read_an_element():
    few = MatmulKernel(relu(A), B, (DOT,))
    assert refused(few, 4096, 64, 4096) == refused(few, 256, 256, 256) == refused(few, 1, 4096, 4096) == ""
    assert "would recompute the prologue of a" in refused(few, 4096, 4096, 4096)
    assert "would recompute the prologue of b" in refused(MatmulKernel(A, relu(B), (DOT,)), 4096, 4096, 4096)
    assert refused(MatmulKernel(A, relu(B), (DOT,)), 4, 4096, 4096) == ""  # b is read once


def test_a_dearer_prologue_pays_less():
    values = [A * 2.0, exp(A), gelu(exp(A)), sin(sin(sin(exp(A))))]
    for sizes in ((4096, 64, 1024), (1024, 256, 1024), (4, 4096, 4096)):
        found = [not refused(MatmulKernel(e, B, (DOT,)), *sizes) for e in values]
        assert found == sorted(found, reverse=True)
        assert found[0] > found[-1]


def test_a_prologue_of_one_array_and_vectors():
    x, y = Load(1, float32), Load(2, float32)
    rows, depth = row_major((300, 1)).expand(300, 40), row_major((40,)).expand(300, 40)
    kernel = MatmulKernel((A - x) * y + KernelParameter(0, float32), Load(3, float32), (DOT,))
    assert refused(kernel, 300, 50, 40, x1=rows, x2=depth) == ""
    assert refused(kernel, 300, 50, 40, x1=rows).startswith(
        "the prologue of a loads 2 arrays, and a tile is copied from one"
    )
    swapped = MatmulKernel(A, Load(1, float32) * Load(2, float32), (DOT,))
    assert refused(swapped, 300, 50, 40).startswith("the prologue of b loads 2 arrays")


def test_a_prologue_that_converts():
    wide = MatmulKernel(cast(A, float64), Load(1, float64), (Accumulator(float64),))
    assert (
        refused(wide, 30, 30, 30)
        == "the prologue of a converts float32 to float64, but a tile is copied in the type that is multiplied"
    )
    assert refused(MatmulKernel(A, cast(cast(B, int64), float32), (DOT,)), 30, 30, 30) == ""  # to where it came from


def test_index_values_are_not_copied():
    index = IndexValue(0, int64)
    assert refused(MatmulKernel(cast(index, float32), B, (DOT,)), 9, 9, 9).startswith("the prologue of a loads no array")
    assert refused(MatmulKernel(index, Load(1, int64), (Accumulator(int64),)), 9, 9, 9).startswith(
        "the prologue of a loads no array"
    )
    ranges = MatmulKernel(A + cast(IndexValue(1, int64), float32), Load(2, float32), (DOT,))
    assert refused(ranges, 9, 9, 9) == ""


def run(backend, kernel, out, *inputs):
    """Bind and launch a product."""
    launch = backend.compile(matmul_step(kernel, [layout_of(out)], [layout_of(x) for x in inputs])).load()
    launch(*[address_of(x) for x in (out, *inputs)])
    return launch


def test_a_product_that_is_refused_is_computed_all_the_same():
    backend, random = simulated(), np.random.default_rng(0)
    a, b, mask = [random.standard_normal(shape).astype(np.float32) for shape in ((5, 6), (6, 7), (5, 6))]
    out = np.full((5, 7), np.nan, np.float32)
    kernel = MatmulKernel(Load(0, float32) * Load(1, float32), log(absolute(Load(2, float32)) + 1.0), (relu(DOT),))
    launch = run(backend, kernel, out, a, mask, b)
    assert isinstance(launch.__self__, MatmulSequence)
    exact = np.maximum((a * mask).astype(float) @ np.log(np.abs(b.astype(float)) + 1), 0)
    np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-5)


def test_why_not_fused_names_the_reason():
    backend, layouts = simulated(), [row_major((512, 8192)), row_major((8192, 512)), row_major((512, 512))]
    kernel = MatmulKernel(A, B, (relu(DOT + Load(2, float32)),))
    step = matmul_step(kernel, layouts[2:], layouts)
    assert backend.supports(step) is None
    assert isinstance(backend.compile(step).load(), CudaMatmulLauncher)
    product, adder = backend.compile(step).source.split("# add_parts")
    assert product.startswith("# matmul ")
    assert "def" not in product
    assert "maximum((total + x2), f32(0.0))" in adder
    refused_step = matmul_step(MatmulKernel(relu(A), B, (DOT,)), [row_major((4096, 4096))], [row_major((4096, 4096))] * 2)
    assert backend.compile(refused_step).source
