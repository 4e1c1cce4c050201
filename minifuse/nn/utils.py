"""Utilities for parameters: vectors of all of them, weight and spectral normalization, and clipping of gradients.

`mf.nn.utils` is imported when it is first used. The functions that clip gradients are those of `mf.optim`.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from ..core.dispatch import no_grad
from ..core.errors import DTypeError, ShapeError
from ..functions.joining import cat
from ..ir.array_methods import Array
from ..optim.clipping import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from ..tensors.creation import tensor
from ..tensors.random import generator
from ..tensors.tensor import Tensor
from .module import Buffer, Module, Parameter

M = TypeVar("M", bound=Module)

clip_grad_norm = clip_grad_norm_  # PyTorch's old name

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "remove_spectral_norm",
    "remove_weight_norm",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters as one vector. Gradients flow through it.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.utils.parameters_to_vector(mf.nn.Linear(3, 2).parameters()).shape
    (8,)
    """
    vector: Any = cat([p.reshape(-1) for p in parameters], 0)
    return vector  # type: ignore[no-any-return]


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy the elements of a vector into parameters, in the order of `parameters_to_vector`.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.Linear(3, 2)
    >>> mf.nn.utils.vector_to_parameters(mf.zeros(8), layer.parameters())
    >>> layer.bias.tolist()
    [0.0, 0.0]
    """
    if not isinstance(vec, Tensor):
        raise DTypeError(f"vector_to_parameters: got {type(vec).__name__}, expected a tensor")
    targets = [*parameters]
    count = sum(p.size for p in targets)
    if vec.shape != (count,):
        raise ShapeError(f"vector_to_parameters: got shape {vec.shape}, expected ({count},), an element for each of them")
    start = 0
    with no_grad():
        for p in targets:
            p.copy_(vec[start : start + p.size].reshape(p.shape))
            start += p.size


class WeightNorm:
    """The weight g * v / |v| of a module. The norm is that of slices along a dim, or of all elements if that is None."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def __call__(self, module: Module) -> Tensor:
        """Compute the weight."""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        weight: Tensor = v * (g / self.norm(v))
        return weight

    def norm(self, v: Array) -> Any:
        """Return the norm, with dims of size 1."""
        if self.dim is None:
            return (v * v).sum().sqrt()
        return (v * v).sum([d for d in range(v.ndim) if d != self.dim % v.ndim], True).sqrt()


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replace a parameter by a length `name_g` for each slice along a dim, and a direction `name_v`; return the module [1]_.

    The weight is computed when it is used. So gradients flow to both parameters.

    References
    ----------
    .. [1] T. Salimans, D. P. Kingma, Weight Normalization, 2016, arXiv:1602.07868

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.utils.weight_norm(mf.nn.Linear(3, 2))
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('bias', (2,)), ('weight_g', (2, 1)), ('weight_v', (2, 3))]
    """
    weight = take_parameter("weight_norm", module, name)
    compute = WeightNorm(name, None if dim == -1 else dim)
    setattr(module, f"{name}_g", Parameter(compute.norm(weight.detach()).clone()))
    setattr(module, f"{name}_v", Parameter(weight.detach()))
    module.computed = {**module.computed, name: compute}
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make the weight that `weight_norm` computes a parameter again, and return the module."""
    return restore_parameter("remove_weight_norm", module, name, WeightNorm, (f"{name}_g", f"{name}_v"))


class SpectralNorm:
    """The weight of a module divided by its largest singular value, which power iteration estimates in training."""

    def __init__(self, name: str, iterations: int, eps: float, dim: int) -> None:
        self.name, self.iterations, self.eps, self.dim = name, iterations, eps, dim

    def __call__(self, module: Module) -> Tensor:
        """Compute the weight."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        normalized: Tensor = weight / (u * (self.matrix(weight) @ v)).sum()
        return normalized

    def matrix(self, weight: Tensor) -> Tensor:
        """Return the weight with `dim` as rows, and all others as columns."""
        order = [self.dim, *[d for d in range(weight.ndim) if d != self.dim]]
        return weight.permute(order).reshape(weight.shape[self.dim], -1)

    def iterate(self, module: Module, inputs: object = ()) -> None:
        """Improve the singular vectors, in training."""
        if module.training:
            u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
            with no_grad():
                matrix = self.matrix(getattr(module, f"{self.name}_orig").detach())
                for _ in range(self.iterations):
                    v.copy_(self.unit(matrix.T @ u))
                    u.copy_(self.unit(matrix @ v))

    def unit(self, x: Tensor) -> Any:
        """Divide a vector by its length."""
        return x / (x * x).sum().sqrt().maximum(self.eps)


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a parameter by its largest singular value as a matrix, estimated by power iteration; return the module [1]_.

    The parameter is `name_orig`; the singular vectors are buffers, which each call in training improves. `dim` is the dim of
    outputs: 1 for transposed convolutions, else 0.

    References
    ----------
    .. [1] T. Miyato, T. Kataoka, M. Koyama, Y. Yoshida, Spectral Normalization for Generative Adversarial Networks, 2018,
       arXiv:1802.05957

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.utils.spectral_norm(mf.nn.Linear(3, 2), n_power_iterations=20)
    >>> y = layer(mf.ones(1, 3))
    >>> round((layer.weight @ layer.weight_v.reshape(3, 1)).detach().pow(2).sum().item(), 4)
    1.0
    """
    if n_power_iterations < 1:
        raise ValueError(f"spectral_norm: got n_power_iterations={n_power_iterations}, expected at least 1")
    weight = take_parameter("spectral_norm", module, name).detach()
    is_transposed = type(module).__name__.startswith("ConvTranspose")
    compute = SpectralNorm(name, n_power_iterations, eps, dim if dim is not None else int(is_transposed))
    rows, columns = compute.matrix(weight).shape
    setattr(module, f"{name}_orig", Parameter(weight))
    for suffix, size in ("u", rows), ("v", columns):
        start = tensor(generator().standard_normal(size), weight.dtype, weight.backend)
        setattr(module, f"{name}_{suffix}", Buffer(compute.unit(start)))
    module.computed = {**module.computed, name: compute}
    module.register_forward_pre_hook(compute.iterate)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make the weight that `spectral_norm` computes a parameter again, and return the module."""
    hooks = module._hooks.forward_pre if module._hooks is not None else {}
    for key, (hook, _) in [*hooks.items()]:
        if getattr(getattr(hook, "__self__", None), "name", None) == name:
            del hooks[key]
    return restore_parameter(
        "remove_spectral_norm", module, name, SpectralNorm, [f"{name}_{part}" for part in ("orig", "u", "v")]
    )


def take_parameter(function: str, module: Module, name: str) -> Parameter:
    """Remove a parameter from a module and return it."""
    weight = vars(module).get(name)
    if not isinstance(weight, Parameter):
        raise DTypeError(f"{function}: {type(module).__name__}.{name} is {type(weight).__name__}, expected a parameter")
    delattr(module, name)
    return weight


def restore_parameter(function: str, module: M, name: str, kind: type, parts: Iterable[str]) -> M:
    """Replace a computed weight, and the tensors that it is computed from, by a parameter of its value."""
    compute = module.computed.get(name)
    if compute is None or not isinstance(compute, kind):
        raise ValueError(f"{function}: {type(module).__name__}.{name} is not computed by it; call it after it was applied")
    value = compute(module).detach().clone()
    for part in parts:
        delattr(module, part)
    module.computed = {key: other for key, other in module.computed.items() if key != name}
    setattr(module, name, Parameter(value))
    return module
