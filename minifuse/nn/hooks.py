"""Callbacks for the outputs of a model's modules, used by `summary` and by the search for the source of a NaN.

Modules have no hooks. In the block of `watch_outputs`, the `__dict__` of each module contains a wrapped `forward` instead.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from .module import Module

P = ParamSpec("P")
Y = TypeVar("Y")
OutputCallback = Callable[[str, Module, object], None]


@contextmanager
def watch_outputs(model: Module, callback: OutputCallback) -> Iterator[None]:
    """Call `callback(name, module, output)` after each module call in the block, inner modules before outer ones."""
    modules = list(model.named_modules())
    previous_forwards = [vars(module).get("forward") for _, module in modules]
    for name, module in modules:
        vars(module)["forward"] = wrap_forward(name, module, module.forward, callback)
    try:
        yield
    finally:
        for (_, module), previous in zip(modules, previous_forwards, strict=True):
            if previous is None:
                del vars(module)["forward"]
            else:
                vars(module)["forward"] = previous


def wrap_forward(name: str, module: Module, forward: Callable[P, Y], callback: OutputCallback) -> Callable[P, Y]:
    """Return a function that calls `forward` and passes its output to the callback."""

    def watched_forward(*inputs: P.args, **named: P.kwargs) -> Y:
        y = forward(*inputs, **named)
        callback(name, module, y)
        return y

    return watched_forward
