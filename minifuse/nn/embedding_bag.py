"""EmbeddingBag: the sum, mean or maximum of several rows of a table, as a function and as a module."""

from typing import Any, Literal

from ..core.dispatch import no_grad
from ..core.errors import DTypeError, ShapeError
from ..core.operators import add, maximum, where
from ..functions.neural import vector_norm
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..ir.gather import Gather, Scatter
from ..ir.index_checks import require_in_range, require_integer_index
from ..tensors.creation import DTypeLike
from ..tensors.tensor import Tensor
from .embedding import Embedding, normalize_padding_idx
from .function_layers import one_call
from .layers import require_tensor

__all__ = ["EmbeddingBag", "embedding_bag"]
Mode = Literal["sum", "mean", "max"]


def embedding_bag(
    x: Array,
    weight: A,
    offsets: Array | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: Mode = "mean",
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> A:
    """Look up the rows of a table for bags of indices, and reduce the rows of each bag.

    Parameters
    ----------
    x : Tensor of int64 or int32 (B, N), a bag in each row; or (N,), all bags one after the other
    weight : Tensor of floats (V, D)
        The table.
    offsets : Tensor of integers (B,), optional
        Where each bag starts, if x is 1-D. With `include_last_offset`, a last entry has the end.
    max_norm, norm_type : float
        Rows that are looked up are scaled in place so that their norm is at most `max_norm`.
    mode : {"mean", "sum", "max"}
        How the rows of a bag are reduced. An empty bag is 0.
    per_sample_weights : Tensor of floats of the shape of x, optional
        Factors of the rows, if the mode is "sum".
    padding_idx : int, optional
        Number of a row that is left out of its bags.
    scale_grad_by_freq, sparse
        Must be False.

    Returns
    -------
    Tensor (B, D)

    Examples
    --------
    >>> import minifuse as mf
    >>> table = mf.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> mf.nn.functional.embedding_bag(mf.tensor([0, 1, 2]), table, offsets=mf.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [5., 6.]])
    """
    if scale_grad_by_freq or sparse:
        raise ValueError("embedding_bag: scale_grad_by_freq and sparse are not supported; leave them out")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f'embedding_bag: got mode={mode!r}, expected "sum", "mean" or "max"')
    if per_sample_weights is not None and mode != "sum":
        raise ValueError(f'embedding_bag: got per_sample_weights and mode={mode!r}; use mode="sum"')
    require_tensor("embedding_bag", weight)
    require_integer_index("embedding_bag", x)
    require_in_range("embedding_bag", x, weight.shape[0], 0)
    if (offsets is None) != (x.ndim == 2) or x.ndim > 2:
        raise ShapeError(
            f"embedding_bag: got indices of shape {x.shape} and {'no offsets' if offsets is None else 'offsets'}, expected "
            "(B, N), or (N,) with offsets"
        )
    if max_norm is not None:
        limit_rows(weight, x, max_norm, norm_type)
    row = None if padding_idx is None else normalize_padding_idx(padding_idx, weight.shape[0])
    if offsets is None:
        bags: A = bag_rows(weight, x, per_sample_weights, mode, row)
        return bags
    y: A = bag_slices(weight, x, offsets, per_sample_weights, mode, include_last_offset, row)
    return y


def limit_rows(weight: Array, index: Array, max_norm: float, norm_type: float) -> None:
    """Scale rows of a table in place, those at the indices, so that their norm is at most `max_norm`."""
    if not isinstance(weight, Tensor):
        raise DTypeError(f"embedding: max_norm changes the table, got {type(weight).__name__}, expected a tensor")
    with no_grad():
        table = weight.detach()
        table.copy_(table.apply(BoundFunction(_limited, (norm_type,)), table, index.reshape(-1), max_norm))


def _limited(weight: Array, index: Array, max_norm: Array, norm_type: float) -> Array:
    ones = where(index >= 0, 1.0, 0.0).to(weight.dtype)
    is_used = Scatter(add, 0, weight.shape[0])(ones, index).unsqueeze(1) > 0
    norm = vector_norm(weight, norm_type, 1, True)
    limited: Array = where(is_used & (norm > max_norm), weight * (max_norm / (norm + 1e-7)), weight)
    return limited


@one_call
def bag_rows(weight: A, index: Array, factors: Array | None, mode: Mode, padding_row: int | None) -> Any:
    """Reduce the rows of bags of equal size."""
    rows = Gather(0)(weight, index)  # (B, N, D)
    is_used = (index >= 0 if padding_row is None else index != padding_row).unsqueeze(-1)
    return reduce_bags(rows if factors is None else rows * factors.unsqueeze(-1), is_used, 1, mode)


@one_call
def bag_slices(
    weight: A, index: Array, offsets: Array, factors: Array | None, mode: Mode, has_end: bool, padding_row: int | None
) -> Any:
    """Reduce the rows of bags that start at offsets."""
    rows = Gather(0)(weight, index)  # (N, D)
    rows = rows if factors is None else rows * factors.unsqueeze(-1)
    bag_count = offsets.shape[0] - has_end
    bag = (offsets[:bag_count] <= weight.positions(index.shape[0]).unsqueeze(1)).to("int64").sum(1) - 1  # of each index
    is_used = bag >= 0 if padding_row is None else index != padding_row
    if mode == "max":
        is_member = (bag == weight.positions(bag_count).unsqueeze(1)) & is_used  # (B, N)
        return reduce_bags(rows.unsqueeze(0), is_member.unsqueeze(-1), 1, mode)
    scatter = Scatter(add, 0, bag_count)
    total = scatter(where(is_used.unsqueeze(-1), rows, 0), bag)
    if mode == "sum":
        return total
    return total / maximum(scatter(where(is_used, 1.0, 0.0).to(rows.dtype), bag), 1).unsqueeze(-1)


def reduce_bags(rows: Array, is_used: Array, dim: int, mode: Mode) -> Any:
    """Reduce along a dim the rows that are used. The result for none is 0."""
    if mode == "max":
        largest = where(is_used, rows, -float("inf")).max(dim)
        return where(is_used.any(dim), largest, 0)
    total = where(is_used, rows, 0).sum(dim)
    return total if mode == "sum" else total / maximum(is_used.to(rows.dtype).sum(dim), 1)


class EmbeddingBag(Embedding):
    """`embedding_bag` as a module.

    Attributes
    ----------
    weight : Parameter (num_embeddings, embedding_dim)

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.EmbeddingBag(10, 3, mode="sum")
    >>> layer, layer(mf.tensor([[1, 2], [4, 4]])).shape
    (EmbeddingBag(10, 3, mode='sum'), (2, 3))
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: Mode = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, dtype=dtype, backend=backend)
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, x: Array, offsets: Array | None = None, per_sample_weights: Array | None = None) -> Tensor:
        """Map bags of indices to (B, embedding_dim)."""
        return embedding_bag(
            x,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Return the sizes and the mode."""
        return f"{super().extra_repr()}, mode={self.mode!r}"
