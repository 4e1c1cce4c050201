"""Every operator of the table on every backend: all layouts, dtypes and special values. NumPy is the judge."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.dtypes import DTYPES
from minifuse.core.operators import TABLE
from minifuse.testing import assert_close

from .meanings import (
    OPERATORS,
    PLACES,
    accepted,
    collected,
    is_condition,
    judge,
    kind_of,
    numpy_dtype,
    operands,
    refuses,
    view,
)

every_operator = pytest.mark.parametrize("entry", OPERATORS, ids=repr)
every_dtype = pytest.mark.parametrize("dtype", [dtype.name for dtype in DTYPES])

STEP = 1e-6  # of central differences in float64
NOTHING_FLOWS = {"detach"}  # on purpose, though the value depends on the input
LARGE = 65537  # elements: more than a 16-bit count
SHARED = (1 << 20) + 3  # enough that threads share the work, and their parts differ in length
LARGEST_CANCELLED = 5.0  # of an operator that is made of several: gelu, which is 0 or x itself beyond
EXTREMES = {
    "f": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 88.0, -104.0],
    "i": [0, 1, -1, 2, 3, -7, 10],
    "u": [0, 1, 2, 3, 10],
    "b": [False, True],
}


def specials(dtype):
    """Values at the ends of a dtype and at the corners of functions, in no order."""
    kind = np.dtype(dtype)
    values = list(EXTREMES[kind.kind])
    if kind.kind == "f":
        limits = np.finfo(kind)
        values[1:1] = [limits.max, limits.tiny / 8, -limits.max, limits.tiny, -limits.smallest_subnormal]
    elif kind.kind in "iu":
        values[1:1] = [np.iinfo(kind).min, np.iinfo(kind).max, np.iinfo(kind).min + 1]
    return np.array(values, kind)


def check(entry, arrays, tensors):
    """Apply an operator to tensors; NumPy says what comes out."""
    y, expected = entry(*tensors), judge(entry.name, *arrays)
    assert y.dtype.numpy == numpy_dtype(entry.name, *arrays)
    kind = kind_of(entry.name)
    what = f"{entry.name} on {y.backend} (of kind {kind!r}; KINDS of tests/equivalence/meanings.py sets the kind)"
    assert_close(y, expected, kind, scale=LARGEST_CANCELLED, what=what)
    return y


def slopes(name, arrays, k):
    """The derivative by operand k: elements are independent, so all of them move at once."""
    up, down = [[a + step * (j == k) if a.dtype != bool else a for j, a in enumerate(arrays)] for step in (STEP, -STEP)]
    return (judge(name, *up).astype(float) - judge(name, *down)) / (2 * STEP)


@pytest.mark.sampled(4)
@every_operator
@pytest.mark.parametrize("place", PLACES)
def test_values_and_gradients_in_every_layout(entry, place, backend):
    recipes = PLACES[place][: entry.arity]
    arrays = operands(entry.name, accepted(entry), recipes)
    leaves = [mf.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    y = check(entry, *[[recipe(x) for recipe, x in zip(recipes, xs, strict=True)] for xs in (arrays, leaves)])
    weights = np.random.default_rng(1).uniform(0.5, 1.5, y.shape).astype(np.float32)
    if y.requires_grad:
        y.backward(mf.tensor(weights))
    seen = np.broadcast_arrays(
        *[r(a.astype(float) if a.dtype.kind == "f" else a) for r, a in zip(recipes, arrays, strict=True)]
    )
    for k, (recipe, x) in enumerate(zip(recipes, leaves, strict=True)):
        if x.requires_grad:
            places = np.broadcast_to(recipe(np.arange(x.size).reshape(x.shape)), y.shape)
            received = slopes(entry.name, seen, k) * weights * (entry.name not in NOTHING_FLOWS)
            expected = collected(places, received, x.shape)
            grad = mf.zeros_like(x) if x.grad is None else x.grad
            assert_close(grad, expected, "composed", what=f"the gradient of operand {k} of {entry.name}")


@pytest.mark.sampled(3)
@every_operator
@every_dtype
def test_every_dtype_at_its_extremes(entry, dtype, backend):
    """NaN, infinities, numbers below the normal ones, the ends of integers, division by 0: all of them with each other."""
    few = slice(None, None, 2 if entry.arity == 3 else 1)
    values = [specials("bool" if is_condition(entry.name, k) else dtype)[few] for k in range(entry.arity)]
    arrays = [np.ascontiguousarray(a.reshape(-1)) for a in np.meshgrid(*values)]
    tensors = [mf.tensor(a) for a in arrays]
    if refuses(entry, dtype):
        with pytest.raises(mf.DTypeError, match=entry.name) as found:
            entry(*tensors)
        with pytest.raises(mf.DTypeError) as python:
            entry(*[x.to("python") for x in tensors])
        assert str(found.value) == str(python.value)
    else:
        check(entry, arrays, tensors)


@pytest.mark.sampled(2, each="entry")
@every_operator
@pytest.mark.parametrize("backend", ["parallel", "stranger"])
def test_more_elements_than_sixteen_bits_count(entry, backend):
    with mf.use_backend(backend):
        arrays = operands(entry.name, accepted(entry), [view((LARGE,))] * entry.arity)
        check(entry, arrays, [mf.tensor(a) for a in arrays])


@pytest.mark.parametrize("name", ["add", "exp", "where"])
@pytest.mark.parametrize(
    "recipe", [view((SHARED,)), view((2, SHARED // 2), index=(slice(None), slice(None, None, -1)))], ids=repr
)
def test_large_arrays_are_split_among_threads(name, recipe):
    entry = TABLE[name]
    arrays = operands(name, "float32", [recipe] * entry.arity)
    check(entry, [recipe(a) for a in arrays], [recipe(mf.tensor(a, backend="parallel")) for a in arrays])


def test_a_difference_names_the_kind_of_the_operator_and_its_table():
    where = (
        r"exp on \w+ \(of kind 'transcendental'; KINDS of tests/equivalence/meanings\.py sets the kind\) is wrong at 1 of 2"
    )
    with pytest.raises(AssertionError, match=where):
        check(TABLE["exp"], [np.float32([0, 1])], [mf.tensor([0.0, 1.5])])
