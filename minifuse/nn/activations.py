"""Activations: elementwise functions, and softmax along a dim; as functions and as modules.

`relu`, `tanh`, `sigmoid` and the exact `gelu` are built-in operators. The others are compositions whose first and
second derivatives are right everywhere. `exp` is only applied to values of at most 0. The branch of a `where` that is not
chosen is never infinite, since 0 * inf would make the gradient NaN.

Parameters such as a slope are passed to the kernel at launch, so a new value needs no compilation.
"""

import math
from typing import Literal

from ..core.dtypes import DType
from ..core.errors import DTypeError, warn_user
from ..core.operators import exp, log1p, maximum, minimum, relu, sigmoid, tanh, where
from ..core.operators import gelu as exact_gelu
from ..ir.array_functions import A
from ..ir.array_methods import Array
from .layers import FunctionLayer, apply, require_tensor
from .module import Module

# From these arguments on, the sigmoid and the tanh in gelu round to 1, also in float64. Derivatives use clamped arguments:
# x * (1 - y) + 1 may be computed as (x + 1) - x * y, which is 0 if x is so large that x + 1 is x.
SIGMOID_SATURATION, TANH_SATURATION = 40.0, 10.0
Approximation = Literal["none", "tanh"]


def leaky_relu(x: A, negative_slope: float = 0.01, inplace: bool = False) -> A:
    """Return x where x > 0, and `negative_slope` * x elsewhere.

    Parameters
    ----------
    x : Tensor of floats
    negative_slope : float
        The derivative for x <= 0.
    inplace : bool
        Whether to store the result in the memory of x.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.leaky_relu(mf.tensor([-2.0, 3.0]), 0.1)
    tensor([-0.2,  3. ])
    """
    return store(apply(_leaky_relu, x, negative_slope), x, inplace)


def _leaky_relu(x: Array, slope: Array) -> Array:
    return where(require_floats("leaky_relu", x) > 0, x, x * slope)


