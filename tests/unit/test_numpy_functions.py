"""ir.numpy_api: every function of the table against NumPy, eager and traced, its parameters and its refusals."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.compiler import plan
from minifuse.core.dtypes import BY_NUMPY
from minifuse.core.errors import DTypeError, FuseError, GradientError, ShapeError
from minifuse.core.operators import Operator
from minifuse.ir.array_functions import BoundFunction
from minifuse.ir.numpy_api import FUNCTIONS, UFUNCS
from minifuse.testing import assert_close, gradcheck
from minifuse.testing.strategies import arrays, layouts, shapes

IS_NUMPY_2_0 = np.__version__.startswith("2.0.")
# Calls as a user writes them. x and y have shape (3, 5), y is positive; v has 5 elements, s is 0-d, t has shape (2, 3, 4).
CALLS = """
np.sum(x)
np.sum(x, 0)
np.sum(a=x, axis=(0, -1), keepdims=True)
np.sum(x, dtype=np.float32)
np.sum(x, 0, float)
np.prod(x, axis=1)
np.mean(x)
np.mean(x, axis=-1, keepdims=True)
np.average(x, 0)
np.average(x, weights=None, returned=False)
np.max(x)
np.max(x, 0, keepdims=True)
np.amax(x, axis=1)
np.min(x, axis=1)
np.amin(x)
np.any(x, 0)
np.all(x, axis=1, keepdims=True)
np.var(x)
np.var(x, 0, ddof=1)
np.var(x, axis=1, correction=2, keepdims=True)
np.var(x, dtype=np.float64)
np.std(x, 1)
np.std(x, (0, 1), None, None, 1)
np.argmax(x)
np.argmax(x, 0)
np.sort(x)
np.argsort(x, axis=0, kind="stable")
np.median(x, 0)
np.nanmedian(x)
np.nansum(x, 0)
np.nanprod(x)
np.nanmean(x, axis=1, keepdims=True)
np.nanvar(x, 0, ddof=1)
np.nanstd(x)
np.nanmax(x, 1)
np.nanmin(x)
np.nanargmax(x, 1)
np.nanargmin(x)
np.nancumsum(x, 1)
np.nancumprod(x, 0)
np.quantile(x, 0.3, axis=1, keepdims=True)
np.nanquantile(x, [0.25, 0.5], method="lower")
np.percentile(x, 30)
np.nanpercentile(x, 30, 1)
np.searchsorted(np.sort(v), x, side="right")
np.digitize(x, [-1.0, 0.5])
np.take_along_axis(x, np.argmax(y, axis=1, keepdims=True), 1)
np.argmin(x, axis=1, keepdims=True)
np.count_nonzero(x)
np.count_nonzero(x > 1, axis=0)
np.ptp(x, axis=1)
np.linalg.norm(x)
np.linalg.norm(v, 2)
np.linalg.norm(x, axis=1)
np.linalg.norm(x, 1, axis=0)
np.linalg.norm(x, np.inf, axis=0, keepdims=True)
np.linalg.norm(v, -np.inf)
np.linalg.norm(v, 0)
np.linalg.norm(x, 3, axis=1)
np.linalg.norm(x, "fro")
np.linalg.norm(x, 1)
np.linalg.norm(x, -1, (1, 0))
np.linalg.norm(x, np.inf, keepdims=True)
np.linalg.norm(t, -np.inf, axis=(2, 0))
np.where(x > 0, x, y)
np.where(x, v, 0)
np.where(x < 0, 1.5, x)
np.clip(x, -1, 1)
np.clip(x, None, 1)
np.clip(x, min=-0.5, max=v)
np.clip(x, a_max=None, a_min=0.5)
np.clip(x)
np.round(x)
np.round(x * 3, 1)
np.around(x * 40, decimals=-1)
np.isclose(x, v)
np.isclose(x, 1, rtol=0.25, atol=0.5)
np.isclose(x, y / 0)
np.isclose(x / 0, x / 0, equal_nan=True)
np.allclose(x, x)
np.allclose(x, v)
np.array_equal(x, x)
np.array_equal(x, y)
np.array_equal(x / 0, x / 0, equal_nan=True)
np.nan_to_num(x / 0)
np.nan_to_num(x / 0, nan=1.5, posinf=2, neginf=-3)
np.triu(x)
np.triu(t, 1)
np.tril(x, k=-1)
np.tril(v)
np.diff(x)
np.diff(x, 2, axis=0)
np.diff(x, 0)
np.dot(x, y.T)
np.dot(x, v)
np.dot(v, v)
np.dot(x, 2)
np.dot(x, s)
np.dot(v, t[:, :1].repeat(5, 1)) if isinstance(v, np.ndarray) else np.dot(v, t[:, :1].expand(2, 5, 4))
np.dot(t, t[0].T)
np.dot(t, np.transpose(t, (1, 2, 0)))
np.inner(x, y)
np.inner(x, v)
np.inner(x, 3)
np.vdot(x, y)
np.outer(v, x)
np.outer(v, 2)
np.tensordot(x, y)
np.tensordot(x, y, axes=([0], [0]))
np.tensordot(t, x, (1, 0))
np.tensordot(v, v, 0)
np.einsum("ij,kj->ik", x, y)
np.einsum("ij,j", x, v)
np.kron(x, v)
np.trace(x)
np.trace(t, 1, 2, 0)
np.diagonal(t, -1, axis1=1, axis2=2)
np.diag(v, 1)
np.diagflat(x)
np.vander(v, 3)
np.gradient(x)
np.gradient(v, 2)
np.trapezoid(x, v)
np.cov(x)
np.cov(x, ddof=0)
np.corrcoef(x)
np.concatenate([x, y], axis=1)
np.concatenate((x, t), None)
np.stack([x, y], 1)
np.vstack([v, x])
np.hstack([v, v])
np.dstack((x, y))
np.column_stack([v, v])
np.append(x, y)
np.append(x, y, 0)
np.tile(x, (2, 1))
np.tile(v, 2)
np.repeat(x, 2)
np.repeat(x, 3, axis=1)
np.roll(x, 2)
np.pad(x, 1)
np.pad(x, ((1, 0), (0, 2)), "edge")
np.roll(x, (1, -1), (0, 1))
np.rot90(x)
np.rot90(t, 3, (1, 2))
np.meshgrid(v, v)
np.cumsum(x, 1)
np.cumsum(x)
np.cumprod(v)
np.cumulative_sum(x, axis=0)
np.cumulative_prod(v)
np.shape(x)
np.ndim(x)
np.size(x)
np.size(x, 1)
np.transpose(x)
np.transpose(t, (1, -1, 0))
np.matrix_transpose(t)
np.linalg.matrix_transpose(t)
np.swapaxes(t, 0, -1)
np.moveaxis(t, 0, -1)
np.moveaxis(t, (2, 0), (0, 1))
np.reshape(x, (5, -1))
np.reshape(x, -1, order="C")
np.ravel(x)
np.squeeze(t[:1, :, :1])
np.squeeze(t[:1, :, :1], axis=0)
np.expand_dims(x, 0)
np.expand_dims(x, (1, -1))
np.broadcast_to(v, (2, 3, 5))
np.broadcast_to(s, 3)
np.broadcast_arrays(x, v, s)
np.flip(x)
np.flip(t, (0, 2))
np.fliplr(x)
np.flipud(x)
np.atleast_1d(s)
np.atleast_1d(s, x)
np.atleast_2d(v)
np.atleast_3d(s)
np.atleast_3d(v)
np.atleast_3d(x)
np.take(x, [2, 0, -1], 0)
np.take(x, [[1, -1], [0, 0]])
np.take(y, 1, axis=-1)
np.take(x, [7, -9], 1, mode='wrap')
np.split(x, 5, 1)
np.split(x, [1, 3], axis=-1)
np.array_split(x, 3, axis=1)
np.copy(x)
np.copy(x, order="K")
np.astype(x, np.int32)
np.astype(x, "float64", copy=False)
np.zeros_like(x)
np.zeros_like(x, dtype=int, shape=(2, 2))
np.ones_like(x, np.float32)
np.full_like(x, 2)
np.full_like(x, 2.5, float, shape=4)
np.empty_like(x) * 0
np.result_type(x, np.float32)
np.add.reduce(x)
np.add.reduce(x, axis=None)
np.add.reduce(x, axis=1, dtype=np.float64, keepdims=True)
np.multiply.reduce(x, 1)
np.maximum.reduce(x)
np.minimum.reduce(x, axis=(0, 1))
np.logical_and.reduce(x)
np.logical_or.reduce(x, axis=1)
np.logical_xor.reduce(x > 0)
np.add.outer(x, v)
np.subtract.outer(v, 2)
np.hypot.outer(v, v)
np.add(x, 1, dtype=np.float64)
np.exp(v, dtype="float64", where=True, casting="same_kind")
np.matmul(x, v)
""".strip().splitlines()
SINCE_NUMPY_2_1 = ("np.clip(x, min=-0.5, max=v)", "np.clip(x)", "np.cumulative_sum(x, axis=0)", "np.cumulative_prod(v)")
CALLS = [call for call in CALLS if not IS_NUMPY_2_0 or call not in SINCE_NUMPY_2_1]
WITH_WEAK_NUMBERS = ("np.dot(x, 2)", "np.inner(x, 3)", "np.outer(v, 2)", "np.subtract.outer(v, 2)")  # strong in NumPy
LAYOUTS = {"x": ((5, 6), lambda a: a.T[:3]), "y": ((3, 5), lambda a: a[:, ::-1]), "t": ((4, 3, 2), lambda a: a.T)}
OF_ONE = [ufunc for ufunc in UFUNCS if ufunc.nin == 1]
OF_TWO = [ufunc for ufunc in UFUNCS if ufunc.nin == 2 and ufunc is not np.matmul]
KINDS = ["float64", "float32", "int64", "int32", "bool"]
SPECIAL = [0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -1e-9, 30, np.inf, -np.inf, np.nan, 0.49999999999999994, 2**52 + 1.0]


def inputs(kind, wrap=lambda a: a):
    """The names of CALLS, each as a view of something larger, made by `wrap`."""
    random = np.random.default_rng(1)

    def draw(shape, low):
        a = random.uniform(low, 3, shape)
        return wrap(np.asarray(a > 0.9 if kind == "bool" else a).astype(kind))

    found = {name: see(draw(shape, 0.5 if name == "y" else -3)) for name, (shape, see) in LAYOUTS.items()}
    return found | {"v": draw((10,), -3)[1::2], "s": draw((), -3), "np": np}


def expected(call, kind):
    """What NumPy says; of float32 it computes in float64. None where it refuses, or gives a type that is not ours."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            same = evaluated(call, inputs(kind))
            is_rounded = kind == "float32" and "nan_to_num" not in call
            exact = evaluated(call, inputs(kind, lambda a: a.astype(np.float64))) if is_rounded else same
        except TypeError:
            return None
    if isinstance(same, np.dtype):
        return [(None, same)]
    found = [(np.asarray(a).dtype, np.asarray(b)) for a, b in zip(parts(same), parts(exact), strict=True)]
    return None if any(dtype not in BY_NUMPY for dtype, _ in found) else found


