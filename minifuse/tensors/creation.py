"""Create tensors from data, or filled with a number."""

import math
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ..backends.registry import backend_of_device, get_backend
from ..compiler.tensor_meta import TensorMeta
from ..core.dispatch import active_tracer
from ..core.dtypes import (
    BY_NUMPY,
    BY_PYTHON,
    DType,
    NumpyArray,
    as_dtype,
    as_number,
    bool_,
    float32,
    int64,
    weak_type_of,
)
from ..core.errors import DTypeError, ShapeError
from ..core.indexing import ShapeLike, shape_of
from .tensor import Tensor, to_array

DTypeLike = DType | str | type | None

DTYPE_OF_KIND = {"f": float32, "i": int64, "b": bool_}  # dtypes of Python numbers
DLPACK_CUDA = 2  # the device type of CUDA in DLPack


def backend_of(backend: str | None, device: object) -> str | None:
    """Return the name of the backend that a device of PyTorch stands for: "cpu", "cuda" or "cuda:1"; or the given name."""
    return backend if device is None else backend_of_device(device)


def tensor(
    data: npt.ArrayLike,
    dtype: DTypeLike = None,
    backend: str | None = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Copy data into a new tensor.

    Parameters
    ----------
    data : number, nested lists, array or Tensor
        Python's floats become float32, ints int64, bools bool; arrays keep their dtype.
    dtype : DType, str or type, optional
        The element type.
    backend : str, optional
        The backend that stores the tensor. Default: the default backend.
    requires_grad : bool
        Compute a gradient for the tensor in `backward`.

    Returns
    -------
    Tensor
        Contiguous, with the shape of the data.

    Raises
    ------
    ShapeError
        Nested lists have different lengths.
    DTypeError
        Elements are not numbers, or the dtype is not supported.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([[1, 2], [3, 4]], dtype="float32")
    >>> x @ x
    tensor([[ 7., 10.],
            [15., 22.]])
    """
    backend = backend_of(backend, device)
    if isinstance(data, Tensor) and active_tracer() is not None:
        result: Tensor = data.detach().clone() if dtype is None else data.detach().to(dtype).clone()
        return result.requires_grad_() if requires_grad else result
    array = to_array(data)
    if array.dtype.kind not in "biuf":
        raise unsupported_data(array)
    is_array = isinstance(data, np.ndarray | np.generic | Tensor)
    default_dtype = BY_NUMPY.get(array.dtype) if is_array else DTYPE_OF_KIND.get(array.dtype.kind)
    target = default_dtype if dtype is None else as_dtype(dtype)
    if target is None:
        raise unsupported_data(array)
    return wrap_array(convert_array(array, target), backend, requires_grad)


def convert_array(array: NumpyArray, dtype: DType) -> NumpyArray:
    """Return a contiguous copy with another element type. Raise a DTypeError if an integer type cannot represent a value."""
    if dtype.is_integer and array.dtype.kind in "iuf" and array.dtype != dtype.numpy:
        limits = np.iinfo(dtype.numpy)
        native = array.dtype.newbyteorder("=")  # NumPy 2.0 crashes if it compares others with an integer out of their range
        exact: npt.NDArray[np.number] = array.astype(np.float64 if native.kind == "f" else native, copy=False)
        is_inside = (exact >= limits.min) & (exact < int(limits.max) + 1)
        if not is_inside.all():
            raise DTypeError(f"tensor: {array[~is_inside].flat[0]} does not fit {dtype}; use a larger type, or a float type")
    return array.astype(dtype.numpy, order="C")


def unsupported_data(array: NumpyArray) -> DTypeError:
    """Return the error for data of an unsupported dtype."""
    if array.dtype == object and any(isinstance(x, int) and abs(x) >> 63 for x in array.flat):
        return DTypeError("tensor: an integer does not fit int64; use a float type")
    is_number = array.dtype.kind in "biuf"
    advice = "convert it with array.astype(...), or pass dtype=" if is_number else "expected real numbers"
    return DTypeError(f"tensor: data of NumPy dtype {array.dtype} (shape {array.shape}) is not supported; {advice}")


def tracer_for(backend: str | None) -> Any:
    """Return the tracer that records new tensors, or None. Raise a BackendError if the named backend is not the tracer's."""
    tracer = active_tracer()
    if tracer is not None:
        tracer.check_backend(None if backend is None else get_backend(backend))
    return tracer


def wrap_array(array: NumpyArray, backend: str | None, requires_grad: bool) -> Tensor:
    """Return a tensor over a new array; inside a traced function, a constant of its graph."""
    if (tracer := tracer_for(backend)) is not None:
        traced: Tensor = tracer.constant(array)
        return traced.detach().requires_grad_() if requires_grad else traced
    result = Tensor.from_numpy(array, get_backend(backend))
    return result.requires_grad_() if requires_grad else result


def from_numpy(array: NumpyArray, backend: str | None = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor over the memory of an array, without a copy: writing to one changes the other.

    Raises
    ------
    DTypeError
        The dtype of the array is not one of minifuse.
    ViewError
        A stride is not a multiple of the element size.

    Examples
    --------
    >>> import minifuse as mf, numpy as np
    >>> a = np.zeros(3, np.float32)
    >>> x = mf.from_numpy(a[::-1])
    >>> a[0] = 5
    >>> x
    tensor([0., 0., 5.])
    """
    if not isinstance(array, np.ndarray):
        raise DTypeError(f"from_numpy: expected a NumPy array, got {type(array).__name__}; use mf.tensor")
    return wrap_array(array, backend, requires_grad)


def from_dlpack(source: Any, backend: str | None = None) -> Tensor:
    """Return a tensor over the memory of any object that supports DLPack, without a copy: on the CPU, or on a GPU.

    An array of CuPy, or a tensor of torch on a GPU, becomes a tensor on the backend of that GPU. An object with
    `__cuda_array_interface__` is accepted, too.

    Notes
    -----
    On the CPU, NumPy reads the memory. NumPy before 2.2.5 treats memory from DLPack as read-only: write to `x.clone()`.

    Examples
    --------
    >>> import minifuse as mf, numpy as np
    >>> mf.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    is_on_gpu = hasattr(source, "__dlpack_device__") and source.__dlpack_device__()[0] == DLPACK_CUDA
    if is_on_gpu or hasattr(source, "__cuda_array_interface__"):
        from ..backends.cuda.device.dlpack import import_array

        buffer, dtype, layout, index = import_array(source)
        gpu = get_backend(f"cuda:{index}")
        y = Tensor(buffer, buffer.address - layout.span()[0] * dtype.itemsize, TensorMeta(layout, dtype, gpu, False))
        return y if backend is None else y.to(backend=backend)
    if not hasattr(source, "__dlpack__"):
        raise DTypeError(f"from_dlpack: expected an object that supports DLPack, got {type(source).__name__}; use mf.tensor")
    return wrap_array(np.from_dlpack(source), backend, False)


def full(
    shape: ShapeLike,
    value: float,
    dtype: DTypeLike = None,
    backend: str | None = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Return a tensor filled with one number. Default dtype: that of `mf.tensor(value)`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    backend = backend_of(backend, device)
    np_dtype = value.dtype if isinstance(value, np.generic | np.ndarray) else None
    (value,) = as_numbers("full", value)
    target = as_dtype(dtype if dtype is not None else np_dtype if np_dtype is not None else BY_PYTHON[weak_type_of(value)])
    if (tracer := tracer_for(backend)) is not None:
        result: Tensor = tracer.full(shape_of(shape), value, target)
    else:
        result = Tensor.full(shape_of(shape), value, target, get_backend(backend))
    return result.requires_grad_() if requires_grad else result


def zeros(
    *shape: ShapeLike,
    dtype: DTypeLike = None,
    backend: str | None = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Return a tensor of zeros. Default dtype: float32.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    backend = backend_of(backend, device)
    return full(shape_of(shape), 0, dtype or float32, backend, requires_grad)


def ones(
    *shape: ShapeLike,
    dtype: DTypeLike = None,
    backend: str | None = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Return a tensor of ones. Default dtype: float32.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.ones(3, dtype=int)
    tensor([1, 1, 1])
    """
    backend = backend_of(backend, device)
    return full(shape_of(shape), 1, dtype or float32, backend, requires_grad)


def as_numbers(name: str, *values: object) -> list[Any]:
    """Convert values to Python numbers. Raise a DTypeError for anything but real numbers."""
    result = [as_number(x) for x in values]
    for x in result:
        if not isinstance(x, Real):
            raise DTypeError(f"{name}: expected real numbers, got {type(x).__name__} ({x!r:.40})")
    return result


def check_tensor(x: object) -> None:
    """Raise a DTypeError if an object is not a tensor."""
    if not isinstance(x, Tensor):
        raise DTypeError(f"expected a tensor, got {type(x).__name__}; use mf.tensor")


def full_like(x: Tensor, value: float, dtype: DTypeLike, backend: str | None, requires_grad: bool) -> Tensor:
    """Return a tensor filled with one number, with the shape of `x`, and its dtype and backend by default."""
    check_tensor(x)
    return full(x.shape, value, dtype or x.dtype, backend or x.backend, requires_grad)


def zeros_like(
    x: Tensor, dtype: DTypeLike = None, backend: str | None = None, requires_grad: bool = False, device: object = None
) -> Tensor:
    """Return a tensor of zeros with the shape of `x`, and its dtype and backend by default.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.zeros_like(mf.tensor([1, 2]))
    tensor([0, 0])
    """
    backend = backend_of(backend, device)
    return full_like(x, 0, dtype, backend, requires_grad)


def ones_like(
    x: Tensor, dtype: DTypeLike = None, backend: str | None = None, requires_grad: bool = False, device: object = None
) -> Tensor:
    """Return a tensor of ones with the shape of `x`, and its dtype and backend by default.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.ones_like(mf.tensor([1.5, 2.5]))
    tensor([1., 1.])
    """
    backend = backend_of(backend, device)
    return full_like(x, 1, dtype, backend, requires_grad)


def empty_like(
    x: Tensor, dtype: DTypeLike = None, backend: str | None = None, requires_grad: bool = False, device: object = None
) -> Tensor:
    """Return an uninitialized tensor with the shape of `x`, and its dtype and backend by default.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.empty_like(mf.zeros(2, 3)).shape
    (2, 3)
    """
    backend = backend_of(backend, device)
    check_tensor(x)
    if active_tracer() is not None:  # a graph has no uninitialized values
        return zeros_like(x, dtype, backend, requires_grad)
    result = Tensor.empty(x.shape, as_dtype(dtype or x.dtype), get_backend(backend or x.backend))
    return result.requires_grad_() if requires_grad else result


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike = None,
    backend: str | None = None,
    device: object = None,
) -> Tensor:
    """Return the numbers start, start + step, ... below stop. With one argument, start is 0.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.arange(3), mf.arange(0, 1, 0.25)
    (tensor([0, 1, 2]), tensor([0.  , 0.25, 0.5 , 0.75]))
    """
    backend = backend_of(backend, device)
    start, stop = (0, start) if stop is None else (start, stop)
    start, stop, step = as_numbers("arange", start, stop, step)
    if step == 0 or not all(map(math.isfinite, (start, stop, step))):
        raise ShapeError(
            f"arange: start {start}, stop {stop}, step {step} have no finite number of elements; "
            "pass finite numbers and a step other than 0"
        )
    target = dtype or (float32 if any(isinstance(x, float) for x in (start, stop, step)) else int64)
    if (tracer := tracer_for(backend)) is not None:
        traced: Tensor = tracer.arange(start, stop, step, as_dtype(target))
        return traced
    return tensor(np.arange(start, stop, step), target, backend)
