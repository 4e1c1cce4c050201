"""Linear, Flatten, the base class of layers without parameters, and `apply`, which runs a layer as one composite op.

Initial values use the generator of `mf.manual_seed`.
"""

import math
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from ..core.dispatch import matmul_precision
from ..core.dtypes import float32
from ..core.errors import DTypeError, ShapeError
from ..core.operators import Operator
from ..ir.array_functions import A, BoundFunction, Function, Gradients, Matmul
from ..ir.array_methods import Array
from ..tensors.creation import DTypeLike, tensor
from ..tensors.random import generator
from .module import Module, Parameter

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
IMAGE = ("", "L", "H, W", "D, H, W")  # the dims of signals, images and volumes, in texts
WINDOW = ("", "K", "KH, KW", "KD, KH, KW")
ArrayFunction = Operator | Function | BoundFunction | Callable[..., Array]


class Linear(Module):
    """Compute x @ weight.T + bias: each output is a weighted sum of all inputs.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dim of the input and of the output.
    bias : bool
        If True, add a bias.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    weight : Parameter (out_features, in_features)
    bias : Parameter (out_features,) or None

    Raises
    ------
    ShapeError
        A size is not at least 1; when called, the last dim of x is not `in_features`.
    DTypeError
        When called: x is not a tensor, or its dtype differs from that of the weight. No dtype is converted implicitly.

    Notes
    -----
    Input (..., in_features), output (..., out_features). Parameters are initialized uniformly in +-1 / sqrt(in_features), as
    in `torch.nn.Linear`. For the weight, this is the Kaiming uniform distribution [1]_ of a leaky ReLU with slope sqrt(5).

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
                f"Linear: got in_features={in_features} and out_features={out_features}, expected at least 1 each"
            )
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(in_features)

        def draw(*shape: int) -> Parameter:
            return Parameter(tensor(generator().uniform(-bound, bound, shape), dtype or float32, backend))

        self.weight = draw(out_features, in_features)
        self.bias = draw(out_features) if bias else None

    def forward(self, x: A) -> A:
        """Map (..., in_features) to (..., out_features)."""
        return apply(_linear, x, self.weight) if self.bias is None else apply(_linear, x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class TransposedMatmul(Matmul):
    """a @ b, where b is a transposed view. The gradient of b is computed in the memory order of the array that b views."""

    __slots__ = ()

    def vjp(self, g: Array, y: Array, a: Array, b: Array) -> Gradients:
        """Return both gradients as matmuls in the same precision; that of b is a transposed view of a contiguous array."""
        product = Matmul(self.precision)
        return product(g, b.mT), product(g.mT, a).mT


def linear(x: A, weight: Array, bias: Array | None = None) -> A:
    """Compute x @ weight.T + bias: each output is a weighted sum of all inputs.

    Parameters
    ----------
    x : Tensor of floats (..., K)
    weight : Tensor (N, K)
    bias : Tensor (N,), optional

    Returns
    -------
    Tensor (..., N)

    Raises
    ------
    ShapeError
        The shapes do not match.
    DTypeError
        The dtypes differ. No dtype is converted implicitly.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.linear(mf.tensor([1.0, 2.0]), mf.tensor([[1.0, 10.0], [0.0, 1.0], [1.0, 1.0]]), mf.tensor([0.0, 0.0, 5.0]))
    tensor([21.,  2.,  8.])
    """
    return apply(_linear, x, weight) if bias is None else apply(_linear, x, weight, bias)


def _linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        shapes = f"weight of shape {weight.shape}" + ("" if bias is None else f" and bias of shape {bias.shape}")
        raise ShapeError(f"Linear: got {shapes}, expected (out_features, in_features) and (out_features,)")
    n, k = weight.shape
    if not x.shape or x.shape[-1] != k:
        raise ShapeError(f"Linear: got x of shape {x.shape}, expected (..., {k}): the last dim must be in_features={k}")
    for name, operand in ("x", x), ("bias", bias):
        if operand is not None and operand.dtype is not weight.dtype:
            raise DTypeError(
                f"Linear: got {name} of dtype {operand.dtype} and a weight of dtype {weight.dtype}, expected the same; "
                f"write {name}.to(mf.{weight.dtype}) or module.to(...)"
            )
    y = TransposedMatmul(matmul_precision())(x.reshape(math.prod(x.shape[:-1]), k), weight.T)  # (rows, K) @ (K, N)
    return (y if bias is None else y + bias).reshape(*x.shape[:-1], n)


class FunctionLayer(Module):
    """Base class of layers without parameters. `options` lists the attributes that `repr` prints."""

    options: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        """Return the options and their values."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.options)


