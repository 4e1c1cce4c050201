"""The data sets that come with scikit-learn: small, real, and available without a download.

Each function returns features x and targets y; `names` returns the names of the columns. Values are as measured;
`standardize` scales them. The description of a data set is in scikit-learn's documentation.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.errors import MinifuseError, MissingPartError
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from sklearn.utils import Bunch

LOADERS = {
    "iris": "load_iris",
    "wine": "load_wine",
    "breast_cancer": "load_breast_cancer",
    "diabetes": "load_diabetes",
    "linnerud": "load_linnerud",
}


class DatasetNames(NamedTuple):
    """Names of the features and the targets of a data set."""

    features: tuple[str, ...]
    """One name for each column of x."""
    targets: tuple[str, ...]
    """The names of the classes in y; for regression, one name for each column of y."""


def iris(backend: str | None = None) -> tuple[Tensor, Tensor]:
    """Load 150 iris flowers of three species, with four measurements each: classification.

    Parameters
    ----------
    backend : str, optional
        The backend of the tensors. Default: the default backend.

    Returns
    -------
    x : Tensor of float32 (150, 4)
        Lengths and widths in centimeters, 0.1 to 7.9.
    y : Tensor of int64 (150,)
        The species, 0 to 2, 50 of each.

    Raises
    ------
    MissingPartError
        scikit-learn, which contains the data, is not installed.

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
    return load_classification("iris", backend)


def wine(backend: str | None = None) -> tuple[Tensor, Tensor]:
    """Load 178 wines of three growers, with 13 chemical measurements each: classification.

    Parameters
    ----------
    backend : str, optional
        The backend of the tensors. Default: the default backend.

    Returns
    -------
    x : Tensor of float32 (178, 13)
        Measurements of very different scales, 0.1 to 1,680: `standardize` them.
    y : Tensor of int64 (178,)
        The grower, 0 to 2: 59, 71 and 48 wines.

    Raises
    ------
    MissingPartError
        scikit-learn, which contains the data, is not installed.

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
    return load_classification("wine", backend)


def breast_cancer(backend: str | None = None) -> tuple[Tensor, Tensor]:
    """Load 569 tumors, malignant or benign, with measurements of their cell nuclei: classification.

    Parameters
    ----------
    backend : str, optional
        The backend of the tensors. Default: the default backend.

    Returns
    -------
    x : Tensor of float32 (569, 30)
        Measurements of very different scales, 0 to 4,254: `standardize` them.
    y : Tensor of int64 (569,)
        0 for malignant (212 tumors), 1 for benign (357).

    Raises
    ------
    MissingPartError
        scikit-learn, which contains the data, is not installed.

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
    return load_classification("breast_cancer", backend)


def diabetes(backend: str | None = None) -> tuple[Tensor, Tensor]:
    """Load 442 patients with diabetes, and the progression of the disease after a year: regression.

    Parameters
    ----------
    backend : str, optional
        The backend of the tensors. Default: the default backend.

    Returns
    -------
    x : Tensor of float32 (442, 10)
        Age, sex, body mass index, blood pressure and six blood values in their own units: `standardize` them.
    y : Tensor of float32 (442, 1)
        25 to 346; a column, like the output of `Linear(..., 1)`.

    Raises
    ------
    MissingPartError
        scikit-learn, which contains the data, is not installed.

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
    return load_regression("diabetes", backend)


def linnerud(backend: str | None = None) -> tuple[Tensor, Tensor]:
    """Load 20 men at a fitness club, with three exercises and three body measurements: multi-output regression.

    Parameters
    ----------
    backend : str, optional
        The backend of the tensors. Default: the default backend.

    Returns
    -------
    x : Tensor of float32 (20, 3)
        Numbers of chin-ups, sit-ups and jumps.
    y : Tensor of float32 (20, 3)
        Weight in pounds, waist in inches, pulse per minute.

    Raises
    ------
    MissingPartError
        scikit-learn, which contains the data, is not installed.

    Notes
    -----
    Enough to try out shapes, but not to train a model.

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
    return load_regression("linnerud", backend)


def names(name: str) -> DatasetNames:
    """Return the names of the columns of x, and of the classes or columns of y.

    Parameters
    ----------
    name : str
        "digits", "iris", "wine", "breast_cancer", "diabetes" or "linnerud".

    Returns
    -------
    DatasetNames
        Has the fields `features` and `targets`, tuples of str.

    Raises
    ------
    MinifuseError
        The data set is unknown.
    MissingPartError
        scikit-learn, which contains all of the data sets but the digits, is not installed.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.data.names("iris").features[0], mf.data.names("iris").targets
    ('sepal length (cm)', ('setosa', 'versicolor', 'virginica'))
    """
    if name == "digits":  # the only one of them that is in the package
        return DatasetNames(tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8)), tuple("0123456789"))
    if name not in LOADERS:
        raise MinifuseError(f"names: unknown data set {name!r}; expected one of digits, {', '.join(LOADERS)}")
    bunch = load_bundle(name)
    targets = ["disease progression"] if name == "diabetes" else bunch.target_names
    return DatasetNames(tuple(map(str, bunch.feature_names)), tuple(map(str, targets)))


def load_classification(name: str, backend: str | None) -> tuple[Tensor, Tensor]:
    """Load features, and the class of each example."""
    bunch = load_bundle(name)
    return tensor(bunch.data.astype(np.float32), backend=backend), tensor(bunch.target.astype(np.int64), backend=backend)


def load_regression(name: str, backend: str | None) -> tuple[Tensor, Tensor]:
    """Load features, and target columns."""
    bunch = load_bundle(name)
    y = bunch.target.reshape(len(bunch.data), -1)
    return tensor(bunch.data.astype(np.float32), backend=backend), tensor(y.astype(np.float32), backend=backend)


def load_bundle(name: str) -> "Bunch":
    """Load a data set with scikit-learn."""
    try:
        import sklearn.datasets as datasets
    except ImportError:
        raise MissingPartError(
            f'{name}: needs scikit-learn, which contains the data and is not installed; run: pip install "minifuse[data]"'
        ) from None
    options = {"scaled": False} if name == "diabetes" else {}  # scaled=True would divide by a norm that depends on n
    return getattr(datasets, LOADERS[name])(**options)
