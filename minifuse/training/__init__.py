"""Training that can be stopped at any time: a recipe, its settings, a folder, and the loop between them.

    recipe = RECIPES["mlp"]
    trainer = Trainer(recipe, recipe.settings)
    fit(trainer, RunFolder.create(Path("runs/first"), recipe.name, trainer.settings.as_dict()))

`minifuse train NAME` does the same, with a progress bar. Stands on nn, optim, data and checkpoints.
"""

from .fit import fit, resume
from .recipe import Data, Recipe, Settings
from .run_folder import RunFolder
from .trainer import BadLoss, Trainer

__all__ = ["BadLoss", "Data", "Recipe", "RunFolder", "Settings", "Trainer", "fit", "resume"]
