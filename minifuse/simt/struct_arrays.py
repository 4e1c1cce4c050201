"""Arrays of structures as a kernel uses them: `points[i].x`, `points[i]["x"]`.

Each field is an array over the same memory, with the strides of the structures. So an access to a field is checked and
recorded like any other access. `address_spaces` creates the arrays of the fields.
"""

from collections.abc import Mapping
from math import prod
from typing import TypeAlias

from ..core.errors import UnknownWordError
from .arithmetic import LaneNumber
from .lanes import lane_error
from .memory import ArrayIndex, KernelArray

FieldArray: TypeAlias = "KernelArray | StructArray"  # all values of a field, which may be structures again
FieldValue: TypeAlias = "LaneNumber | FieldArray | StructElement"  # a view if the field is an array


class StructArray:
    """An array of structures."""

    def __init__(self, name: str, shape: tuple[int, ...], fields: Mapping[str, FieldArray]) -> None:
        self.name, self.shape, self.ndim, self.size, self.fields = name, shape, len(shape), prod(shape), fields

    def __getitem__(self, index: ArrayIndex | str) -> "FieldArray | StructElement":
        if isinstance(index, str):
            return self.field(index)
        return StructElement(self, index)

    def __setitem__(self, index: ArrayIndex, value: object) -> None:
        if not isinstance(value, StructElement):
            raise lane_error(
                UnknownWordError,
                f"structure {index} of '{self.name}' set to a {type(value).__name__}",
                "assign its fields one by one, or another structure",
            )
        for name in self.fields:
            StructElement(self, index)[name] = value[name]

    def __getattr__(self, name: str) -> FieldArray:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.field(name)

    def __len__(self) -> int:
        return self.shape[0]

    def field(self, name: str) -> FieldArray:
        """Return the array of a field."""
        if name not in self.fields:
            raise lane_error(
                UnknownWordError,
                f"field '{name}' of '{self.name}'",
                f"there is no such field; its fields are {', '.join(self.fields)}",
            )
        return self.fields[name]


class StructElement:
    """One structure of a `StructArray`, as a reference to its fields."""

    __slots__ = ("_array", "_index")
    _array: StructArray
    _index: ArrayIndex

    def __init__(self, array: StructArray, index: ArrayIndex) -> None:
        object.__setattr__(self, "_array", array)
        object.__setattr__(self, "_index", index)

    def __getitem__(self, name: str) -> FieldValue:
        return self._array.field(name)[self._index]

    def __setitem__(self, name: str, value: FieldValue) -> None:
        self._array.field(name)[self._index] = value

    def __getattr__(self, name: str) -> FieldValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: FieldValue) -> None:
        self[name] = value
