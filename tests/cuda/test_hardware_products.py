"""Matrix products and gradients on a GPU: sizes, strides, batches, dtypes. NumPy and the CPU's backend are the judges."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.planned_launcher import CudaMatmulLauncher
from minifuse.core.layout import Layout
from minifuse.core.operators import exp, gelu, log, relu, tanh
from minifuse.ir.kernel_ir import ReadOutput
from minifuse.testing import assert_close, gradcheck

from ..equivalence import test_matmul as products
from ..unit.test_cuda_matmul_fusion import DOT, EPILOGUES, Case, floats, whole
from ..unit.test_cuda_matmul_launches import VIEWS
from .conftest import bits
from .simulated import simulated

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

SIZES = [(1, 1, 1), (1, 4096, 1), (1, 1, 4096), (4096, 1, 3), (31, 33, 32), (33, 31, 65), (64, 128, 16), (127, 129, 65)]
SIZES += [
    (128, 128, 128),
    (255, 257, 33),
    (1023, 1025, 7),
    (512, 512, 512),
    (65, 64, 4099),
    (2048, 100, 1031),
    (3, 4097, 5000),
]
DTYPES = ["float32", "float64", "int32", "int64", "bool"]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_size_in_each_order_of_memory(size):
    m, n, k = size
    a, b = products.sample((m, k)), products.sample((k, n), seed=1)
    x, y = mf.tensor(a), mf.tensor(b)
    right = mf.tensor(np.ascontiguousarray(b.T)).T
    left = mf.tensor(np.ascontiguousarray(a.T)).T
    for u, v in ((x, y), (left, y), (x, right), (left, right)):
        products.check(u @ v, a, b)
    products.check((right.T @ left.T), b.T, a.T)


@pytest.mark.parametrize("size", [(33, 31, 65), (129, 130, 67), (256, 256, 256)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_every_dtype(size, dtype):
    m, n, k = size
    a, b = products.sample((m, k), dtype), products.sample((k, n), dtype, seed=1)
    products.check(mf.tensor(a) @ mf.tensor(b), a, b)
    products.check(mf.tensor(b).T @ mf.tensor(a).T, b.T, a.T)


@pytest.mark.parametrize("start", [1, 2, 3])
def test_operands_that_begin_anywhere(start):
    """Rows that are no multiple of 16 bytes apart, or that do not begin at one."""
    a, b = products.sample((130, 70)), products.sample((70, 140), seed=1)
    for rows, columns in ((slice(None), slice(start, start + 64)), (slice(start, None), slice(0, 64))):
        x, y = mf.tensor(a)[rows, columns], mf.tensor(b)[columns, start:]
        products.check(x @ y, a[rows, columns], b[columns, start:])


@pytest.mark.parametrize(("left", "right"), products.RANKS + products.EMPTY, ids=str)
def test_every_rank_and_none_at_all(left, right):
    a, b = products.sample(left), products.sample(right, seed=1)
    products.check(mf.tensor(a) @ mf.tensor(b), a, b)


@pytest.mark.parametrize("left", products.LEFT)
@pytest.mark.parametrize("right", products.RIGHT)
def test_every_layout(left, right):
    a, b = products.sample(products.LEFT[left].base), products.sample(products.RIGHT[right].base, seed=1)
    x, y = products.LEFT[left](mf.tensor(a)), products.RIGHT[right](mf.tensor(b))
    products.check(x @ y, products.LEFT[left](a), products.RIGHT[right](b))


@pytest.mark.parametrize(("batch", "size"), [((7,), (65, 33, 40)), ((3, 5), (33, 64, 17)), ((70_000,), (2, 3, 4))], ids=str)
def test_batches(batch, size):
    m, n, k = size
    a, b = products.sample((*batch, m, k)), products.sample((*batch, k, n), seed=1)
    products.check(mf.tensor(a) @ mf.tensor(b), a, b)
    products.check(
        mf.tensor(a) @ mf.tensor(b)[..., :1, :, :] if len(batch) > 1 else mf.tensor(a) @ mf.tensor(b)[0],
        a,
        b[..., :1, :, :] if len(batch) > 1 else b[0],
    )


def test_nan_and_infinity_reach_only_their_row_and_column():
    a, b = products.sample((70, 40)), products.sample((40, 90), seed=1)
    a[3, 5], a[60, 0], b[7, 80] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        products.check(mf.tensor(a) @ mf.tensor(b), a, b)


@pytest.mark.parametrize("size", [(512, 512, 512), (64, 64, 8192), (257, 129, 1031)], ids=str)
def test_the_same_bits_in_two_runs(size):
    m, n, k = size
    x, y = mf.tensor(products.sample((m, k))), mf.tensor(products.sample((k, n), seed=1))
    first = bits(x @ y)
    assert all(bits(x @ y) == first for _ in range(3))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_interpreter_agrees(dtype):
    """Integers to the bit; of floats it adds in float64 what hardware adds by fma, and rounds once more."""
    a, b = products.sample((40, 33), dtype), products.sample((33, 50), dtype, seed=1)
    got, lanes = mf.tensor(a) @ mf.tensor(b), mf.tensor(a, backend=simulated()) @ mf.tensor(b, backend=simulated())
    assert_close(got, lanes.numpy(), "rounded", scale=8.0)
    if dtype == "int32":
        assert bits(got) == bits(lanes)


# Prologue and epilogue


def launched(case, backend):
    """Launch a case's product on the GPU as one kernel, whether that pays or not, and give the outputs back to the case."""
    outputs, inputs = case.layouts()
    placed = [backend.from_numpy(x) for x in (*case.outs, *case.inputs)]
    layouts = [Layout(x.shape, layout.strides, 0) for x, (_, _, layout) in zip((*outputs, *inputs), placed, strict=True)]
    bound = CudaMatmulLauncher(backend.device, case.kernel, layouts[: len(outputs)], layouts[len(outputs) :])
    bound(*[address for _, address, _ in placed], *case.numbers)
    found = zip(placed, case.kernel.pointwise_outputs, strict=False)
    case.outs = [backend.to_numpy(buffer, address, e.dtype, layout) for (buffer, address, layout), e in found]
    return [launch.kernel.name for runs, _ in bound.prepared.values() for _, launch in runs]