def evaluated(call, names):
    """The result of a call."""
    return eval(call, dict(names))


def parts(result):
    """The arrays of a result."""
    return list(result) if isinstance(result, tuple | list) and not all(type(n) is int for n in result) else [result]


def check(got, wanted):
    """Compare with what NumPy says: shapes, dtypes, values."""
    assert len(got) == len(wanted)
    for y, (dtype, exact) in zip(got, wanted, strict=True):
        if isinstance(y, mf.Tensor):
            assert y.dtype.numpy == dtype
            assert y.shape == exact.shape
            assert_close(y, exact, "program", n=max(1, exact.size))
        else:
            np.testing.assert_array_equal(y, exact)


def function_of(call):
    """The function that is called first."""
    return eval(re.match(r"np\.[\w.]+", call)[0])


# Every entry

UNTRACED = {"copyto", "put_along_axis", "bincount"}  # called below, and in tests/functions


def test_every_entry_is_called():
    missing = {f.__name__ for f in FUNCTIONS} - {function_of(call).__name__ for call in CALLS} - UNTRACED
    assert not missing, f"entries without a line in CALLS: {missing}"


@pytest.mark.sampled(3, each="call")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_a_function_equals_numpys(call, kind):
    wanted = expected(call, kind)
    if wanted is None:
        pytest.skip("NumPy has none of this type, or gives one that is not ours")
    with mf.use_backend("python"):
        got = parts(evaluated(call, inputs(kind, mf.from_numpy)))
    if call in WITH_WEAK_NUMBERS:
        wanted = [(np.result_type(np.dtype(kind), 2), exact) for _, exact in wanted]
    check(got, wanted)


