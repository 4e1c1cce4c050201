"""Optimizers, learning rate schedulers and gradient clipping, with PyTorch's names.

The names that are imported here come with the package; the others of `__all__` are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .adam import Adam, AdamW
from .clipping import clip_grad_norm_, clip_grad_value_
from .optimizer import Optimizer
from .schedules import ConstantSchedule, CosineSchedule, Schedule
from .sgd import SGD

if TYPE_CHECKING:
    from .adam_variants import Adamax, NAdam, RAdam
    from .adaptive import Adadelta, Adafactor, Adagrad, RMSprop
    from .lbfgs import LBFGS
    from .muon import Muon
    from .sign_based import ASGD, Lion, Rprop

MODULE_OF = {
    "LBFGS": "lbfgs",
    "Muon": "muon",
    **dict.fromkeys(["Adamax", "NAdam", "RAdam"], "adam_variants"),
    **dict.fromkeys(["Adadelta", "Adafactor", "Adagrad", "RMSprop"], "adaptive"),
    **dict.fromkeys(["ASGD", "Lion", "Rprop"], "sign_based"),
}
INSTEAD = {  # names of PyTorch that minifuse lacks -> what to use
    "SparseAdam": "gradients are never sparse; use mf.optim.Adam",
}

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ConstantSchedule",
    "CosineSchedule",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "Schedule",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr_scheduler",  # `__getattr__` imports it
    "swa_utils",
]


def __getattr__(name: str) -> Any:
    """Import an optimizer or a module when it is first used."""
    if name in MODULE_OF:
        return getattr(import_module(f"{__name__}.{MODULE_OF[name]}"), name)
    if name in ("lr_scheduler", "swa_utils"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}" + (f": {INSTEAD[name]}" if name in INSTEAD else "")
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
