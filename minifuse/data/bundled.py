"""The sets that come with scikit-learn: small, real, and there without a download.

Each is features x and what is to be told from them, y; `names` says what the columns are. What belongs to no column, such as
the story of a set, stays with scikit-learn. Numbers are as they were measured; `standardize` brings them to one scale.
"""

from typing import Any, NamedTuple

import numpy as np

from ..core.errors import MinifuseError, MissingPartError
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor

LOADERS = {
    "digits": "load_digits",
    "iris": "load_iris",
    "wine": "load_wine",
    "breast_cancer": "load_breast_cancer",
    "diabetes": "load_diabetes",
    "linnerud": "load_linnerud",
}


class Names(NamedTuple):
    """What the columns of a set mean."""

    features: tuple[str, ...]
    """Of x, a name a column."""
    targets: tuple[str, ...]
    """The classes that y counts; where y is measured, a name a column."""


def iris(backend: str | None = None) -> tuple[Tensor, Tensor]:
    """150 irises of three kinds, measured: the oldest set of them all.

    Parameters
    ----------
    backend : str, optional
        Where the tensors live; the default backend if left out.

    Returns
    -------
    x : Tensor of float32 (150, 4)
        Lengths and widths in centimetres, 0.1 to 7.9.
    y : Tensor of int64 (150,)
        The kind, 0 to 2, 50 of each.

    Raises
    ------
    MissingPartError
        scikit-learn, which brings the data, is not installed.

    References
    ----------
    R. A. Fisher, The Use of Multiple Measurements in Taxonomic Problems, Annals of Eugenics 7, 1936

    Examples
    --------
    >>> import minifuse as mf
    >>> x, y = mf.data.iris()
    >>> x.shape, mf.data.names("iris").targets[y[-1].item()]
    ((150, 4), 'virginica')
    """
    return classes("iris", backend)


def wine(backend: str | None = None) -> tuple[Tensor, Tensor]:
    """178 wines of three growers, by what a chemist finds in them.

    Parameters
    ----------
    backend : str, optional
        Where the tensors live; the default backend if left out.

    Returns
    -------
    x : Tensor of float32 (178, 13)
        Measurements of very different size, 0.1 to 1,680: `standardize` them.
    y : Tensor of int64 (178,)
        The grower, 0 to 2: 59, 71 and 48 wines.

    Raises
    ------
    MissingPartError
        scikit-learn, which brings the data, is not installed.

    References
    ----------
    S. Aeberhard, M. Forina, Wine, 1992, UCI Machine Learning Repository

    Examples
    --------
    >>> import minifuse as mf
    >>> x, y = mf.data.wine()
    >>> x.shape, mf.data.names("wine").features[0], round(x[0, 0].item(), 2)
    ((178, 13), 'alcohol', 14.23)
    """
    return classes("wine", backend)


def breast_cancer(backend: str | None = None) -> tuple[Tensor, Tensor]:
    """569 tumours, by the shape of their cell nuclei under a microscope: malignant or benign.

    Parameters
    ----------
    backend : str, optional
        Where the tensors live; the default backend if left out.

    Returns
    -------
    x : Tensor of float32 (569, 30)
        Measurements of very different size, 0 to 4,254: `standardize` them.
    y : Tensor of int64 (569,)
        0, malignant, 212 of them, or 1, benign, 357.

    Raises
    ------
    MissingPartError
        scikit-learn, which brings the data, is not installed.

    References
    ----------
    W. Wolberg, O. Mangasarian, N. Street, W. Street, Breast Cancer Wisconsin (Diagnostic), 1993, UCI Machine Learning
    Repository

    Examples
    --------
    >>> import minifuse as mf
    >>> x, y = mf.data.breast_cancer()
    >>> x.shape, y.sum().item()
    ((569, 30), 357)
    """
    return classes("breast_cancer", backend)


