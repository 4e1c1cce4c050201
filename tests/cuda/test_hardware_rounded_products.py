"""Products on tensor cores: each kernel, prologue, epilogue, layouts, rounding, and that no other precision is taken."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.matmul.wgmma import RIGHT_ROWS
from minifuse.core.dtypes import HIGH, MEDIUM, float32, int32
from minifuse.core.operators import gelu, gt, relu, where
from minifuse.ir.kernel_ir import Accumulator, cast
from minifuse.testing import gradcheck

from ..equivalence import test_matmul as products
from ..unit.test_cuda_matmul_fusion import Case, floats, whole
from ..unit.test_cuda_matmul_launches import VIEWS
from .conftest import bits
from .cores import take
from .simulated import simulated
from .test_hardware_products import launched

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

DOT = Accumulator(float32)
LAYOUTS = {  # of a and b, so that a kernel can take them
    "along k": ("plain", "turned"),
    "crosswise": ("turned", "turned"),
    "crosswise, turned": ("plain", "plain"),
    "one made ready": ("turned", "plain"),
    "both made ready": ("sliced", "unaligned"),
    "large": ("plain", "plain"),
    "small": ("plain", "plain"),
}
UNITS = {HIGH: 2.0**-11, MEDIUM: 2.0**-8}  # half of the last place
SIZES = [(4, 8, 4), (128, 256, 32), (132, 260, 36), (256, 512, 260), (64, 1000, 1028), (1000, 72, 4100)]
ODD = [(1, 1, 1), (33, 65, 31), (129, 257, 67), (255, 513, 1001)]


def sizes_of(name):
    if name == "large":
        return [(128, 128, 33), (256, 512, 260), (300, 200, 1001)]
    return SIZES + ODD * (name in ("both made ready", "small"))


def kernels():
    return [(name, precision) for name in LAYOUTS for precision in (HIGH, MEDIUM)]


def tiles():
    """The kernels, each in all its tiles."""
    return [(*found, tile) for found in kernels() for tile in ((None,) if found[0] in ("large", "small") else RIGHT_ROWS)]


def layouts_of(name, precision):
    """bf16 is always made ready."""
    return "both made ready" if precision == MEDIUM and name not in ("large", "small") else name


@pytest.mark.parametrize(("name", "precision", "tile"), tiles())
@pytest.mark.parametrize("parts", [1, 3])
def test_every_kernel_is_exact_where_operands_are(name, precision, tile, parts, on_gpu, monkeypatch):
    for k, size in enumerate(sizes_of(name)):
        M, N, K = size
        if parts > 1 and K < 1000:
            continue
        take(monkeypatch, layouts_of(name, precision), parts, tile)
        a, b = whole(k, (M, K), (K, N))
        left, right = LAYOUTS[name]
        case = Case(lambda a, b, x, p: (a[0], b[0], (DOT,)), [VIEWS[left](a)], [VIEWS[right](b)], precision=precision)
        names = launched(case, on_gpu)
        assert names[-1] == "add_parts" if parts > 1 else names[-1].startswith("matmul_")
        np.testing.assert_array_equal(case.outs[0], case.expected()[0], err_msg=f"{size} {names}")


@pytest.mark.parametrize(("name", "precision"), kernels())
@pytest.mark.parametrize(("left", "right"), [((3,), (3,)), ((2, 3), ()), ((2, 1), (1, 3))], ids=str)
def test_batches(name, precision, left, right, on_gpu, monkeypatch):
    take(monkeypatch, layouts_of(name, precision))
    a, b = whole(5, (*left, 140, 72), (*right, 72, 136))
    of_a, of_b = [VIEWS[view](x) for view, x in zip(LAYOUTS[name], (a, b), strict=True)]
    case = Case(lambda a, b, x, p: (a[0], b[0], (DOT,)), [of_a], [of_b], precision=precision)
    launched(case, on_gpu)
    np.testing.assert_array_equal(case.outs[0], case.expected()[0])


@pytest.mark.parametrize(("name", "precision"), kernels())
@pytest.mark.parametrize("width", [136, 137])
def test_prologue_and_epilogue(name, precision, width, on_gpu, monkeypatch):
    """Of whole numbers, exact: values of the prologue at 0 are no zeros, outputs are several and of several types."""
    is_mma = name in ("large", "small")
    take(monkeypatch, name if is_mma else "both made ready")
    a, b, bias, residual, rows = whole(6, (140, 72), (72, width), (width,), (140, width), (140, 1))
    of_a, of_b = [VIEWS[view](x) for view, x in zip(LAYOUTS[name], (a, b), strict=True)]

    def make(a, b, x, p):
        total = DOT * p[0] + x[0]
        return a[0] * 2.0 + 1.0, relu(b[0]) - 1.0, (relu(total) + x[1], cast(total, int32), where(gt(DOT, x[2]), DOT, x[2]))

    case = Case(make, [of_a], [of_b], [bias, residual, rows], [0.5], precision=precision)
    launched(case, on_gpu)
    for out, expected in zip(case.outs, case.expected(), strict=True):
        np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("width", [136, 140])
def test_an_epilogue_in_every_kernel(name, width, on_gpu, monkeypatch):
    take(monkeypatch, name)
    a, b, bias, residual = whole(7, (140, 72), (72, width), (width,), (140, width))
    of_a, of_b = [VIEWS[view](x) for view, x in zip(LAYOUTS[name], (a, b), strict=True)]
    case = Case(
        lambda a, b, x, p: (a[0], b[0], (relu(DOT + x[0]) + x[1], DOT)), [of_a], [of_b], [bias, residual], precision=HIGH
    )
    launched(case, on_gpu)
    for out, expected in zip(case.outs, case.expected(), strict=True):
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("name", "precision", "tile"), tiles())
def test_operands_are_rounded_to_nearest(name, precision, tile, on_gpu, monkeypatch):
    """Each product is off by two half units at most, and sums by what float32 is; were bits cut off, all would shrink."""
    take(monkeypatch, layouts_of(name, precision), 1, tile)
    a, b = [np.abs(x) for x in floats(8, (260, 516), (516, 264))]
    of_a, of_b = [VIEWS[view](x) for view, x in zip(LAYOUTS[name], (a, b), strict=True)]
    case = Case(lambda a, b, x, p: (a[0], b[0], (DOT,)), [of_a], [of_b], precision=precision)
    launched(case, on_gpu)
    exact, unit = case.expected()[0], UNITS[precision]
    error = case.outs[0] / exact - 1
    assert np.abs(error).max() <= 2 * unit + unit**2 + 1e-4
    assert abs(error.mean()) < 0.05 * unit + 3e-6, "rounded to one side"


@pytest.mark.parametrize("tile", RIGHT_ROWS)
def test_the_layout_of_operands_does_not_change_a_bit(tile, on_gpu, monkeypatch):
    """Rounded alike and added in the same order: fragments that are loaded too early would show here."""
    a, b = floats(14, (520, 4100), (4100, 776))
    found = set()
    for name in ("along k", "crosswise", "crosswise, turned", "one made ready"):
        take(monkeypatch, name, 1, tile)
        of_a, of_b = [VIEWS[view](x) for view, x in zip(LAYOUTS[name], (a, b), strict=True)]
        case = Case(lambda a, b, x, p: (a[0], b[0], (DOT,)), [of_a], [of_b], precision=HIGH)
        for _ in range(3):
            launched(case, on_gpu)
            found.add(case.outs[0].tobytes())
    assert len(found) == 1


@pytest.mark.parametrize(("name", "precision"), kernels())
def test_nan_and_infinity_reach_only_their_row_and_column(name, precision, on_gpu, monkeypatch):
    take(monkeypatch, layouts_of(name, precision))
    a, b = whole(9, (140, 72), (72, 136))
    a[3, 5], a[60, 0], b[7, 80] = np.nan, np.inf, -np.inf
    of_a, of_b = [VIEWS[view](x) for view, x in zip(LAYOUTS[name], (a, b), strict=True)]
    case = Case(lambda a, b, x, p: (a[0], b[0], (DOT,)), [of_a], [of_b], precision=precision)
    launched(case, on_gpu)
    np.testing.assert_array_equal(case.outs[0], case.expected()[0])


@pytest.mark.parametrize(
    "size", [(512, 512, 512), (1024, 768, 520), (255, 100, 300), (1, 300, 400), (40, 30, 4000)], ids=str
)
def test_chosen_kernels_are_right(size, on_gpu):
    m, n, k = size
    a, b = [np.abs(x) for x in floats(10, (m, k), (k, n))]
    exact = a.astype(float) @ b
    for x, y in (
        (mf.tensor(a), mf.tensor(b)),
        (mf.tensor(np.ascontiguousarray(a.T)).T, mf.tensor(np.ascontiguousarray(b.T)).T),
    ):
        for precision, unit in UNITS.items():
            with mf.use_float32_matmul_precision(precision):
                error = np.abs((x @ y).numpy() / exact - 1).max()
            assert error <= 2 * unit + unit**2 + 1e-4
        assert np.abs((x @ y).numpy() / exact - 1).max() < 1e-5


def test_no_kernel_of_another_precision_is_launched(on_gpu):
    """Eager, fused, with gradients, and as a replayed graph, however the setting changes in between."""
    a, b = floats(11, (2048, 1024), (1024, 1536))  # so many that tensor cores pay, backwards too
    exact = a.astype(float) @ b

    @mf.fuse
    def layers(x, w):
        h = mf.tanh(x @ w)
        return (h @ w.T).sum() + h.sum()

    def seen():
        x, w = mf.tensor(a), mf.tensor(b, requires_grad=True)
        found = [x @ w]
        for _ in range(4):  # until it is replayed
            w.grad = None
            y = layers(x, w)
            y.backward()
        return [np.abs(found[0].numpy() - exact).max(), bits(found[0]), bits(y), bits(w.grad)]

    first = {}
    for precision in ("highest", "high", "medium", "high", "highest", "medium"):
        with mf.use_float32_matmul_precision(precision):
            got = seen()
        known = first.setdefault(precision, got)
        assert known == got
    errors = [first[p][0] for p in ("highest", "high", "medium")]
    assert errors[0] * 20 < errors[1] < errors[2] / 4
    for k in range(1, 4):
        assert len({first[p][k] for p in first}) == 3


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_other_types_never_change(dtype, on_gpu):
    a, b = products.sample((300, 200), dtype), products.sample((200, 260), dtype, seed=1)
    exact = bits(mf.tensor(a) @ mf.tensor(b))
    with mf.use_float32_matmul_precision("medium"):
        assert bits(mf.tensor(a) @ mf.tensor(b)) == exact


def test_gradients(on_gpu):
    a, b = [mf.tensor(products.sample(s, "float64"), requires_grad=True) for s in ((5, 6), (6, 7))]
    with mf.use_float32_matmul_precision("high"):
        assert gradcheck(lambda a, b: gelu(a @ b), a, b)


@pytest.mark.parametrize("precision", [HIGH, MEDIUM])
def test_the_interpreter_agrees(precision, on_gpu, monkeypatch):
    """It rounds as hardware does; sums differ by what tensor cores cut off."""
    take(monkeypatch, "small")
    a, b = floats(12, (70, 45), (45, 68))
    with mf.use_float32_matmul_precision(precision):
        got, lanes = mf.tensor(a) @ mf.tensor(b), mf.tensor(a, backend=simulated()) @ mf.tensor(b, backend=simulated())
    np.testing.assert_allclose(got.numpy(), lanes.numpy(), rtol=0, atol=1e-4)


def test_the_same_bits_in_two_runs(on_gpu):
    for m, n, k in ((512, 512, 512), (64, 64, 8192), (1000, 264, 1028)):
        x, y = [mf.tensor(v) for v in floats(13, (m, k), (k, n))]
        for precision in UNITS:
            with mf.use_float32_matmul_precision(precision):
                first = bits(x @ y)
                assert all(bits(x @ y) == first for _ in range(3))
