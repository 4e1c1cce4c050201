"""Random programs: one operation after the other, and captured as one function, on every backend. NumPy is the judge."""

import numpy as np
import pytest
from hypothesis import given, settings

import minifuse as mf
from minifuse.graph.plan import call
from minifuse.testing import assert_close, expressions, gradcheck

from .meanings import BACKENDS

STEP = 1e-6
MANY = 1000  # numbers that may meet in one
LARGE = 16.0  # of what is added up

every_backend = pytest.mark.parametrize("backend", BACKENDS)
RUNS = {"eager": lambda program, *xs: program(*xs), "captured": call}


def sample(program, dtype="float64"):
    return [np.random.default_rng(k).uniform(-1.5, 1.5, shape).astype(dtype) for k, shape in enumerate(program.shapes)]


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def weights_of(values):
    return [np.random.default_rng(k).uniform(0.5, 1.5, v.shape) for k, v in enumerate(values)]


def differences(program, arrays, k):
    """What each element of input k receives, as NumPy has it."""
    found = np.empty(arrays[k].shape)
    for index in np.ndindex(found.shape):
        sides = []
        for step in (STEP, -STEP):
            moved = [a.copy() for a in arrays]
            moved[k][index] += step
            values = as_tuple(program.numpy(*moved))
            sides.append([v * w for v, w in zip(values, weights_of(values), strict=True)])
        found[index] = sum((up - down).sum() for up, down in zip(*sides, strict=True)) / (2 * STEP)
    return found


@every_backend
@pytest.mark.parametrize("run", RUNS)
@given(program=expressions())
def test_values_and_gradients(backend, run, program):
    arrays = sample(program)
    xs = [mf.tensor(a, backend=backend, requires_grad=True) for a in arrays]
    outputs, expected = as_tuple(RUNS[run](program, *xs)), as_tuple(program.numpy(*arrays))
    for y, right, w in zip(outputs, expected, weights_of(expected), strict=True):
        assert y.dtype is mf.float64
        assert_close(y, right, "program", n=MANY, scale=LARGE)
        if y.requires_grad:
            y.backward(mf.tensor(w, backend=backend), retain_graph=True)
    for k, x in enumerate(xs):
        grad = mf.zeros_like(x) if x.grad is None else x.grad
        assert_close(grad, differences(program, arrays, k), "difference", scale=LARGE, what=f"the gradient of x{k}")


@every_backend
@given(program=expressions(inputs=3, rounding=True))
def test_values_in_float32_and_between(backend, program):
    """The first input in float32, the second in float64, and casts on the way."""
    arrays = [a.astype(dtype) for a, dtype in zip(sample(program), ["float32", "float64", "float32"], strict=True)]
    xs = [mf.tensor(a, backend=backend) for a in arrays]
    for y, right in zip(as_tuple(call(program, *xs)), as_tuple(program.numpy(*arrays)), strict=True):
        assert_close(y.to(mf.float32), right, "program", scale=LARGE)


@settings(max_examples=12)
@given(program=expressions(depth=5, max_dims=2, max_side=4))
def test_second_derivatives(program):
    xs = [mf.tensor(a, requires_grad=True) for a in sample(program)]
    assert gradcheck(lambda *xs: call(program, *xs), *xs, second=True)
