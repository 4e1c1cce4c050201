"""backends.parallel.implicit_gemm_conv against float64: partial panels and strips, layouts, and cases that copy windows."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.parallel import implicit_gemm_conv
from minifuse.backends.parallel.backend import ParallelBackend
from minifuse.core.layout import row_major
from minifuse.ir.array_functions import BoundFunction, Matmul
from minifuse.nn.im2col import WindowProduct
from tests.steps import composite_step

ROOT = Path(__file__).parents[2]

# (groups, M, channels of a group, image, N, size, step, dilation)
CASES = {
    "one row": (1, 1, 3, (9, 7), 16, (3, 3), (1, 1), (1, 1)),
    "a whole panel": (1, 8, 2, (5, 6), 16, (2, 3), (1, 1), (1, 1)),
    "past a panel": (1, 9, 2, (5, 7), 11, (2, 2), (1, 1), (1, 1)),
    "past a strip": (1, 17, 4, (300,), 3, (3,), (1,), (1,)),
    "groups": (3, 5, 2, (6, 6), 17, (3, 2), (1, 1), (1, 1)),
    "depthwise": (7, 1, 1, (6, 9), 8, (3, 3), (1, 1), (1, 1)),
    "stride": (2, 3, 3, (9, 11), 33, (3, 2), (2, 3), (1, 1)),
    "dilation": (1, 6, 2, (11, 30), 2, (3, 3), (1, 1), (2, 3)),
    "one example": (1, 4, 3, (8, 60), 1, (3, 5), (2, 1), (1, 1)),
    "one place on an axis": (1, 4, 3, (3, 40), 2, (3, 5), (1, 1), (1, 1)),
}


def operands(case, dtype):
    groups, m, channels, image, n, size, _, _ = CASES[case]
    draw = np.random.default_rng(len(case)).standard_normal
    shapes = (groups, m, channels * int(np.prod(size))), (groups * channels, *image, n), (groups * m,)
    return [draw(shape).astype(dtype) for shape in shapes]


def exact(case, weight, z, *bias):
    """One window after the other."""
    groups, m, channels, _, _, size, step, dilation = CASES[case]
    view = z.astype(np.float64)
    view = np.lib.stride_tricks.sliding_window_view(
        view, [d * (k - 1) + 1 for d, k in zip(dilation, size, strict=True)], tuple(range(1, z.ndim - 1))
    )
    dims = len(size)
    view = view[(slice(None), *[slice(None, None, s) for s in step], slice(None), *[slice(None, None, d) for d in dilation])]
    matrix = np.moveaxis(view, range(2 + dims, 2 + 2 * dims), range(1, 1 + dims))  # (C, *size, *places, N)
    y = weight.astype(np.float64) @ matrix.reshape(groups, channels * int(np.prod(size)), -1)
    return y + bias[0].reshape(groups, m, 1) if bias else y


def product(weight, z, *rest):
    """As one captured call; the last is the function."""
    *bias, function = rest
    return function(weight, z, *bias)[0]


def function_of(case, dtype):
    *_, size, step, dilation = CASES[case]
    return WindowProduct(size, step, dilation, dtype, Matmul())


def multiplied(case, *tensors):
    found = BoundFunction(product, (function_of(case, tensors[0].dtype),))
    return tensors[0].apply(found, *tensors)


@pytest.mark.sampled(2, each="case")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_with_and_without_a_bias(case, dtype):
    given = operands(case, dtype)
    for some in (given[:2], given):
        step = composite_step(
            function_of(case, getattr(mf, dtype)), [row_major(x.shape) for x in some], [getattr(mf, dtype)] * len(some)
        )
        assert ParallelBackend().supports(step) is None
        found = multiplied(case, *[mf.tensor(x) for x in some]).numpy()
        wanted = exact(case, *some)
        np.testing.assert_allclose(found, wanted, atol=(1e-5 if dtype == "float32" else 1e-13) * np.abs(wanted).max())


@pytest.mark.parametrize("case", ["past a panel", "groups", "stride"])
def test_operands_in_any_layout(case):
    weight, z, bias = operands(case, "float32")
    wanted = exact(case, weight, z, bias)
    turned = mf.tensor(weight.transpose(2, 0, 1).copy()).permute(1, 2, 0)
    wide = mf.tensor(np.repeat(bias, 2))[::2]
    images = mf.tensor(z.T.copy()).permute(*reversed(range(z.ndim)))  # examples are no neighbours
    apart = mf.tensor(np.repeat(z, 2, 0))[::2]
    flipped = mf.tensor(z[:, ::-1].copy()).flip(1)
    for x in (images, apart, flipped):
        found = multiplied(case, turned, x, wide).numpy()
        np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())


def test_overlapping_windows_are_read_without_a_copy():
    weight, z, _ = operands("groups", "float32")
    one = mf.tensor(np.ones(1, np.float32)).expand(*z.shape)
    wanted = exact("groups", weight, np.ones_like(z))
    np.testing.assert_allclose(multiplied("groups", mf.tensor(weight), one).numpy(), wanted, atol=1e-4)


def test_results_are_stored_where_they_belong():
    """Into every second column of something else."""
    weight, z, _ = map(mf.tensor, operands("past a panel", "float32"))
    wanted = multiplied("past a panel", weight, z)
    place = mf.zeros(*wanted.shape[:2], 2 * wanted.shape[2])

    @mf.fuse
    def store(place, weight, z):
        place[:, :, ::2] = multiplied("past a panel", weight, z)

    store(place, weight, z)
    np.testing.assert_array_equal(place[:, :, ::2].numpy(), wanted.numpy())
    assert not place[:, :, 1::2].numpy().any()


@pytest.mark.parametrize(
    ("shape", "parameters", "is_worth"),
    [
        ((2, 6, 8, 16), ((3, 3), (1, 1), (1, 1), mf.float32), True),
        ((2, 6, 8, 15), ((3, 3), (2, 2), (1, 1), mf.float32), False),  # a run is shorter than a vector
        ((2, 6, 8, 15), ((3, 3), (2, 1), (1, 1), mf.float32), True),  # it is as long as a row of places
        ((2, 6, 8, 16), ((1, 1), (1, 1), (1, 1), mf.float32), False),  # no window
        ((2, 3, 3, 16), ((3, 3), (1, 1), (1, 1), mf.float32), False),  # one place: a product as any
        ((2, 6, 8, 16), ((3, 3), (1, 1), (1, 1), mf.int32), False),
        ((2, 6, 8, 0), ((3, 3), (1, 1), (1, 1), mf.float32), False),
    ],
)
def test_unsupported_windows_are_copied(shape, parameters, is_worth, monkeypatch):
    monkeypatch.setattr(implicit_gemm_conv, "lanes_of", lambda dtype: 64 // dtype.itemsize)  # vectors of 512 bits
    assert implicit_gemm_conv.is_profitable(parameters, [(1, 4, 18), shape]) == is_worth


def test_explain_lists_it_as_a_kernel():
    weight, z, _ = map(mf.tensor, operands("groups", "float32"))
    fused = mf.fuse(lambda weight, z: multiplied("groups", weight, z))
    (kernel,) = fused.explain(weight, z).forward.kernels
    assert kernel.formula == "window_product(weight, z)"
    assert kernel.flops == 2 * fused(weight, z).size * weight.shape[2]
    assert "multiply_windows(" in fused.source(weight, z)


FENCED = """
import ctypes, mmap
import numpy as np
from tests.steps import load
from minifuse.backends.parallel.backend import ParallelBackend
from minifuse.backends.parallel import conv_weight_grad
from minifuse.backends.parallel.implicit_gemm_conv import bind
from minifuse.core.dtypes import float32
from minifuse.ir.kernel_ir import Kernel, Load
from minifuse.core.layout import row_major
from tests.unit import test_conv_weight_grad as gradients
from tests.unit.test_implicit_gemm_conv import CASES, exact, function_of, operands

