"""What the user calls the inputs of a fused call: parameters by their names, tensors from outside by those they have there.

    f(x, weights={"w": w}, layers=[a, b])      x, weights_w, layers_0, layers_1
    model(x), with `model` a global            model_0_weight

For host programs and explanations, which people read. A name is an identifier, or "" where none was found at little cost.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from types import FunctionType, MethodType
from typing import Any

from ..ir.array_methods import Array

MAX_TENSORS_PER_OBJECT = 1000  # tensors of one object that are looked at
MAX_OBJECT_DEPTH = 3  # levels of objects that hold others


def name_inputs(function: Callable[..., Any], tree: Any, leaf: type, values: Sequence[Any]) -> list[str]:
    """A name for each input of a call.

    Parameters
    ----------
    function
        What is called.
    tree : (arguments, named arguments)
        With a `leaf`, which has an `index`, in the place of each tensor and number.
    values
        The inputs, then those that come from outside: found there by identity.
    """
    inputs, named = tree
    found: dict[int, str] = {}
    objects: dict[int, str] = {}
    for name, x in bind_parameters(function, inputs, named):
        for path, part in iter_leaves(name, x, leaf):
            if isinstance(part, leaf):
                found[part.index] = path  # type: ignore[attr-defined]
            else:
                name_object(path, part, objects)
    for name, x in sorted(iter_closure(function), key=lambda item: not hasattr(item[1], "named_parameters")):
        name_object(name, x, objects)  # modules first: an optimizer calls parameters params_0
    return [found.get(k) or objects.get(id(x), "") for k, x in enumerate(values)]


def bind_parameters(function: Callable[..., Any], inputs: Sequence[Any], named: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The arguments by the names of the parameters."""
    try:
        arguments = inspect.signature(function).bind(*inputs, **named).arguments
    except (TypeError, ValueError):  # of C, or a call that the function itself refuses
        arguments = named
    for name, x in arguments.items():
        if name in named or not (isinstance(x, dict) and set(x) <= set(named)):
            yield name, x
        else:  # **named
            yield from x.items()


def iter_leaves(name: str, x: Any, leaf: type) -> Iterator[tuple[str, Any]]:
    """What a nested argument is made of, each with its path as a name."""
    if isinstance(x, tuple | list | dict):
        fields = getattr(x, "_fields", range(len(x)))
        for key, part in x.items() if isinstance(x, dict) else zip(fields, x, strict=True):
            yield from iter_leaves(f"{name}_{key}", part, leaf)
    else:
        yield to_identifier(name), x


def iter_closure(function: Any) -> Iterator[tuple[str, Any]]:
    """What a function reads from outside, by name: closures, globals, the object of a method."""
    if isinstance(function, partial):
        yield from function.keywords.items()
        function = function.func
    if isinstance(function, MethodType):
        yield "self", function.__self__
        function = function.__func__
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        yield "self", function  # an object that can be called
        return
    function = inspect.unwrap(function)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # still empty
            continue
    for name in code.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]


def name_object(name: str, x: Any, known: dict[int, str], depth: int = MAX_OBJECT_DEPTH) -> None:
    """Name an object, and what it holds: parameters of a module, entries of a container, attributes."""
    known.setdefault(id(x), to_identifier(name))
    is_plain = type(x).__module__.split(".")[0] in ("builtins", "numpy") and not isinstance(x, dict | tuple | list)
    if is_plain or isinstance(x, FunctionType | Array) or not depth:
        return
    if hasattr(x, "named_parameters"):
        found = dict(x.named_parameters()).items()
    else:
        found = (
            dict(enumerate(x)) if isinstance(x, tuple | list) else x if isinstance(x, dict) else attributes_of(x)
        ).items()
    for key, part in islice(found, MAX_TENSORS_PER_OBJECT):
        if isinstance(key, Array):  # what an optimizer keeps for a parameter
            name_object(known.get(id(key), name), part, known, depth - 1)
        elif isinstance(key, str | int):
            name_object(f"{name}_{key}", part, known, depth - 1)


def attributes_of(x: Any) -> dict[str, Any]:
    """The attributes of an object."""
    found: dict[str, Any] = getattr(x, "__dict__", {})
    return found


def to_identifier(name: str) -> str:
    """A path as one name.

    Examples
    --------
    >>> identifier("model_0.weight")
    'model_0_weight'
    """
    return re.sub(r"\W", "_", name)