@pytest.mark.parametrize("call", CALLS)
def test_a_captured_function_is_that_of_tensors(call):
    check_captured(call, "python")


@pytest.mark.parametrize("call", CALLS[::6])
def test_a_captured_function_is_compiled(call):
    check_captured(call, "parallel")


def check_captured(call, backend):
    """A call within a function that is captured whole."""
    with mf.use_backend(backend):
        names = inputs("float64", mf.from_numpy)
    tensors = {name: x for name, x in names.items() if isinstance(x, mf.Tensor) and re.search(rf"\b{name}\b", call)}
    plain = []  # shapes and dtypes are known at once

    def function(*given):
        found = parts(evaluated(call, {**names, **dict(zip(tensors, given, strict=True))}))
        plain.extend(x for x in found if not hasattr(x, "dtype"))
        return (*[x for x in found if hasattr(x, "dtype")], given[0])

    *got, _ = plan.call(function, *tensors.values())
    check(plain or got, expected(call, "float64"))


# Ufuncs


def test_the_names_of_the_table_find_their_ufuncs():
    names = {ufunc.__name__ for ufunc in UFUNCS}
    assert names >= {"add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "negative", "absolute"}
    assert names >= {"equal", "less", "greater_equal", "bitwise_and", "invert", "maximum", "exp", "log1p", "tanh", "matmul"}
    assert sum(not isinstance(entry, Operator) for entry in UFUNCS.values()) > 30


@pytest.mark.sampled(3, each="ufunc")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ufunc", [*OF_ONE, *OF_TWO], ids=lambda u: u.__name__)
def test_a_ufunc_equals_numpys(ufunc, kind):
    numbers = [1, 2, 3, 1, 5, 2] if kind != "bool" else [0, 1, 1, 0, 0, 1]
    operands = [np.array(numbers).reshape(2, 3).astype(kind), np.array([3, 1, 2]).astype(kind)][: ufunc.nin]
    check_ufunc(ufunc, operands, "python")


@pytest.mark.sampled(2, each="ufunc")
@pytest.mark.parametrize(("kind", "backend"), [("float64", "python"), ("float32", "python"), ("float32", "parallel")])
@pytest.mark.parametrize(
    "ufunc", [u for u in [*OF_ONE, *OF_TWO] if not isinstance(UFUNCS[u], Operator)], ids=lambda u: u.__name__
)
def test_a_composition_is_right_at_special_numbers(ufunc, kind, backend):
    with np.errstate(all="ignore"):
        special = np.array(SPECIAL).astype(kind)
    special = special[np.isfinite(special)].astype("int64") if ufunc is np.bitwise_xor else special
    special = np.clip(special, -30, 30) if ufunc is np.tan else special  # far out its argument is reduced another way
    check_ufunc(ufunc, [special[:, None], special][: ufunc.nin] if ufunc.nin == 2 else [special], backend)


def check_ufunc(ufunc, operands, backend):
    """Compare with NumPy, which computes in float64."""
    with np.errstate(all="ignore"):
        try:
            dtypes = [part.dtype for part in parts(ufunc(*operands))]
        except TypeError:
            return  # NumPy has none of this type
        is_wide = ufunc is not np.nextafter  # whose result depends on the dtype
        exact = parts(ufunc(*[a.astype(np.float64) if a.dtype.kind == "f" and is_wide else a for a in operands]))
    if IS_NUMPY_2_0 and ufunc in (np.ceil, np.floor, np.trunc):
        return  # of integers it returned floats
    if any(dtype not in BY_NUMPY for dtype in dtypes) or (operands[0].dtype == bool and np.dtype("int8") in dtypes):
        return  # NumPy computes with bools as int8
    with mf.use_backend(backend):
        got = parts(ufunc(*map(mf.from_numpy, operands)))
    for y, dtype, right in zip(got, dtypes, exact, strict=True):
        assert y.dtype.numpy == dtype
        with np.errstate(over="ignore"):
            assert_close(y, right.astype(dtype), "composed", scale=100.0 if ufunc in CANCELS else 0.0)


CANCELS = (np.logaddexp, np.logaddexp2)  # the logarithm of a sum near 1

ULP = {  # the largest errors, in units in the last place, where 200,000 numbers were tried; float32 and float64
    np.expm1: (3.5, 3.7), np.exp2: (0.6, 0.6), np.log2: (3, 3), np.log10: (3, 3), np.cbrt: (0.8, 0.8), np.sinh: (3.6, 3.6),
    np.cosh: (1.4, 1.4), np.hypot: (3, 3), np.tan: (2, 1),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("ufunc", ULP, ids=lambda u: u.__name__)
def test_compositions_are_exact_to_a_few_units_in_the_last_place(ufunc, kind):
    random = np.random.default_rng(0)
    sizes = np.exp(random.uniform(np.log(1e-8), np.log(1.5 if ufunc is np.tan else 80), (ufunc.nin, 20_000)))
    numbers = (sizes * random.choice([-1, 1], sizes.shape)).astype(kind)
    numbers = np.abs(numbers) if ufunc in (np.log2, np.log10) else numbers
    exact = ufunc(*numbers.astype(np.longdouble))
    error = np.abs(np.asarray(ufunc(*map(mf.from_numpy, numbers))).astype(np.longdouble) - exact)
    assert (error / np.spacing(np.abs(exact.astype(kind)))).max() < ULP[ufunc][kind == "float64"]


def test_logarithms_of_powers_are_integers():
    for kind in ("float32", "float64"):
        exponents = np.arange(-30, 38)
        assert np.log2(mf.from_numpy((2.0**exponents).astype(kind))).tolist() == exponents.tolist()
        assert np.log10(mf.from_numpy((10.0**exponents).astype(kind))).tolist() == exponents.tolist()


def test_a_composition_is_one_call():
    x, y = mf.ones(7, 11), mf.ones(7, 11) * 2
    composed = {u: entry for u, entry in UFUNCS.items() if not isinstance(entry, Operator) and u is not np.matmul}
    calls = [(u, [x, y][: u.nin]) for u in composed if u is not np.bitwise_xor]
    calls += [(np.isclose, [x, y]), (np.where, [x, y, 2.0]), (np.triu, [x]), (np.ptp, [x]), (np.diff, [x, 3]), (np.var, [x])]
    calls += [(np.outer, [x, y]), (np.linalg.norm, [x, 3, 1]), (np.nan_to_num, [x]), (np.hypot.outer, [x, y])]
    with mf.use_backend("python"):
        for function, operands in calls:
            taken = [i.to("python") if isinstance(i, mf.Tensor) else i for i in operands]
            plan.plans.clear()
            plan.runs.clear()
            function(*taken)
            assert len(plan.plans) == 1, function


# Drawn at random

FOLDS = ["sum", "prod", "mean", "any", "all", "var", "std", "count_nonzero", "max", "min", "ptp", "linalg.norm"]


@st.composite
def views_and_axes(draw):
    """A way to see an array, the array, and some of the dims that are seen, in any order and counted from either end."""
    shape = draw(shapes(max_dims=3, min_side=1, max_side=4))
    recipe = draw(layouts(shape))
    dims = draw(st.permutations(range(len(shape))))[: draw(st.integers(0, len(shape)))]
    axis = tuple(d - draw(st.sampled_from([0, len(shape)])) for d in dims)
    return recipe, draw(arrays(recipe.base, "float64")), axis


@given(views_and_axes(), st.sampled_from(FOLDS), st.booleans(), st.booleans())
def test_reductions_of_any_layout_along_any_axes(drawn, name, keepdims, is_one):
    recipe, array, axis = drawn
    function = np.linalg.norm if name == "linalg.norm" else getattr(np, name)
    if function is np.linalg.norm and len(axis) not in (1, 2):
        axis = None
    axis = axis[0] if is_one and axis else axis
    exact = function(recipe(array), axis=axis, keepdims=keepdims)
    y = function(recipe(mf.from_numpy(array, "python")), axis=axis, keepdims=keepdims)
    assert y.dtype.numpy == np.asarray(exact).dtype
    assert_close(y, exact, "program", n=max(1, array.size), scale=10.0)


@given(views_and_axes(), st.sampled_from(["flip", "squeeze", "expand_dims", "moveaxis", "transpose", "diff", "size"]))
def test_views_of_any_layout_along_any_axes(drawn, name):
    recipe, array, axis = drawn
    seen, function = recipe(array), getattr(np, name)
    arguments = {"moveaxis": (axis, tuple(range(len(axis))))}.get(name, (axis,))
    if name == "transpose":
        arguments = (tuple(reversed(range(seen.ndim))),)
    if name == "squeeze":
        arguments = (tuple(d for d in axis if seen.shape[d] == 1),)
    if name in ("diff", "size"):
        arguments = {"diff": (1, axis[0] if axis else -1), "size": (axis[0] if axis else None,)}[name]
    if name == "diff" and seen.ndim == 0:
        return
    y = function(recipe(mf.from_numpy(array, "python")), *arguments)
    np.testing.assert_array_equal(y, function(seen, *arguments))


# Gradients

DIFFERENTIABLE = {
    "sum": lambda x, y: np.sum(x * y, axis=0),
    "mean": lambda x, y: np.mean(x * x, 1),
    "var": lambda x, y: np.var(x, axis=0, ddof=1),
    "std": lambda x, y: np.std(x),
    "where": lambda x, y: np.where(x > 0, x * y, x),
    "maximum": lambda x, y: np.maximum(x, y),
    "max": lambda x, y: np.max(x, axis=1),
    "clip": lambda x, y: np.clip(x, -0.5, 0.5) * y,
    "norm": lambda x, y: np.linalg.norm(x),
    "norm 3": lambda x, y: np.linalg.norm(x, 3, axis=1),
    "matrix norm": lambda x, y: np.linalg.norm(x, 1),
    "dot": lambda x, y: np.dot(x, y.T),
    "tensordot": lambda x, y: np.tensordot(x, y, ([0], [0])),
    "outer": lambda x, y: np.outer(x, y),
    "triu": lambda x, y: np.triu(x) * y,
    "diff": lambda x, y: np.diff(x, 2) ** 2,
    "take": lambda x, y: np.take(x, [1, 0, 1], 1) * 2,
    "split": lambda x, y: np.split(x, [2], 1)[1] * 2,
    "hypot": np.hypot,
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
    "expm1": lambda x, y: np.expm1(x),
    "exp2": lambda x, y: np.exp2(x),
    "log2": lambda x, y: np.log2(y),
    "log10": lambda x, y: np.log10(y),
    "cbrt": lambda x, y: np.cbrt(x),
    "sinh": lambda x, y: np.sinh(x) + np.cosh(y),
    "tan": lambda x, y: np.tan(x),
    "fmax": lambda x, y: np.fmax(x, y) * np.fmin(x, y),
    "square": lambda x, y: np.square(x) / np.reciprocal(y),
    "reduce": lambda x, y: np.multiply.reduce(x, axis=1),
    "in float64": lambda x, y: np.add(x, y, dtype=float),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_right(name):
    random = np.random.default_rng(3)
    x, y = random.uniform(-1.2, 1.2, (3, 4)), random.uniform(0.3, 1.5, (3, 4))
    assert gradcheck(DIFFERENTIABLE[name], *[mf.from_numpy(a, "python").requires_grad_() for a in (x, y)])


def test_gradients_where_branches_meet_and_at_infinity():
    def slopes(function, *numbers):
        x = [mf.tensor([n], dtype="float64", requires_grad=True, backend="python") for n in numbers]
        function(*x).sum().backward()
        return [None if i.grad is None else i.grad.item() for i in x]

    assert slopes(np.hypot, 3.0, 4.0) == pytest.approx([0.6, 0.8])
    assert slopes(np.hypot, 2.0, 2.0) == pytest.approx([0.5**0.5] * 2)
    assert slopes(np.logaddexp, 1.0, 1.0) == [0.5, 0.5]
    assert slopes(np.logaddexp, np.inf, np.inf) == [0.5, 0.5]
    assert slopes(np.expm1, 800.0) == [np.inf]
    assert slopes(np.expm1, 0.0) == [1]
    assert slopes(np.expm1, -800.0) == [0]
    assert slopes(np.log10, 1000.0) == pytest.approx([1 / (1000 * np.log(10))])  # where the result is put right
    for function in (np.floor, np.ceil, np.trunc, np.rint, np.sign, np.round):
        assert slopes(lambda x, f=function: x + f(x), 2.3) == [1]


def test_a_gradient_through_a_captured_function():
    def loss(x):
        return np.mean(np.where(x > 0, np.square(x), np.expm1(x)))

    x = mf.from_numpy(np.linspace(-2, 2, 15).reshape(3, 5)[:, ::-1])
    exact = np.where(x.numpy() > 0, 2 * x.numpy(), np.exp(x.numpy())) / 15
    np.testing.assert_allclose(mf.grad(loss)(x), exact, rtol=1e-12)
    np.testing.assert_allclose(mf.grad(lambda x: plan.call(loss, x))(x), exact, rtol=1e-12)


# How they are called


def test_arrays_lists_and_numbers_mix_with_tensors():
    a, x = np.array([[1.0, -2.0, 3.0]]), mf.tensor([0.5, 0.25, -4.0], dtype="float64")
    b = x.numpy().copy()
    for got, right in [
        (np.add(a, x), a + b),
        (np.hypot(a, x), np.hypot(a, b)),
        (np.maximum([1, 0, -5], x), np.maximum([1, 0, -5], b)),
        (np.where(a > 0, x, 0.0), np.where(a > 0, b, 0.0)),
        (np.where([True, False, True], x, [7, 8, 9]), np.where([True, False, True], b, [7, 8, 9])),
        (np.where(a, 1, x), np.where(a, 1, b)),
        (np.isclose(a, x, atol=np.float64(1)), np.isclose(a, b, atol=1)),
        (np.dot(a, x), np.dot(a, b)),
        (np.outer(a, x), np.outer(a, b)),
        (np.clip(a, x, 1), np.clip(a, b, 1)),
        (np.clip(a, None, x), np.clip(a, None, b)),
        (np.clip(x, [0, 0, 0], 1), np.clip(b, 0, 1)),
        (np.float64(2) * x, 2 * b),
        (np.array(2.0) * x, 2 * b),
        (np.array_equal(b, x), True),
    ]:
        assert isinstance(got, mf.Tensor)
        np.testing.assert_allclose(got, right, rtol=1e-12)
    assert np.array_equal(a, x) is False


def test_views_share_memory():
    x = mf.arange(24).reshape(2, 3, 4)
    views = [np.transpose(x), np.swapaxes(x, 0, 1), np.moveaxis(x, 0, 2), np.reshape(x, (6, 4)), np.ravel(x), np.flip(x)]
    views += [np.expand_dims(x, 1), np.broadcast_to(x, (5, 2, 3, 4)), *np.split(x, 2, axis=2), np.atleast_2d(x)]
    assert all(view.buffer is x.buffer for view in views)
    assert np.copy(x).buffer is not x.buffer
    assert np.astype(x, int, copy=False) is x
    assert np.astype(x, int).buffer is not x.buffer


def test_results_are_stored_in_out():
    x, y, z = mf.tensor([1.0, 2.0]), mf.tensor([3.0, 5.0]), mf.zeros(2, dtype="float64")
    address = x.address
    assert np.add(x, y, out=z) is z
    assert z.tolist() == [4, 7]
    assert np.multiply(x, y, out=x) is x
    assert (x.tolist(), x.address) == ([3, 10], address)
    assert np.hypot(x, [4, 0], x).tolist() == [5, 10]
    assert np.sum(mf.ones(3, 2), axis=0, out=z) is z
    assert z.tolist() == [3, 3]
    assert np.sum(np.ones((4, 2)), 0, None, z) is z
    assert z.tolist() == [4, 4]
    assert np.exp(np.zeros(2), out=z).tolist() == [1, 1]
    assert np.add.reduce(mf.ones(3, 2), out=z).tolist() == [3, 3]
    quotient, rest = mf.zeros(2), mf.zeros(2)
    np.divmod(mf.tensor([7.0, 9.0]), 4, out=(quotient, rest))
    assert (quotient.tolist(), rest.tolist()) == ([1, 2], [3, 1])
    np.copyto(z, mf.tensor([8.0, 9.0]))
    assert z.tolist() == [8, 9]
    array = np.zeros(2)
    np.copyto(array, z)
    assert array.tolist() == [8, 9]


def test_results_that_do_not_fit_out_are_errors():
    x = mf.ones(3)
    with pytest.raises(DTypeError, match=r"np\.add.*ndarray, expected a tensor; pass a tensor, or write y\[...\] = np\.add"):
        np.add(x, x, out=np.zeros(3))
    with pytest.raises(DTypeError, match=r"np\.sum.*expected a tensor"):
        np.sum(x, out=np.zeros(()))
    with pytest.raises(DTypeError, match="dtype float32 in a tensor of dtype int64"):
        np.add(x, x, out=mf.zeros(3, dtype=int))
    with pytest.raises(ShapeError, match="broadcast"):
        np.add(x, x, out=mf.zeros(4))
    with pytest.raises(GradientError, match="in-place"):
        np.add(x.requires_grad_(), 1, out=x)
    with pytest.raises(DTypeError, match=r"np\.compress.*write y\[...\]"):
        np.compress([True] * 3, mf.ones(3), out=mf.ones(3))


def test_dtypes_are_numpys():
    x = mf.tensor([1, 2], dtype="int32")
    assert np.sum(x).dtype is mf.int64
    assert np.mean(x).dtype is mf.float64
    assert np.zeros_like(x, dtype=float).dtype is mf.float64  # Python's float is float64 in NumPy
    assert np.zeros_like(x, dtype=mf.float32).dtype is mf.float32
    assert np.ones_like(x, dtype="f4").dtype is mf.float32
    assert np.add(x, 1, dtype=np.int64).dtype is mf.int64
    assert np.sum(x, dtype="int32").dtype is mf.int32
    assert np.result_type(x, np.float32) == np.float64
    with pytest.raises(DTypeError, match="float16"):
        np.sum(x, dtype=np.float16)
    with pytest.raises(DTypeError, match=r"np\.add.*operands are floats; convert them with x\.to\(mf\.int32\)"):
        np.add(mf.ones(2), 1, dtype=np.int32)
    with pytest.raises(DTypeError, match=r"np\.less.*the result is bool"):
        np.less(x, 1, dtype=np.int32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("np.sum(x, where=x > 0)", r"np\.sum\(\.\.\., where=\) is not in minifuse; pass np\.where"),
        ("np.sum(x, initial=3)", "combine the result with it afterwards"),
        ("np.average(x, weights=x)", r"np\.sum\(x \* w\) / np\.sum\(w\)"),
        ("np.ravel(x, order='F')", "row-major"),
        ("np.reshape(x, (3, 1), 'F')", "row-major"),
        ("np.diff(x, prepend=0)", r"join them before, with np\.concatenate"),
        ("np.var(x, mean=x)", "leave it out"),
        ("np.nan_to_num(x, copy=False)", r"x\[\.\.\.\] = np\.nan_to_num\(x\)"),
        ("np.clip(x, 0, 1, dtype=np.float64)", r"convert with x\.to"),
        ("np.add(x, x, where=[True] * 3)", r"np\.add\(\.\.\., where=\)"),
        ("np.add(x, x, casting='unsafe')", r"np\.add\(\.\.\., casting=\) is not in minifuse; leave it out"),
        ("np.add.reduce(x, initial=1)", r"np\.add\.reduce\(\.\.\., initial=\)"),
        ("np.matmul(x, x, axes=[0, 0, 0])", "permute the dims"),
        ("np.spacing(x)", r"np\.spacing is not in minifuse; use a method of the tensor, or np\.asarray\(x\)"),
        ("np.gcd(x, x)", r"np\.gcd is not in minifuse"),
        ("np.subtract.accumulate(x)", r"np\.subtract\.accumulate is not in minifuse"),
        ("np.divide.reduce(x)", r"np\.divide\.reduce is not in minifuse"),
        ("np.power.at(x, 0, 1)", r"np\.power\.at is not in minifuse"),
        ("np.squeeze(x, 0)", "axis 0 of shape .* more than 1 element"),
        ("np.split(x, 2)", "cannot split 3 elements into 2 equal parts"),
        ("np.array_split(x, 0)", "0 parts"),
        ("np.broadcast_to(x, (2, -1))", "negative size"),
        ("np.moveaxis(x, 0, (0, 1))", "dim|axes"),
        ("np.linalg.norm(x, 'nuc')", "order 'nuc' along dims"),
        ("np.tensordot(x, np.ones(4), 1)", r"np\.tensordot: dims .* differ in size"),
        ("np.diff(x, -1)", "n is -1"),
        ("np.max(x[:0])", "no elements"),
        ("np.triu(x[0])", "expected at least 2 dims"),
    ],
)
def test_missing_functions_are_errors_with_a_remedy(call, message):
    with pytest.raises((DTypeError, ShapeError), match=message):
        eval(call, {"np": np, "x": mf.ones(3)})


# What has no entry


def test_unknown_functions_are_computed_by_numpy():
    x = mf.tensor([[3.0, 1.0], [2.0, 2.0]])
    a = x.numpy()
    for got, right in [
        (np.convolve(x[0], x[1]), np.convolve(a[0], a[1])),
        (np.block([x, x]), np.block([a, a])),
        (np.linalg.norm(x, 2), np.linalg.norm(a, 2)),
        (np.where(x > 1)[0], np.where(a > 1)[0]),
        (np.histogram(x, bins=2)[0], np.histogram(a, bins=2)[0]),
        (np.round(mf.tensor([17, 23]), -1), [20, 20]),
    ]:
        assert isinstance(got, np.ndarray | np.generic)
        np.testing.assert_array_equal(got, right)
    np.testing.assert_allclose(x, a)
    np.testing.assert_array_equal(x.requires_grad_(), a)
    assert np.may_share_memory(x, a)


def test_numpy_cannot_write_to_a_tensor():
    x = mf.zeros(3)
    for write in (
        lambda: np.put(x, [0], 5),
        lambda: np.fill_diagonal(x.reshape(3, 1), 5),
        lambda: np.putmask(x, [True] * 3, 5),
    ):
        with pytest.raises(ValueError, match="read-only"):
            write()
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("np.block([x, x])", r"np\.block cannot be traced; join the rows with np\.concatenate"),
        ("np.where(x > 0)", r"np\.where cannot be traced; the shape of the result would depend on values"),
        (
            "np.convolve(x, x)",
            r"np\.convolve cannot be traced; use the functions in docs/guide/numpy\.md, or call it outside",
        ),
        ("np.spacing(x)", r"np\.spacing cannot be traced"),
        ("np.linalg.svd(x)", r"np\.linalg\.svd cannot be traced"),
    ],
)
@pytest.mark.parametrize("capture", ["node", "fuse"])
def test_unknown_functions_cannot_be_traced(call, message, capture):
    names = {"np": np}
    exec(compile(f"def function(x):\n    y = x * 2\n    return {call}", "users.py", "exec"), names)
    x = mf.ones(3)
    with pytest.raises(FuseError, match=r"^users\.py:3: " + message):
        plan.call(names["function"], x) if capture == "node" else mf.fuse(names["function"])(x)


