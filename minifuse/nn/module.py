"""Module, Parameter and Buffer: the base class of all layers and models, and the tensors of its state.

There is no registration. Parameters are attributes of type `Parameter`, buffers of type `Buffer`, and children of type
`Module`. Attributes that are lists, tuples or dicts are searched, too. Names and their order are those of the attributes. So
a plain list of layers works, and `super().__init__()` is not needed. Layers, losses and hooks are in other files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from reprlib import recursive_repr
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..core.dispatch import no_grad
from ..core.errors import DTypeError, ShapeError
from ..core.lazy_text import LazyText
from ..ir.placement import Placement
from ..tensors.shards import set_shard, shard_of
from ..tensors.tensor import Tensor
from .module_methods import ModuleMethods

H = TypeVar("H")


class Parameter(Tensor):
    """A learned tensor of a module: `Module.parameters` finds it, and optimizers update it.

    The result of an op on a parameter is a plain Tensor.

    Parameters
    ----------
    data : Tensor
        The initial values. The parameter shares the memory of `data`, but not its gradient history.
    requires_grad : bool
        If True, the parameter is trained. Use False for a tensor that belongs to the module but is not trained.
    placement : Placement, optional
        Which part of a larger parameter this rank holds: see `minifuse.distributed`. Default: all of it.

    Raises
    ------
    DTypeError
        `data` is not a tensor, or `requires_grad` is True and `data` is not a float tensor.

    Examples
    --------
    >>> import minifuse as mf
    >>> w = mf.nn.Parameter(mf.ones(2))
    >>> w
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(w, mf.Tensor), isinstance(w * 2, mf.nn.Parameter)
    (True, False)
    """

    __slots__ = ("placement",)

    def __init__(self, data: Tensor, requires_grad: bool = True, placement: Placement | None = None) -> None:
        if not isinstance(data, Tensor):
            raise DTypeError(
                f"Parameter: expected a tensor, got {type(data).__name__}; write nn.Parameter(mf.tensor(...)) with floats"
            )
        x = data.detach()
        super().__init__(x.buffer, x.address, x.meta)
        self.requires_grad, self.placement = requires_grad, placement

    def __reduce__(self) -> tuple[type, tuple[Tensor, bool, Placement | None]]:
        """Copy and pickle with separate memory, also as part of a module. Gradients are not copied."""
        return Parameter, (self.detach(), self.requires_grad, self.placement)


class Buffer(Tensor):
    """A tensor of a module's state that is not learned, such as a running mean.

    `Module.parameters` does not return it, so optimizers ignore it; `state_dict`, `load_state_dict` and `to` include it.

    Parameters
    ----------
    data : Tensor of any dtype
        The initial values. The buffer shares the memory of `data`, but not its gradient history.
    persistent : bool
        Whether `state_dict` includes it.

    Raises
    ------
    DTypeError
        `data` is not a tensor.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.Module()
    >>> layer.steps = mf.nn.Buffer(mf.tensor(0))
    >>> layer.steps += 1
    >>> layer.state_dict(), list(layer.parameters())
    ({'steps': tensor(1)}, [])
    """

    __slots__ = ("persistent",)

    def __init__(self, data: Tensor, persistent: bool = True) -> None:
        if not isinstance(data, Tensor):
            raise DTypeError(f"Buffer: expected a tensor, got {type(data).__name__}; write nn.Buffer(mf.tensor(...))")
        x = data.detach()
        super().__init__(x.buffer, x.address, x.meta)
        self.persistent = persistent

    def __reduce__(self) -> tuple[type, tuple[Tensor, bool]]:
        """Copy and pickle with separate memory, also as part of a module."""
        return Buffer, (self.detach(), self.persistent)


STATE_TYPES = Parameter, Buffer  # in the order in which `state_dict` lists them


class LoadResult(NamedTuple):
    """The names that only the module, or only the loaded state, contains."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module(ModuleMethods):
    """Base class of layers, losses and models: set parameters and modules as attributes, and write `forward`.

    Attributes
    ----------
    training : bool
        True in training, False in evaluation; set by `train` and `eval`.

    Examples
    --------
    >>> import minifuse as mf
    >>> class Scale(mf.nn.Module):
    ...     def __init__(self, features):
    ...         self.factor = mf.nn.Parameter(mf.ones(features))
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> model = mf.nn.Sequential(mf.nn.Linear(3, 2), Scale(2))
    >>> [(name, p.shape) for name, p in model.named_parameters()]
    [('0.weight', (2, 3)), ('0.bias', (2,)), ('1.factor', (2,))]
    >>> model(mf.ones(5, 3)).shape
    (5, 2)
    """

    training: bool = True

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Compute the output. Call the module itself, `module(x)`, which calls this method."""
        raise NotImplementedError(f"{type(self).__name__} has no forward method; define forward(self, x) in the class")

    # Children, parameters and buffers.

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Iterate over (name, module) of the direct children, each once."""
        return unique_values(named_members(self, Module))

    def children(self) -> Iterator["Module"]:
        """Iterate over the direct children, each once."""
        return (child for _, child in self.named_children())

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "Module"]]:
        """Iterate over (name, module) of this module, named `prefix`, and all modules below it, each once.

        With `remove_duplicate=False`, a module appears once for each of its names.
        """
        return walk_modules(prefix, self, (set() if memo is None else memo) if remove_duplicate else None)

    def modules(self) -> Iterator["Module"]:
        """Iterate over this module and all modules below it, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over (name, parameter) of this module and all modules below it.

        A shared parameter appears once, by its first name. The order is that of the attributes: for each module, first its
        own parameters, then those of its children. `prefix` is put in front of the names. With `recurse=False`, only the
        module's own are returned, and with `remove_duplicate=False`, a shared one once for each of its names.
        """
        return self._named_tensors(Parameter, prefix=prefix, recurse=recurse, unique=remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over all parameters of this module and the modules below it, in the order of `named_parameters`."""
        return (p for _, p in (self.named_parameters() if recurse else self.named_parameters(recurse=False)))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Buffer]]:
        """Iterate over (name, buffer) of this module and all modules below it. Options are those of `named_parameters`."""
        return self._named_tensors(Buffer, prefix=prefix, recurse=recurse, unique=remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        """Iterate over all buffers of this module and the modules below it, in the order of `named_buffers`."""
        return (x for _, x in (self.named_buffers() if recurse else self.named_buffers(recurse=False)))

    def _named_tensors(
        self, *kinds: type[H], prefix: str = "", recurse: bool = True, unique: bool = True
    ) -> Iterator[tuple[str, H]]:
        """Iterate over (name, tensor) of the given types; for each module, tensors of the first type come first."""
        modules = self.named_modules(prefix=prefix, remove_duplicate=unique) if recurse else [(prefix, self)]
        named = (
            (join_names(path, name), x)
            for path, module in modules
            for kind in kinds
            for name, x in named_members(module, kind)
        )
        return unique_values(named) if unique else named

    # Operations on the whole module.

    def apply(self, function: Callable[["Module"], object]) -> "Module":
        """Call a function on each module below, then on this module, and return this module.

        Examples
        --------
        >>> import minifuse as mf
        >>> def small(module):
        ...     if isinstance(module, mf.nn.Linear):
        ...         mf.nn.init.normal_(module.weight, std=0.02)
        >>> model = mf.nn.Sequential(mf.nn.Linear(64, 64), mf.nn.ReLU()).apply(small)
        >>> bool(model[0].weight.std() < 0.03)
        True
        """
        for module in reversed(list(self.modules())):  # children before parents
            function(module)
        return self

    def train(self, mode: bool = True) -> "Module":
        """Set `training` of this module and all modules below it, and return this module."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> "Module":
        """Set `training` to False and return this module. It does not stop gradient recording; use `mf.no_grad` for that."""
        return self.train(False)

    def requires_grad_(self, flag: bool = True) -> "Module":
        """Set `requires_grad` of all parameters (False freezes them), and return this module."""
        for p in self.parameters():
            p.requires_grad = flag
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set `grad` of all parameters to None, or to zeros."""
        for p in self.parameters():
            p.grad = None if set_to_none or p.grad is None else p.grad.detach() * 0

    # State.

    def state_dict(
        self, *, destination: dict[str, Tensor] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """Return all parameters and buffers by name. They share the module's memory, so later steps change them.

        A shared tensor appears once, and buffers that are not persistent do not appear. The order is PyTorch's: for each
        module first its parameters, then its buffers, then those of its children. `prefix` is put in front of the names.
        With `keep_vars`, the tensors are the parameters and buffers themselves. A dict `destination` is filled and returned.
        """
        found = {} if destination is None else destination
        found |= {prefix + name: x if keep_vars else set_shard(x.detach(), shard_of(x)) for name, x in self._named_state()}
        return found

    def _named_state(self) -> Iterator[tuple[str, Tensor]]:
        """Iterate over (name, tensor) of the state."""
        return ((name, x) for name, x in self._named_tensors(*STATE_TYPES) if getattr(x, "persistent", True))

    def load_state_dict(self, state: Mapping[str, npt.ArrayLike], strict: bool = True) -> LoadResult:
        """Copy values into the parameters and buffers of the same names.

        Parameters
        ----------
        state
            Tensors or arrays by name, as returned by `state_dict`, of any dtype and on any backend. Floats cannot be
            loaded into integer buffers.
        strict
            If True, the state and the module must have the same names. If False, names in only one of them are skipped.

        Returns
        -------
        LoadResult
            `missing_keys`, the names only in the module, and `unexpected_keys`, the names only in the state.

        Raises
        ------
        ShapeError
            Names (if strict) or shapes differ, or a dtype cannot be converted. The message lists all differences, and
            nothing is loaded.

        Examples
        --------
        >>> import minifuse as mf
        >>> a, b = mf.nn.Linear(3, 2), mf.nn.Linear(3, 2)
        >>> b.load_state_dict(a.state_dict())
        LoadResult(missing_keys=[], unexpected_keys=[])
        >>> bool((a.weight == b.weight).all())
        True
        """
        tensors = dict(self._named_state())
        missing_keys = [name for name in tensors if name not in state]
        unexpected_keys = [name for name in state if name not in tensors]
        values = {name: np.asarray(state[name]) for name in tensors if name in state}
        errors = [f"{name} is missing" for name in missing_keys] * strict
        errors += [f"{name} is unexpected{suggestion(name, tensors)}" for name in unexpected_keys] * strict
        errors += [
            f"{name} has shape {x.shape}, expected {tensors[name].shape}"
            for name, x in values.items()
            if x.shape != tensors[name].shape
        ]
        errors += [
            f"{name} has dtype {x.dtype}, expected {tensors[name].dtype}"
            for name, x in values.items()
            if x.dtype.kind not in ("biuf" if tensors[name].dtype.is_float else "biu")
        ]
        if errors:
            advice = "; write strict=False to ignore names that differ" * bool(strict and (missing_keys or unexpected_keys))
            raise ShapeError(f"load_state_dict: {'; '.join(errors)}. Nothing was loaded{advice}")
        with no_grad():
            for name, x in values.items():
                tensors[name].copy_(x.astype(tensors[name].dtype.numpy))
        return LoadResult(missing_keys, unexpected_keys)

    # Attributes.

    def __setattr__(self, name: str, value: object) -> None:
        previous = self.__dict__.get(name)
        if isinstance(previous, STATE_TYPES) and not isinstance(value, type(previous) | None):
            kind = type(previous).__name__
            raise DTypeError(
                f"{type(self).__name__}.{name} is a {kind.lower()}, got {type(value).__name__}; to change its values, write "
                f"`with mf.no_grad(): module.{name}.copy_(...)`; to replace it, assign an nn.{kind}, or None to remove it"
            )
        if isinstance(previous, Module) and not isinstance(value, Module | None):
            raise DTypeError(
                f"{type(self).__name__}.{name} is a module, got {type(value).__name__}; assign an nn.Module, or None"
            )
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if (compute := self.computed.get(name)) is not None:  # a weight that is computed from others
            return compute(self)
        if hasattr(type(self), name):  # a property that raised AttributeError: raise its own message
            return object.__getattribute__(self, name)
        raise AttributeError(LazyText(lambda: f"{type(self).__name__} has no attribute {name}{suggestion(name, dir(self))}"))

    # Representation.

    def extra_repr(self) -> str:
        """Return the text that `repr` prints in the parentheses, before the children."""
        return ""

    @recursive_repr()
    def __repr__(self) -> str:
        lines = [f"({name}): {child!r}".replace("\n", "\n  ") for name, child in named_members(self, Module)]
        lines = [self.extra_repr()] * bool(lines and self.extra_repr()) + lines
        content = "\n  ".join(["", *lines]) + "\n" if lines else self.extra_repr()
        return f"{type(self).__name__}({content})"


Module.kinds = {"Buffer": Buffer, "Parameter": Parameter, "Module": Module}


def named_members(owner: Module, kind: type[H]) -> Iterator[tuple[str, H]]:
    """Iterate over (name, value) of attributes of a type, also inside lists, tuples and dicts: `layers.0`, `heads.left`."""

    def search(name: str, value: object) -> Iterator[tuple[str, H]]:
        if isinstance(value, kind):
            yield name, value
        elif isinstance(value, list | tuple | dict):
            for k, x in value.items() if isinstance(value, dict) else enumerate(value):
                yield from search(f"{name}.{k}", x)

    for name, value in vars(owner).items():
        yield from search(name, value)


def walk_modules(name: str, module: Module, seen: set[int] | None) -> Iterator[tuple[str, Module]]:
    """Iterate over (name, module) of a module and all modules below it, except those in `seen`."""
    if seen is None or id(module) not in seen:
        if seen is not None:
            seen.add(id(module))
        yield name, module
        for child_name, child in named_members(module, Module):
            yield from walk_modules(join_names(name, child_name), child, seen)


def unique_values(named: Iterator[tuple[str, H]]) -> Iterator[tuple[str, H]]:
    """Iterate over (name, value), skipping values that were returned before."""
    seen = set()
    for name, value in named:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


def join_names(prefix: str, name: str) -> str:
    """Join a prefix and a name with a dot."""
    return f"{prefix}.{name}" if prefix else name


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" with the most similar known name, or "" if none is similar."""
    return "".join(f"; did you mean {match}?" for match in get_close_matches(name, known, n=1))