def diabetes(backend: str | None = None) -> tuple[Tensor, Tensor]:
    """442 patients with diabetes, and how far the illness went within a year: regression.

    Parameters
    ----------
    backend : str, optional
        Where the tensors live; the default backend if left out.

    Returns
    -------
    x : Tensor of float32 (442, 10)
        Age, sex, body mass index, blood pressure and six blood values in their own units: `standardize` them.
    y : Tensor of float32 (442, 1)
        25 to 346; a column, as the output of a `Linear(..., 1)` is one.

    Raises
    ------
    MissingPartError
        scikit-learn, which brings the data, is not installed.

    References
    ----------
    B. Efron, T. Hastie, I. Johnstone, R. Tibshirani, Least Angle Regression, Annals of Statistics 32, 2004

    Examples
    --------
    >>> import minifuse as mf
    >>> x, y = mf.data.diabetes()
    >>> x.shape, y.shape, y[:2]
    ((442, 10), (442, 1), tensor([[151.],
            [ 75.]]))
    """
    return measures("diabetes", backend)


def linnerud(backend: str | None = None) -> tuple[Tensor, Tensor]:
    """20 men at a fitness club, three exercises and three measures of the body: regression of several numbers at once.

    Parameters
    ----------
    backend : str, optional
        Where the tensors live; the default backend if left out.

    Returns
    -------
    x : Tensor of float32 (20, 3)
        How many chin-ups, sit-ups and jumps.
    y : Tensor of float32 (20, 3)
        Weight in pounds, waist in inches, pulse a minute.

    Raises
    ------
    MissingPartError
        scikit-learn, which brings the data, is not installed.

    Notes
    -----
    Enough to try shapes on, too few to learn from.

    References
    ----------
    M. Tenenhaus, La régression PLS: théorie et pratique, Technip, 1998

    Examples
    --------
    >>> import minifuse as mf
    >>> x, y = mf.data.linnerud()
    >>> mf.data.names("linnerud").targets, y[0]
    (('Weight', 'Waist', 'Pulse'), tensor([191.,  36.,  50.]))
    """
    return measures("linnerud", backend)


def names(name: str) -> Names:
    """What the columns of x and the classes or columns of y mean.

    Parameters
    ----------
    name : str
        "digits", "iris", "wine", "breast_cancer", "diabetes" or "linnerud".

    Returns
    -------
    Names
        features, targets: tuples of str.

    Raises
    ------
    MinifuseError
        There is no such set.
    MissingPartError
        scikit-learn, which brings the data, is not installed.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.data.names("iris").features[0], mf.data.names("iris").targets
    ('sepal length (cm)', ('setosa', 'versicolor', 'virginica'))
    """
    if name not in LOADERS:
        raise MinifuseError(f"names: there is no set {name!r}; expected one of {', '.join(LOADERS)}")
    found = bundle(name)
    targets = ["disease progression"] if name == "diabetes" else found.target_names
    return Names(tuple(map(str, found.feature_names)), tuple(map(str, targets)))


def classes(name: str, backend: str | None) -> tuple[Tensor, Tensor]:
    """Features, and the class of each example."""
    found = bundle(name)
    return tensor(found.data.astype(np.float32), backend=backend), tensor(found.target.astype(np.int64), backend=backend)


def measures(name: str, backend: str | None) -> tuple[Tensor, Tensor]:
    """Features, and columns of numbers to be told from them."""
    found = bundle(name)
    y = found.target.reshape(len(found.data), -1)
    return tensor(found.data.astype(np.float32), backend=backend), tensor(y.astype(np.float32), backend=backend)


def bundle(name: str) -> Any:
    """A set as scikit-learn has it."""
    try:
        import sklearn.datasets as datasets
    except ImportError:
        raise MissingPartError(
            f'{name}: the data come with scikit-learn, which is not installed; install it with `pip install "minifuse[cli]"`'
        ) from None
    options = {"scaled": False} if name == "diabetes" else {}  # its own scale is the column's norm, which depends on n
    return getattr(datasets, LOADERS[name])(**options)
