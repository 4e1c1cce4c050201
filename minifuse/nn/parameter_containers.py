"""Containers of parameters, and layers that only pass on or reshape: ParameterList, ParameterDict, Identity, Unflatten."""

from collections.abc import Iterable
from typing import Any, Self

from ..core.errors import DTypeError, ShapeError
from ..core.indexing import infer_shape, normalize_dim
from ..ir.array_functions import A
from ..tensors.tensor import Tensor
from .containers import ModuleDict, NumberedContainer
from .layers import FunctionLayer
from .module import Module, Parameter

__all__ = ["Identity", "ParameterDict", "ParameterList", "Unflatten"]


class ParameterList(NumberedContainer):
    """A list of parameters, named "0", "1", ...; tensors that are added become parameters.

    Examples
    --------
    >>> import minifuse as mf
    >>> weights = mf.nn.ParameterList([mf.ones(2, 3), mf.zeros(2)])
    >>> [(name, p.shape) for name, p in weights.named_parameters()]
    [('0', (2, 3)), ('1', (2,))]
    """

    entry_type = Parameter

    def __init__(self, values: Iterable[Tensor] = ()) -> None:
        self.extend(values)

    def _checked(self, label: str, entry: Any) -> Parameter:
        return as_parameter(type(self), label, entry)

    def extra_repr(self) -> str:
        """Return the shapes."""
        return ", ".join(str(p.shape) for p in self)


class ParameterDict(ModuleDict):
    """A dict of parameters; tensors that are added become parameters.

    Examples
    --------
    >>> import minifuse as mf
    >>> weights = mf.nn.ParameterDict({"left": mf.ones(2)})
    >>> weights["right"] = mf.zeros(3)
    >>> list(weights), weights.get("middle") is None
    (['left', 'right'], True)
    """

    entry_type = Parameter

    def get(self, name: str, default: Any = None) -> Any:
        """Return the parameter of a name, or a default."""
        return dict(self.items()).get(name, default)

    def setdefault(self, name: str, default: Any) -> Any:
        """Return the parameter of a name; add the default if there is none."""
        if name not in self:
            self[name] = default
        return self[name]

    def popitem(self) -> tuple[str, Any]:
        """Remove the last parameter, and return its name and itself."""
        name = [*self][-1]
        return name, self.pop(name)

    def copy(self) -> Self:
        """Return a container of the same parameters."""
        return type(self)([*self.items()])

    def fromkeys(self, names: Iterable[str], default: Any = None) -> Self:
        """Return a container with a parameter of the default's values for each name."""
        return type(self)([(name, default) for name in names])

    def _checked(self, label: str, entry: Any) -> Parameter:
        return as_parameter(type(self), label, entry)

    def extra_repr(self) -> str:
        """Return names and shapes."""
        return ", ".join(f"{name}: {p.shape}" for name, p in self.items())


def as_parameter(kind: type[Module], label: str, entry: Any) -> Parameter:
    """Return a tensor as a parameter. Raise DTypeError for anything else."""
    if not isinstance(entry, Tensor):
        raise DTypeError(
            f"{kind.__name__}: {label.replace('module', 'entry')} is {type(entry).__name__}, expected a tensor; "
            "write nn.Parameter(mf.tensor(...))"
        )
    return entry if isinstance(entry, Parameter) else Parameter(entry)


class Identity(Module):
    """Return the input. Arguments of the constructor are ignored, so that it can replace any layer."""

    def __init__(self, *ignored: Any, **ignored_by_name: Any) -> None:
        pass

    def forward(self, x: A) -> A:
        """Return x itself."""
        return x


class Unflatten(FunctionLayer):
    """Split a dim into several: (N, C * H) -> (N, C, H). One of the sizes may be -1."""

    options = "dim", "unflattened_size"

    def __init__(self, dim: int, unflattened_size: Iterable[int]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: A) -> A:
        """Return the reshaped tensor: a view."""
        d = normalize_dim(self.dim, x.ndim)
        try:
            sizes = infer_shape(x.shape[d], self.unflattened_size)
        except ShapeError as error:
            raise ShapeError(f"Unflatten: dim {self.dim} of shape {x.shape}: {error}") from None
        return x.reshape(*x.shape[:d], *sizes, *x.shape[d + 1 :])
