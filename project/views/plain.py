"""Pictures, facts and lines as plain data, and back: what crosses the border of a process."""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints


def as_plain(value: Any) -> Any:
    """Return dataclasses as dicts, and tuples as lists, as JSON has them."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_plain(getattr(value, f.name)) for f in fields(value) if f.init}
    return [as_plain(x) for x in value] if isinstance(value, list | tuple) else value


def from_plain(kind: Any, value: Any) -> Any:
    """Return plain data as a value of a type: a dataclass, a tuple, a list, a number or a text.

    Raises
    ------
    ValueError
        The data has another form.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else from_plain(next(x for x in arguments if x is not type(None)), value)
    if is_dataclass(kind):
        return fields_from_plain(kind, value)
    if origin in (tuple, list):
        if not isinstance(value, list):
            raise ValueError(f"got {type(value).__name__}, expected a list")
        if origin is list or arguments[-1] is Ellipsis:
            return origin(from_plain(arguments[0], x) for x in value)
        if len(value) != len(arguments):
            raise ValueError(f"got {len(value)} values, expected {len(arguments)}")
        return tuple(from_plain(x, one) for x, one in zip(arguments, value, strict=True))
    if kind is Any and isinstance(value, str | int | float | bool | None):
        return value
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"got {type(value).__name__}, expected {kind.__name__}")
    return value


def fields_from_plain(kind: Any, value: Any) -> Any:
    """Return a dataclass with fields from plain data."""
    if not isinstance(value, Mapping):
        raise ValueError(f"got {type(value).__name__}, expected the fields of {kind.__name__}")
    hints = get_type_hints(kind)
    if unknown := value.keys() - {f.name for f in fields(kind) if f.init}:
        raise ValueError(f"got a field {min(unknown)!r}, which {kind.__name__} has not")
    return kind(**{name: from_plain(hints[name], x) for name, x in value.items()})
