"""The handwritten digits that come with scikit-learn: small, real, and there without a download."""

import numpy as np

from ..creation import tensor
from ..errors import MissingPartError
from ..tensor import Tensor

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
    Importing scikit-learn takes about a second, the first time.

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
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingPartError(
            'digits: the data come with scikit-learn, which is not installed; install it with `pip install "minifuse[cli]"`'
        ) from None
    pixels, labels = load_digits(return_X_y=True)
    x = tensor((pixels / LARGEST).astype(np.float32), backend=backend)
    return x.reshape(-1, 8, 8) if images else x, tensor(labels.astype(np.int64), backend=backend)
