"""Errors for keyword arguments that PyTorch has and a function here lacks. They say what to write instead."""

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def refusing(advice: Mapping[str, str]) -> Callable[[F], F]:
    """Let a function raise a TypeError with advice for some keyword arguments, by name."""

    def decorate(function: F) -> F:
        owner = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def call(*inputs: Any, **named: Any) -> Any:
            if named:
                refuse(owner, named, advice)
            return function(*inputs, **named)

        return call  # type: ignore[return-value]  # has the signature of the function

    return decorate


def refuse(owner: str, named: Collection[str], advice: Mapping[str, str]) -> None:
    """Raise a TypeError if one of these keyword arguments has advice."""
    for name in named:
        if name in advice:
            raise TypeError(f"{owner}: got an unexpected argument {name!r}; {advice[name]}")


def has_parameter(function: Callable[..., object], name: str) -> bool:
    """Return whether a function accepts a keyword argument."""
    parameters = signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
