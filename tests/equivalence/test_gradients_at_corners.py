"""Gradients at zeros, ties, infinities, NaN and the ends of domains are those of PyTorch, but for differences decided here.

`docs/guide/gradients.md` says why each was decided. The gradient of the result is 1, 0, infinite or NaN in turn, so a rule
that hides NaN shows too.
"""

from math import inf, nan

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.operators import TABLE

from ..nn.cases_corners import CORNERS, FOLDS, RECEIVED, grid, rows_of
from ..nn.corners import function_named
from ..nn.recorded import load

VALUE = "value"
# name: what differs from PyTorch, the value or the gradient where the result receives one of these
DECIDED = {
    # NumPy's values
    "sign": {VALUE},
    "heaviside": {VALUE, 1.0, inf, nan},
    "x**-0.5": {VALUE},
    "x**1.5": {1.0, inf},
    # a finite limit where PyTorch computes inf - inf or 0 * inf
    "gelu": {inf},
    "gelu_tanh": {1.0, 0.0, inf},
    "silu": {1.0, 0.0, inf},
    "logaddexp": {1.0, 0.0, inf},
    "logaddexp2": {1.0, 0.0, inf},
    "bce_with_logits": {VALUE, inf},
    # a choice by `where`, through which nothing flows to what is not chosen
    "nan_to_num": {inf, nan},
    "hypot": {inf, nan},
    "norminf": {inf, nan},
    # the first of several NaN, as argmax gives it
    "max_pool": {1.0, inf, nan},
    # terms that cancel, but not where they are infinite
    "var": {1.0, inf},
    "var0": {1.0, inf},
    "prod_of_one": {1.0, 0.0, inf},
    # an infinite gradient that arrives in several parts
    **{name: {inf} for name in ("cosh", "expm1", "sinh", "softplus", "std", "std0", "tan")},
}
OPERATORS = [entry.name for entry in TABLE.values() if entry.vjp or not entry.is_primitive]
CHOSEN = ["abs", "relu", "clip", "maximum", "minimum", "pow", "rsqrt", "where"]  # small ones, for a simulated GPU


def is_near(got, expected):
    """Compare numbers with those of PyTorch in float64; NaN is equal to NaN."""
    got = np.asarray(got)
    tolerance = 1e-5 if got.dtype == np.float32 else 1e-11
    return bool(np.isclose(got, expected, tolerance, tolerance, equal_nan=True).all())


def gradients(function, arrays, g, is_fused):
    """What each array receives if the result receives g; 0 where no gradient flows."""
    if is_fused:
        weigh = mf.fuse(lambda g, *xs: (function(*xs) * g).sum())
        found = mf.grad(weigh, argnums=tuple(range(1, len(arrays) + 1)))(mf.tensor(g), *map(mf.tensor, arrays))
        return [x.numpy() for x in found]
    leaves = [mf.tensor(x, requires_grad=True) for x in arrays]
    y = function(*leaves)
    if y.requires_grad:
        y.backward(mf.tensor(g))
    return [np.zeros_like(x) if leaf.grad is None else leaf.grad.numpy() for x, leaf in zip(arrays, leaves, strict=True)]


def differences(name, key, arrays, is_fused=False):
    """Return what differs from PyTorch: the value, or gradients that the result receives."""
    recorded, function = load("corners"), function_named(name)
    with np.errstate(all="ignore"):
        y = (mf.fuse(function) if is_fused else function)(*map(mf.tensor, arrays))
        found = set() if is_near(y.numpy(), recorded[f"{key}/y"]) else {VALUE}
        for k, g in enumerate(RECEIVED):
            received = gradients(function, arrays, np.full(y.shape, g, arrays[0].dtype), is_fused)
            if not all(is_near(gx, row[k]) for gx, row in zip(received, recorded[f"{key}/g"], strict=True)):
                found.add(g)
    return found


def cases_of(name, dtype):
    """Return the arrays of each case of a function, by its name in the table."""
    if name in CORNERS:
        return {name: [np.array(column, dtype) for column in grid(*CORNERS[name])]}
    return {f"{name}/{row}": [np.array(numbers, dtype)] for row, numbers in rows_of(name).items()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*CORNERS, *FOLDS])
@pytest.mark.parametrize(("backend", "dtype"), [("python", "float64"), ("parallel", "float32")])
def test_gradients_at_corners_are_those_of_pytorch(name, backend, dtype):
    with mf.use_backend(backend):
        for key, arrays in cases_of(name, dtype).items():
            assert differences(name, key, arrays) <= DECIDED.get(name, set()), key


@pytest.mark.parametrize("name", [name for name in OPERATORS if name in CORNERS])
def test_fused_gradients_at_corners_are_those_of_pytorch(name):
    for key, arrays in cases_of(name, "float64").items():
        assert differences(name, key, arrays, is_fused=True) <= DECIDED.get(name, set())


@pytest.mark.parametrize("name", CHOSEN)
def test_gradients_on_a_simulated_gpu_are_those_of_pytorch(name):
    with mf.use_backend("cuda"):
        for key, arrays in cases_of(name, "float32").items():
            assert not differences(name, key, arrays)


def test_every_decided_difference_is_one():
    with mf.use_backend("python"):
        for name, decided in DECIDED.items():
            found = [differences(name, key, arrays) for key, arrays in cases_of(name, "float64").items()]
            assert decided == set().union(*found), name


def test_every_operator_with_a_gradient_is_compared():
    assert set(OPERATORS) - set(CORNERS) == {"isnan", "detach"}  # through which nothing flows


@pytest.mark.parametrize("name", [name for name in CHOSEN if name != "where"])  # of which a Scalar has one condition
def test_gradients_of_scalars_are_those_of_pytorch(name):
    function = TABLE["clip"] if name == "clip" else function_named(name)
    recorded = load("corners")[f"{name}/g"][:, RECEIVED.index(1.0)]
    for numbers, expected in zip(zip(*grid(*CORNERS[name]), strict=True), recorded.T, strict=True):
        leaves = [mf.Scalar(x) for x in numbers]
        function(*leaves).backward()
        assert is_near([x.grad or 0.0 for x in leaves], expected), numbers


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
@pytest.mark.parametrize("number", [0.0, 3.0, 0.1])
def test_a_constant_row_does_not_poison_the_gradient_of_std(backend, number):
    with mf.use_backend(backend):
        x = mf.tensor([[number] * 7, [1.0, 2.0, 4.0, 8.0, 0.0, 0.5, 3.0]], requires_grad=True)
        x.std(1).sum().backward()
        assert np.isfinite(x.grad.numpy()).all()


def test_std_of_two_equal_numbers_has_a_gradient_of_zero():
    x = mf.tensor([3.0, 3.0], requires_grad=True)
    x.std().backward()
    assert x.grad.tolist() == [0, 0]
