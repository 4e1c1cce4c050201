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
    """Base class of Sequential, ModuleList and ParameterList: the entries are the attributes "0", "1", ..., in order."""

    entry_type: type = Module

    def append(self, entry: Any) -> Self:
        """Append an entry, and return the container."""
        return self.extend([entry])

    def extend(self, entries: Iterable[Any]) -> Self:
        """Append several entries, and return the container. If one has a wrong type, none is appended."""
        count = len(self)
        for k, entry in enumerate([self._checked(f"module {count + k}", entry) for k, entry in enumerate(entries)]):
            setattr(self, str(count + k), entry)
        return self

    def insert(self, index: int, entry: Any) -> Self:
        """Insert an entry before the one at an index, and return the container."""
        entries = [*self]
        entries.insert(to_integer(index), self._checked(f"module {index}", entry))
        return self._replace(entries)

    def pop(self, index: int | slice = -1) -> Any:
        """Remove an entry and return it."""
        entry = self[index]
        del self[index]
        return entry

    def __iter__(self) -> Iterator[Any]:
        return (vars(self)[name] for name in self._names())

    def __len__(self) -> int:
        return len(self._names())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)._from_entries([*self][index])
        return getattr(self, self._name(index))

    def __setitem__(self, index: int, entry: Any) -> None:
        setattr(self, self._name(index), self._checked(f"module {index}", entry))

    def __delitem__(self, index: int | slice) -> None:
        entries = [*self]
        del entries[index if isinstance(index, slice) else int(self._names().index(self._name(index)))]
        self._replace(entries)

    def __add__(self, entries: Iterable[Any]) -> Self:
        return type(self)._from_entries([*self, *entries])

    def __iadd__(self, entries: Iterable[Any]) -> Self:
        return self.extend(entries)

    def _names(self) -> list[str]:
        """Return the attribute names of the entries."""
        return [name for name, value in vars(self).items() if isinstance(value, self.entry_type)]

    def _name(self, index: int) -> str:
        """Return the attribute name of an index, which may be negative."""
        k, names = to_integer(index), self._names()
        if not -len(names) <= k < len(names):
            raise IndexingError(f"{type(self).__name__}: index {k} is out of range for {len(names)} modules")
        return names[k]

    def _replace(self, entries: list[Any]) -> Self:
        """Number other entries."""
        for name in self._names():
            delattr(self, name)
        return self.extend(entries)

    def _checked(self, label: str, entry: Any) -> Any:
        """Return an entry. Raise DTypeError unless it has the type of entries."""
        require_module(type(self), label, entry)
        return entry

    @classmethod
    def _from_entries(cls, entries: list[Any]) -> Self:
        """Create a container of the same class, for the entries of a slice."""
        return cls(entries)


class Sequential(NumberedContainer):
    """A chain of modules: the input of each module is the output of the previous one.

    Parameters
    ----------
    modules : Module, or one dict of modules
        Stored as the attributes "0", "1", ..., or by the names of the dict. A Sequential supports len() and indexing;
        a slice is a Sequential.

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

    def __init__(self, *modules: Any) -> None:
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            self.extend(modules)

    def forward(self, x: Any) -> Any:
        """Call the modules in order, and return the output of the last one."""
        for module in self:
            x = module(x)
        return x

    @classmethod
    def _from_entries(cls, entries: list[Any]) -> Self:
        return cls(*entries)


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

    entry_type: type = Module

    def __init__(self, modules: Any = ()) -> None:
        self.update(modules)

    def update(self, modules: Any) -> None:
        """Add or replace entries by name. If a name or entry is invalid, nothing changes."""
        items = modules.items() if isinstance(modules, Mapping | ModuleDict) else modules
        checked = [(self._check_name(name), self._checked(f"module {name!r}", entry)) for name, entry in items]
        for name, entry in checked:
            setattr(self, name, entry)

    def _checked(self, label: str, entry: Any) -> Any:
        """Return an entry. Raise DTypeError unless it has the type of entries."""
        require_module(type(self), label, entry)
        return entry

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._modules().keys()

    def values(self) -> ValuesView[Any]:
        """Return the modules."""
        return self._modules().values()

    def items(self) -> ItemsView[str, Any]:
        """Return pairs (name, module)."""
        return self._modules().items()

    def pop(self, name: str) -> Any:
        """Remove a module and return it."""
        module = self[name]
        delattr(self, name)
        return module

    def clear(self) -> None:
        """Remove all modules."""
        for name in self.keys():
            delattr(self, name)

    def __getitem__(self, name: str) -> Any:
        modules = self._modules()
        if name not in modules:
            raise IndexingError(f"{type(self).__name__} has no module {name!r}{suggestion(str(name), modules)}")
        return modules[name]

    def __setitem__(self, name: str, module: Any) -> None:
        self.update({name: module})

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __contains__(self, name: object) -> bool:
        return name in self._modules()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._modules())

    def _modules(self) -> dict[str, Any]:
        return {name: entry for name, entry in vars(self).items() if isinstance(entry, self.entry_type)}

    def _check_name(self, name: Any) -> str:
        kind = type(self).__name__
        if not isinstance(name, str):
            raise DTypeError(f"{kind}: got the name {name!r} of type {type(name).__name__}, expected a string")
        if not name or "." in name or hasattr(type(self), name):
            raise IndexingError(
                f"{kind}: got the name {name!r}, expected a name that is not empty, has no dot, and is no attribute "
                "of Module"
            )
        return name


def require_module(kind: type[Module], label: str, module: object) -> None:
    """Raise DTypeError unless `module` is a module."""
    if not isinstance(module, Module):
        raise DTypeError(f"{kind.__name__}: {label} is {type(module).__name__}, expected an nn.Module")
