"""Training that can be interrupted and resumed: a recipe, its settings, a run folder, and the loop.

    recipe = recipe_named("mlp")
    trainer = Trainer(recipe, recipe.settings)
    fit(trainer, RunFolder.create(Path("runs/first"), recipe.name, trainer.settings.as_dict()))

`minifuse train NAME` does this with a progress bar. Depends on nn, optim, data and checkpoints.
"""

from .fit import fit, resume
from .loop import TrainingLoop
from .recipe import Data, Recipe, Settings
from .run_folder import RunFolder
from .trainer import BadLoss, Trainer

__all__ = ["BadLoss", "Data", "Recipe", "RunFolder", "Settings", "Trainer", "TrainingLoop", "fit", "resume"]
