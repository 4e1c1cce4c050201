"""How results of layers are compared with NumPy's and PyTorch's."""

from typing import Any

import numpy as np

import minifuse as mf
from minifuse.testing import tolerance_for

BACKENDS = "python", "parallel", "cuda"


def near(got: mf.Tensor, wanted: Any, n: int = 1) -> None:
    """Compare with numbers, by the tolerance for a few operations, and folds of n elements."""
    wanted = np.asarray(wanted, np.float64)
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
    rtol, atol, _ = tolerance_for("program", got.dtype, n, float(largest))
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got.numpy(), wanted, rtol, atol)


def ways(function: Any) -> list[Any]:
    """A function, and itself fused."""
    return [function, mf.fuse(function)]


def smooth(*shape: int, phase: float = 0.0, requires_grad: bool = True) -> mf.Tensor:
    """Numbers of float64 between -1.6 and 1.7, no two alike and none near 0 or 1: where nothing has a kink."""
    n = int(np.prod(shape))
    values = (np.arange(n) * 0.6180339887 + phase + 0.1) % 1
    return mf.tensor(
        (values * 3 - 1.6 + 0.05 * np.sign(values - 0.5)).reshape(shape), "float64", requires_grad=requires_grad
    )
