"""The layers and functions that are imported when they are first used, so that `import minifuse` stays as fast as it is."""

from importlib import import_module
from typing import Any

from ..functions import in_place_function, missing_error

MODULES: tuple[str, ...] = ()  # of this package; each lists its names in `__all__`


def find(name: str, owner: str) -> Any:
    """Return a class or function of MODULES, or the twin in place of a function, `F.relu_`. Else raise AttributeError."""
    if not name.startswith("_"):
        package = import_module("minifuse.nn")
        for module in (import_module(f"minifuse.nn.{m}") for m in MODULES):
            if name in module.__all__:
                return getattr(module, name)
        if name.endswith("_") and name[:1].islower() and callable(function := getattr(package, name[:-1], None)):
            return in_place_function(function, name)
    raise missing_error(f"module {owner!r}", name, f"{owner}.")


def exported() -> list[str]:
    """Return the names of all modules."""
    return [name for m in MODULES for name in import_module(f"minifuse.nn.{m}").__all__]