FUSED_SIZES = [
    (33, 68, 20),
    (127, 129, 65),
    (512, 512, 512),
    (1023, 1025, 257),
    (128, 256, 4099),
    (1, 4096, 300),
    (5, 70, 2049),
]
FUSED_SIZES += [(4096, 2, 200), (2048, 1030, 1000)]


@pytest.mark.parametrize(
    ("name", "size"),
    [(name, FUSED_SIZES[k % len(FUSED_SIZES)]) for k, name in enumerate(EPILOGUES)]
    + [(name, size) for name in ("three outputs", "an int") for size in FUSED_SIZES],
    ids=str,
)
def test_epilogues_of_every_kernel(name, size, on_gpu):
    """Of whole numbers, so that every sum is exact, and with it each comparison."""
    M, N, K = size
    shapes, make = EPILOGUES[name]
    others = [(*[M if n == 33 else n for n in shape[:-1]], N if shape[-1] == 68 else 1) for shape in shapes]
    a, b, *read = whole(2, (M, K), (K, N), *others)
    case = Case(lambda a, b, x, p: (a[0], b[0], make(DOT, x)), [a], [b], read)
    launched(case, on_gpu)
    case.check(case.expected())


PROLOGUES = {
    "of a": lambda a, b, p: (exp(a[0] * p[0]), b[0]),
    "of b": lambda a, b, p: (a[0], tanh(b[0]) + p[0]),
    "of both": lambda a, b, p: ((a[0] - a[1]) * p[0] + 1.0, log(b[0] * b[0] + 0.5) * b[1]),
}


