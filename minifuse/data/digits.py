"""Handwritten digits: small, real, and part of the package. `images/README.md` states their source and license."""

from functools import cache
from pathlib import Path

import numpy as np

from ..tensors.creation import tensor
from ..tensors.tensor import Tensor

DIGITS_FILE = Path(__file__).parent / "images" / "digits.npz"
MAX_PIXEL = 16  # the largest stored pixel value


def digits(images: bool = False, backend: str | None = None) -> tuple[Tensor, Tensor]:
    """Load 1,797 handwritten digits of 8 x 8 pixels, with their classes.

    Parameters
    ----------
    images : bool
        If True, keep rows and columns, as (8, 8).
    backend : str, optional
        The backend of the tensors. Default: the default backend.

    Returns
    -------
    x : Tensor of float32 (1797, 64), or (1797, 8, 8)
        Pixels from 0 (paper) to 1 (ink).
    y : Tensor of int64 (1797,)
        The digits, 0 to 9, about 180 of each.

    Notes
    -----
    The digits are those of `sklearn.datasets.load_digits`, in the same order. Their license is CC BY 4.0.

    References
    ----------
    E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, 1998, UCI Machine Learning Repository (its test set),
    doi:10.24432/C50P49

    Examples
    --------
    >>> import minifuse as mf
    >>> x, y = mf.data.digits()
    >>> x.shape, y[:5]
    ((1797, 64), tensor([0, 1, 2, 3, 4]))
    """
    pixels, labels = load_arrays()
    x = tensor((pixels / MAX_PIXEL).astype(np.float32), backend=backend)
    return x.reshape(-1, 8, 8) if images else x, tensor(labels.astype(np.int64), backend=backend)


@cache
def load_arrays() -> tuple[np.ndarray, np.ndarray]:
    """Return pixels (1797, 64) from 0 to 16, and labels (1797,), both of uint8."""
    with np.load(DIGITS_FILE) as file:
        return file["pixels"], file["labels"]
