"""Optimizers, schedules of their rates, and the clipping of gradients: what changes parameters, with PyTorch's words."""

from .adam import Adam, AdamW
from .clipping import clip_grad_norm_, clip_grad_value_
from .optimizer import Optimizer
from .schedules import ConstantSchedule, CosineSchedule, Schedule
from .sgd import SGD

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "ConstantSchedule",
    "CosineSchedule",
    "Optimizer",
    "Schedule",
    "clip_grad_norm_",
    "clip_grad_value_",
]
