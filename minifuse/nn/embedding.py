"""Embedding: a row of a table for each index, as a function and as a module. It is one captured call, and fuses."""

from typing import Any

from ..core.dtypes import float32
from ..core.errors import IndexingError, ShapeError
from ..core.operators import detach, where
from ..ir.array_functions import BoundFunction
from ..ir.gather import Gather, require_in_range, require_integer_index
from ..tensors.creation import DTypeLike, generator, tensor
from .layers import apply
from .module import Module, Parameter


def embedding(index: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """The row of a table that each element of an index names.

    Parameters
    ----------
    index : Tensor of int64 or int32, of any shape (...)
        Rows by number, from 0 to V - 1; negative ones do not count from the end.
    weight : Tensor of floats (V, D)
        The table.
    padding_idx : int, optional
        A row that receives no gradient; here a negative number counts from the end.

    Returns
    -------
    Tensor (..., D)

    Raises
    ------
    ShapeError
        The table does not have two dims.
    DTypeError
        The index is no tensor of integers.
    IndexingError
        A number is not one of 0 ... V - 1, or `padding_idx` is no row. While a function is captured there are no values to
        look at: there such a row is NaN, and no row receives its gradient. Nothing outside of the table is ever read.

    Notes
    -----
    Each row is read where it is used, by the kernel that uses it: what follows element by element, and what folds rows, such
    as a layer norm, is one kernel with it. The gradient of a row adds up all that arrived at its number, without atomics, in
    an order that is always the same. On CPUs that takes as many steps as the result has elements, of which each thread does
    some columns; on cuda each row of the table looks at all N numbers, which for D columns takes V * N * D short steps.

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
            f"embedding: got a weight of shape {got}, expected (V, D), a row of D numbers for each of V indices"
        )
    require_integer_index("embedding", index)
    require_in_range("embedding", index, weight.shape[0], 0)
    if padding_idx is None:
        return apply(Gather(0), weight, index)
    padding = padding_of(padding_idx, weight.shape[0])
    return apply(BoundFunction(_padded, (padding,)), weight, index)


def _padded(weight: Any, index: Any, padding: int) -> Any:
    y = Gather(0)(weight, index)
    is_padding = (index == padding).reshape(*index.shape, 1)
    return where(is_padding, detach(y), y)


def padding_of(padding_idx: int, rows: int) -> int:
    """The row of padding, counted from the front."""
    if not -rows <= padding_idx < rows:
        raise IndexingError(f"embedding: padding_idx {padding_idx} is no row of {rows}; expected {-rows} to {rows - 1}")
    return padding_idx % rows


class Embedding(Module):
    """A table of rows that are learned, looked up by index.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Rows of the table, and numbers in each.
    padding_idx : int, optional
        A row that starts as zeros and receives no gradient; a negative number counts from the end.
    dtype, backend
        Of the table; float32 on the default backend if left out.

    Attributes
    ----------
    weight : Parameter (num_embeddings, embedding_dim)

    Raises
    ------
    ShapeError
        A size is not at least 1.
    IndexingError
        `padding_idx` is no row; when called, an index is not one of 0 ... num_embeddings - 1, see `embedding`.

    Notes
    -----
    The table starts with normally distributed numbers of mean 0 and variance 1, as that of `torch.nn.Embedding`.

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
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        if num_embeddings < 1 or embedding_dim < 1:
            raise ShapeError(
                f"Embedding: got num_embeddings={num_embeddings} and embedding_dim={embedding_dim}, expected at least 1 each"
            )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_of(padding_idx, num_embeddings)
        table = generator().standard_normal((num_embeddings, embedding_dim))
        if self.padding_idx is not None:
            table[self.padding_idx] = 0
        self.weight = Parameter(tensor(table, dtype or float32, backend))

    def forward(self, index: Any) -> Any:
        """(...) of integers -> (..., embedding_dim)."""
        return embedding(index, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """The sizes."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
