"""Which values are stored since many kernels would compute them again."""

import numpy as np

import minifuse as mf
from minifuse.compiler.materialize import choose_materialized
from minifuse.core.dtypes import float32
from minifuse.core.interning import toposort
from minifuse.core.operators import add
from minifuse.ir.array_functions import Matmul, Reduce
from minifuse.ir.graph import Argument, Node, inputs_of

SHAPE = (16, 16)
A, B, C, W = (Node(Argument(k), (), SHAPE, float32) for k in range(4))


def kept_of(*outputs):
    return set(choose_materialized(toposort(outputs, inputs_of), set(outputs)))


def product(x, y=W):
    return Matmul()(x, y)


def total(x, dim=1):
    return Reduce(add, (dim,))(x)


def test_a_sum_of_arrays_that_several_kernels_read_is_stored():
    s = A + B + C
    assert kept_of(product(s * 2), product(s * 3), product(s * 4)) == {s}


def test_one_kernel_or_one_array_is_no_reason():
    s = A + B + C
    for outputs in (
        [product(s * 2)],
        [s * 2, total(s), total(s * s)],  # one kernel stores points and sums of one space
        [product((A + 1) * 2), product((A + 1) * 3), product((A + 1) * 4)],
        [total(s.exp())],
    ):
        assert kept_of(*outputs) == set()


def test_what_is_read_along_rows_is_no_array():
    row = Node(Argument(4), (), (1, 16), float32)
    s = A + row.expand(SHAPE)
    assert kept_of(product(s * 2), product(s * 3), product(s * 4)) == set()


def test_what_lies_in_memory_anyway_is_not_stored_again():
    s = A + B + C
    assert kept_of(s, product(s * 2), product(s * 3), product(s * 4)) == set()


def test_what_is_made_of_a_stored_value_is_cheap():
    s = A + B + C
    t = s * 2
    assert kept_of(*[product(s * k) for k in (2.5, 3.5, 4.5)], *[product(t * k) for k in (5.5, 6.5, 7.5)]) == {s}


def test_each_sum_of_a_long_one_is_stored():
    x, sums = A, []
    for _ in range(20):
        x = x + product((x - total(x).expand(SHAPE)).relu())
        sums.append(x)
    found = kept_of(total(x))
    assert found >= set(sums[:-2])
    assert len(found) <= 20


def test_values_stay_what_they_are():
    random = np.random.default_rng(0)
    x, w = random.normal(size=SHAPE), random.normal(size=SHAPE) / 4

    def f(x, w):
        for _ in range(5):
            h = x - x.mean(1, keepdim=True)
            x = x + (h / (h * h).mean(1, keepdim=True).sqrt() @ w).relu()
        return x.sum(0), x.max(1)

    expected = x
    for _ in range(5):
        h = expected - expected.mean(1, keepdims=True)
        expected = expected + np.maximum(h / np.sqrt((h * h).mean(1, keepdims=True)) @ w, 0)
    found = mf.fuse(f)(mf.tensor(x, dtype="float64"), mf.tensor(w, dtype="float64"))
    np.testing.assert_allclose(found[0].numpy(), expected.sum(0), rtol=1e-12)
    np.testing.assert_allclose(found[1].numpy(), expected.max(1), rtol=1e-12)
