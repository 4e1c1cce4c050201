"""What the modules of a model give while it runs, for those who look on: a summary, or whoever asks where NaN came from.

Modules have no hooks. While somebody looks, each has a `forward` of its own among its attributes, and afterwards none.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .module import Module

Note = Callable[[str, Module, Any], None]


@contextmanager
def watched(model: Module, note: Note) -> Iterator[None]:
    """Tell (name, module, what it gave) of each call while the block runs: of modules inside before those around them."""
    modules = list(model.named_modules())
    before = [vars(module).get("forward") for _, module in modules]
    for name, module in modules:
        vars(module)["forward"] = telling(name, module, module.forward, note)
    try:
        yield
    finally:
        for (_, module), own in zip(modules, before, strict=True):
            if own is None:
                del vars(module)["forward"]
            else:
                vars(module)["forward"] = own


def telling(name: str, module: Module, forward: Callable[..., Any], note: Note) -> Callable[..., Any]:
    """What `forward` gives, once it is told."""

    def forward_told(*inputs: Any, **named: Any) -> Any:
        y = forward(*inputs, **named)
        note(name, module, y)
        return y

    return forward_told
