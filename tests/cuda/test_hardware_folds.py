"""Every fold on a GPU: all choices of dims, layouts, dtypes and lengths. NumPy is the judge; the interpreter agrees."""

from itertools import combinations

import numpy as np
import pytest

import minifuse as mf

from ..equivalence import test_folds as folds
from ..equivalence.meanings import ALL, view
from .conftest import bits
from .simulated import simulated

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

SHAPES = [(5, 4, 6), (3, 130, 7), (2, 3, 517), (260, 2, 3)]
LENGTHS = [1, 2, 31, 32, 33, 127, 129, 1023, 1025, 65537, (1 << 20) + 3]
LAYOUTS = {
    "plain": view((6, 35, 66)),
    "permuted": view((66, 6, 35), permute=(1, 2, 0)),
    "strided": view((13, 35, 132), index=(slice(None, 1, -2), ALL, slice(1, None, 2))),
    "expanded": view((6, 1, 66), expand=(6, 35, 66)),
    "parts of rows": view((6, 35, 75), index=(ALL, ALL, slice(1, 67))),
}
FEW = ["sum", "softmax"]  # in other layouts than the plain one: all others walk memory as one of these does
ONLY_ADDITIONS = ["sum", "max", "min", "any", "all"]  # and so the same bits in the interpreter


def sample(shape, dtype="float32"):
    return folds.sample(view(shape), dtype)


@pytest.mark.parametrize(
    ("layout", "name"), [(layout, name) for layout in LAYOUTS for name in folds.FOLDS if layout == "plain" or name in FEW]
)
def test_every_choice_of_dims_in_every_layout(name, layout):
    recipe = LAYOUTS[layout]
    a = folds.sample(recipe)
    if name == "prod":
        a = np.exp(a / 100).astype("f4")
    x, lanes = recipe(mf.tensor(a)), recipe(mf.tensor(a, backend=simulated()))
    for dims in folds.choices(name):
        y = folds.call(name, x, dims)
        folds.check(name, y, recipe(a), dims)
        if name in ONLY_ADDITIONS and layout == "plain" and len(dims) == 1:
            assert bits(y) == bits(folds.call(name, lanes, dims))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_combinations_of_dims(shape):
    a = sample(shape)
    x = mf.tensor(a)
    for count in range(1, len(shape) + 1):
        for dims in combinations(range(len(shape)), count):
            for name in ("sum", "max", "mean"):
                folds.check(name, folds.call(name, x, dims), a, dims)


@pytest.mark.parametrize("name", folds.FOLDS)
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "bool"])
def test_every_dtype(name, dtype):
    if dtype == "bool" and folds.FOLDS[name].keeps:
        return
    for dim in (0, 1) if name in ("sum", "max", "argmax") else (1,):
        a = sample((37, 67), dtype)
        if name == "prod":
            a = a % 2 + 1 if dtype != "bool" else a
        folds.check(name, folds.call(name, mf.tensor(a), (dim,)), a, (dim,))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ["sum", "max", "prod", "softmax", "argmax", "var"])
def test_any_length(name, length):
    a = sample((length,))
    if name == "prod":  # so near 1 that none overflows, in any order
        a = np.exp(a / np.sqrt(length)).astype("f4")
    if length >= folds.FOLDS[name].needs:
        folds.check(name, folds.call(name, mf.tensor(a), (0,)), a, (0,))
        if length < 2000:
            rows = np.stack([a, a[::-1], a + a])
            folds.check(name, folds.call(name, mf.tensor(rows), (1,)), rows, (1,))
            columns = np.ascontiguousarray(rows.T)
            folds.check(name, folds.call(name, mf.tensor(columns), (0,)), columns, (0,))


@pytest.mark.parametrize("shape", [(100_000, 3), (3, 100_000), (70_000, 1), (66_000, 2, 33)], ids=str)
def test_more_rows_than_a_grid_has_along_one_axis(shape):
    a = sample(shape)
    for dim in range(len(shape)):
        folds.check("sum", mf.tensor(a).sum(dim), a, (dim,))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)], ids=str)
def test_reductions_of_empty_arrays(shape):
    x = mf.zeros(*shape)
    dim = len(shape) - 1
    assert x.sum(dim).tolist() == np.zeros(shape).sum(dim).tolist()
    assert x.prod(dim).tolist() == np.zeros(shape).prod(dim).tolist()


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("name", ["sum", "softmax", "var", "logsumexp"])
def test_the_same_bits_in_two_runs(name, dims):
    a = sample((513, 1027))
    if folds.FOLDS[name].takes == "dims" or len(dims) == 1:
        first = bits(folds.call(name, mf.tensor(a), dims))
        mf.synchronize("cuda")
        for _ in range(3):
            assert bits(folds.call(name, mf.tensor(a), dims)) == first


def test_special_values():
    a = np.array([[1, np.nan, 2], [np.inf, 1, -1], [np.inf, -np.inf, 1], [2, 2, -3], [-np.inf] * 3], "f4")
    for name in ("sum", "max", "min", "argmax", "softmax"):
        folds.check(name, folds.call(name, mf.tensor(a), (1,)), a, (1,))


@pytest.mark.parametrize("length", [30_011, 30_012])
def test_long_rows_of_exponentials_are_reduced_in_one_pass(length):
    """Where the largest values are, and where infinities and NaN are, makes no difference; slices begin anywhere."""
    a = sample((9, length))
    a[1] += np.arange(length, dtype="f4") / 100
    a[2] -= np.arange(length, dtype="f4") / 100
    a[3, 7], a[4, -1], a[5, 20_000] = np.nan, np.inf, -np.inf
    a[6], a[7, 1:] = -np.inf, -np.inf
    for x, part in ((mf.tensor(a), a), (mf.tensor(a)[:, 1:], a[:, 1:])):
        for name in ("softmax", "logsumexp"):
            folds.check(name, folds.call(name, x, (1,)), part, (1,))
