"""Copy and restore the arrays of a launch, so that it can run again from the same memory."""

from collections.abc import Iterator, Sequence

import numpy as np

from .arrays import DeviceArray, HostOrDevice


def array_arguments(arguments: Sequence[object]) -> Iterator[HostOrDevice]:
    """Yield the arrays among the arguments of a launch."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from array_arguments(argument)
        elif isinstance(argument, DeviceArray | np.ndarray):
            yield argument


def snapshot(arrays: Sequence[HostOrDevice]) -> list[np.ndarray]:
    """Copy the elements of the arrays, and the flags that record which of them are written."""
    return [part.copy() for array in arrays for part in array_parts(array)]


def restore(arrays: Sequence[HostOrDevice], copies: Sequence[np.ndarray]) -> None:
    """Restore the arrays from the copies, in place."""
    for part, saved in zip((part for array in arrays for part in array_parts(array)), copies, strict=True):
        part[...] = saved


def array_parts(array: HostOrDevice) -> tuple[np.ndarray, ...]:
    """Return the NumPy arrays of an argument."""
    return (array.data, array.written) if isinstance(array, DeviceArray) else (array,)
