"""ir.scan on each backend: operators x dims x dtypes x shapes against NumPy in float64; gradients; the forms of kernels."""

from itertools import product

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.backends.codegen.scan_nest import ScanNest
from minifuse.backends.cuda.backend import get_device
from minifuse.backends.cuda.scan.launches import CudaScanLauncher, ScanProblem
from minifuse.backends.cuda.scan.source import ScanTile
from minifuse.backends.operand import Operand
from minifuse.backends.parallel import scan as cpu_scan
from minifuse.backends.parallel.scan import CpuScan
from minifuse.backends.python import PythonBackend
from minifuse.core.dtypes import BY_NUMPY, float32, float64, int64
from minifuse.core.errors import GradientError
from minifuse.core.layout import row_major
from minifuse.core.operators import add, maximum, minimum, mul, or_
from minifuse.ir.monoid import Monoid
from minifuse.ir.monoids import LAST_EXTREME, LOGADDEXP, RECURRENCE
from minifuse.ir.scan import Scan, recurrence, scan
from minifuse.ir.step_kernels import plain_scan
from minifuse.ir.steps import Step
from minifuse.testing import gradcheck


def run_recurrence(a, b):
    y, rows = np.zeros_like(b), [np.moveaxis(x, 0, 0) for x in (a, b)]
    for i in range(len(b)):
        y[i] = rows[0][i] * (y[i - 1] if i else 0) + rows[1][i]
    return (y,)


def last_extreme(values, better):
    index = np.zeros(values.shape, np.int64)
    for i in range(1, len(values)):
        before = np.take_along_axis(values, index[i - 1 : i], 0)[0]
        takes = better(values[i], before) | np.isnan(values[i])
        index[i] = np.where(takes, i, index[i - 1])
    return np.take_along_axis(values, index, 0), index


# Name -> (the operator, the kept states, the number of float inputs, the reference along dim 0 of float64 arrays)
SCANS = {
    "add": (add, (0,), 1, lambda x: (np.cumsum(x, 0),)),
    "mul": (mul, (0,), 1, lambda x: (np.cumprod(x, 0),)),
    "maximum": (maximum, (0,), 1, lambda x: (np.maximum.accumulate(x, 0),)),
    "minimum": (minimum, (0,), 1, lambda x: (np.minimum.accumulate(x, 0),)),
    "logaddexp": (LOGADDEXP.states[0], (0,), 1, lambda x: (np.logaddexp.accumulate(x, 0),)),
    "recurrence": (RECURRENCE.states[0], (1,), 2, run_recurrence),
    "last_max": (LAST_EXTREME[maximum].states[0], (0, 1), 1, lambda x: last_extreme(x, np.greater_equal)),
    "last_min": (LAST_EXTREME[minimum].states[0], (0, 1), 1, lambda x: last_extreme(x, np.less_equal)),
}
FLOATS = ("float32", "float64")
on_each = pytest.mark.parametrize("name", SCANS)


def sample(name, shape, dtype="float64", dim=0):
    """Inputs of a scan, as NumPy arrays: products stay in range, and equal elements are frequent."""
    rng = np.random.default_rng([*shape, 1])
    operator, _, count, _ = SCANS[name]
    arrays = [(rng.integers(-4, 5, shape) / 4 if dtype in FLOATS else rng.integers(-3, 4, shape)) for _ in range(count)]
    inputs = [x.astype(dtype) for x in arrays]
    if len(operator.states) > count:
        n = shape[dim]
        inputs.append(np.broadcast_to(np.arange(n).reshape((n,) + (1,) * (len(shape) - dim - 1)), shape))
    return inputs


def reference(name, inputs, dim, reverse):
    """Scan in float64 or int64 along a dim."""
    _, _, count, function = SCANS[name]
    lines = [np.moveaxis(x, dim, 0) for x in inputs[:count]]
    lines = [x[::-1] if reverse else x for x in lines]
    wide = [x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.int64) for x in lines]
    found = function(*wide)
    if len(found) > 1 and reverse:  # an index counts from the start
        found = found[0], lines[0].shape[0] - 1 - found[1]
    return [np.moveaxis(y[::-1] if reverse else y, 0, dim) for y in found]


def check(name, shape, dim, reverse=False, dtype="float64", change=lambda x: x):
    """Scan tensors on the present backend, and compare."""
    operator, kept, _, _ = SCANS[name]
    inputs = sample(name, shape, dtype, dim)
    with np.errstate(all="ignore"):
        expected = reference(name, [change(x) for x in inputs], dim, reverse)
    got = scan(operator, [change(mf.tensor(np.ascontiguousarray(x))) for x in inputs], dim, reverse, kept)
    for y, reference_y in zip(got, expected, strict=True):
        rtol = 2e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(y.numpy(), reference_y, rtol, rtol * max(1, np.abs(reference_y).max(initial=0)))


