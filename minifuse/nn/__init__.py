"""Neural networks: modules, parameters, layers and losses, with PyTorch's names.

    model = mf.nn.Sequential(mf.nn.Linear(64, 128), mf.nn.ReLU(), mf.nn.Linear(128, 10))
    loss = mf.nn.cross_entropy(model(x), y)

The names by topic. Each layer without parameters is also available as a function.

    building blocks    Module, Parameter, Buffer; Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict
    layers             Linear, Bilinear, Flatten, Unflatten, Identity, Embedding, EmbeddingBag
    dropout            Dropout, Dropout1d, Dropout2d, Dropout3d, AlphaDropout, FeatureAlphaDropout
    convolutions       Conv1d, Conv2d, Conv3d, ConvTranspose1d, ...; Fold, Unfold, PixelShuffle,
                       PixelUnshuffle, ChannelShuffle
    padding            ConstantPad1d, ZeroPad1d, ReflectionPad1d, ReplicationPad1d, CircularPad1d, ..., for 1 to 3 dims
    pooling            MaxPool1d, MaxPool2d, MaxPool3d, AvgPool1d, AvgPool2d, AvgPool3d, LPPool1d, AdaptiveAvgPool1d,
                       AdaptiveMaxPool1d, MaxUnpool1d, FractionalMaxPool2d, ...
    resampling         Upsample, UpsamplingNearest2d, UpsamplingBilinear2d; interpolate, grid_sample, affine_grid
    recurrent          RNN, LSTM, GRU, RNNCell, LSTMCell, GRUCell
    attention          MultiheadAttention, Transformer, TransformerEncoder, TransformerEncoderLayer, TransformerDecoder,
                       TransformerDecoderLayer
    normalization      BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, LayerNorm, GroupNorm, RMSNorm,
                       LocalResponseNorm
    lazy               LazyLinear, LazyConv1d, LazyConvTranspose1d, LazyBatchNorm1d, LazyInstanceNorm1d: the first input
                       tells the number of features
    activations        ReLU, ReLU6, LeakyReLU, PReLU, RReLU, ELU, CELU, SELU, GELU, SiLU, Mish, Softplus, Sigmoid,
                       LogSigmoid, Tanh, Hardtanh, Hardsigmoid, Hardswish, Hardshrink, Softshrink, Tanhshrink, Softsign,
                       Threshold, GLU, Softmax, Softmin, Softmax2d, LogSoftmax
    classification     CrossEntropyLoss, NLLLoss, BCELoss, BCEWithLogitsLoss, MultiMarginLoss, MultiLabelMarginLoss,
                       MultiLabelSoftMarginLoss, LinearCrossEntropyLoss, AdaptiveLogSoftmaxWithLoss, CTCLoss
    regression         MSELoss, L1Loss, HuberLoss, SmoothL1Loss, GaussianNLLLoss, PoissonNLLLoss, KLDivLoss
    ranking            MarginRankingLoss, HingeEmbeddingLoss, SoftMarginLoss, CosineEmbeddingLoss, TripletMarginLoss,
                       TripletMarginWithDistanceLoss
    distances          CosineSimilarity, PairwiseDistance
    other              init (initial values), functional (all functions), utils (gradient clipping, vectors of parameters,
                       weight and spectral normalization), summary (a table of a model's layers)

This package depends on tensors only, not on data, and only `utils` on optimizers: it has gradient clipping.
"""

from typing import Any as _Any

from ..core.operators import relu, sigmoid, tanh
from . import functional, init
from . import lazy as _lazy
from .activations import (
    ELU,
    GELU,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    silu,
    softmax,
    softplus,
)
from .attention import scaled_dot_product_attention
from .batch_normalization import BatchNorm1d, BatchNorm2d, batch_norm
from .containers import ModuleDict, ModuleList, Sequential
from .convolution import Conv1d, Conv2d, Conv3d, conv1d, conv2d, conv3d
from .dropout import Dropout, dropout
from .embedding import Embedding, embedding
from .layers import Flatten, Linear, linear
from .losses import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    NLLLoss,
    binary_cross_entropy_with_logits,
    cross_entropy,
    nll_loss,
)
from .module import Buffer, Module, Parameter
from .normalization import LayerNorm, layer_norm
from .pooling import (
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from .regression import HuberLoss, L1Loss, MSELoss, SmoothL1Loss, huber_loss, l1_loss, mse_loss, smooth_l1_loss
from .summary import summary


def __getattr__(name: str) -> _Any:
    """Import a layer, a function, or `utils` when it is first used."""
    globals()[name] = entry = _lazy.find(name, "mf.nn", globals())
    return entry


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy.exported()})


__all__ = [
    "ELU",
    "GELU",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "HuberLoss",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Tanh",
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
    "functional",
    "gelu",
    "huber_loss",
    "init",
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
    "summary",
    "tanh",
]
