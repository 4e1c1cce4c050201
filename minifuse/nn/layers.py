"""Layers: modules that compute one thing, and a row of them.

A layer with parameters is one captured call, forward and backward. First values come from the generator of `mf.manual_seed`.
"""

import math
from collections.abc import Iterator
from typing import Any

from ..array import Array
from ..creation import DTypeLike, generator, tensor
from ..dtypes import float32
from ..errors import DTypeError, ShapeError
from ..functions import Matmul
from ..operators import gelu, relu, sigmoid, tanh
from .module import Module, Parameter


class Linear(Module):
    """x @ weight.T + bias: each output is a weighted sum of all inputs.

    Parameters
    ----------
    in_features, out_features : int
        Elements of the last dim of the input, and of the output.
    bias : bool
        Whether a bias is added.
    dtype, backend
        Of the parameters; float32 on the default backend if left out.

    Attributes
    ----------
    weight : Parameter (out_features, in_features)
    bias : Parameter (out_features,) or None

    Raises
    ------
    ShapeError
        A size is not at least 1; when called, the last dim of x is not `in_features`.
    DTypeError
        When called, x is no tensor, or of another element type than the weight: nothing is converted silently.

    Notes
    -----
    Input (..., in_features), output (..., out_features). Parameters start evenly spread within +-1 / sqrt(in_features), as
    in `torch.nn.Linear`; for the weight that is the distribution of [1]_ for a leaky ReLU of slope sqrt(5).

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, Delving Deep into Rectifiers, 2015, arXiv:1502.01852

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.Linear(3, 2)
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    >>> layer(mf.ones(5, 3)).shape
    (5, 2)
    """

    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: DTypeLike = None, backend: str | None = None
    ) -> None:
        if in_features < 1 or out_features < 1:
            raise ShapeError(
                f"Linear: got {in_features} in_features and {out_features} out_features, expected at least 1 each"
            )
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(in_features)

        def draw(*shape: int) -> Parameter:
            return Parameter(tensor(generator().uniform(-bound, bound, shape), dtype or float32, backend))

        self.weight = draw(out_features, in_features)
        self.bias = draw(out_features) if bias else None

    def forward(self, x: Any) -> Any:
        """(..., in_features) -> (..., out_features)."""
        return apply(linear, x, self.weight) if self.bias is None else apply(linear, x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class ProductByTransposed(Matmul):
    """a @ b, where b is a transposed view: the gradient of b is computed in the order in which b lies in memory."""

    __slots__ = ()

    def vjp(self, g: Any, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        """Two products, the second one transposed, so that what it is transposed from is contiguous."""
        return Matmul()(g, b.mT), Matmul()(g.mT, a).mT


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """(..., K), (N, K), (N,) -> (..., N), as one captured call."""
    n, k = weight.shape
    if not x.shape or x.shape[-1] != k:
        raise ShapeError(f"Linear: got x of shape {x.shape}, expected (..., {k}): the last dim must be in_features={k}")
    if x.dtype is not weight.dtype:
        raise DTypeError(
            f"Linear: got x of {x.dtype}, expected {weight.dtype} like the weight; "
            f"convert one, x.to(mf.{weight.dtype}) or module.to(...)"
        )
    y = ProductByTransposed()(x.reshape(x.size // k, k), weight.T)  # (rows, K) @ (K, N)
    return (y if bias is None else y + bias).reshape(*x.shape[:-1], n)


class Flatten(Module):
    """The dims from start to end, both included, as one: (N, H, W) -> (N, H * W)."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Any) -> Any:
        """A view where strides allow it."""
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dims."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class ReLU(Module):
    """The larger one of x and 0, element by element."""

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return relu(x)


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
    """x times the probability that a standard normal variable lies below x, element by element."""

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return gelu(x)


class Sequential(Module):
    """Modules one after another: each gets what the one before gave.

    Parameters
    ----------
    modules : Module
        They are the attributes "0", "1", ...; a Sequential has a length, can be indexed, and its slices are Sequentials.

    Examples
    --------
    >>> import minifuse as mf
    >>> model = mf.nn.Sequential(mf.nn.Linear(64, 32), mf.nn.ReLU(), mf.nn.Linear(32, 10))
    >>> model
    Sequential(
      (0): Linear(in_features=64, out_features=32, bias=True)
      (1): ReLU()
      (2): Linear(in_features=32, out_features=10, bias=True)
    )
    >>> model[:2](mf.ones(5, 64)).shape
    (5, 32)
    """

    def __init__(self, *modules: Module) -> None:
        for k, module in enumerate(modules):
            if not isinstance(module, Module):
                raise DTypeError(f"Sequential: argument {k} is {type(module).__name__}, expected an nn.Module")
            setattr(self, str(k), module)

    def forward(self, x: Any) -> Any:
        """What the last module gives."""
        for module in self:
            x = module(x)
        return x

    def __iter__(self) -> Iterator[Module]:
        return (module for module in vars(self).values() if isinstance(module, Module))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, index: int | slice) -> Module:
        found = list(self)[index]
        return Sequential(*found) if isinstance(found, list) else found


def apply(function: Any, x: Any, *inputs: Any) -> Any:
    """Call a captured function whose first input must be a tensor."""
    if not isinstance(x, Array):
        name = getattr(function, "body", function).__name__.strip("_")
        raise DTypeError(f"{name}: expected a tensor, got {type(x).__name__}; wrap it in mf.tensor or mf.from_numpy")
    return x.apply(function, x, *inputs)
