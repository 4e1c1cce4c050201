"""Activations: functions of each element, or of rows that add up to 1; as functions and as modules.

`relu`, `tanh`, `sigmoid` and the exact `gelu` are entries of the operator table. The others are made of such entries, in a
form whose derivative, and its derivative, is right everywhere: an exponential is taken only of what is not above 0, and
where a branch is not chosen nothing in it is infinite, since 0 * inf would spoil the gradient.

Numbers such as a slope travel with the launch: another one compiles nothing.
"""

import math
from typing import Any, Literal

from ..core.errors import DTypeError
from ..core.operators import exp, log1p, maximum, minimum, relu, sigmoid, tanh, where
from ..core.operators import gelu as exact_gelu
from .layers import apply, refuse_other_than_tensors
from .module import Module

# Beyond these the sigmoid, and the tanh in gelu, are 1 in float64 too. Their derivatives are kept from meeting a large x:
# x * (1 - y) + 1 may be computed as (x + 1) - x * y, which is 0 where x is so large that x + 1 is x.
FLAT_SIGMOID, FLAT_TANH = 40.0, 10.0
Approximation = Literal["none", "tanh"]


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """x where it is above 0, `negative_slope` * x elsewhere.

    Parameters
    ----------
    x : Tensor of floats
    negative_slope : float
        The derivative where x is at most 0.

    Returns
    -------
    Tensor
        Of the shape and dtype of x.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.leaky_relu(mf.tensor([-2.0, 3.0]), 0.1)
    tensor([-0.2,  3. ])
    """
    return apply(_leaky_relu, x, negative_slope)


def _leaky_relu(x: Any, slope: Any) -> Any:
    return where(floats("leaky_relu", x) > 0, x, x * slope)


def gelu(x: Any, approximate: Approximation = "none") -> Any:
    """x times the probability that a standard normal variable lies below x.

    Parameters
    ----------
    x : Tensor of floats
    approximate : {"none", "tanh"}
        Exactly, by the error function; or by 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))), as GPT-2 has it [1]_.

    Returns
    -------
    Tensor
        Of the shape and dtype of x.

    Notes
    -----
    The two differ by 5e-4 at most.

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
        raise ValueError(f'gelu: approximate is {approximate!r}, expected "none" or "tanh"')
    return apply(exact_gelu if approximate == "none" else _gelu_by_tanh, x)


def _gelu_by_tanh(x: Any) -> Any:
    z = maximum(minimum(floats("gelu", x), FLAT_TANH), -FLAT_TANH)
    return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * (z * z * z))))


def silu(x: Any) -> Any:
    """x * sigmoid(x), also called swish.

    Parameters
    ----------
    x : Tensor of floats

    Returns
    -------
    Tensor
        Of the shape and dtype of x.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.silu(mf.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.    ,  0.7311])
    """
    return apply(_silu, x)


def _silu(x: Any) -> Any:
    return floats("silu", x) * sigmoid(minimum(x, FLAT_SIGMOID))


def softplus(x: Any, beta: float = 1.0) -> Any:
    """log(1 + exp(beta * x)) / beta: a smooth form of relu, the sharper the larger beta is.

    Parameters
    ----------
    x : Tensor of floats
    beta : float
        Above 0.

    Returns
    -------
    Tensor
        Of the shape and dtype of x.

    Notes
    -----
    Computed as relu(z) + log1p(exp(-|z|)), so it neither overflows nor needs PyTorch's `threshold`, above which that one
    gives x.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.softplus(mf.tensor([-1000.0, 0.0, 1000.0]))
    tensor([   0.    ,    0.6931, 1000.    ])
    """
    return apply(_softplus, x, beta)


def _softplus(x: Any, beta: Any) -> Any:
    return soft(floats("softplus", x) * beta) / beta


def soft(x: Any) -> Any:
    """log(1 + exp(x)) of arrays; at 0, where -|x| has a kink, the branch of x makes all derivatives right."""
    return relu(x) + log1p(exp(where(x > 0, -x, x)))


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where it is above 0, alpha * (exp(x) - 1) elsewhere.

    Parameters
    ----------
    x : Tensor of floats
    alpha : float
        How far below 0 it goes.

    Returns
    -------
    Tensor
        Of the shape and dtype of x.

    Notes
    -----
    exp(x) - 1 is computed as tanh(x / 2) * (exp(x) + 1), which keeps all digits near 0.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.elu(mf.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.    ])
    """
    return apply(_elu, x, alpha)


def _elu(x: Any, alpha: Any) -> Any:
    below = where(floats("elu", x) <= 0, x, 0)
    e = exp(below)
    rough = e - 1  # has the right derivative
    exact = rough + (tanh(below / 2) * (e + 1) - rough).detach()
    return where(x <= 0, alpha * exact, x)


def softmax(x: Any, dim: int) -> Any:
    """exp(x) over its sum along a dim: numbers above 0 that add up to 1; computed without overflow.

    Parameters
    ----------
    x : Tensor of floats
    dim : int
        Along which they add up to 1.

    Returns
    -------
    Tensor
        Of the shape and dtype of x.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.softmax(mf.tensor([[0.0, 0.0], [1000.0, 0.0]]), 1)
    tensor([[0.5, 0.5],
            [1. , 0. ]])
    """
    refuse_other_than_tensors("softmax", x)
    return x.softmax(dim)


def log_softmax(x: Any, dim: int) -> Any:
    """The logarithm of softmax, right where softmax itself would be 0.

    Parameters
    ----------
    x : Tensor of floats
    dim : int
        Along which the probabilities add up to 1.

    Returns
    -------
    Tensor
        Of the shape and dtype of x.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.log_softmax(mf.tensor([1000.0, 0.0]), 0)
    tensor([    0., -1000.])
    """
    refuse_other_than_tensors("log_softmax", x)
    return x.log_softmax(dim)


class ReLU(Module):
    """The larger one of x and 0, element by element."""

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return relu(x)


class LeakyReLU(Module):
    """`leaky_relu` as a module."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        """The slope."""
        return f"negative_slope={self.negative_slope}"


class Tanh(Module):
    """The hyperbolic tangent, element by element."""

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x)), element by element."""

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return sigmoid(x)


class GELU(Module):
    """`gelu` as a module."""

    def __init__(self, approximate: Approximation = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return gelu(x, self.approximate)

    def extra_repr(self) -> str:
        """Which form."""
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """`silu` as a module."""

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return silu(x)


class Softplus(Module):
    """`softplus` as a module."""

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return softplus(x, self.beta)

    def extra_repr(self) -> str:
        """How sharp it is."""
        return f"beta={self.beta}"


class ELU(Module):
    """`elu` as a module."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return elu(x, self.alpha)

    def extra_repr(self) -> str:
        """How far below 0 it goes."""
        return f"alpha={self.alpha}"


class Softmax(Module):
    """`softmax` as a module."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return softmax(x, self.dim)

    def extra_repr(self) -> str:
        """The dim."""
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """`log_softmax` as a module."""

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return log_softmax(x, self.dim)


def floats(name: str, x: Any) -> Any:
    """The array itself; an error where it holds no floats."""
    if not x.dtype.is_float:
        raise DTypeError(f"{name}: got {x.dtype}, expected floats; convert it, x.to(mf.float32)")
    return x