class Flatten(FunctionLayer):
    """Merge the dims from `start_dim` to `end_dim`, both included, into one: (N, H, W) -> (N, H * W)."""

    options = "start_dim", "end_dim"

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: A) -> A:
        """Return the reshaped tensor: a view if the strides allow it, else a copy."""
        return x.flatten(self.start_dim, self.end_dim)


def apply(function: ArrayFunction, x: A, *inputs: object) -> A:
    """Run a function of tensors as one composite op; raise DTypeError unless its first input is a tensor."""
    if not isinstance(x, Array):
        name = getattr(function, "body", function).__name__  # type: ignore[unreachable]  # users may pass anything
        require_tensor(name.strip("_"), x)
    return x.apply(function, x, *inputs)


def as_batch(function: Callable[[A], R], x: A) -> R:
    """Call a function of batches with one example, and return its results without the batch dim."""
    y: Any = function(x[None])
    return tuple(part[0] for part in y) if isinstance(y, tuple) else y[0]  # type: ignore[return-value]


def takes_one_example(function: F) -> F:
    """Let a function (name, dims, x, ...) of batches of images with `dims` dims take one image, without a batch dim, too."""

    @wraps(function)
    def call(name: str, dims: int, x: Any, *options: Any, **named: Any) -> Any:
        if getattr(x, "ndim", 0) == dims + 1:
            return as_batch(lambda batch: function(name, dims, batch, *options, **named), x)
        return function(name, dims, x, *options, **named)

    return call  # type: ignore[return-value]  # has the signature of the function


def functions_by_dims(
    function: Callable[..., Any], name: str, text: str, dims: Sequence[int] = (1, 2, 3)
) -> dict[str, Callable[..., Any]]:
    """Return functions of signals, images and volumes by name: `function(name, dims, x, ...)` with name and dims bound.

    In their docstring, {n} is the number of dims, and {image} and {window} are the dims of images and windows.
    """

    def bind(n: int) -> Callable[..., Any]:
        def call(*inputs: Any, **named: Any) -> Any:
            return function(f"{name}{n}d", n, *inputs, **named)

        call.__name__ = call.__qualname__ = f"{name}{n}d"
        call.__module__, call.__doc__ = function.__module__, text.format(n=n, image=IMAGE[n], window=WINDOW[n])
        call.__signature__ = public  # type: ignore[attr-defined]
        return call

    whole = signature(function)
    public = whole.replace(parameters=[*whole.parameters.values()][2:])
    return {f"{name}{n}d": bind(n) for n in dims}


def layers_by_dims(
    base: type[Module], name: str, text: str, dims: Sequence[int] = (1, 2, 3), **fields: Any
) -> dict[str, Any]:
    """Return the subclasses of a layer for signals, images and volumes by name. {n} in the docstring is their `dims`."""
    fields |= {"__module__": base.__module__}
    return {f"{name}{n}d": type(f"{name}{n}d", (base,), {"dims": n, "__doc__": text.format(n=n), **fields}) for n in dims}


def require_tensor(name: str, x: object) -> None:
    """Raise DTypeError unless x is a tensor."""
    if not isinstance(x, Array):
        raise DTypeError(f"{name}: expected a tensor, got {type(x).__name__}; write mf.tensor(...) or mf.from_numpy(...)")
