"""More activations: piecewise and smooth functions of each element, gates, and random ones; as functions and as layers.

Derivatives at the ends of pieces are those of PyTorch.
"""

from typing import Any

from ..core.dtypes import DType, float32
from ..core.errors import ShapeError
from ..core.indexing import normalize_dim
from ..core.operators import abs, eq, log, sigmoid, tanh, where  # noqa: A004  # the name of the operator
from ..functions.neural import hardshrink, prelu
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..tensors.creation import DTypeLike, full
from .activations import _elu, implicit_dim, log_one_plus_exp
from .dropout import draw_coefficients, random_uniform
from .function_layers import layer, layer_class
from .layers import apply
from .module import Module, Parameter

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805  # the fixed point of mean 0 and variance 1

__all__ = ["Hardshrink", "PReLU", "hardshrink", "prelu"]  # `layer` adds the others

Hardshrink = layer_class("Hardshrink", hardshrink, __name__)


@layer("CELU", inplace=True)
def celu(x: A, alpha: float = 1.0) -> A:
    """Return x where x > 0, and alpha * (exp(x / alpha) - 1) elsewhere."""
    return where(x > 0, x, alpha * _elu(x / alpha, 1.0))


@layer("SELU", inplace=True)
def selu(x: A) -> A:
    """Return 1.0507 * elu(x, 1.6733): layers of it keep mean 0 and variance 1."""
    return SELU_SCALE * _elu(x, SELU_ALPHA)


@layer("Mish", inplace=True)
def mish(x: A) -> A:
    """Return x * tanh(softplus(x))."""
    return x * tanh(log_one_plus_exp(x))


def clamp(x: A, low: float, high: float) -> A:
    """Limit x to a range. Unlike that of `clip`, the derivative is 0 at both ends."""
    return where(x <= low, low, where(x >= high, high, x))


@layer("Hardtanh", inplace=True, floats=False)
def hardtanh(x: A, min_val: float = -1.0, max_val: float = 1.0) -> A:
    """Limit x to the range from `min_val` to `max_val`. The derivative is 0 at both ends."""
    return clamp(x, min_val, max_val)


@layer("ReLU6", inplace=True, floats=False)
def relu6(x: A) -> A:
    """Limit x to the range from 0 to 6."""
    return clamp(x, 0.0, 6.0)


@layer("Hardsigmoid", inplace=True)
def hardsigmoid(x: A) -> A:
    """Return relu6(x + 3) / 6: a piecewise linear sigmoid."""
    return clamp(x + 3, 0.0, 6.0) / 6


@layer("Hardswish", inplace=True)
def hardswish(x: A) -> A:
    """Return x * relu6(x + 3) / 6."""
    return where(x <= -3, 0, where(x >= 3, x, x * (x + 3) / 6))


@layer("Softshrink")
def softshrink(x: A, lambd: float = 0.5) -> A:
    """Move x towards 0 by `lambd`, to 0 if |x| <= lambd."""
    return where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0))


@layer("Tanhshrink")
def tanhshrink(x: A) -> A:
    """Return x - tanh(x)."""
    return x - tanh(x)


@layer("Softsign")
def softsign(x: A) -> A:
    """Return x / (1 + |x|)."""
    return x / (1 + abs(x))


@layer("LogSigmoid")
def logsigmoid(x: A) -> A:
    """Return log(sigmoid(x)), also where sigmoid rounds to 0."""
    return -log_one_plus_exp(-x)


@layer("Threshold", inplace=True, floats=False, required=("threshold", "value"))
def threshold(x: A, threshold: float, value: float) -> A:
    """Return x where x > threshold, and `value` elsewhere."""
    return where(x <= threshold, value, x)


@layer("GLU")
def glu(x: A, dim: int = -1) -> A:
    """Split x in two halves a, b along a dim, and return a * sigmoid(b)."""
    d = normalize_dim(dim, x.ndim)
    half, is_odd = divmod(x.shape[d], 2)
    if is_odd:
        raise ShapeError(f"glu: got size {x.shape[d]} along dim {dim}, expected an even one; use a layer of 2 * n outputs")
    before = (slice(None),) * d
    return x[(*before, slice(half))] * sigmoid(x[(*before, slice(half, None))])


@layer("Softmin")
def softmin(x: A, dim: int | None = None, dtype: DType | str | None = None) -> A:
    """Return softmax(-x) along a dim."""
    x = x if dtype is None else x.to(dtype)
    return (-x).softmax(implicit_dim("softmin", x) if dim is None else dim)


@layer("Softmax2d")
def softmax2d(x: A) -> A:
    """Return softmax over the channels of images (N, C, H, W) or (C, H, W)."""
    if x.ndim not in (3, 4):
        raise ShapeError(f"Softmax2d: got shape {x.shape}, expected (N, C, H, W) or (C, H, W); use softmax(x, dim)")
    return x.softmax(-3)


@layer("RReLU", inplace=True, is_op=False)
def rrelu(x: A, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> A:
    """Return x where x > 0, and x times a slope elsewhere: random from lower to upper in training, else their mean."""
    return apply(_rrelu, x, lower, upper, *(draw_coefficients() if training else ()))


def _rrelu(x: A, lower: Array, upper: Array, *coefficients: Array) -> A:
    fraction = random_uniform(x, coefficients) if coefficients else 0.5
    return where(x > 0, x, x * (lower + fraction * (upper - lower)))


@layer(is_op=False)
def gumbel_softmax(x: A, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> A:
    """Return a random sample of softmax((x + Gumbel noise) / tau) along a dim [1]_.

    With `hard`, the sample is rounded to one 1 and zeros; its gradient is that of the softmax. `eps` changes nothing, as in
    PyTorch.

    References
    ----------
    .. [1] E. Jang, S. Gu, B. Poole, Categorical Reparameterization with Gumbel-Softmax, 2016, arXiv:1611.01144
    """
    return apply(BoundFunction(_gumbel_softmax, (normalize_dim(dim, x.ndim), hard)), x, tau, *draw_coefficients())


def _gumbel_softmax(x: A, tau: Array, *rest: Any) -> A:
    *coefficients, dim, hard = rest
    noise = -log(-log(random_uniform(x, coefficients)))
    y = ((x + noise) / tau).softmax(dim)
    if not hard:
        return y
    position = y.positions(x.shape[dim]).reshape(-1, *[1] * (x.ndim - 1 - dim))
    chosen = eq(y.argmax(dim, True), position).to(y.dtype)
    return chosen + (y - y.detach())


class PReLU(Module):
    """`prelu` as a module with learned slopes: one for all channels, or one for each.

    Attributes
    ----------
    weight : Parameter (num_parameters,)
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, dtype: DTypeLike = None, backend: str | None = None
    ) -> None:
        self.num_parameters = num_parameters
        self.weight = Parameter(full((num_parameters,), init, dtype or float32, backend))

    def forward(self, x: A) -> A:
        """Apply the function; the shape does not change."""
        return prelu(x, self.weight)

    def extra_repr(self) -> str:
        """Return the number of slopes."""
        return f"num_parameters={self.num_parameters}"
