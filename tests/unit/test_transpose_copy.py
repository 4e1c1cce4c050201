"""backends.parallel.transpose_copy: sizes around the edges of tiles, all dtypes, and copies that are not transposes."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.parallel import transpose_copy
from minifuse.core.layout import row_major
from minifuse.ir.kernel_ir import Kernel, Load, LoopNest

DTYPES = ("float32", "float64", "int32", "int64")


def numbers(shape, dtype):
    return np.random.default_rng(0).integers(-1000, 1000, shape).astype(dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [4, 7, 8, 9, 15, 16, 17, 33, 70])
def test_sizes_around_the_edges_of_squares(dtype, rows):
    for columns in (4, 15, 16, 31, 65):
        x = numbers((rows, columns), dtype)
        np.testing.assert_array_equal(mf.tensor(x).T.contiguous().numpy(), x.T)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(3, 5, 18, 9), (33, 2, 17, 6), (2, 1, 40, 41), (9, 4, 4, 4)])
@pytest.mark.parametrize("order", [(1, 2, 3, 0), (3, 0, 1, 2), (0, 3, 2, 1), (2, 3, 0, 1)])
def test_more_axes_on_either_side(shape, order):
    x = numbers(shape, "float32")
    np.testing.assert_array_equal(mf.tensor(x).permute(*order).contiguous().numpy(), x.transpose(order))


def test_nothing_beside_the_copy_is_touched():
    """It goes into the middle of something, from what is flipped and repeated."""
    x, y = mf.tensor(numbers((21, 35), "float32")), mf.zeros(3, 40, 30)
    y[:, 2:37, 5:26] = x.flip(0).T
    wanted = np.zeros((3, 40, 30))
    wanted[:, 2:37, 5:26] = x.numpy()[::-1].T
    np.testing.assert_array_equal(y.numpy(), wanted)


def test_bits_are_moved_as_they_are():
    bits = np.arange(256, dtype=np.uint32).reshape(16, 16) * np.uint32(0x01010101) | np.uint32(0x7F800000)  # NaNs too
    x = mf.from_numpy(bits.view(np.float32))
    np.testing.assert_array_equal(x.T.contiguous().numpy().view(np.uint32), bits.T)


def nest_of(x, out, dtype=mf.float32):
    kernel = Kernel((Load(0, dtype),), ())
    return transpose_copy.transposed_axes(kernel, LoopNest(x.shape, (), [out, x]))


def test_transposed_copies_are_recognized():
    plain, across = row_major((20, 30)), row_major((30, 20)).permute(1, 0)
    assert nest_of(across, plain) is not None
    assert nest_of(plain, plain) is None  # in order
    assert nest_of(row_major((30, 3)).permute(1, 0), row_major((3, 30))) is None  # too few for squares
    assert nest_of(across, plain, mf.bool_) is None  # single bytes
    assert nest_of(row_major((30,)).expand(20, 30), plain) is None
    assert "turn(" in mf.source(lambda x: x.T.contiguous() if False else x.T.clone(), mf.ones(20, 30))
