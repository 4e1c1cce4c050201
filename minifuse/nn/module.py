"""Module, Parameter and Buffer: an object that holds what is learned, and computes with it.

Nothing is registered. A parameter is an attribute that is a `Parameter`, a buffer one that is a `Buffer`, a child an
attribute that is a `Module`; those in lists, tuples and dicts count too. Names and order are those of the attributes. So a
list of layers is found, and `super().__init__()` is not needed.

Stands on tensors. Not here: layers, losses, hooks.
"""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from reprlib import recursive_repr
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..compiler.plan import TensorMeta
from ..core.dispatch import no_grad
from ..core.errors import DTypeError, ShapeError
from ..runtime.memory_pool import write_clock
from ..tensors.tensor import Tensor

H = TypeVar("H")


class Parameter(Tensor):
    """A tensor that a module learns: `Module.parameters` finds it, and optimizers change it.

    What is computed from a parameter is a plain Tensor.

    Parameters
    ----------
    data : Tensor
        Its first values; the memory is shared, the history left behind.
    requires_grad : bool
        Whether it is learned; False for state that only belongs to the module.

    Raises
    ------
    DTypeError
        `data` is no tensor, or is to be learned and holds no floats.

    Examples
    --------
    >>> import minifuse as mf
    >>> w = mf.nn.Parameter(mf.ones(2))
    >>> w
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(w, mf.Tensor), isinstance(w * 2, mf.nn.Parameter)
    (True, False)
    """

    __slots__ = ()

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        if not isinstance(data, Tensor):
            raise DTypeError(f"Parameter: expected a tensor, got {type(data).__name__}; wrap it in mf.tensor, with floats")
        x = data.detach()
        super().__init__(x.buffer, x.address, x.spec)
        self.requires_grad = requires_grad

    def __reduce__(self) -> Any:
        """A copy, also of a whole module, has memory of its own; gradients are not copied."""
        return Parameter, (self.detach(), self.requires_grad)


class Buffer(Tensor):
    """A tensor that belongs to the state of a module and is never learned, such as a running mean.

    `Module.parameters` leaves it out, so no optimizer gets it; `state_dict`, `load_state_dict` and `to` take it along.

    Parameters
    ----------
    data : Tensor of any element type
        Its first values; the memory is shared, the history left behind.

    Raises
    ------
    DTypeError
        `data` is no tensor.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.Module()
    >>> layer.steps = mf.nn.Buffer(mf.tensor(0))
    >>> layer.steps += 1
    >>> layer.state_dict(), list(layer.parameters())
    ({'steps': tensor(1)}, [])
    """

    __slots__ = ()

    def __init__(self, data: Tensor) -> None:
        if not isinstance(data, Tensor):
            raise DTypeError(f"Buffer: expected a tensor, got {type(data).__name__}; wrap it in mf.tensor")
        x = data.detach()
        super().__init__(x.buffer, x.address, x.spec)

    def __reduce__(self) -> Any:
        """A copy, also of a whole module, has memory of its own."""
        return Buffer, (self.detach(),)


KEPT = Parameter, Buffer  # the state of a module, in the order in which its names come