def test_strangers_are_asked():
    class Stranger:
        def __array_function__(self, function, types, args, named):
            return f"{function.__name__} by a stranger"

    x = mf.ones(2)
    assert np.where(x > 0, Stranger(), 0) == "where by a stranger"
    assert np.concatenate([x, Stranger()]) == "concatenate by a stranger"


# Fused


@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_code_written_for_numpy_fuses_unchanged(backend):
    def normalized(x, gain, floor=0.0):
        centered = x - np.mean(x, axis=-1, keepdims=True)
        scale = np.sqrt(np.var(x, axis=-1, keepdims=True) + 1e-5)
        y = np.where(centered > 0, centered / scale, np.expm1(centered / scale))
        return np.maximum(np.triu(y), floor) * gain, np.linalg.norm(y), np.full_like(y, 2.5), np.hypot(y, gain)

    a, b = np.random.default_rng(0).normal(size=(2, 6, 6))
    fused = mf.fuse(normalized)
    for floor in (0.0, 0.5):
        got = fused(mf.from_numpy(a, backend), mf.from_numpy(b, backend), floor)
        for y, right in zip(got, normalized(a, b, floor), strict=True):
            np.testing.assert_allclose(y, right, rtol=1e-12, atol=1e-14)


def test_a_fused_function_stores_in_out():
    def step(x, rate):
        np.multiply(x, rate, out=x)
        np.add(x, 1.0, out=x)
        np.copyto(x[0], 0.0)
        return np.sum(x)

    x = mf.ones(3, 2)
    assert mf.fuse(step)(x, 3.0).item() == 16
    assert x.tolist() == [[0, 0], [4, 4], [4, 4]]


def test_a_fused_call_binds_plain_numbers():
    """A traced number among the parameters of a BoundFunction, which is kept, would keep its trace."""

    def f(x, k):
        return np.triu(x, k), np.isclose(x, x, equal_nan=k)

    upper, _ = mf.fuse(f)(mf.ones(2, 2), 1)
    assert upper.tolist() == [[0, 1], [0, 0]]
    bound = [found for found in BoundFunction.instances.values() if found.body.__name__ in ("triu", "isclose")]
    assert {type(x) for found in bound for x in found.parameters} == {int, bool}


def test_parameters_of_entries_are_numpys():
    """An entry has NumPy's names, and is found by the same object."""
    import inspect

    for function, entry in FUNCTIONS.items():
        try:
            theirs = inspect.signature(function).parameters
        except ValueError:  # NumPy before 2.4 tells no signature of a function written in C
            continue
        ours = set(inspect.signature(entry).parameters) - {"newshape", "shape", "min", "max", "constant_values"}
        assert ours <= theirs.keys(), function
    assert not any(isinstance(entry, BoundFunction) for entry in UFUNCS.values())