@on_each
@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int32"])
def test_any_dim_direction_and_dtype_in_plain_loops(name, dtype):
    if dtype not in FLOATS and name in ("logaddexp", "recurrence"):
        pytest.skip("defined for floats")
    with mf.use_backend("python"):
        for (shape, dim), reverse in product(
            [((7,), 0), ((3, 4, 2), 1), ((2, 5), 1), ((0, 3), 0), ((3, 0), 0)], (False, True)
        ):
            check(name, shape, dim, reverse, dtype)


@pytest.mark.parametrize("backend", ["parallel", "cuda"])
@on_each
def test_compiled_kernels_equal_plain_loops(name, backend):
    with mf.use_backend(backend):
        check(name, (3, 35), 1, dtype="float32")
        check(name, (35, 18), 0, True, dtype="float32")
        check(name, (0, 3), 0)


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
def test_strided_flipped_and_repeated_inputs(backend):
    with mf.use_backend(backend):
        for change in (
            lambda x: x[::-1, 1::2],
            lambda x: (
                x[:1].expand(6, *x.shape[1:]) if isinstance(x, mf.Tensor) else np.broadcast_to(x[:1], (6, *x.shape[1:]))
            ),
            lambda x: x.T[:, ::-1] if isinstance(x, np.ndarray) else x.T.flip(1),
        ):
            check("add", (5, 9), 1, change=change, dtype="int64")


@on_each
def test_first_and_second_gradients_equal_differences(name):
    operator, kept, count, _ = SCANS[name]
    rng = np.random.default_rng(3)
    with mf.use_backend("python"):
        for dim, reverse in ((0, False), (1, True)):
            arrays = [rng.normal(size=(3, 4)) for _ in range(count)]
            if name in ("mul", "recurrence"):
                arrays[0][1, 1:3] = arrays[0][2, 1] = 0  # products of zeros have gradients without a division
            inputs = [mf.tensor(x, requires_grad=True) for x in arrays]
            extra = [mf.tensor(x) for x in sample(name, (3, 4), dim=dim)[count:]]
            gradcheck(lambda *xs, d=dim, r=reverse, e=extra: scan(operator, [*xs, *e], d, r, kept)[0], *inputs, second=True)


def test_infinities_and_nans():
    x = np.array([-np.inf, -np.inf, 1.0, np.inf, np.nan, 2.0])
    with mf.use_backend("python"):
        y, index = scan(LAST_EXTREME[maximum].states[0], [mf.tensor(x), mf.tensor(np.arange(6))], 0)
        np.testing.assert_array_equal(y.numpy(), np.maximum.accumulate(x))
        assert index.tolist() == [0, 1, 2, 3, 4, 4]
        z = mf.tensor(x[:3], requires_grad=True)
        y = scan(LOGADDEXP.states[0], [z], 0)[0]
        y[2].backward()
        np.testing.assert_array_equal(y.numpy(), [-np.inf, -np.inf, 1])
        assert z.grad.tolist() == [0, 0, 1]


def test_a_scan_without_a_gradient_rule_says_so():
    operator = Monoid(("first",), (0,), lambda a, b: a).states[0]
    with mf.use_backend("python"):
        x = mf.tensor([1.0, 2.0], requires_grad=True)
        with pytest.raises(GradientError, match="no gradient is defined for a scan by first"):
            scan(operator, [x], 0)


def test_a_backend_with_four_methods_scans():
    class FourMethods(PythonBackend):
        name = "four methods"

    backend = FourMethods()
    kernel = plain_scan(Scan(add, 0, False, (0,)), [float64])
    step = Step.of_layouts(kernel, (3,), (), [row_major((3,))], [row_major((3,))])
    assert backend.supports(step) is None
    assert backend.compile(step).cost().launches == 3
    assert "scan_add along dim 0 of (3,)" in backend.compile(step).source


# The parallel backend.


@pytest.mark.parametrize(("name", "shape", "dim"), [("recurrence", (3, 50), 1), ("last_max", (50, 17), 0)])
def test_few_long_lines_are_scanned_in_chunks(name, shape, dim, monkeypatch):
    monkeypatch.setattr(cpu_scan, "PARALLEL_WORK", 0)
    monkeypatch.setattr(cpu_scan, "MIN_CHUNK", 7)
    monkeypatch.setattr(cpu_scan, "THREADS", 3)
    monkeypatch.setattr(cpu_scan, "LANES", 2)
    operator, kept, _, _ = SCANS[name]
    for reverse in (False, True):
        op = Scan(operator, dim, reverse, kept)
        inputs = [Operand.from_array(x) for x in sample(name, shape, "float32", dim)]
        expected = reference(name, [x.array() for x in inputs], dim, reverse)
        outputs = [Operand.from_array(np.full(shape, 9, inputs[k].data.dtype)) for k in kept]
        step = scan_step(op, outputs, inputs)
        compiled = CpuScan(step, step.kernel)
        assert compiled.cost().launches == 3
        compiled.load()(*[x.address for x in (*outputs, *inputs)])
        for y, reference_y in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(y.array(), reference_y, 1e-5)


