"""Initial values of parameters: each function fills a tensor in place, without recording, and returns it.

Random numbers come from the generator of `mf.manual_seed`. NumPy draws them in float64, and they are converted to the dtype
of the tensor; with equal seeds they are the same on every backend. They differ from those of PyTorch.

    mf.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from ..core.dispatch import active_tracer, no_grad
from ..core.errors import DTypeError, ShapeError
from ..tensors.random import generator as default_generator
from ..tensors.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

Array = npt.NDArray[np.float64]
Mode = Literal["fan_in", "fan_out"]
MIN_PROBABILITY = 0.01  # least probability of a to b in `trunc_normal_`; below it, rejection sampling takes too long


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor of the weights before an activation that keeps the standard deviation of a layer's values.

    Parameters
    ----------
    nonlinearity : str
        "linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"; "conv1d" to "conv_transpose3d" are linear.
    param : float, optional
        The slope of "leaky_relu". Default: 0.01.

    Raises
    ------
    ValueError
        The activation is unknown.

    Examples
    --------
    >>> calculate_gain("relu") ** 2, calculate_gain("leaky_relu", 0.0) == calculate_gain("relu")
    (2.0000000000000004, True)
    """
    slope = 0.01 if param is None else param
    convolutions = [f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)]
    gains = dict.fromkeys(("linear", "sigmoid", *convolutions), 1.0)
    gains |= {"tanh": 5 / 3, "relu": math.sqrt(2), "leaky_relu": math.sqrt(2 / (1 + slope**2)), "selu": 3 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"calculate_gain: got nonlinearity={nonlinearity!r}, expected one of {', '.join(gains)}")
    return gains[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniformly distributed random numbers between a and b, from a generator, or from that of `mf.manual_seed`.

    Raises
    ------
    ValueError
        a is greater than b.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.nn.init.uniform_(mf.zeros(100), 2, 3)
    >>> bool(((x >= 2) & (x <= 3)).all())
    True
    """
    if not a <= b:
        raise ValueError(f"uniform_: got a={a} and b={b}, expected a <= b")
    return fill_random(tensor, lambda rng, shape: rng.uniform(a, b, shape), generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normally distributed random numbers.

    Raises
    ------
    ValueError
        std is negative.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.normal_(mf.zeros(2, 3), std=0.02).shape
    (2, 3)
    """
    if not std >= 0:
        raise ValueError(f"normal_: got std={std}, expected at least 0")
    return fill_random(tensor, lambda rng, shape: rng.normal(mean, std, shape), generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Generator | None = None
) -> Tensor:
    """Fill with normally distributed random numbers, restricted to the range from a to b.

    Raises
    ------
    ValueError
        std is not positive, or less than a hundredth of the distribution is between a and b.

    Notes
    -----
    Numbers outside the range are drawn again.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.nn.init.trunc_normal_(mf.zeros(1000), std=0.5, a=-1, b=1)
    >>> bool((x.abs() <= 1).all())
    True
    """
    if not std > 0:
        raise ValueError(f"trunc_normal_: got std={std}, expected greater than 0")
    normal = NormalDist(mean, std)
    probability = normal.cdf(b) - normal.cdf(a)
    if not probability >= MIN_PROBABILITY:
        raise ValueError(
            f"trunc_normal_: only {probability:.2g} of the normal distribution with mean {mean} and std {std} is between "
            f"a={a} and b={b}, expected at least {MIN_PROBABILITY}; write a and b closer to the mean, or use uniform_"
        )

    def draw(rng: Generator, shape: tuple[int, ...]) -> Array:
        values = rng.normal(mean, std, shape)
        while (outside := (values < a) | (values > b)).any():
            values[outside] = rng.normal(mean, std, int(outside.sum()))
        return values

    return fill_random(tensor, draw, generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.constant_(mf.zeros(2), 0.5)
    tensor([0.5, 0.5])
    """
    require_tensor(tensor)
    with no_grad():
        return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.zeros_(mf.ones(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.ones_(mf.zeros(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity: ones on the diagonal, and zeros elsewhere.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.eye_(mf.zeros(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    require_tensor(tensor)
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: got shape {tensor.shape}, expected a matrix; use dirac_ for the weight of a convolution")
    return store(tensor, np.eye(tensor.shape[0], tensor.shape[1]))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight (out, in, ...) of a convolution so that it copies its input channels; further outputs are zeros.

    With `groups`, the outputs of each group of a grouped convolution copy the inputs of the group.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.dirac_(mf.zeros(2, 1, 3), groups=2)
    tensor([[[0., 1., 0.]],
    <BLANKLINE>
            [[0., 1., 0.]]])
    """
    require_tensor(tensor)
    shape = tensor.shape
    if len(shape) not in (3, 4, 5) or shape[0] % groups:
        raise ShapeError(
            f"dirac_: got shape {shape} and groups={groups}, expected 3 to 5 dims, and groups that divide {shape[:1]}"
        )
    values, size = np.zeros(shape), shape[0] // groups
    middle = tuple(n // 2 for n in shape[2:])
    for k in range(groups):
        for channel in range(min(size, shape[1])):
            values[(k * size + channel, channel, *middle)] = 1
    return store(tensor, values)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normally distributed random numbers, and set a part `sparsity` of each column to 0 [1]_.

    References
    ----------
    .. [1] J. Martens, Deep learning via Hessian-free optimization, 2010

    Examples
    --------
    >>> import minifuse as mf
    >>> w = mf.nn.init.sparse_(mf.zeros(10, 3), sparsity=0.2)
    >>> (w == 0).sum(0).tolist()
    [2, 2, 2]
    """
    require_tensor(tensor)
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: got shape {tensor.shape}, expected a matrix")

    def draw(rng: Generator, shape: tuple[int, ...]) -> Array:
        values = rng.normal(0, std, shape)
        zeros = math.ceil(sparsity * shape[0])
        for column in values.T:
            column[rng.permutation(shape[0])[:zeros]] = 0
        return values

    return fill_random(tensor, draw, generator)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill uniformly within +-gain * sqrt(6 / (fan_in + fan_out)), which keeps the variance in forward and backward [1]_.

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
    bound = gain * math.sqrt(6 / sum(fan_in_and_out("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill normally with standard deviation gain * sqrt(2 / (fan_in + fan_out)), see `xavier_uniform_`.

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
    return normal_(tensor, 0, gain * math.sqrt(2 / sum(fan_in_and_out("xavier_normal_", tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill uniformly within +-gain * sqrt(3 / fan), which keeps the variance through layers with an activation [1]_.

    Parameters
    ----------
    tensor : Tensor of floats (out, in) or (out, in, ...)
    a : float
        The slope, if the activation is "leaky_relu".
    mode : {"fan_in", "fan_out"}
        "fan_in" keeps the variance in the forward pass, "fan_out" in the backward pass.
    nonlinearity : str
        The activation after the layer, a name that `calculate_gain` accepts.

    Raises
    ------
    ShapeError
        The tensor has fewer than 2 dims.
    ValueError
        The mode or the activation is unknown.

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
    bound = math.sqrt(3) * kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill normally with standard deviation gain / sqrt(fan); parameters and errors are those of `kaiming_uniform_`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.init.kaiming_normal_(mf.zeros(5, 6), nonlinearity="relu").shape
    (5, 6)
    """
    return normal_(tensor, 0, kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with a random matrix of orthogonal rows of length `gain`, or columns if there are more rows than columns [1]_.

    The dims after the first are treated as one dim. Among all such matrices, the choice is uniform.

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
    fan_in_and_out("orthogonal_", tensor)

    def draw(rng: Generator, shape: tuple[int, ...]) -> Array:
        rows, columns = shape[0], math.prod(shape[1:])
        q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
        q *= np.where(np.diagonal(r) < 0, -1.0, 1.0)  # without this, the signs would depend on the algorithm of qr
        return gain * (q.T if rows < columns else q).reshape(shape)

    return fill_random(tensor, draw, generator)


def store(tensor: Tensor, values: Array) -> Tensor:
    """Copy an array into a tensor, without recording."""
    with no_grad():
        return tensor.copy_(np.asarray(values, tensor.dtype.numpy))


def fill_random(tensor: Tensor, draw: Callable[[Generator, tuple[int, ...]], Array], generator: Generator | None) -> Tensor:
    """Store the array that `draw` returns for the tensor's shape; a fused function draws again in each call."""
    require_tensor(tensor)
    shape, dtype = tensor.shape, tensor.dtype
    if not dtype.is_float:
        raise DTypeError(f"init: got a tensor of dtype {dtype}, expected floats for random numbers; write x.to(mf.float32)")

    def draw_converted() -> np.ndarray:
        return np.asarray(draw(default_generator() if generator is None else generator, shape), dtype.numpy)

    tracer = active_tracer()
    with no_grad():
        return tensor.copy_(draw_converted() if tracer is None else tracer.draw(draw_converted, shape, dtype))


def require_tensor(tensor: object) -> None:
    """Raise DTypeError unless the argument is a tensor."""
    if not isinstance(tensor, Tensor):
        raise DTypeError(f"init: expected a tensor, got {type(tensor).__name__}; write a parameter, or mf.zeros(...)")


def fan_in_and_out(name: str, tensor: Tensor) -> tuple[int, int]:
    """Return (fan_in, fan_out): the numbers of inputs of each output, and of outputs of each input."""
    require_tensor(tensor)
    if tensor.ndim < 2 or 0 in tensor.shape:
        raise ShapeError(f"{name}: got shape {tensor.shape}, expected (out, in) or (out, in, ...), not empty")
    kernel_size = math.prod(tensor.shape[2:])
    return tensor.shape[1] * kernel_size, tensor.shape[0] * kernel_size


def kaiming_std(name: str, tensor: Tensor, slope: float, mode: Mode, nonlinearity: str) -> float:
    """Return gain / sqrt(fan), the standard deviation of weights that keeps the variance of a layer's values."""
    fan_in, fan_out = fan_in_and_out(name, tensor)
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'{name}: got mode={mode!r}, expected "fan_in" or "fan_out"')
    return calculate_gain(nonlinearity, slope) / math.sqrt(fan_in if mode == "fan_in" else fan_out)
