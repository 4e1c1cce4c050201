"""The toy data sets of the visualizer: which sets of `minifuse.data.points`, their sizes, and their descriptions."""

import numpy as np
import numpy.typing as npt

import minifuse as mf
from minifuse.core.errors import MinifuseError

MIN_POINTS, MAX_POINTS = 4, 1000  # points of a set
WORDS = {
    "simple": "to the left or right of a line",
    "diagonal": "above or below a diagonal",
    "split": "in the middle, or at either side",
    "xor": "in two opposite quarters, or in the two others",
    "circle": "inside or outside a circle",
    "spiral": "on one of two arms that wind about each other",
}
NAMES = tuple(WORDS)


def points(name: str, count: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return a toy data set by its name.

    Parameters
    ----------
    name : str
        One of NAMES.
    count : int
        How many points, 4 to 1,000.
    seed : int
        The same seed gives the same points.

    Returns
    -------
    x : array of float32 (count, 2)
        From -1 to 1.
    y : array of int64 (count,)
        0 or 1.

    Raises
    ------
    MinifuseError
        There is no such set, or not so many points.

    Examples
    --------
    >>> x, y = points("simple", 6, seed=0)
    >>> x.shape, bool(((x[:, 0] > 0) == y).all())
    ((6, 2), True)
    """
    if name not in NAMES:
        raise MinifuseError(f"there is no data set {name!r}; expected one of {', '.join(NAMES)}")
    if not MIN_POINTS <= count <= MAX_POINTS:
        raise MinifuseError(f"a set of {count:,} points; expected {MIN_POINTS} to {MAX_POINTS:,}")
    x, y = mf.data.points(name, count, seed, backend="parallel")
    return x.numpy(), y.numpy()
