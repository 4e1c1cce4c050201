"""First values of parameters: each function changes a tensor in place, without a record, and gives it back.

Random numbers come from the generator of `mf.manual_seed`, drawn by NumPy in float64 and stored as what the tensor holds;
with equal seeds they are the same on every backend. They are not those that PyTorch draws.

    mf.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..core.dispatch import active_tracer, no_grad
from ..core.errors import DTypeError, ShapeError
from ..tensors.creation import generator
from ..tensors.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

Array = npt.NDArray[np.float64]
Mode = Literal["fan_in", "fan_out"]
RAREST = 0.01  # of all draws; a smaller part of the normal distribution would be waited for too long


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """What an activation takes of the standard deviation, to be given back by the weights before it.

    Parameters
    ----------
    nonlinearity : str
        "linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"; "conv1d" and "conv2d" are linear.
    param : float, optional
        Of "leaky_relu" the slope, 0.01 if left out.

    Raises
    ------
    ValueError
        There is no such activation.

    Examples
    --------
    >>> calculate_gain("relu") ** 2, calculate_gain("leaky_relu", 0.0) == calculate_gain("relu")
    (2.0000000000000004, True)
    """
    slope = 0.01 if param is None else param
    gains = dict.fromkeys(("linear", "conv1d", "conv2d", "sigmoid"), 1.0)
    gains |= {"tanh": 5 / 3, "relu": math.sqrt(2), "leaky_relu": math.sqrt(2 / (1 + slope**2)), "selu": 3 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"nonlinearity is {nonlinearity!r}, expected one of {', '.join(gains)}")
    return gains[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Random numbers between a and b, evenly spread.

    Raises
    ------
    ValueError
        a is above b.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.nn.init.uniform_(mf.zeros(100), 2, 3)
    >>> bool(((x >= 2) & (x <= 3)).all())
    True
    """
    if not a <= b:
        raise ValueError(f"uniform_: a is {a} and b is {b}, expected a <= b")
    return filled(tensor, lambda shape: generator().uniform(a, b, shape))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Random numbers of the normal distribution.

    Raises
    ------
    ValueError
        std is below 0.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.normal_(mf.zeros(2, 3), std=0.02).shape
    (2, 3)
    """
    if not std >= 0:
        raise ValueError(f"normal_: std is {std}, expected at least 0")
    return filled(tensor, lambda shape: generator().normal(mean, std, shape))


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """Random numbers of the normal distribution, only those between a and b.

    Raises
    ------
    ValueError
        std is not above 0, or less than a hundredth of the distribution lies between a and b.

    Notes
    -----
    What lies outside is drawn again.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.nn.init.trunc_normal_(mf.zeros(1000), std=0.5, a=-1, b=1)
    >>> bool((x.abs() <= 1).all())
    True
    """
    if not std > 0:
        raise ValueError(f"trunc_normal_: std is {std}, expected above 0")
    normal = NormalDist(mean, std)
    part = normal.cdf(b) - normal.cdf(a)
    if not part >= RAREST:
        raise ValueError(
            f"trunc_normal_: {part:.2g} of the normal distribution with mean {mean} and std {std} lies between a={a} and "
            f"b={b}, expected at least {RAREST}; choose them closer to the mean, or use uniform_"
        )

    def draw(shape: tuple[int, ...]) -> Array:
        found = generator().normal(mean, std, shape)
        while (outside := (found < a) | (found > b)).any():
            found[outside] = generator().normal(mean, std, int(outside.sum()))
        return found

    return filled(tensor, draw)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.constant_(mf.zeros(2), 0.5)
    tensor([0.5, 0.5])
    """
    refuse_other_than_tensors(tensor)
    with no_grad():
        return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.zeros_(mf.ones(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.ones_(mf.zeros(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Evenly spread within +-gain * sqrt(6 / (fan_in + fan_out)): the variance stays, forward and backward [1]_.

    Raises
    ------
    ShapeError
        The tensor has fewer than 2 dims: (out, in) of a linear layer, (out, in, ...) of a convolution.

    References
    ----------
    .. [1] X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010

    Examples
    --------
    >>> import minifuse as mf
    >>> w = mf.nn.init.xavier_uniform_(mf.zeros(4, 2))
    >>> bool((w.abs() <= 1).all())
    True
    """
    bound = gain * math.sqrt(6 / sum(fans("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out)), as `xavier_uniform_`.

    Raises
    ------
    ShapeError
        The tensor has fewer than 2 dims.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.xavier_normal_(mf.zeros(4, 2)).shape
    (4, 2)
    """
    return normal_(tensor, 0, gain * math.sqrt(2 / sum(fans("xavier_normal_", tensor))))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: Mode = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Evenly spread within +-gain * sqrt(3 / fan): the variance stays through layers with an activation [1]_.

    Parameters
    ----------
    tensor : Tensor of floats (out, in) or (out, in, ...)
    a : float
        The slope, where the activation is "leaky_relu".
    mode : {"fan_in", "fan_out"}
        Whether the variance stays going forward or backward.
    nonlinearity : str
        The activation behind the layer, as `calculate_gain` knows it.

    Raises
    ------
    ShapeError
        The tensor has fewer than 2 dims.
    ValueError
        There is no such mode or activation.

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, Delving Deep into Rectifiers, 2015, arXiv:1502.01852

    Examples
    --------
    >>> import minifuse as mf
    >>> w = mf.nn.init.kaiming_uniform_(mf.zeros(5, 6), nonlinearity="relu")
    >>> bool((w.abs() <= 1).all())
    True
    """
    bound = math.sqrt(3) * spread("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: Mode = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Normal with standard deviation gain / sqrt(fan); parameters and errors are those of `kaiming_uniform_`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.kaiming_normal_(mf.zeros(5, 6), nonlinearity="relu").shape
    (5, 6)
    """
    return normal_(tensor, 0, spread("kaiming_normal_", tensor, a, mode, nonlinearity))


def orthogonal_(tensor: Tensor, gain: float = 1) -> Tensor:
    """Rows that stand upright on each other, all of length `gain`; columns, where there are more rows than columns [1]_.

    Dims after the first count as one. All such matrices are equally likely.

    Raises
    ------
    ShapeError
        The tensor has fewer than 2 dims.

    References
    ----------
    .. [1] A. M. Saxe, J. L. McClelland, S. Ganguli, Exact solutions to the nonlinear dynamics of learning in deep linear
       neural networks, 2013, arXiv:1312.6120

    Examples
    --------
    >>> import minifuse as mf
    >>> w = mf.nn.init.orthogonal_(mf.zeros(2, 3))
    >>> bool(((w @ w.T - mf.tensor([[1, 0], [0, 1]])).abs() < 1e-6).all())
    True
    """
    fans("orthogonal_", tensor)

    def draw(shape: tuple[int, ...]) -> Array:
        rows, columns = shape[0], math.prod(shape[1:])
        q, r = np.linalg.qr(generator().standard_normal((max(rows, columns), min(rows, columns))))
        q *= np.where(np.diagonal(r) < 0, -1.0, 1.0)  # else signs follow the algorithm, and are not evenly spread
        return gain * (q.T if rows < columns else q).reshape(shape)

    return filled(tensor, draw)


def filled(tensor: Tensor, draw: Callable[[tuple[int, ...]], Array]) -> Tensor:
    """The tensor with what `draw` gives for its shape stored in it; in a fused function each call draws anew."""
    refuse_other_than_tensors(tensor)
    shape, dtype = tensor.shape, tensor.dtype
    if not dtype.is_float:
        raise DTypeError(f"init: random numbers are floats, got a tensor of {dtype}")

    def drawn() -> npt.NDArray[Any]:
        return np.asarray(draw(shape), dtype.numpy)

    by = active_tracer()
    with no_grad():
        return tensor.copy_(drawn() if by is None else by.draw(drawn, shape, dtype))


def refuse_other_than_tensors(tensor: Any) -> None:
    """Raise for anything but a tensor."""
    if not isinstance(tensor, Tensor):
        raise DTypeError(f"init: expected a tensor, got {type(tensor).__name__}; pass a parameter, or mf.zeros(...)")


def fans(name: str, tensor: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out): how many inputs an output is computed from, and how many outputs an input goes to."""
    refuse_other_than_tensors(tensor)
    if tensor.ndim < 2 or 0 in tensor.shape:
        raise ShapeError(f"{name}: got a tensor of shape {tensor.shape}, expected (out, in) or (out, in, ...), not empty")
    places = math.prod(tensor.shape[2:])
    return tensor.shape[1] * places, tensor.shape[0] * places


def spread(name: str, tensor: Tensor, slope: float, mode: Mode, nonlinearity: str) -> float:
    """The standard deviation by which the variance stays."""
    fan_in, fan_out = fans(name, tensor)
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'{name}: mode is {mode!r}, expected "fan_in" or "fan_out"')
    return calculate_gain(nonlinearity, slope) / math.sqrt(fan_in if mode == "fan_in" else fan_out)
