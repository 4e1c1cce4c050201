"""Points in the plane with two classes, made by seed: small data sets on which one sees what a network learns.

All lie in the square from -1 to 1. Where a set has a rule, its class is a matter of where a point lies, and `RULES` says it;
the two others are made class by class. Real data are elsewhere in this package.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..core.errors import MinifuseError, ShapeError
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor

Points = npt.NDArray[np.float32]
Classes = npt.NDArray[np.int64]
TURNS = 1.0  # of each arm of the spiral
ARM = 0.95  # the spiral's radius: some room to the edge of the square

RULES: dict[str, Callable[[Points], npt.NDArray[np.bool_]]] = {
    "simple": lambda p: p[:, 0] > 0,
    "diagonal": lambda p: p[:, 0] + p[:, 1] > 0,
    "split": lambda p: np.abs(p[:, 0]) > 0.5,
    "xor": lambda p: (p[:, 0] > 0) != (p[:, 1] > 0),
    "circle": lambda p: (p * p).sum(1) > 0.4,
}
POINTS = (*RULES, "spiral", "moons")


def points(name: str, n: int = 200, seed: int = 0, noise: float = 0.0, backend: str | None = None) -> tuple[Tensor, Tensor]:
    """Points in the plane, each of one of two classes.

    Parameters
    ----------
    name : str
        "simple": to the left or right of a line; "diagonal": above or below one; "split": in the middle or at either side;
        "xor": in two opposite quarters or the two others; "circle": inside or outside; "spiral": on one of two arms that
        wind about each other; "moons": on one of two half circles that reach into each other.
    n : int
        How many points.
    seed : int
        The same seed gives the same points.
    noise : float
        The standard deviation of what is added to each coordinate after the classes are settled.
    backend : str, optional
        Where the tensors live; the default backend if left out.

    Returns
    -------
    x : Tensor of float32 (n, 2)
        From -1 to 1; noise does not lead out of the square.
    y : Tensor of int64 (n,)
        0 or 1; of "spiral" and "moons" in turn, else as the points fall.

    Raises
    ------
    MinifuseError
        There is no such set.
    ShapeError
        `n` or `noise` is negative, or `noise` not finite.

    Examples
    --------
    >>> import minifuse as mf
    >>> x, y = mf.data.points("simple", 6, seed=0)
    >>> x.shape, bool(((x[:, 0] > 0) == (y == 1)).all())
    ((6, 2), True)
    """
    if name not in POINTS:
        raise MinifuseError(f"points: there is no set {name!r}; expected one of {', '.join(POINTS)}")
    if n < 0 or not 0 <= noise < np.inf:
        raise ShapeError(f"points: got n={n} and noise={noise}, expected neither below 0, and a noise that is finite")
    rng = np.random.default_rng(seed)
    if name in RULES:
        x = rng.uniform(-1, 1, (n, 2)).astype(np.float32)
        y = RULES[name](x).astype(np.int64)
    else:
        x, y = (spiral if name == "spiral" else moons)(n, rng)
    if noise:
        x = np.clip(x + rng.normal(0, noise, x.shape), -1, 1).astype(np.float32)
    return tensor(x, backend=backend), tensor(y, backend=backend)


def spiral(n: int, rng: np.random.Generator) -> tuple[Points, Classes]:
    """Two arms, half a turn apart, each wider outside; points come from both in turn."""
    y = np.arange(n, dtype=np.int64) % 2
    along = rng.uniform(0.1, 1, n)
    angle = 2 * np.pi * TURNS * along + np.pi * y
    x = ARM * np.stack([along * np.cos(angle), along * np.sin(angle)], 1)
    return x.astype(np.float32), y


def moons(n: int, rng: np.random.Generator) -> tuple[Points, Classes]:
    """An arch, and to the right and lower an arch upside down; points come from both in turn."""
    y = np.arange(n, dtype=np.int64) % 2
    angle = rng.uniform(0, np.pi, n)
    sign = 1 - 2 * y
    x = np.stack([sign * (np.cos(angle) - 0.5), sign * (np.sin(angle) - 0.25)], 1) / 1.6
    return x.astype(np.float32), y