def fence(array):
    nbytes = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, nbytes + mmap.PAGESIZE), np.uint8)
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(memory.ctypes.data + nbytes), mmap.PAGESIZE, 0) == 0
    inside = np.ndarray(array.shape, array.dtype, memory, nbytes - array.nbytes)
    inside[...] = array
    return inside

backend = ParallelBackend()
for case in CASES:
    given = [fence(x) for x in operands(case, "float32")]
    wanted = exact(case, *given)
    out = fence(np.zeros(wanted.shape, np.float32))
    layouts = [row_major(x.shape) for x in (out, *given)]
    launch = bind(function_of(case, float32).parameters, layouts[:1], layouts[1:], None)
    launch(*[x.ctypes.data for x in (out, *given)])
    np.testing.assert_allclose(out, wanted, atol=1e-5 * np.abs(wanted).max())
for case in gradients.CASES:
    *given, wanted = map(fence, gradients.parts(case, "float32"))
    out = fence(np.zeros(wanted.shape, np.float32))
    layouts = [row_major(x.shape) for x in (out, *given)]
    launch = conv_weight_grad.bind(gradients.function_of(case, float32).parameters, layouts[:1], layouts[1:], None)
    launch(*[x.ctypes.data for x in (out, *given)])
    np.testing.assert_allclose(out, wanted, atol=1e-5 * np.abs(wanted).max())
for shape in ((19, 5), (16, 33), (31, 17)):
    x, y = fence(np.random.rand(*shape).astype(np.float32)), fence(np.zeros(shape[::-1], np.float32))
    layouts = [row_major(y.shape)], [row_major(x.shape).permute(1, 0)]
    load(backend, Kernel((Load(0, float32),), ()), y.shape, (), *layouts)(y.ctypes.data, x.ctypes.data)
    np.testing.assert_array_equal(y, x.T)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="memory is protected by mprotect")
def test_no_memory_behind_the_operands_is_read_or_written():
    """Of products of windows, of their gradients, and of copies into another order."""
    done = subprocess.run([sys.executable, "-c", FENCED], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
