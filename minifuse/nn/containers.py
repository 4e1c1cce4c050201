"""Containers: modules whose only attributes are other modules.

A module also finds its children in plain lists and dicts, so ModuleList and ModuleDict do little. They are a list and a dict
that are modules themselves, accept modules only, and name their children as PyTorch does, so that state dicts are
compatible. The children are attributes; there is no other state.
"""

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from operator import index as to_integer
from typing import Any, Self, overload

from ..core.errors import DTypeError, IndexingError
from .module import Module, suggestion


class NumberedContainer(Module):
    """Base class of Sequential and ModuleList: the children are the attributes "0", "1", ..., in that order."""

    def append(self, module: Module) -> Self:
        """Append a module, and return the container."""
        return self.extend([module])

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append several modules, and return the container. If one is not a module, none is appended."""
        new_modules = list(modules)
        for k, module in enumerate(new_modules):
            require_module(type(self), f"module {len(self) + k}", module)
        for module in new_modules:
            setattr(self, str(len(self)), module)
        return self

    def __iter__(self) -> Iterator[Module]:
        return (module for name, module in list(vars(self).items()) if name.isdecimal())

    def __len__(self) -> int:
        return sum(map(str.isdecimal, vars(self)))

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Module:
        if isinstance(index, slice):
            return type(self)._from_modules(list(self)[index])
        module: Module = getattr(self, self._name(index))
        return module

    def __setitem__(self, index: int, module: Module) -> None:
        require_module(type(self), f"module {index}", module)
        setattr(self, self._name(index), module)

    def _name(self, index: int) -> str:
        """Return the attribute name of an index, which may be negative."""
        k, count = to_integer(index), len(self)
        if not -count <= k < count:
            raise IndexingError(f"{type(self).__name__}: index {k} is out of range for {count} modules")
        return str(k % count)

    @classmethod
    def _from_modules(cls, modules: list[Module]) -> Self:
        """Create a container of the same class, for the modules of a slice."""
        raise NotImplementedError


class Sequential(NumberedContainer):
    """A chain of modules: the input of each module is the output of the previous one.

    Parameters
    ----------
    modules : Module
        Stored as the attributes "0", "1", ... A Sequential supports len(), indexing and slicing; a slice is a Sequential.

    Raises
    ------
    DTypeError
        An argument is not a module.
    IndexingError
        An index is out of range.

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
    >>> len(model.append(mf.nn.Softmax(1)))
    4
    """

    def __init__(self, *modules: Module) -> None:
        self.extend(modules)

    def forward(self, x: Any) -> Any:
        """Call the modules in order, and return the output of the last one."""
        for module in self:
            x = module(x)
        return x

    @classmethod
    def _from_modules(cls, modules: list[Module]) -> Self:
        return cls(*modules)


class ModuleList(NumberedContainer):
    """A list of modules. It has no `forward`; the module that contains it uses its entries.

    Parameters
    ----------
    modules : iterable of Module
        Stored as the attributes "0", "1", ...

    Raises
    ------
    DTypeError
        An entry is not a module.
    IndexingError
        An index is out of range.

    Notes
    -----
    In a plain list that is an attribute, modules have the same names: `layers.0`, `layers.1`. In addition, a ModuleList
    refuses entries that are not modules, and `repr` prints it as one more level.

    Examples
    --------
    >>> import minifuse as mf
    >>> layers = mf.nn.ModuleList(mf.nn.Linear(n, n + 1) for n in (2, 3))
    >>> [layer.out_features for layer in layers], len(layers), list(layers.state_dict())[:2]
    ([3, 4], 2, ['0.weight', '0.bias'])
    >>> layers[-1]
    Linear(in_features=3, out_features=4, bias=True)
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self.extend(modules)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    @classmethod
    def _from_modules(cls, modules: list[Module]) -> Self:
        return cls(modules)


class ModuleDict(Module):
    """A dict of modules in insertion order. It has no `forward`.

    Parameters
    ----------
    modules : mapping of str to Module, or pairs of them
        Each name becomes an attribute. So names that `Module` already uses, such as "train", and names with a dot are
        refused.

    Raises
    ------
    DTypeError
        A value is not a module, or a name is not a string.
    IndexingError
        A name is an attribute of `Module`, contains a dot, or is empty; or no module has the requested name.

    Notes
    -----
    In a plain dict that is an attribute, modules have the same names: `heads.left`. In addition, a ModuleDict refuses
    values that are not modules, and `repr` prints it as one more level.

    Examples
    --------
    >>> import minifuse as mf
    >>> heads = mf.nn.ModuleDict({"left": mf.nn.Linear(4, 1), "right": mf.nn.ReLU()})
    >>> "left" in heads, list(heads), heads["right"]
    (True, ['left', 'right'], ReLU())
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add or replace modules by name. If a name or module is invalid, nothing changes."""
        items = list(modules.items() if isinstance(modules, Mapping) else modules)
        for name, module in items:
            self._check_name(name)
            require_module(type(self), f"module {name!r}", module)
        for name, module in items:
            setattr(self, name, module)

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._modules().keys()

    def values(self) -> ValuesView[Module]:
        """Return the modules."""
        return self._modules().values()

    def items(self) -> ItemsView[str, Module]:
        """Return pairs (name, module)."""
        return self._modules().items()

    def pop(self, name: str) -> Module:
        """Remove a module and return it."""
        module = self[name]
        delattr(self, name)
        return module

    def clear(self) -> None:
        """Remove all modules."""
        for name in self.keys():
            delattr(self, name)

    def __getitem__(self, name: str) -> Module:
        modules = self._modules()
        if name not in modules:
            raise IndexingError(f"{type(self).__name__} has no module {name!r}{suggestion(str(name), modules)}")
        return modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.update({name: module})

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __contains__(self, name: object) -> bool:
        return name in self._modules()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._modules())

    def _modules(self) -> dict[str, Module]:
        return {name: module for name, module in vars(self).items() if isinstance(module, Module)}

    def _check_name(self, name: object) -> None:
        kind = type(self).__name__
        if not isinstance(name, str):
            raise DTypeError(f"{kind}: got the name {name!r} of type {type(name).__name__}, expected a string")
        if not name or "." in name or hasattr(type(self), name):
            raise IndexingError(
                f"{kind}: got the name {name!r}, expected a name that is not empty, has no dot, and is no attribute "
                "of Module"
            )


def require_module(kind: type[Module], label: str, module: object) -> None:
    """Raise DTypeError unless `module` is a module."""
    if not isinstance(module, Module):
        raise DTypeError(f"{kind.__name__}: {label} is {type(module).__name__}, expected an nn.Module")
