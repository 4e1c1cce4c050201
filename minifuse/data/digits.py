"""The handwritten digits that come with scikit-learn: small, real, and available without a download."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ..tensors.creation import tensor
from ..tensors.tensor import Tensor
from .bundled import load_bundle

DIGITS_FILE = "datasets", "data", "digits.csv.gz"  # path in the folder of scikit-learn
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

    Raises
    ------
    MissingPartError
        scikit-learn, which contains the data, is not installed.

    Notes
    -----
    The digits are read once and cached, directly from scikit-learn's file: importing scikit-learn would take a second.

    References
    ----------
    E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, 1998, UCI Machine Learning Repository (its test set)

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
    """Return pixels (1797, 64) from 0 to 16, and labels (1797,). Import scikit-learn only if the file is not found."""
    try:
        spec = find_spec("sklearn")
    except ValueError:  # sys.modules["sklearn"] is None: its import is blocked
        spec = None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder, *DIGITS_FILE)
        if file.is_file():
            table = np.loadtxt(file, delimiter=",")
            return table[:, :-1], table[:, -1]
    bunch = load_bundle("digits")
    return bunch.data, bunch.target
