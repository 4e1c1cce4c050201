"""Recipes: what people train first, a file each. `minifuse train NAME` runs them; they are read as examples.

    mlp        two layers read digits            lenet      convolutions read digits
    sentences  words tell what they are about    gpt        attention writes, character by character

A new one is a subclass of `training.Recipe` in a file here, and a line in MODULES.
"""

from importlib import import_module

from ..core.errors import TrainingError
from ..training import Recipe

MODULES = ("mlp", "lenet", "sentences", "gpt")


def recipe_named(name: str) -> Recipe:
    """A recipe, imported when it is asked for.

    Raises
    ------
    TrainingError
        There is none of that name.
    """
    if name not in MODULES:
        raise TrainingError(f"there is no recipe {name!r}; expected one of {', '.join(MODULES)}")
    found: Recipe = import_module(f"{__name__}.{name}").RECIPE
    return found


__all__ = ["MODULES", "recipe_named"]
