"""Networks: modules, parameters, layers and losses, in PyTorch's words.

    model = mf.nn.Sequential(mf.nn.Linear(64, 128), mf.nn.ReLU(), mf.nn.Linear(128, 10))
    loss = mf.nn.cross_entropy(model(x), y)

Stands on tensors; knows no optimizer and no data.
"""

from .layers import GELU, Flatten, Linear, ReLU, Sequential, Sigmoid, Tanh
from .losses import CrossEntropyLoss, MSELoss, cross_entropy, mse_loss
from .module import Module, Parameter

__all__ = [
    "GELU",
    "CrossEntropyLoss",
    "Flatten",
    "Linear",
    "MSELoss",
    "Module",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Tanh",
    "cross_entropy",
    "mse_loss",
]
