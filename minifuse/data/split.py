"""Random train/test splits and standardization of tensors of examples; equal seeds result in equal splits."""

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
    """Split examples at random into two parts.

    Parameters
    ----------
    tensors : Tensor (N, ...)
        One row for each example. Rows of the same index stay together.
    fraction : float
        The fraction of examples in the first part: round(fraction * N) examples.
    seed : int
        Equal seeds result in equal parts.
    stratify : Tensor (N,), optional
        Classes of the examples: each class is split by the same fraction, to within one example.

    Returns
    -------
    first, second : tuple of Tensor
        Copies of the rows, one for each of `tensors`, in random order.

    Raises
    ------
    ShapeError
        The lengths differ, or a part would be empty.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.arange(10)
    >>> (x_train, y_train), (x_test, y_test) = mf.data.split(x, x * x, fraction=0.7, seed=0)
    >>> len(x_train), len(x_test), bool((y_test == x_test * x_test).all())
    (7, 3, True)
    """
    n = common_length("split", tensors)
    first_count = round(fraction * n)
    if not 0 < first_count < n:
        raise ShapeError(
            f"split: got fraction={fraction} of {n} examples, which leaves a part empty; choose another fraction"
        )
    order = np.random.default_rng(seed).permutation(n)
    ranked_examples = order
    if stratify is not None:
        common_length("split", (*tensors, stratify))
        ranked_examples = order[np.argsort(stratify.numpy()[order], kind="stable")]
    # The first part consists of `first_count` evenly spaced entries of `ranked_examples`.
    is_first = np.empty(n, np.bool_)
    is_first[ranked_examples] = np.diff(np.arange(n + 1) * first_count // n) == 1
    if stratify is None:
        is_first[order] = np.arange(n) < first_count
    parts = order[is_first[order]], order[~is_first[order]]
    first, second = (tuple(Tensor.from_numpy(gather(x.numpy(), part), x.meta.backend) for x in tensors) for part in parts)
    return first, second


def standardize(train: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Scale each feature so that it has mean 0 and standard deviation 1 in the first tensor.

    Parameters
    ----------
    train : Tensor of floats (N, ...)
        The examples from which mean and standard deviation are computed.
    others : Tensor of floats (M, ...)
        More examples of the same features, such as test data. They are shifted and scaled by the same numbers.

    Returns
    -------
    tuple of Tensor
        New tensors, one for each argument.

    Raises
    ------
    DTypeError
        An argument is not a tensor of floats.
    ShapeError
        There are no examples, or features have another shape.

    Notes
    -----
    A feature that is equal in all examples is only shifted. Mean and standard deviation are computed in float64.

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
            raise DTypeError(f"standardize: got dtype {x.dtype}, expected floats; write x.to(mf.float32)")
        if x.shape[1:] != train.shape[1:]:
            raise ShapeError(f"standardize: got features of shapes {train.shape[1:]} and {x.shape[1:]}, expected the same")
    if not len(train):
        raise ShapeError("standardize: got no examples, expected at least one in the first tensor")
    examples = train.numpy().astype(np.float64)
    mean, deviation = examples.mean(0), examples.std(0)
    deviation = np.where(deviation > 0, deviation, 1)
    scaled_arrays = [((x.numpy() - mean) / deviation).astype(x.dtype.numpy) for x in (train, *others)]
    return tuple(Tensor.from_numpy(array, x.meta.backend) for array, x in zip(scaled_arrays, (train, *others), strict=True))


def gather(array: np.ndarray, rows: Indices) -> np.ndarray:
    """Copy rows of an array into memory of the pool."""
    layout = row_major((len(rows), *array.shape[1:]))
    buffer = allocate(round_to_size_class(layout.size * array.dtype.itemsize))
    result = as_array(buffer, buffer.address, BY_NUMPY[array.dtype], layout)
    if array.flags.c_contiguous:
        array.take(rows, 0, result, "clip")  # all indices are valid, and "clip" needs no temporary buffer
    else:
        result[...] = array[rows]  # `take` would copy the whole array first
    return result


def common_length(name: str, tensors: tuple[Tensor, ...]) -> int:
    """Return the number of examples; raise ShapeError if it differs between tensors."""
    for x in tensors:
        if not isinstance(x, Tensor):
            raise DTypeError(f"{name}: expected tensors, got {type(x).__name__}; write mf.tensor(...) or mf.from_numpy(...)")
    lengths = [x.shape[0] if x.shape else None for x in tensors]
    if not lengths or None in lengths or len(set(lengths)) > 1:
        shapes = ", ".join(str(x.shape) for x in tensors) or "none"
        raise ShapeError(f"{name}: got tensors of shapes {shapes}, expected at least one, and the same first dim in all")
    return int(lengths[0] or 0)
