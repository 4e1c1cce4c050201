"""Optimizers, learning rate schedules and gradient clipping, with PyTorch's names."""

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
