"""The functions of `mf.nn`, under the name that PyTorch users know.

    import minifuse.nn.functional as F

This module exports every function of `mf.nn` and nothing else, which a test checks. It defines none itself.
"""

from typing import Any as _Any

from ..core.operators import relu, sigmoid, tanh
from . import lazy as _lazy
from .activations import elu, gelu, leaky_relu, log_softmax, silu, softmax, softplus
from .attention import scaled_dot_product_attention
from .batch_normalization import batch_norm
from .convolution import conv1d, conv2d, conv3d
from .dropout import dropout
from .embedding import embedding
from .layers import linear
from .losses import binary_cross_entropy_with_logits, cross_entropy, nll_loss
from .normalization import layer_norm
from .pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from .regression import huber_loss, l1_loss, mse_loss, smooth_l1_loss


def __getattr__(name: str) -> _Any:
    """Import a function when it is first used."""
    if not name.islower():
        raise AttributeError(f"module 'mf.nn.functional' has no attribute {name!r}; layers are in mf.nn", name=name)
    globals()[name] = entry = _lazy.find(name, "mf.nn.functional", globals())
    return entry


def __dir__() -> list[str]:
    return sorted({*globals(), *filter(str.islower, _lazy.exported())})


__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "conv3d",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "huber_loss",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mse_loss",
    "nll_loss",
    "relu",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "tanh",
]
