"""The handwritten digits that come with scikit-learn: small, real, and there without a download."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..tensors.creation import tensor
from ..tensors.tensor import Tensor
from .bundled import bundle

FILE = "datasets", "data", "digits.csv.gz"  # in scikit-learn's folder
LARGEST = 16  # of a pixel, as it is stored


def digits(images: bool = False, backend: str | None = None) -> tuple[Tensor, Tensor]:
    """1,797 handwritten digits of 8 x 8 pixels, and what they are.

    Parameters
    ----------
    images : bool
        Whether each digit keeps its rows and columns.
    backend : str, optional
        Where the tensors live; the default backend if left out.

    Returns
    -------
    x : Tensor of float32 (1797, 64), or (1797, 8, 8)
        Pixels from 0, paper, to 1, ink.
    y : Tensor of int64 (1797,)
        The digits, 0 to 9, about 180 of each.

    Raises
    ------
    MissingPartError
        scikit-learn, which brings the data, is not installed.

    Notes
    -----
    Read once, from scikit-learn's own file: importing all of scikit-learn for it would take a second.

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
    pixels, labels = arrays()
    x = tensor((pixels / LARGEST).astype(np.float32), backend=backend)
    return x.reshape(-1, 8, 8) if images else x, tensor(labels.astype(np.int64), backend=backend)


@cache
def arrays() -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Pixels (1797, 64) from 0 to 16, and labels (1797,); by scikit-learn itself where its file lies elsewhere."""
    try:
        spec = find_spec("sklearn")
    except ValueError:  # somebody keeps it from being imported
        spec = None
    for place in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(place, *FILE)
        if file.is_file():
            table = np.loadtxt(file, delimiter=",")
            return table[:, :-1], table[:, -1]
    found = bundle("digits")
    return found.data, found.target
