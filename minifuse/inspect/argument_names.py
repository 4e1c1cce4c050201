"""Name the inputs of a fused call: arguments by parameter, tensors from closures and globals by variable.

    f(x, weights={"w": w}, layers=[a, b])      x, weights_w, layers_0, layers_1
    model(x), with `model` a global            model_0_weight

Host programs and explanations print these names. A name is an identifier, or "" if a short search finds none.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from types import FunctionType, MethodType
from typing import Protocol

from ..ir.array_methods import Array

MAX_MEMBERS_PER_OBJECT = 1000  # members of one object that get a name
MAX_OBJECT_DEPTH = 3  # levels of nested objects whose members get names

ArgumentTree = tuple[Sequence[object], dict[str, object]]  # arguments, named arguments


class Leaf(Protocol):
    """A placeholder of an input in the arguments of a call."""

    @property
    def index(self) -> int:
        """The index of the input."""


def name_inputs(
    function: Callable[..., object], tree: ArgumentTree, leaf: type[Leaf], values: Sequence[object]
) -> list[str]:
    """Return a name for each input of a call.

    Parameters
    ----------
    function
        The function that is called.
    tree : (arguments, named arguments)
        Contains a `leaf`, an object with an `index`, in the place of each tensor and number.
    values
        The inputs, followed by the tensors from closures and globals, which are found by identity.
    """
    inputs, named = tree
    paths: dict[int, str] = {}
    object_names: dict[int, str] = {}
    for name, x in bind_parameters(function, inputs, named):
        for path, part in iter_leaves(name, x, leaf):
            if isinstance(part, leaf):
                paths[part.index] = path
            else:
                name_object(path, part, object_names)
    for name, x in sorted(iter_closure(function), key=lambda item: not hasattr(type(item[1]), "named_parameters")):
        name_object(name, x, object_names)  # modules come first: an optimizer would name their parameters params_0, ...
    return [paths.get(k) or object_names.get(id(x), "") for k, x in enumerate(values)]


def bind_parameters(
    function: Callable[..., object], inputs: Sequence[object], named: dict[str, object]
) -> Iterator[tuple[str, object]]:
    """Yield the arguments with the names of their parameters."""
    try:
        arguments = inspect.signature(function).bind(*inputs, **named).arguments
    except (TypeError, ValueError):  # a C function, or arguments that do not fit the signature
        arguments = named
    for name, x in arguments.items():
        if name in named or not (isinstance(x, dict) and set(x) <= set(named)):
            yield name, x
        else:  # **named
            yield from x.items()


def iter_leaves(name: str, x: object, leaf: type[Leaf]) -> Iterator[tuple[str, object]]:
    """Yield the path of each leaf of a nested argument, as an identifier, and the leaf."""
    if isinstance(x, tuple | list | dict):
        fields = getattr(x, "_fields", range(len(x)))
        for key, part in x.items() if isinstance(x, dict) else zip(fields, x, strict=True):
            yield from iter_leaves(f"{name}_{key}", part, leaf)
    else:
        yield to_identifier(name), x


def iter_closure(function: Callable[..., object]) -> Iterator[tuple[str, object]]:
    """Yield the objects that a function refers to, by name: closure cells, globals, the object of a method."""
    if isinstance(function, partial):
        yield from function.keywords.items()
        function = function.func
    if isinstance(function, MethodType):
        yield "self", function.__self__
        function = function.__func__
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        yield "self", function  # a callable object
        return
    function = inspect.unwrap(function)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # the variable has no value yet
            continue
    for name in code.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]


def name_object(name: str, x: object, object_names: dict[int, str], depth: int = MAX_OBJECT_DEPTH) -> None:
    """Name an object and its contents: parameters of a module, entries of a container, attributes."""
    object_names.setdefault(id(x), to_identifier(name))
    is_plain = type(x).__module__.split(".")[0] in ("builtins", "numpy") and not isinstance(x, dict | tuple | list)
    if is_plain or isinstance(x, FunctionType | Array) or not depth:
        return
    if hasattr(x, "named_parameters"):
        members = dict(x.named_parameters())
    elif isinstance(x, tuple | list):
        members = dict(enumerate(x))
    else:
        members = x if isinstance(x, dict) else attributes_of(x)
    for key, part in islice(members.items(), MAX_MEMBERS_PER_OBJECT):
        if isinstance(key, Array):  # state that an optimizer stores for a parameter
            name_object(object_names.get(id(key), name), part, object_names, depth - 1)
        elif isinstance(key, str | int):
            name_object(f"{name}_{key}", part, object_names, depth - 1)


def attributes_of(x: object) -> dict[str, object]:
    """Return the attributes of an object."""
    attributes: dict[str, object] = getattr(x, "__dict__", {})
    return attributes


def to_identifier(name: str) -> str:
    """Convert a path to an identifier.

    Examples
    --------
    >>> to_identifier("model_0.weight")
    'model_0_weight'
    """
    return re.sub(r"\W", "_", name)
