"""Layers that learn the number of input features from the first input: LazyLinear, LazyConv2d, LazyBatchNorm1d and others.

A lazy layer keeps its arguments. At its first call it creates the layer that they describe, takes over its parameters, and
becomes an instance of its class. So it has no parameters before; create the optimizer after the first call.
"""

from typing import Any

from ..ir.array_methods import Array
from . import batch_normalization, convolution, transposed_convolution
from .layers import Linear, require_tensor
from .module import Module


class LazyLayer(Module):
    """Base class of the lazy layers.

    Attributes
    ----------
    layer : type
        The class of the layer that this one becomes.
    batch_ndim : int
        Number of dims of a batch, whose channels are dim 1; 0 for layers whose features are the last dim.
    """

    layer: type[Module]
    batch_ndim: int = 0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.arguments = arguments, named

    def forward(self, x: Array, *inputs: Any) -> Any:
        """Create the parameters for the features of x, and call the layer."""
        require_tensor(type(self).__name__, x)
        dim = -1 if not self.batch_ndim else 1 - (x.ndim < self.batch_ndim)
        arguments, named = self.arguments
        make: Any = self.layer
        training, layer = self.training, make(x.shape[dim], *arguments, **named)
        del self.arguments
        vars(self).update(vars(layer))
        self.training = training
        self.__class__ = make
        return self.forward(x, *inputs)

    def extra_repr(self) -> str:
        """Return the arguments."""
        arguments, named = self.arguments
        return ", ".join([*map(repr, arguments), *(f"{name}={value!r}" for name, value in named.items())])


class LazyInstanceLayer(LazyLayer):
    """Base class of the lazy instance norms, which learn a scale and a shift by default, as in PyTorch."""

    def __init__(
        self, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, track_running_stats: bool = True, **named: Any
    ) -> None:
        super().__init__(eps, momentum, affine, track_running_stats, **named)


def lazy_layer(layer: type[Module], batch_ndim: int) -> type[Module]:
    """Return the lazy class of a layer."""
    name = f"Lazy{layer.__name__}"
    doc = f"`{layer.__name__}` without its first argument, which is the number of features, or channels, of the first input."
    entries = {"layer": layer, "batch_ndim": batch_ndim, "__module__": __name__, "__doc__": doc}
    base = LazyInstanceLayer if issubclass(layer, batch_normalization.InstanceNorm) else LazyLayer
    return type(name, (base, layer), entries)


MODULES = batch_normalization, convolution, transposed_convolution
KNOWN = {name: entry for module in MODULES for name, entry in vars(module).items()}
LAYERS: dict[str, Any] = {
    f"Lazy{name}{dims}d": lazy_layer(KNOWN[f"{name}{dims}d"], dims + 2)
    for name in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm")
    for dims in (1, 2, 3)
}
LAYERS["LazyLinear"] = lazy_layer(Linear, 0)
LAYERS["LazyBatchNorm1d"].batch_ndim = 2
globals().update(LAYERS)

__all__ = [*LAYERS]