@pytest.mark.parametrize("size", FUSED_SIZES[::2], ids=str)
@pytest.mark.parametrize("name", PROLOGUES)
@pytest.mark.parametrize(("left", "right"), [("plain", "plain"), ("turned", "turned"), ("sliced", "unaligned")])
def test_prologues_of_every_kernel(name, size, left, right, on_gpu):
    """Their values at 0 are no zeros: what lies past an edge must not get into a sum."""
    M, N, K = size
    a, b, rows, depth, bias = floats(3, (M, K), (K, N), (M, 1), (K, 1), (N,))
    is_both = name == "of both"
    of_a, of_b = [VIEWS[left](a), *[rows] * is_both], [VIEWS[right](b), *[depth] * is_both]
    case = Case(lambda a, b, x, p: (*PROLOGUES[name](a, b, p), (gelu(DOT * (1 / K)) + x[0],)), of_a, of_b, [bias], [0.25])
    launched(case, on_gpu)
    case.check(case.expected(), scale=2.0)


@pytest.mark.parametrize("seed", range(24))
def test_random_products_with_prologue_and_epilogue(seed, on_gpu):
    random = np.random.default_rng(seed)
    M, N, K = (int(2 ** random.uniform(0, 9)) + int(random.integers(0, 2)) for _ in range(3))
    batch = [(), (3,), (2, 3)][random.integers(3)]
    views = [list(VIEWS.values())[k] for k in random.integers(0, len(VIEWS), 3)]
    a, b, other = floats(seed, (*batch, M, K), (*batch, K, N), (*batch, M, N))
    other = [other, other[..., :1, :], other[..., :1]][random.integers(3)]
    functions = [lambda x: x, relu, tanh, lambda x: x * 0.5 + 1.0]
    of_a, of_b, of_sum = [functions[k] for k in random.integers(0, len(functions), 3)]

    def make(a, b, x, p):
        return of_a(a[0]), of_b(b[0]), (of_sum(DOT * p[0] + x[0]), DOT * p[0] - x[0])

    case = Case(make, [views[0](a)], [views[1](b)], [views[2](other)], [1 / K])
    launched(case, on_gpu)
    case.check(case.expected(), scale=2.0)


def test_a_residual_is_added_in_place(on_gpu):
    """In the kernel that adds the parts of a cut product, too; and the same bits come out of each run."""
    for size, names in (((512, 512, 512), {"matmul"}), ((128, 128, 8192), {"matmul", "add_parts"})):
        M, N, K = size
        a, b, start = floats(4, (M, K), (K, N), (M, N))
        found = []
        for _ in range(2):
            case = Case(lambda a, b, x, p: (a[0], b[0], (ReadOutput(0, DOT.dtype) + DOT,)), [a], [b], outs=[start.copy()])
            assert names <= set(launched(case, on_gpu))
            case.check(case.expected(), scale=16.0)
            found.append(case.outs[0].tobytes())
        assert found[0] == found[1]


# Gradients


@pytest.mark.parametrize(("left", "right"), products.RANKS, ids=str)
def test_gradients_of_products(left, right):
    a, b = [mf.tensor(products.sample(s, "float64"), requires_grad=True) for s in (left, right)]
    assert gradcheck(lambda a, b: a @ b, a, b)


GRADIENTS = {
    "chain": lambda x, w: mf.tanh(x @ w + 1).sum(),
    "softmax": lambda x, w: ((x @ w).softmax(1) * x[:, :1]).sum(),
    "layer norm": lambda x, w: ((x - x.mean(1, True)) / (x.var(1, keepdim=True) + 1e-5).sqrt() * w[0, 0]).sum(),
    "columns": lambda x, w: (x.max(0) * x.sum(0)).sum() + (w * w).mean(),
    "views": lambda x, w: (x[1:, ::2].T @ x[:-1, 1::2] * 0.1).sum() + w.flip(0).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("shape", [(6, 8, 5), (129, 66, 33)], ids=str)
def test_gradients_are_those_of_the_cpu(name, shape):
    m, k, n = shape
    a, b = products.sample((m, k), "float64"), products.sample((k, n), "float64", seed=1) / k
    found = []
    for backend in ("cuda", "parallel"):
        x, w = [mf.tensor(v, backend=backend, requires_grad=True) for v in (a, b)]
        GRADIENTS[name](x, w).backward()
        found.append((x.grad, w.grad))
    for got, expected in zip(*found, strict=True):
        if expected is not None:
            assert_close(got, expected.numpy(), "program", n=m * n, scale=4.0)
