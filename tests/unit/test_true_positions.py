"""backends.parallel.true_positions: masks around the edges of blocks, and as an index."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.parallel.true_positions import BLOCK, MIN_SIZE


@pytest.mark.parametrize("size", [0, 1, 100, MIN_SIZE - 1, MIN_SIZE, 3 * BLOCK - 1, 3 * BLOCK + 9])
def test_positions_are_those_of_numpy(size):
    for share in (0, 0.01, 0.5, 1):
        mask = np.random.default_rng(0).random(size) < share
        np.testing.assert_array_equal(mf.nonzero(mf.tensor(mask)).numpy()[:, 0], np.flatnonzero(mask))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_large_mask_selects_in_row_major_order(order):
    x = np.random.default_rng(0).standard_normal((301, 217)).astype(np.float32).transpose(order)
    y = mf.tensor(x)
    np.testing.assert_array_equal(y[y > 0.5].numpy(), x[x > 0.5])
    np.testing.assert_array_equal(mf.nonzero(y > 0.5).numpy(), np.argwhere(x > 0.5))


@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_a_mask_of_two_dims_beside_other_entries(backend):
    x, mask, k = np.arange(60).reshape(3, 4, 5), np.arange(12).reshape(3, 4) % 5 == 1, np.array([4, -2, 0])
    y, m, j = (mf.tensor(a, backend=backend) for a in (x, mask, k))
    np.testing.assert_array_equal(y[m, j].numpy(), x[mask, k])
    np.testing.assert_array_equal(y.permute(2, 0, 1)[1:, m].numpy(), x.transpose(2, 0, 1)[1:, mask])
    np.testing.assert_array_equal(y.permute(2, 0, 1)[..., None, m].numpy(), x.transpose(2, 0, 1)[..., None, mask])
