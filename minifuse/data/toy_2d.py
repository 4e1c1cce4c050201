"""Seeded 2-D points of two classes: small data sets that show what a network learns.

All points are in the square from -1 to 1. For most data sets, the class is a function of the position, see `RULES`; "spiral"
and "moons" are generated class by class.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..core.errors import MinifuseError, ShapeError
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor

Points = npt.NDArray[np.float32]
Classes = npt.NDArray[np.int64]
SPIRAL_TURNS = 1.0  # full turns of each spiral arm
SPIRAL_RADIUS = 0.95  # largest distance from the center, with some margin to the edge of the square

RULES: dict[str, Callable[[Points], npt.NDArray[np.bool_]]] = {
    "simple": lambda p: p[:, 0] > 0,
    "diagonal": lambda p: p[:, 0] + p[:, 1] > 0,
    "split": lambda p: np.abs(p[:, 0]) > 0.5,
    "xor": lambda p: (p[:, 0] > 0) != (p[:, 1] > 0),
    "circle": lambda p: (p * p).sum(1) > 0.4,
}
DATASET_NAMES = (*RULES, "spiral", "moons")


def points(name: str, n: int = 200, seed: int = 0, noise: float = 0.0, backend: str | None = None) -> tuple[Tensor, Tensor]:
    """Generate 2-D points of two classes.

    Parameters
    ----------
    name : str
        "simple": left or right of a line; "diagonal": above or below a diagonal; "split": in the middle or at the sides;
        "xor": in two opposite quadrants or the two others; "circle": inside or outside a circle; "spiral": on one of two
        interleaved spiral arms; "moons": on one of two interleaved half circles.
    n : int
        Number of points.
    seed : int
        Equal seeds result in equal points.
    noise : float
        Standard deviation of the noise added to each coordinate after the classes are determined.
    backend : str, optional
        The backend of the tensors. Default: the default backend.

    Returns
    -------
    x : Tensor of float32 (n, 2)
        Coordinates from -1 to 1, also with noise.
    y : Tensor of int64 (n,)
        Classes 0 and 1; alternating for "spiral" and "moons".

    Raises
    ------
    MinifuseError
        The data set is unknown.
    ShapeError
        `n` or `noise` is negative, or `noise` is not finite.

    Examples
    --------
    >>> import minifuse as mf
    >>> x, y = mf.data.points("simple", 6, seed=0)
    >>> x.shape, bool(((x[:, 0] > 0) == (y == 1)).all())
    ((6, 2), True)
    """
    if name not in DATASET_NAMES:
        raise MinifuseError(f"points: unknown data set {name!r}; expected one of {', '.join(DATASET_NAMES)}")
    if n < 0 or not 0 <= noise < np.inf:
        raise ShapeError(f"points: got n={n} and noise={noise}, expected both at least 0, and a finite noise")
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
    """Generate points alternating between two spiral arms, half a turn apart."""
    y = np.arange(n, dtype=np.int64) % 2
    radius = rng.uniform(0.1, 1, n)
    angle = 2 * np.pi * SPIRAL_TURNS * radius + np.pi * y
    x = SPIRAL_RADIUS * np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return x.astype(np.float32), y


def moons(n: int, rng: np.random.Generator) -> tuple[Points, Classes]:
    """Generate points alternating between an upper half circle and a lower one, shifted to the right."""
    y = np.arange(n, dtype=np.int64) % 2
    angle = rng.uniform(0, np.pi, n)
    sign = 1 - 2 * y
    x = np.stack([sign * (np.cos(angle) - 0.5), sign * (np.sin(angle) - 0.25)], 1) / 1.6
    return x.astype(np.float32), y
