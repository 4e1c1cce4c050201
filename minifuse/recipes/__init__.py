"""Recipes: complete training examples, one in each file. `minifuse train NAME` runs them.

    mlp        a two-layer network classifies digits      lenet      a convolutional network classifies digits
    sentences  a bag of words classifies sentences        gpt        a transformer generates text, character by character

To add one, write a subclass of `training.Recipe` in a new file here, and add its name to MODULES.
"""

from importlib import import_module

from ..core.errors import TrainingError
from ..training import Recipe

MODULES = ("mlp", "lenet", "sentences", "gpt")
"""The names of the recipes, which are also names of modules of this package."""


def recipe_named(name: str) -> Recipe:
    """Return a recipe, imported on first use.

    Raises
    ------
    TrainingError
        The recipe is unknown.
    """
    if name not in MODULES:
        raise TrainingError(f"unknown recipe {name!r}; expected one of {', '.join(MODULES)}")
    recipe: Recipe = import_module(f"{__name__}.{name}").RECIPE
    return recipe


__all__ = ["MODULES", "recipe_named"]
