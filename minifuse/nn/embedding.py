"""Embedding: look up a row of a table for each index, as a function and as a module. A lookup is one op, which fuses."""

from importlib import import_module
from typing import Any, Self

from ..core.dtypes import float32
from ..core.errors import IndexingError, ShapeError
from ..core.operators import detach, eq, where
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..ir.gather import Gather
from ..ir.index_checks import in_range, require_in_range, require_integer_index
from ..tensors.creation import DTypeLike, tensor
from ..tensors.random import generator
from ..tensors.tensor import Tensor
from .layers import apply
from .module import Module, Parameter


def embedding(
    index: Array, weight: A, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0
) -> A:
    """Look up the row of a table for each element of an index.

    Parameters
    ----------
    index : Tensor of int64 or int32, of any shape (...)
        Row numbers from 0 to V - 1. Negative numbers are not allowed.
    weight : Tensor of floats (V, D)
        The table.
    padding_idx : int, optional
        Number of a row that receives no gradient. A negative number counts from the end.
    max_norm, norm_type : float
        Rows that are looked up are scaled in place so that their norm is at most `max_norm`.

    Returns
    -------
    Tensor (..., D)

    Raises
    ------
    ShapeError
        The table is not 2-D.
    DTypeError
        The index is not a tensor of integers.
    IndexingError
        An index is outside 0 ... V - 1, or `padding_idx` is not a row. Inside a fused function, values are not known
        while tracing; there an index out of range results in NaN, and its gradient is dropped. Memory outside the table is
        never read.

    Notes
    -----
    A lookup fuses with the kernel that uses it: following elementwise ops, and row reductions such as layer norm, run in the
    same kernel. The gradient of a row is the sum of the gradients of all its lookups, computed without atomics and in a
    fixed order. On CPUs this takes one operation for each element of the result, and each thread computes some columns. On
    cuda, the threads of each table row read all N indices, which takes V * N * D short operations for D columns.

    Examples
    --------
    >>> import minifuse as mf
    >>> weight = mf.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> y = mf.nn.embedding(mf.tensor([1, 2, 1]), weight)
    >>> y.detach()
    tensor([[1., 2.],
            [3., 4.],
            [1., 2.]])
    >>> y.sum().backward()
    >>> weight.grad
    tensor([[0., 0.],
            [2., 2.],
            [1., 1.]])
    """
    if getattr(weight, "ndim", None) != 2:
        got = getattr(weight, "shape", type(weight).__name__)
        raise ShapeError(
            f"embedding: got a weight of shape {got}, expected (V, D): a row of D numbers for each of V indices"
        )
    require_integer_index("embedding", index)
    if max_norm is not None:
        require_in_range("embedding", index, weight.shape[0], 0)
        import_module(f"{__package__}.embedding_bag").limit_rows(weight, index, max_norm, norm_type)
    index = in_range("embedding", index, weight.shape[0], 0)
    if padding_idx is None:
        return apply(Gather(0), weight, index)
    padding_row = normalize_padding_idx(padding_idx, weight.shape[0])
    return apply(BoundFunction(_padded, (padding_row,)), weight, index)


def _padded(weight: Array, index: Array, padding_row: int) -> Array:
    y = Gather(0)(weight, index)
    is_padding = eq(index, padding_row).reshape(*index.shape, 1)
    return where(is_padding, detach(y), y)


def normalize_padding_idx(padding_idx: int, row_count: int) -> int:
    """Return `padding_idx` as a row number that is not negative."""
    if not -row_count <= padding_idx < row_count:
        raise IndexingError(
            f"embedding: got padding_idx={padding_idx} for {row_count} rows, expected {-row_count} to {row_count - 1}"
        )
    return padding_idx % row_count


class Embedding(Module):
    """A table of learned rows, looked up by index.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Number of rows, and elements of each row.
    padding_idx : int, optional
        Number of a row that is initialized to zeros and receives no gradient. A negative number counts from the end.
    max_norm, norm_type : float
        Rows that are looked up are scaled in place so that their norm is at most `max_norm`.
    dtype, backend
        Dtype and backend of the table. Default: float32 on the default backend.

    Attributes
    ----------
    weight : Parameter (num_embeddings, embedding_dim)

    Raises
    ------
    ShapeError
        A size is less than 1.
    IndexingError
        `padding_idx` is not a row; or, when called, an index is outside 0 ... num_embeddings - 1, see `embedding`.

    Notes
    -----
    The table is initialized with normally distributed numbers of mean 0 and variance 1, as in `torch.nn.Embedding`.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.Embedding(10, 3, padding_idx=0)
    >>> layer
    Embedding(10, 3, padding_idx=0)
    >>> layer(mf.tensor([[1, 2, 0, 0]])).shape
    (1, 4, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        if num_embeddings < 1 or embedding_dim < 1:
            raise ShapeError(
                f"Embedding: got num_embeddings={num_embeddings} and embedding_dim={embedding_dim}, expected at least 1 each"
            )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.padding_idx = None if padding_idx is None else normalize_padding_idx(padding_idx, num_embeddings)
        table = generator().standard_normal((num_embeddings, embedding_dim))
        if self.padding_idx is not None:
            table[self.padding_idx] = 0
        self.weight = Parameter(tensor(table, dtype or float32, backend))

    def forward(self, index: Array) -> Tensor:
        """Map an index (...) to (..., embedding_dim)."""
        return embedding(index, self.weight, self.padding_idx, self.max_norm, self.norm_type)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Self:
        """Return a layer with a given table (V, D), which is not trained if `freeze`."""
        rows, columns = embeddings.shape
        layer = cls(rows, columns, **options)
        layer.weight = Parameter(embeddings, not freeze)
        return layer

    def extra_repr(self) -> str:
        """Return the sizes."""
        padding_row = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding_row}"
