"""Tensors of examples, shared out in two parts and brought to one scale: at random, yet the same for the same seed."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.dtypes import BY_NUMPY
from ..core.errors import DTypeError, ShapeError
from ..core.layout import row_major
from ..runtime.memory_pool import allocate, as_array, round_to_size_class
from ..tensors.tensor import Tensor

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
    one, other = (tuple(Tensor.from_numpy(gather(x.numpy(), part), x.spec.backend) for x in tensors) for part in parts)
    return one, other


def standardize(train: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Bring each feature to mean 0 and standard deviation 1, as found in the first tensor.

    Parameters
    ----------
    train : Tensor of floats (N, ...)
        The examples that mean and deviation are taken from.
    others : Tensor of floats (M, ...)
        More examples of the same features, held-out ones say, which are shifted and scaled as the first.

    Returns
    -------
    tuple of Tensor
        New tensors, one for each.

    Raises
    ------
    DTypeError
        Something that is no tensor of floats.
    ShapeError
        No examples, or features of another shape.

    Notes
    -----
    A feature that is the same in all examples is only shifted. Mean and deviation are computed in float64.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.data.standardize(mf.tensor([[0.0, 5.0], [2.0, 5.0]]), mf.tensor([[3.0, 6.0]]))
    (tensor([[-1.,  0.],
            [ 1.,  0.]]), tensor([[2., 1.]]))
    """
    for x in (train, *others):
        common_length("standardize", (x,))
        if not x.dtype.is_float:
            raise DTypeError(f"standardize: got a tensor of {x.dtype}, expected floats; convert it, x.to(mf.float32)")
        if x.shape[1:] != train.shape[1:]:
            raise ShapeError(f"standardize: got features of shapes {train.shape[1:]} and {x.shape[1:]}, expected the same")
    if not len(train):
        raise ShapeError("standardize: got no examples, expected one at least to take mean and deviation from")
    known = train.numpy().astype(np.float64)
    mean, deviation = known.mean(0), known.std(0)
    deviation = np.where(deviation > 0, deviation, 1)
    scaled = [((x.numpy() - mean) / deviation).astype(x.dtype.numpy) for x in (train, *others)]
    return tuple(Tensor.from_numpy(array, x.spec.backend) for array, x in zip(scaled, (train, *others), strict=True))


def gather(array: npt.NDArray[Any], rows: Indices) -> npt.NDArray[Any]:
    """Rows of an array, copied one after another into memory of the pool."""
    layout = row_major((len(rows), *array.shape[1:]))
    buffer = allocate(round_to_size_class(layout.size * array.dtype.itemsize))
    result = as_array(buffer, buffer.address, BY_NUMPY[array.dtype], layout)
    if array.flags.c_contiguous:
        array.take(rows, 0, result, "clip")  # all are in range, and "clip" needs no buffer in between
    else:
        result[...] = array[rows]  # `take` would copy all of the array first
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
