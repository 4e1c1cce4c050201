"""Gathers from joined and padded arrays: their parts are read where they are."""

import numpy as np
import pytest

import minifuse as mf


def random_case(seed):
    """Draw parts to join along a dim, whether the result is padded, and an index along a dim, partly out of range."""
    rng = np.random.default_rng(seed)
    shape, dim, dtype = rng.integers(1, 5, rng.integers(1, 4)), 0, rng.choice(["float32", "int64", "bool"])
    dim, gathered = rng.integers(len(shape), size=2)
    sizes = [[int(rng.integers(1, 4)) if d == dim else int(n) for d, n in enumerate(shape)] for _ in range(1 + seed % 3)]
    parts, is_padded = [rng.integers(-5, 5, size).astype(dtype) for size in sizes], bool(rng.integers(2))
    y = np.concatenate(parts, dim)
    y = np.pad(y, [(1, 2)] * y.ndim) if is_padded else y
    n = y.shape[gathered]
    index = rng.integers(-n - 1, n + 1, [rng.integers(1, n + 1) if d == gathered else m for d, m in enumerate(y.shape)])
    return parts, int(dim), is_padded, y, index, int(gathered)


@pytest.mark.parametrize("seed", range(24))
def test_elements_of_parts_are_selected(seed):
    parts, dim, is_padded, y, index, gathered = random_case(seed)

    def gather(index, *parts):
        x = mf.cat(list(parts), dim)
        x = mf.nn.functional.pad(x, [1, 2] * x.ndim) if is_padded else x
        return mf.gather(x, gathered, index)

    n = y.shape[gathered]
    place = np.where(index < 0, index + n, index)
    expected = np.take_along_axis(y, place.clip(0, n - 1), gathered)
    fill = np.array(np.nan if y.dtype.kind == "f" else 0, y.dtype)
    expected = np.where((place >= 0) & (place < n), expected, fill)
    tensors = [mf.tensor(x, backend="cuda") for x in (index, *parts)]
    np.testing.assert_array_equal(mf.fuse(gather)(*tensors).numpy(), expected)


def test_the_joined_array_is_not_stored():
    a, b, i = mf.ones(3, 4, backend="cuda"), mf.zeros(5, 4, backend="cuda"), mf.tensor([[7, 0, 3, -8]], backend="cuda")
    f = mf.fuse(lambda a, b, i: mf.gather(mf.cat([a, b]), 0, i) * 2)
    assert f(a, b, i).tolist() == [[0, 2, 0, 2]]
    assert len(f.explain(a, b, i).forward.kernels) == 1
    g = mf.fuse(lambda a, b, i: (mf.gather(y := mf.cat([a, b]), 0, i), y * 2))  # another op reads it
    assert g(a, b, i)[1].shape == (8, 4)
