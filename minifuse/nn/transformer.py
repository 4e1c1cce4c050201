"""Transformers: encoder and decoder layers, stacks of them, and the model of both [1]_.

.. [1] A. Vaswani et al., Attention Is All You Need, 2017, arXiv:1706.03762
"""

import copy
import math
from collections.abc import Callable
from typing import Any

from ..core.operators import relu, where
from ..ir.array_functions import A
from ..ir.array_methods import Array
from ..tensors.creation import DTypeLike, arange, full
from ..tensors.tensor import Tensor
from .activations import gelu
from .containers import ModuleList
from .dropout import Dropout
from .init import xavier_uniform_
from .layers import Linear
from .module import Module
from .multihead_attention import MultiheadAttention
from .normalization import LayerNorm

Activation = str | Callable[[Any], Any]
ACTIVATIONS: dict[Activation, Callable[[Any], Any]] = {"relu": relu, "gelu": gelu}


class TransformerLayer(Module):
    """Base class of TransformerEncoderLayer and TransformerDecoderLayer.

    Parameters
    ----------
    d_model : int
        Number of features of input and output.
    nhead : int
        Number of heads of the attention.
    dim_feedforward : int
        Number of features between the two linear layers.
    dropout : float
        The probability with which elements are set to 0 in training, at four places of the layer.
    activation : {"relu", "gelu"} or function
        The function between the two linear layers.
    layer_norm_eps : float
        Added to the variance in the normalizations.
    batch_first : bool
        If True, inputs are (N, T, d_model), else (T, N, d_model).
    norm_first : bool
        If True, normalize the input of each part, else its sum with the output.
    bias : bool
        If True, the linear layers, the attention and the normalizations add a bias.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.
    """

    attentions: tuple[str, ...] = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        if not callable(activation) and activation not in ACTIVATIONS:
            raise ValueError(f'{type(self).__name__}: got activation={activation!r}, expected "relu", "gelu" or a function')
        places: dict[str, Any] = {"dtype": dtype, "backend": backend}
        for name in self.attentions:
            options = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **places}
            setattr(self, name, MultiheadAttention(d_model, nhead, **options))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **places)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **places)
        parts = range(1, 2 + len(self.attentions))
        for k in parts:
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps, bias=bias, **places))
        for k in parts:
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.norm_first = norm_first
        self.activation: Any = activation if callable(activation) else ACTIVATIONS[activation]

    def run(self, x: A, *parts: Callable[[A], A]) -> A:
        """Add the result of each part to its input, with dropout, and normalize before or after."""
        for k, part in enumerate(parts, 1):
            norm, drop = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
            x = x + drop(part(norm(x))) if self.norm_first else norm(x + drop(part(x)))
        return x

    def feed_forward(self, x: A) -> A:
        """Apply the two linear layers."""
        y: A = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return y


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention, then a feed-forward network; both are added to their input, and normalized.

    The parameters are those of `torch.nn.TransformerEncoderLayer`: d_model, nhead, dim_feedforward, dropout, activation,
    layer_norm_eps, batch_first, norm_first and bias.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)(mf.ones(3, 5, 8)).shape
    (3, 5, 8)
    """

    def forward(
        self,
        src: A,
        src_mask: Array | None = None,
        src_key_padding_mask: Array | None = None,
        is_causal: bool = False,
    ) -> A:
        """Map (T, N, d_model) to the same shape. The masks are those of `MultiheadAttention`."""
        options = src_key_padding_mask, False, src_mask, True, is_causal
        return self.run(src, lambda x: self.self_attn(x, x, x, *options)[0], self.feed_forward)


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to the output of an encoder, then a feed-forward network; each is added to its input.

    The parameters are those of `TransformerEncoderLayer`.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(mf.ones(3, 5, 8), mf.ones(3, 7, 8)).shape
    (3, 5, 8)
    """

    attentions = "self_attn", "multihead_attn"

    def forward(
        self,
        tgt: A,
        memory: Array,
        tgt_mask: Array | None = None,
        memory_mask: Array | None = None,
        tgt_key_padding_mask: Array | None = None,
        memory_key_padding_mask: Array | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> A:
        """Map (T, N, d_model), and the output of an encoder (S, N, d_model), to (T, N, d_model)."""
        own = tgt_key_padding_mask, False, tgt_mask, True, tgt_is_causal
        other = memory_key_padding_mask, False, memory_mask, True, memory_is_causal
        return self.run(
            tgt,
            lambda x: self.self_attn(x, x, x, *own)[0],
            lambda x: self.multihead_attn(x, memory, memory, *other)[0],
            self.feed_forward,
        )


class Stack(Module):
    """Base class of TransformerEncoder and TransformerDecoder: copies of a layer, one after the other.

    Parameters
    ----------
    layer : Module
        The layer to copy.
    num_layers : int
        Number of copies.
    norm : Module, optional
        Applied to the output of the last layer.
    """

    norm: Module | None

    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def run(self, x: A, *inputs: Any) -> A:
        """Apply the layers, and the norm."""
        for layer in self.layers:
            x = layer(x, *inputs)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(Stack):
    """Copies of a `TransformerEncoderLayer`, one after the other."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self, src: A, mask: Array | None = None, src_key_padding_mask: Array | None = None, is_causal: bool | None = None
    ) -> A:
        """Map (T, N, d_model) to the same shape."""
        return self.run(src, mask, src_key_padding_mask, bool(is_causal))


class TransformerDecoder(Stack):
    """Copies of a `TransformerDecoderLayer`, one after the other; all read the same output of an encoder."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: A,
        memory: Array,
        tgt_mask: Array | None = None,
        memory_mask: Array | None = None,
        tgt_key_padding_mask: Array | None = None,
        memory_key_padding_mask: Array | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> A:
        """Map (T, N, d_model), and the output of an encoder (S, N, d_model), to (T, N, d_model)."""
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        return self.run(tgt, memory, *masks, bool(tgt_is_causal), memory_is_causal)


class Transformer(Module):
    """An encoder, and a decoder that reads its output.

    Parameters
    ----------
    d_model, nhead : int
        Number of features, and of heads.
    num_encoder_layers, num_decoder_layers : int
        Number of layers.
    dim_feedforward, dropout, activation
        As in `TransformerEncoderLayer`.
    custom_encoder, custom_decoder : Module, optional
        Used in place of a TransformerEncoder and a TransformerDecoder.
    layer_norm_eps, batch_first, norm_first, bias, dtype, backend
        As in `TransformerEncoderLayer`.

    Examples
    --------
    >>> import minifuse as mf
    >>> model = mf.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
    >>> model(mf.ones(3, 7, 8), mf.ones(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        options: Any = (
            d_model, nhead, dim_feedforward, dropout, activation,
            layer_norm_eps, batch_first, norm_first, bias, dtype, backend,
        )  # fmt: skip

        def norm() -> Module:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype, backend=backend)

        self.encoder: Any = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options), num_encoder_layers, norm()
        )
        self.decoder: Any = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options), num_decoder_layers, norm()
        )
        for p in self.parameters():
            if p.ndim > 1:
                xavier_uniform_(p)

    def forward(
        self,
        src: A,
        tgt: Array,
        src_mask: Array | None = None,
        tgt_mask: Array | None = None,
        memory_mask: Array | None = None,
        src_key_padding_mask: Array | None = None,
        tgt_key_padding_mask: Array | None = None,
        memory_key_padding_mask: Array | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """Map (S, N, d_model) and (T, N, d_model) to (T, N, d_model)."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        return self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: DTypeLike = None, backend: str | None = None) -> Tensor:
        """Return the mask that is 0 where a query may use a key, up to its own position, and -inf elsewhere."""
        position = arange(sz, backend=backend)
        mask: Tensor = where(position > position[:, None], -math.inf, full((sz, sz), 0.0, dtype, backend))
        return mask


__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]
