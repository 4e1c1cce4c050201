"""Checks of indices on a GPU: the call does not wait, and the next read of values raises the error."""

import numpy as np
import pytest

import minifuse as mf
from minifuse import IndexingError

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

LATE = r"out of range for dim 0 of size 4096; expected -4096 to 4095; a kernel found it after the call had returned"
N = 4096


@pytest.mark.parametrize("columns", [1, 3, 64, 257])
def test_the_next_read_raises_an_error_of_a_gather(columns):
    x = mf.tensor(np.random.default_rng(0).normal(size=(N, columns)))
    index = np.random.default_rng(1).integers(-N, N, 100_003)
    np.testing.assert_array_equal(x[mf.tensor(index)].numpy(), x.numpy()[index])
    index[[70_001, 5]] = N, -N - 1
    y = x[mf.tensor(index)]
    with pytest.raises(IndexingError, match=LATE):
        y.numpy()
    assert np.isnan(y.numpy()[[70_001, 5]]).all()
    assert not np.isnan(y.numpy()).all()


def test_any_read_and_synchronize_raise_it():
    x, other = mf.zeros(N), mf.ones(3)
    for read in (lambda: other.sum().item(), mf.synchronize):
        mf.gather(x, 0, mf.tensor([0, N]))
        with pytest.raises(IndexingError, match=f"gather: index {N} is {LATE}"):
            read()
        read()


def test_a_store_and_a_sum_note_it_and_leave_other_elements():
    x, index = mf.zeros(N, 2), mf.tensor([3, 1 << 40, 5])
    x[index] = 1.0
    with pytest.raises(IndexingError, match=f"index: index {1 << 40} is {LATE}"):
        mf.synchronize()
    y = mf.index_add(x, 0, index, mf.ones(3, 2))
    with pytest.raises(IndexingError, match=f"index_add: index {1 << 40} is {LATE}"):
        mf.synchronize()
    assert np.flatnonzero(y.numpy()[:, 1]).tolist() == [3, 5]
    assert y.sum().item() == 8
