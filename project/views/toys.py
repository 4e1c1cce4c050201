"""Points in the plane with two classes, made by seed: small data sets on which one sees what a network learns.

All lie in the square from -1 to 1; a class is a matter of where a point lies, and `class_of` says the rule.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from minifuse.errors import MinifuseError

Points = npt.NDArray[np.float32]
Classes = npt.NDArray[np.int64]
TURNS = 1.0  # of each arm of the spiral
FEWEST, MOST = 4, 1000  # points of a set

RULES: dict[str, Callable[[Points], npt.NDArray[np.bool_]]] = {
    "simple": lambda p: p[:, 0] > 0,
    "diagonal": lambda p: p[:, 0] + p[:, 1] > 0,
    "split": lambda p: np.abs(p[:, 0]) > 0.5,
    "xor": lambda p: (p[:, 0] > 0) != (p[:, 1] > 0),
    "circle": lambda p: (p * p).sum(1) > 0.4,
}
WORDS = {
    "simple": "to the left or right of a line",
    "diagonal": "above or below a diagonal",
    "split": "in the middle, or at either side",
    "xor": "in two opposite quarters, or in the two others",
    "circle": "inside or outside a circle",
    "spiral": "on one of two arms that wind about each other",
}
NAMES = tuple(WORDS)


def points(name: str, count: int, seed: int) -> tuple[Points, Classes]:
    """A set by its name.

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
    if not FEWEST <= count <= MOST:
        raise MinifuseError(f"a set of {count:,} points; expected {FEWEST} to {MOST:,}")
    rng = np.random.default_rng(seed)
    if name == "spiral":
        return spiral(count, rng)
    x = rng.uniform(-1, 1, (count, 2)).astype(np.float32)
    return x, RULES[name](x).astype(np.int64)


def spiral(count: int, rng: np.random.Generator) -> tuple[Points, Classes]:
    """Two arms, half a turn apart, each wider outside; points come from both in turn."""
    y = np.arange(count, dtype=np.int64) % 2
    along = rng.uniform(0.1, 1, count)
    angle = 2 * np.pi * TURNS * along + np.pi * y
    x = 0.95 * np.stack([along * np.cos(angle), along * np.sin(angle)], 1)
    return x.astype(np.float32), y