class LoadResult(NamedTuple):
    """The names in which a module and a state differ."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """The base of all layers, losses and models: subclass it, set parameters and modules as attributes, write `forward`.

    Attributes
    ----------
    training : bool
        Whether the module learns or is used; set by `train` and `eval`.

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
        """What the module computes; calling the module calls it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward; define what it computes, as forward(self, x)")

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """What `forward` gives."""
        return self.forward(*inputs, **named)

    # What it holds.

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """(name, module) of the modules that it holds itself, each once."""
        return once(held(self, Module))

    def children(self) -> Iterator["Module"]:
        """The modules that it holds itself, each once."""
        return (child for _, child in self.named_children())

    def named_modules(self) -> Iterator[tuple[str, "Module"]]:
        """(name, module) of itself, named "", and of all modules below it, each once."""
        return walk("", self, set())

    def modules(self) -> Iterator["Module"]:
        """Itself, and all modules below it, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) of all parameters of itself and of all modules below it; a shared one once, by its first name.

        The order is that of the attributes: its own parameters, then those of each child.
        """
        return once(
            (join(prefix, name), p) for prefix, module in self.named_modules() for name, p in held(module, Parameter)
        )

    def parameters(self) -> Iterator[Parameter]:
        """All parameters of itself and of all modules below it, each once, in the order of `named_parameters`."""
        return (p for _, p in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """(name, buffer) of all buffers of itself and of all modules below it; a shared one once, by its first name."""
        return once((join(prefix, name), x) for prefix, module in self.named_modules() for name, x in held(module, Buffer))

    def buffers(self) -> Iterator[Buffer]:
        """All buffers of itself and of all modules below it, each once, in the order of `named_buffers`."""
        return (x for _, x in self.named_buffers())

    def _named_state(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of parameters and buffers; of each module the parameters come first."""
        return once(
            (join(prefix, name), x)
            for prefix, module in self.named_modules()
            for kind in KEPT
            for name, x in held(module, kind)
        )

    # What is done to all of it.

    def apply(self, function: Callable[["Module"], object]) -> "Module":
        """Call a function with all modules below, then with the module itself, and give the module itself.

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
        for module in reversed(list(self.modules())):  # those below come after what holds them
            function(module)
        return self

    def train(self, mode: bool = True) -> "Module":
        """Set `training` of itself and of all modules below it, and give the module itself."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> "Module":
        """Set `training` to False, and give the module itself. Gradients are still recorded: that is `mf.no_grad`'s."""
        return self.train(False)

    def requires_grad_(self, flag: bool = True) -> "Module":
        """Learn all parameters, or freeze them, and give the module itself."""
        for p in self.parameters():
            p.requires_grad = flag
        return self

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters: `grad` is None again."""
        for p in self.parameters():
            p.grad = None

    def to(self, *wanted: Any, dtype: Any = None, backend: str | None = None) -> "Module":
        """Move all parameters and buffers to an element type, a backend, or both, and give the module itself.

        They stay the same objects, so an optimizer keeps them; what it remembers of them is not moved. Those that hold no
        floats, such as a count of batches, keep their element type.

        Raises
        ------
        DTypeError
            The element type is no float.

        Examples
        --------
        >>> import minifuse as mf
        >>> model = mf.nn.Linear(3, 2).to("float64")
        >>> model.weight.dtype
        float64
        """
        kept = [x for _, x in self._named_state()]
        moved = [p.detach().to(*wanted, dtype=dtype, backend=backend) for p in kept]
        for p, x in zip(kept, moved, strict=True):
            if p.dtype.is_float and not x.dtype.is_float:
                raise DTypeError(f"{type(self).__name__}.to: parameters are floats, got {x.dtype}; use float32 or float64")
        moved = [x if p.dtype.is_float else p.detach().to(backend=x.backend) for p, x in zip(kept, moved, strict=True)]
        for p, x in zip(kept, moved, strict=True):
            if x.spec.dtype is not p.spec.dtype or x.spec.backend is not p.spec.backend:
                p.buffer, p.address = x.buffer, x.address
                p.spec = TensorMeta(x.spec.layout, x.spec.dtype, x.spec.backend, p.requires_grad)
                if p.grad is not None:
                    p.grad = p.grad.detach().to(*wanted, dtype=dtype, backend=backend)
                write_clock.record_write(
                    p.buffer
                )  # what was recorded with the old memory must not be differentiated with the new
        return self

    # Its state.

    def state_dict(self) -> dict[str, Tensor]:
        """All parameters and buffers by name, over the same memory: later steps change them. A shared one appears once.

        The order is PyTorch's: of each module first its parameters, then its buffers, then those of each child.
        """
        return {name: x.detach() for name, x in self._named_state()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> LoadResult:
        """Store the values of a state in the parameters and buffers of the same names.

        Parameters
        ----------
        state
            Tensors or arrays by name, as `state_dict` gives them; of any element type, on any backend; but
            where the module holds integers, floats are refused.
        strict
            Whether both must have the same names; else those that only one of them has are left out.

        Returns
        -------
        LoadResult
            The names that only the module has, `missing_keys`, and that only the state has, `unexpected_keys`.

        Raises
        ------
        ShapeError
            Names (if strict) or shapes differ, or element types cannot be stored; all differences are named, and nothing
            is loaded.

        Examples
        --------
        >>> import minifuse as mf
        >>> a, b = mf.nn.Linear(3, 2), mf.nn.Linear(3, 2)
        >>> b.load_state_dict(a.state_dict())
        LoadResult(missing_keys=[], unexpected_keys=[])
        >>> bool((a.weight == b.weight).all())
        True
        """
        own = dict(self._named_state())
        missing = [name for name in own if name not in state]
        unexpected = [name for name in state if name not in own]
        values = {name: np.asarray(state[name]) for name in own if name in state}
        faults = [f"{name} is missing" for name in missing] * strict
        faults += [f"{name} is unexpected{suggestion(name, own)}" for name in unexpected] * strict
        faults += [
            f"{name} has shape {x.shape}, expected {own[name].shape}"
            for name, x in values.items()
            if x.shape != own[name].shape
        ]
        faults += [
            f"{name} holds {x.dtype}, expected {own[name].dtype}"
            for name, x in values.items()
            if x.dtype.kind not in ("biuf" if own[name].dtype.is_float else "biu")
        ]
        if faults:
            advice = "; strict=False leaves out names that differ" if strict and (missing or unexpected) else ""
            raise ShapeError(f"load_state_dict: {'; '.join(faults)}. Nothing was loaded{advice}")
        with no_grad():
            for name, x in values.items():
                own[name].copy_(x.astype(own[name].dtype.numpy))
        return LoadResult(missing, unexpected)

    # Attributes.

    def __setattr__(self, name: str, value: Any) -> None:
        before = self.__dict__.get(name)
        if isinstance(before, KEPT) and not isinstance(value, type(before) | None):
            kind = type(before).__name__
            raise DTypeError(
                f"{type(self).__name__}.{name} is a {kind.lower()}, got {type(value).__name__}; to change its values write "
                f"`with mf.no_grad(): module.{name}.copy_(...)`, to replace it assign an nn.{kind}, or None to drop it"
            )
        if isinstance(before, Module) and not isinstance(value, Module | None):
            raise DTypeError(
                f"{type(self).__name__}.{name} is a module, got {type(value).__name__}; assign an nn.Module, or None"
            )
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if hasattr(type(self), name):  # a property that raised an AttributeError: let it say so itself
            return object.__getattribute__(self, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name}{suggestion(name, dir(self))}")

    # In words.

    def extra_repr(self) -> str:
        """What the representation says between the brackets, besides the children."""
        return ""

    @recursive_repr()
    def __repr__(self) -> str:
        lines = [f"({name}): {child!r}".replace("\n", "\n  ") for name, child in held(self, Module)]
        lines = [self.extra_repr()] * bool(lines and self.extra_repr()) + lines
        inside = "\n  ".join(["", *lines]) + "\n" if lines else self.extra_repr()
        return f"{type(self).__name__}({inside})"


def held(owner: Module, kind: type[H]) -> Iterator[tuple[str, H]]:
    """(name, value) of the attributes of a kind, and of those in lists, tuples and dicts: `layers.0`, `heads.left`."""

    def look(name: str, value: Any) -> Iterator[tuple[str, H]]:
        if isinstance(value, kind):
            yield name, value
        elif isinstance(value, list | tuple | dict):
            for k, x in value.items() if isinstance(value, dict) else enumerate(value):
                yield from look(f"{name}.{k}", x)

    for name, value in vars(owner).items():
        yield from look(name, value)


def walk(name: str, module: Module, seen: set[int]) -> Iterator[tuple[str, Module]]:
    """(name, module) of a module and of all below it that were not seen yet."""
    if id(module) not in seen:
        seen.add(id(module))
        yield name, module
        for child_name, child in held(module, Module):
            yield from walk(join(name, child_name), child, seen)


def once(named: Iterator[tuple[str, H]]) -> Iterator[tuple[str, H]]:
    """The same without values that came before."""
    seen = set()
    for name, value in named:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


def join(prefix: str, name: str) -> str:
    """A name below another."""
    return f"{prefix}.{name}" if prefix else name


def suggestion(name: str, known: Any) -> str:
    """What was probably meant, for the end of a message."""
    found = get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""