def gelu(x: A, approximate: Approximation = "none") -> A:
    """Return x times the probability that a standard normal variable is less than x.

    Parameters
    ----------
    x : Tensor of floats
    approximate : {"none", "tanh"}
        "none" computes the exact function, with erf; "tanh" computes
        0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))), as in GPT-2 [1]_.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Notes
    -----
    The two differ by at most 5e-4.

    References
    ----------
    .. [1] D. Hendrycks, K. Gimpel, Gaussian Error Linear Units, 2016, arXiv:1606.08415

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([-1.0, 0.0, 2.0])
    >>> mf.nn.gelu(x), mf.nn.gelu(x, approximate="tanh")
    (tensor([-0.1587,  0.    ,  1.9545]), tensor([-0.1588,  0.    ,  1.9546]))
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f'gelu: got approximate={approximate!r}, expected "none" or "tanh"')
    return apply(exact_gelu if approximate == "none" else _gelu_by_tanh, x)


def _gelu_by_tanh(x: Array) -> Array:
    z = maximum(minimum(require_floats("gelu", x), TANH_SATURATION), -TANH_SATURATION)
    return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * (z * z * z))))


def silu(x: A, inplace: bool = False) -> A:
    """Return x * sigmoid(x), also called swish.

    Parameters
    ----------
    x : Tensor of floats
    inplace : bool
        Whether to store the result in the memory of x.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.silu(mf.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.    ,  0.7311])
    """
    return store(apply(_silu, x), x, inplace)


def _silu(x: Array) -> Array:
    return require_floats("silu", x) * sigmoid(minimum(x, SIGMOID_SATURATION))


def softplus(x: A, beta: float = 1.0, threshold: float | None = None) -> A:
    """Return log(1 + exp(beta * x)) / beta: a smooth relu, closer to relu for larger beta.

    Parameters
    ----------
    x : Tensor of floats
    beta : float
        Greater than 0.
    threshold : float, optional
        Return x where beta * x is larger than this. PyTorch's default is 20, where the results differ by 2e-9.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Notes
    -----
    Computed as relu(z) + log1p(exp(-|z|)) with z = beta * x, so it does not overflow without a threshold, either.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.softplus(mf.tensor([-1000.0, 0.0, 1000.0]))
    tensor([   0.    ,    0.6931, 1000.    ])
    """
    y = apply(_softplus, x, beta)
    return y if threshold is None else where(x * beta > threshold, x, y)


def _softplus(x: Array, beta: Array) -> Array:
    return log_one_plus_exp(require_floats("softplus", x) * beta) / beta


def log_one_plus_exp(x: A) -> A:
    """Return log(1 + exp(x)). At 0, where -|x| is not differentiable, `where` selects x, so all derivatives are right."""
    return relu(x) + log1p(exp(where(x > 0, -x, x)))


def elu(x: A, alpha: float = 1.0, inplace: bool = False) -> A:
    """Return x where x > 0, and alpha * (exp(x) - 1) elsewhere.

    Parameters
    ----------
    x : Tensor of floats
    alpha : float
        The result approaches -alpha as x approaches minus infinity.
    inplace : bool
        Whether to store the result in the memory of x.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Notes
    -----
    exp(x) - 1 is computed as tanh(x / 2) * (exp(x) + 1), which loses no digits near 0.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.elu(mf.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.    ])
    """
    return store(apply(_elu, x, alpha), x, inplace)


def _elu(x: A, alpha: Array | float) -> A:
    negative = where(require_floats("elu", x) <= 0, x, 0)
    e = exp(negative)
    approximation = e - 1  # inaccurate near 0, but its derivative is right
    accurate_value = approximation + (tanh(negative / 2) * (e + 1) - approximation).detach()
    y: A = where(x <= 0, alpha * accurate_value, x)
    return y


def softmax(x: A, dim: int | None = None, dtype: DType | str | None = None) -> A:
    """Return exp(x) / sum(exp(x)) along a dim: positive numbers that sum to 1. No intermediate result overflows.

    Parameters
    ----------
    x : Tensor of floats
    dim : int
        The dim along which the result sums to 1. Without it, PyTorch's choice is made, with a warning.
    dtype : optional
        A float dtype to convert x to.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.softmax(mf.tensor([[0.0, 0.0], [1000.0, 0.0]]), 1)
    tensor([[0.5, 0.5],
            [1. , 0. ]])
    """
    require_tensor("softmax", x)
    x = x if dtype is None else x.to(dtype)
    return x.softmax(implicit_dim("softmax", x) if dim is None else dim)


def log_softmax(x: A, dim: int | None = None, dtype: DType | str | None = None) -> A:
    """Return the logarithm of softmax, also where softmax itself would round to 0.

    Parameters
    ----------
    x : Tensor of floats
    dim : int
        The dim along which the probabilities sum to 1. Without it, PyTorch's choice is made, with a warning.
    dtype : optional
        A float dtype to convert x to.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.log_softmax(mf.tensor([1000.0, 0.0]), 0)
    tensor([    0., -1000.])
    """
    require_tensor("log_softmax", x)
    x = x if dtype is None else x.to(dtype)
    return x.log_softmax(implicit_dim("log_softmax", x) if dim is None else dim)


def store(y: A, x: A, inplace: bool) -> A:
    """Return y, or x with the elements of y if `inplace`."""
    return x.copy_(y) if inplace else y


def implicit_dim(name: str, x: Array) -> int:
    """Return the dim that PyTorch chooses if none is given, with a warning."""
    dim = 0 if x.ndim in (0, 1, 3) else 1
    warn_user(f"{name}: got no dim and chose {dim}; write dim={dim}")
    return dim


class ReLU(Module):
    """max(x, 0), elementwise. With `inplace`, the result is stored in the memory of x."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return store(relu(x), x, self.inplace)


class LeakyReLU(FunctionLayer):
    """`leaky_relu` as a module."""

    options = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return leaky_relu(x, self.negative_slope, self.inplace)


class Tanh(Module):
    """The hyperbolic tangent, elementwise."""

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise."""

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return sigmoid(x)


class GELU(FunctionLayer):
    """`gelu` as a module."""

    options = ("approximate",)

    def __init__(self, approximate: Approximation = "none") -> None:
        self.approximate = approximate

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return gelu(x, self.approximate)


class SiLU(Module):
    """`silu` as a module."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return silu(x, self.inplace)


class Softplus(FunctionLayer):
    """`softplus` as a module."""

    options = ("beta",)

    def __init__(self, beta: float = 1.0, threshold: float | None = None) -> None:
        self.beta, self.threshold = beta, threshold

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return softplus(x, self.beta, self.threshold)


class ELU(FunctionLayer):
    """`elu` as a module."""

    options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha, self.inplace = alpha, inplace

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return elu(x, self.alpha, self.inplace)


class Softmax(FunctionLayer):
    """`softmax` as a module."""

    options = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return softmax(x, self.dim)


class LogSoftmax(Softmax):
    """`log_softmax` as a module."""

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return log_softmax(x, self.dim)


def require_floats(name: str, x: A) -> A:
    """Return x; raise DTypeError unless it is a float tensor."""
    if not x.dtype.is_float:
        raise DTypeError(f"{name}: got dtype {x.dtype}, expected floats; write x.to(mf.float32)")
    return x
