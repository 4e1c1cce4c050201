"""Tensors of examples, split in two and cut into batches: at random, yet the same for the same seed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..backends.registry import backend_named
from ..errors import DTypeError, ShapeError
from ..tensor import Tensor

Indices = npt.NDArray[np.int64]


def split(
    *tensors: Tensor, fraction: float = 0.8, seed: int = 0, stratify: Tensor | None = None
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Share out examples at random: each goes to one of two parts, with all that belongs to it.

    Parameters
    ----------
    tensors : Tensor (N, ...)
        One row an example; rows of the same index belong together.
    fraction : float
        The share of the first part; round(fraction * N) examples.
    seed : int
        The same seed gives the same parts.
    stratify : Tensor (N,), optional
        Classes of the examples: each is shared out by the same fraction, to within one example.

    Returns
    -------
    first, second : tuple of Tensor
        Copies, one for each of `tensors`, in random order.

    Raises
    ------
    ShapeError
        Lengths differ, or a part would be empty.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.arange(10)
    >>> (x_train, y_train), (x_test, y_test) = mf.data.split(x, x * x, fraction=0.7, seed=0)
    >>> len(x_train), len(x_test), bool((y_test == x_test * x_test).all())
    (7, 3, True)
    """
    n = common_length("split", tensors)
    first = round(fraction * n)
    if not 0 < first < n:
        raise ShapeError(f"split: fraction={fraction} of {n} examples leaves a part empty; expected both to have one")
    order = np.random.default_rng(seed).permutation(n)
    ranked = order
    if stratify is not None:
        common_length("split", (*tensors, stratify))
        ranked = order[np.argsort(stratify.numpy()[order], kind="stable")]
    # Along `ranked` the first part takes evenly spaced examples, `first` in all.
    is_first = np.empty(n, np.bool_)
    is_first[ranked] = np.diff(np.arange(n + 1) * first // n) == 1
    if stratify is None:
        is_first[order] = np.arange(n) < first
    parts = order[is_first[order]], order[~is_first[order]]
    one, other = (tuple(gather(x.numpy(), part, x) for x in tensors) for part in parts)
    return one, other


class Loader:
    """Batches of examples, in a new random order each time that it is walked.

    Parameters
    ----------
    tensors : Tensor (N, ...)
        One row an example; rows of the same index stay together.
    batch_size : int
        Examples in a batch; the last batch may have fewer.
    shuffle : bool
        Whether the order is random; else it is that of the tensors.
    seed : int
        The order of epoch e follows from (seed, e) alone.
    drop_last : bool
        Whether a last batch of fewer examples is left out.

    Attributes
    ----------
    epoch : int
        How often it was walked; set it to repeat an epoch, or to go on where training stopped.

    Raises
    ------
    ShapeError
        Lengths differ, or `batch_size` is not at least 1.

    Notes
    -----
    A batch is copied, row by row, into memory of the pool: when the one before is let go, the next lies in its place.

    Examples
    --------
    >>> import minifuse as mf
    >>> loader = mf.data.Loader(mf.arange(5), mf.arange(5) * 10, batch_size=2, shuffle=False)
    >>> len(loader)
    3
    >>> for x, y in loader:
    ...     print(x.tolist(), y.tolist())
    [0, 1] [0, 10]
    [2, 3] [20, 30]
    [4] [40]
    """

    def __init__(
        self, *tensors: Tensor, batch_size: int = 64, shuffle: bool = True, seed: int = 0, drop_last: bool = False
    ) -> None:
        if batch_size < 1:
            raise ShapeError(f"Loader: batch_size is {batch_size}, expected at least 1 example")
        self.length = common_length("Loader", tensors)
        self.tensors, self.batch_size, self.shuffle, self.seed, self.drop_last = (
            tensors,
            batch_size,
            shuffle,
            seed,
            drop_last,
        )
        self.epoch = 0

    def __len__(self) -> int:
        """The number of batches."""
        whole, rest = divmod(self.length, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        order, arrays = self.order(self.epoch), [x.numpy() for x in self.tensors]
        self.epoch += 1
        for k in range(len(self)):
            rows = order[k * self.batch_size : (k + 1) * self.batch_size]
            yield tuple(gather(array, rows, x) for array, x in zip(arrays, self.tensors, strict=True))

    def order(self, epoch: int) -> Indices:
        """The indices of all examples as they come in an epoch."""
        if not self.shuffle:
            return np.arange(self.length)
        return np.random.default_rng([self.seed, epoch]).permutation(self.length)


def gather(array: npt.NDArray[Any], rows: Indices, like: Tensor) -> Tensor:
    """Rows of an array as a tensor of the dtype and on the backend of another."""
    backend = backend_named(like.backend)
    if not backend.is_host:
        return Tensor.from_numpy(array.take(rows, 0), backend)
    result = Tensor.empty((len(rows), *array.shape[1:]), like.dtype, backend)
    array.take(rows, 0, result.numpy(), "clip")  # all are in range, and "clip" needs no buffer in between
    return result


def common_length(name: str, tensors: tuple[Tensor, ...]) -> int:
    """The number of examples, the same in all tensors."""
    for x in tensors:
        if not isinstance(x, Tensor):
            raise DTypeError(f"{name}: expected tensors, got {type(x).__name__}; wrap it in mf.tensor or mf.from_numpy")
    lengths = [x.shape[0] if x.shape else None for x in tensors]
    if not lengths or None in lengths or len(set(lengths)) > 1:
        shapes = ", ".join(str(x.shape) for x in tensors) or "none"
        raise ShapeError(f"{name}: got tensors of shapes {shapes}, expected at least one, and the same first size in all")
    return int(lengths[0] or 0)