def scan_step(op, outputs, inputs):
    """Return the step of a scan over operands."""
    layouts = [[x.layout.without_offset() for x in group] for group in (outputs, inputs)]
    kernel = plain_scan(op, [BY_NUMPY[x.data.dtype] for x in inputs])
    return Step.of_layouts(kernel, layouts[0][0].shape, (), *layouts)


# The cuda backend, in the interpreter.

FORMS = {  # name -> shape, dim, tile, chunks
    "warps in tiles": ((2, 900), 1, ScanTile(2, 8, 1), 1),
    "not aligned": ((2, 301), 1, ScanTile(2, 4, 1), 1),
    "several lines": ((5, 52), 1, ScanTile(1, 4, 3), 1),
    "short lines": ((35, 37), 1, None, 1),
    "very short lines": ((130, 3), 1, None, 1),
    "look-back": ((2, 700), 1, ScanTile(1, 4, 1), 6),
    "look-back of warps": ((1, 1300), 1, ScanTile(2, 4, 1), 6),
    "columns": ((45, 37), 0, ScanTile(2, 4, 1), 1),
    "bands of columns": ((9, 70), 0, ScanTile(1, 4, 2), 1),
    "chunks of columns": ((50, 33), 0, ScanTile(2, 4, 1), 4),
}


def launches(name, form, reverse=False, dtype="float32"):
    """Return the launches of a form, and a function that checks the results."""
    shape, dim, tile, chunks = FORMS[form]
    operator, kept, _, _ = SCANS[name]
    inputs = [Operand.from_array(x) for x in sample(name, shape, dtype, dim)]
    expected = reference(name, [x.array() for x in inputs], dim, reverse)
    outputs = [Operand.from_array(np.full(shape, 9, inputs[k].data.dtype)) for k in kept]
    operands = [*outputs, *inputs]
    layouts = [x.layout.without_offset() for x in operands]
    kernel = plain_scan(Scan(operator, dim, reverse, kept), [BY_NUMPY[x.data.dtype] for x in inputs])
    problem = ScanProblem(kernel, layouts, 4, tile, chunks)
    assert problem.chunks == chunks

    def verify():
        for y, reference_y in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(y.array(), reference_y, 1e-5, 1e-5)

    plans = CudaScanLauncher(get_device(0), problem, layouts).plans(*[x.address for x in operands])
    return plans, verify, operands


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_kernel_scans_in_both_directions(form):
    for reverse in (False, True):
        plans, verify, _ = launches("add", form, reverse)
        for plan in plans:
            simt.run(plan, seed=1)
        verify()


@pytest.mark.parametrize("form", ["several lines", "short lines", "look-back", "chunks of columns"])
def test_the_order_of_a_combination_is_kept(form):
    plans, verify, _ = launches("recurrence", form)
    for plan in plans:
        simt.run(plan)
    verify()


@pytest.mark.parametrize("form", ["warps in tiles", "columns", "short lines"])
def test_no_hazards_and_memory_is_read_once(form):
    (plan,), verify, (out, _) = launches("add", form)
    trace = simt.trace(plan)
    assert trace.hazards() == []
    verify()
    names = [array.name for array in trace.arrays]
    nbytes = {
        name: int(trace.events.nbytes[(trace.events.array == names.index(name)) & (trace.events.kind == kind)].sum())
        for name, kind in (("in0", 0), ("out0", 1))
    }
    # Past the edge, the last elements are loaded again.
    padded = {"warps in tiles": 2 * 2 * 512, "columns": 2 * 32 * 48, "short lines": 64 * 2 * 32}[form]
    assert nbytes == {"in0": padded * 4, "out0": out.layout.size * 4}


def test_lines_end_where_the_loops_say():
    nest = ScanNest.of_layouts(Scan(add, 1, True, (0,)), [row_major((2, 5, 3))] * 2)
    assert (nest.n, nest.starts, nest.steps, nest.sizes) == (5, (12, 12), (-3, -3), (2, 3))


def test_a_recurrence_starts_from_zero():
    with mf.use_backend("python"):
        assert recurrence(mf.tensor([9.0, 2.0]), mf.tensor([1.0, 3.0]), 0).tolist() == [1, 5]
        assert scan(or_, [mf.tensor([0, 4, 1])], 0)[0].tolist() == [0, 4, 5]
        assert scan(add, [mf.tensor([1, 2], dtype=int64)], 0)[0].dtype is int64
        assert scan(mul, [mf.tensor([1, 2], dtype=float32)], 0)[0].dtype is float32


def test_the_gradient_of_logcumsumexp_ignores_elements_that_add_nothing():
    """It sums logarithms of gradients of each sign; minus infinity has no share, and no gradient."""
    x = mf.tensor([-np.inf, -np.inf, 1.0, 2.0, -np.inf], dtype=mf.float64, backend="python", requires_grad=True)
    (x.logcumsumexp(0) * mf.tensor([1.0, 1.0, 1.0, -2.0, 3.0], dtype=mf.float64, backend="python")).sum().backward()
    share = 1 / (1 + np.e)
    np.testing.assert_allclose(x.grad.numpy(), [0, 0, 1 + share, 1 - share, 0])
