"""Threads that share the rows of an array, which NumPy computes."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.parallel import host_rows
from minifuse.backends.parallel.host_rows import share, split_rows
from minifuse.ir.sort import order_of


@pytest.fixture(autouse=True)
def three_threads(monkeypatch):
    monkeypatch.setattr(host_rows, "THREADS", 3)
    host_rows.helpers.cache_clear()
    yield
    host_rows.helpers().shutdown()
    host_rows.helpers.cache_clear()


@pytest.mark.parametrize(
    ("shape", "dim", "count"), [((100, 7000), 1, 3), ((7000, 100), 0, 3), ((2, 90000), 1, 2), ((9,), 0, 1)]
)
def test_parts_have_whole_rows_and_each_once(shape, dim, count):
    visits, parts = np.zeros(shape, int), split_rows(shape, dim)
    for part in parts:
        visits[part] += 1
        assert visits[part].shape[dim] == shape[dim]
    assert (visits == 1).all()
    assert len(parts) == count


def test_an_error_of_a_part_is_raised_when_all_have_ended():
    ended = []

    def compute(part):
        if part == 5:
            raise ValueError("part 5")
        ended.append(part)

    with pytest.raises(ValueError, match="part 5"):
        share(compute, range(9))
    assert sorted(ended) == [0, 1, 2, 3, 4, 6, 7, 8]


@pytest.mark.parametrize("dim", [0, 1])
def test_shared_rows_are_selected_and_sorted_as_by_one_thread(dim):
    x = np.random.default_rng(4).integers(0, 500, (300, 200)).astype(np.float32)
    order = order_of(x, dim, True)
    tensor = mf.tensor(x, backend="parallel")
    np.testing.assert_array_equal(mf.topk(tensor, 3, dim).indices.numpy(), order.take(range(3), dim))
    np.testing.assert_array_equal(mf.sort(tensor, dim, True).indices.numpy(), order)
    np.testing.assert_array_equal(mf.msort(tensor).numpy(), np.sort(x, 0))
