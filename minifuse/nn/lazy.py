"""The layers and functions that are imported when they are first used, so that `import minifuse` stays as fast as it is."""

from importlib import import_module
from typing import Any

from ..functions import in_place_function, missing_error

MODULES = (  # of this package; each lists its names in `__all__`
    "adaptive_pooling",
    "batch_normalization",
    "class_losses",
    "ctc",
    "distances",
    "embedding_bag",
    "feature_dropout",
    "lazy_layers",
    "more_activations",
    "more_losses",
    "multihead_attention",
    "normalization",
    "padding",
    "parameter_containers",
    "pooling_variants",
    "rearrange",
    "recurrent",
    "resampling",
    "transformer",
    "transposed_convolution",
)

SUBMODULES = ("utils",)


def find(name: str, owner: str, present: dict[str, Any]) -> Any:
    """Return a class or function of MODULES, or the twin in place of a function, `F.relu_`. Else raise AttributeError.

    `present` has the names that the owner, a module, has already.
    """
    if name in SUBMODULES and owner == "mf.nn":
        return import_module(f"minifuse.nn.{name}")
    if not name.startswith("_"):
        for module in (import_module(f"minifuse.nn.{m}") for m in MODULES):
            if name in module.__all__:
                return getattr(module, name)
        if name.endswith("_") and name.islower():
            base = name[:-1]
            return in_place_function(present.get(base) or find(base, owner, present), name)
    raise missing_error(f"module {owner!r}", name, f"{owner}.")


def exported() -> list[str]:
    """Return the names of all modules."""
    return [name for m in MODULES for name in import_module(f"minifuse.nn.{m}").__all__]
