"""The Tensor class: metadata, an address in a buffer, and the recorded call that computed it.

Methods that tensors share with graph nodes are in `ir.array_methods`. This file has the methods that need memory: views
of one buffer, NumPy's and DLPack's protocols, and in-place operations. `backward` and hooks are in `grad_methods`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..backends.base import Backend
from ..backends.registry import backend_of_device, backends, get_backend
from ..compiler.plan import Plan, call
from ..compiler.tensor_meta import TensorMeta
from ..core import dispatch
from ..core.dtypes import BY_NAME, BY_NUMPY, DType, Number, NumpyArray, as_dtype, weak_type_of
from ..core.errors import BackendError, DTypeError, IndexingError, ShapeError, ViewError
from ..core.indexing import Shape, ShapeLike, infer_shape
from ..core.layout import row_major
from ..ir.array_functions import Copy, View
from ..runtime.memory_pool import MemoryBuffer, round_to_size_class
from .augmented_assignment import AUGMENTED_METHODS, as_operand, assign, store_at
from .grad_methods import GradMethods, no_gradient_error, non_leaf_error
from .mutation import store_in
from .representation import tensor_html, tensor_text
from .tape_nodes import ToBackward, ViewBackward

if TYPE_CHECKING:
    from ..core.shards import Shard

MAX_CACHED_VIEWS = 10_000  # entries of view_cache

ViewKey = tuple[View, TensorMeta, dispatch.RecordingState]
view_cache: dict[ViewKey, tuple[TensorMeta, int]] = {}  # -> metadata of the view, and its offset in bytes


class Tensor(GradMethods):
    """A strided array of numbers on a backend. It records how it was computed if a gradient is required.

    Create one with `mf.tensor`, `mf.zeros`, `mf.from_numpy` and similar functions. Operators and methods have the names
    and meanings of PyTorch.

    Attributes
    ----------
    shape, strides : tuple of int
        The size of each dim, and the distance between neighbors along it, in elements.
    offset : int
        The position of the first element in its storage, in elements.
    dtype : DType
        The element type.
    backend : str
        The name of the backend that stores the tensor and computes with it.
    requires_grad : bool
        True if `backward` computes a gradient for the tensor.
    grad : Tensor or None
        The sum of the gradients that `backward` has computed so far.
    """

    __slots__ = {
        "__weakref__": "Weak references to the tensor.",
        "_shard": "The shard of a larger tensor; unset for most tensors, see shards.py.",
        "reduced_from": "The input and the dim of x.max(dim) and x.min(dim), of which `indices` is computed.",
    }
    _shard: "Shard | None"

    def __init__(self, buffer: MemoryBuffer, address: int = 0, meta: TensorMeta | None = None) -> None:
        if meta is None:
            raise TypeError(
                "Tensor: a tensor is created by a function; write mf.tensor(data), or mf.empty(2, 3) for a shape"
            )
        self.buffer, self.address, self.meta = buffer, address, meta
        self.grad = self.grad_fn = None

    apply = staticmethod(call)  # type: ignore[assignment]  # not wrapped in a method, since every operation calls it

    @classmethod
    def from_numpy(cls, array: NumpyArray, backend: Backend) -> "Tensor":
        """Return a tensor over the memory of an array; on a device, over a copy."""
        dtype = BY_NUMPY.get(array.dtype)
        if dtype is None:
            names = ", ".join(BY_NAME)
            raise DTypeError(
                f"tensor: got an array of dtype {array.dtype}, expected one of {names}; convert it with array.astype(...)"
            )
        if any(s % dtype.itemsize for s in array.strides) or not array.flags.aligned:
            raise ViewError(
                f"from_numpy: strides {array.strides} (bytes) are not multiples of the size of {dtype}; pass array.copy()"
            )
        buffer, address, layout = backend.from_numpy(array)
        return cls(buffer, address, TensorMeta(layout, dtype, backend, False))

    @classmethod
    def empty(cls, shape: Shape, dtype: DType, backend: Backend) -> "Tensor":
        """Return a tensor with uninitialized elements."""
        layout = row_major(shape)
        buffer = backend.allocate(round_to_size_class(layout.size * dtype.itemsize))
        return cls(buffer, buffer.address, TensorMeta(layout, dtype, backend, False))

    @classmethod
    def full(cls, shape: Shape, value: Number, dtype: DType, backend: Backend) -> "Tensor":
        """Return a tensor filled with one number. Raise DTypeError if it does not fit an integer type."""
        if dtype.is_integer and not dtype.holds(value):
            raise DTypeError(f"full: {value} does not fit {dtype}; use a larger type, or a float type")
        result = cls.empty(shape, dtype, backend)
        backend.fill(result.buffer, result.address, dtype, result.meta.layout, value)
        return result

    def asarray_like(self, data: npt.ArrayLike) -> "Tensor":
        """Convert an array, or nested lists of numbers, to a tensor on the same backend."""
        array = to_array(data)
        if array.dtype.kind not in "biuf" and array.ndim == 0:
            weak_type_of(data)  # raises an error that names the type
        return Tensor.from_numpy(array, self.meta.backend)

    @property
    def shape(self) -> Shape:
        """Return the size of each dim."""
        return self.meta.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Return the distance between neighbors along each dim, in elements."""
        return self.meta.layout.strides

    @property
    def offset(self) -> int:
        """Return the position of the element at index 0, 0, ... in its storage, in elements."""
        return (self.address - self.buffer.address) // self.dtype.itemsize

    @property
    def dtype(self) -> DType:
        """Return the element type."""
        return self.meta.dtype

    @property
    def backend(self) -> str:
        """Return the name of the backend."""
        return self.meta.backend.name

    @property
    def requires_grad(self) -> bool:
        """Return True if `backward` computes a gradient for this tensor. You may set it on leaves."""
        return self.meta.requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if flag and not self.dtype.is_float:
            raise no_gradient_error(self.dtype)
        if self.grad_fn is not None and not flag:
            raise non_leaf_error()
        if bool(flag) != self.requires_grad and (tracer := dispatch.active_tracer()) is not None:
            tracer.lift(self).requires_grad = flag  # raises an error, since the tensor is from outside the function
        self.meta = TensorMeta(self.meta.layout, self.dtype, self.meta.backend, bool(flag))

    # Views of the same memory.

    def apply_view(self, view: View) -> "Tensor":
        """Return a view of the same memory. It needs no kernel and no plan, so a thousand different slices are cheap."""
        key = view, self.meta, dispatch.mode.is_recording
        cached = view_cache.get(key)
        if cached is None:
            if (tracer := dispatch.active_tracer()) is not None:
                traced: Tensor = tracer.view(view, self)
                return traced
            try:
                layout = view.layout(self.meta.layout)
            except ViewError:
                copied: Tensor = call(view, self)  # a kernel copies the elements
                return copied
            if len(view_cache) > MAX_CACHED_VIEWS:
                view_cache.clear()
            requires_grad = self.requires_grad and bool(dispatch.mode.is_recording)
            meta = TensorMeta(layout.without_offset(), self.dtype, self.meta.backend, requires_grad)
            cached = view_cache[key] = meta, layout.offset * self.dtype.itemsize
        meta, offset = cached
        y = Tensor(self.buffer, self.address + offset, meta)
        if meta.requires_grad:
            y.grad_fn = ViewBackward(view, self), 0
        return y

    def view(self, *shape: ShapeLike) -> "Tensor":
        """Return a view with another shape of the same memory. Raise a ViewError if no strides describe it."""
        view = View("reshape", infer_shape(self.size, shape))
        view.layout(self.meta.layout)  # raises a ViewError with the reason
        return self.apply_view(view)

    def is_contiguous(self) -> bool:
        """Return True if the elements are in row-major order without gaps."""
        return self.meta.layout.is_contiguous

    def contiguous(self) -> "Tensor":
        """Return the tensor itself if it is contiguous, else a contiguous copy."""
        return self if self.is_contiguous() else self.clone()

    def clone(self) -> "Tensor":
        """Return a contiguous copy; gradients flow through it."""
        y: Tensor = call(Copy(), self)
        return y

    def detach(self) -> "Tensor":
        """Return a tensor of the same memory that is not part of the autograd graph."""
        if (tracer := dispatch.active_tracer()) is not None:
            traced: Tensor = tracer.detach_tensor(self)
            return traced
        return Tensor(self.buffer, self.address, TensorMeta(self.meta.layout, self.dtype, self.meta.backend, False))

    def to(
        self,
        *targets: DType | str | type,
        dtype: DType | str | type | None = None,
        backend: str | None = None,
        device: object = None,
        non_blocking: bool = False,
    ) -> Any:
        """Convert to another element type, move to another backend, or both: x.to(mf.float64), x.to("python").

        Parameters
        ----------
        targets
            A dtype or its name, or the name of a backend or of a device, in any order; also by keyword.
        non_blocking
            PyTorch's. No effect: a copy is complete when the call returns.

        Returns
        -------
        Tensor
            The tensor itself if nothing changes, else a copy. Gradients flow through it.
        """
        backend = backend if device is None else backend_of_device(device)
        for x in targets:
            if isinstance(x, str) and x not in BY_NAME:
                if x not in (*backends(), "cpu") and x.partition(":")[0] != "cuda":
                    names = f"{', '.join(BY_NAME)}, or a backend: {', '.join(backends())}"
                    raise BackendError(f"to: got {x!r}, expected a dtype: {names}")
                backend = x
            else:
                dtype = x
        y = self if dtype is None else super().to(as_dtype(dtype))
        target = self.meta.backend if backend is None else get_backend(backend)
        if target is self.meta.backend:
            return y
        requires_grad = y.requires_grad and dispatch.mode.is_recording
        array = y._fetch()
        moved = Tensor.from_numpy(array.copy() if y.meta.backend.is_host and target.is_host else array, target)
        if requires_grad:
            moved.requires_grad, moved.grad_fn = True, (ToBackward(y), 0)
        return moved

    # Conversion to Python, NumPy and others.

    def numpy(self) -> npt.NDArray[Any]:
        """Return a NumPy array of the same memory. Writing to it changes the tensor, but autograd does not record that.

        For a tensor on a GPU, return a read-only copy.
        """
        array = self._fetch()
        if not self.meta.backend.is_host:
            array.flags.writeable = False
        return array

    def _fetch(self) -> NumpyArray:
        if (tracer := dispatch.active_tracer()) is not None:
            tracer.reject_read()
        return self.meta.backend.to_numpy(self.buffer, self.address, self.dtype, self.meta.layout)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NumpyArray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """Export the memory to any library that supports DLPack, without a copy."""
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return self.meta.backend.to_dlpack(self, **{name: x for name, x in options.items() if x is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.meta.backend.dlpack_device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Export the memory of a GPU to CuPy, torch, Numba and others, without a copy."""
        return self.meta.backend.cuda_array_interface(self)

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self.size != 1:
            raise ShapeError(
                f"item: shape {self.shape} has {self.size} elements, expected 1; index it first, or use tolist()"
            )
        return self.numpy().item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers; for a 0-d tensor, return the number."""
        return self.numpy().tolist()

    def __copy__(self) -> "Tensor":
        """Return a tensor of the same memory with the same autograd history."""
        y = Tensor(self.buffer, self.address, self.meta)
        y.grad_fn = self.grad_fn
        return y

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Pickle the elements, without the autograd history."""
        return rebuild_tensor, (self.numpy(), self.backend, self.requires_grad)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(f"bool: shape {self.shape} has {self.size} elements, expected 1; use x.any() or x.all()")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_integer or self.ndim:
            kind = f"{self.dtype} of shape {self.shape}"
            advice = "select by positions with x.index_select(dim, index), and by a mask with mf.where(mask, x, y)"
            raise IndexingError(f"index: got a tensor of {kind}, expected integers and no dims; {advice}")
        return int(self.item())

    def __contains__(self, x: object) -> bool:
        return bool((self == x).any())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.shape else super().__format__(spec)

    def __repr__(self) -> str:
        return tensor_text(self, self.numpy())

    def _repr_html_(self) -> str:
        return tensor_html(self, self.numpy())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        values = self.numpy()  # notebooks show text and HTML: values are copied once from a GPU
        return {"text/plain": tensor_text(self, values), "text/html": tensor_html(self, values)}

    # In-place operations.

    def copy_(self, value: object) -> "Tensor":
        """Store values in this tensor's memory: a tensor that broadcasts to its shape, an array, or a number."""
        store_in(assign, self, as_operand(value))
        return self

    def fill_(self, value: float) -> "Tensor":
        """Store one number in every element."""
        store_in(assign, self, as_operand(value))
        return self

    def zero_(self) -> "Tensor":
        """Store 0 in every element."""
        store_in(assign, self, 0)
        return self

    def __setitem__(self, index: Any, value: object) -> None:
        value = to_array(value) if isinstance(value, list | tuple) else as_operand(value)
        store_at(self, index, value)

    store_at = store_at


CallInput = Tensor | Number  # an input of a call

Plan.tensor = Tensor


def rebuild_tensor(array: NumpyArray, backend: str, requires_grad: bool) -> Tensor:
    """Return a tensor from its pickled parts."""
    y = Tensor.from_numpy(array.copy(), get_backend(backend))
    return y.requires_grad_() if requires_grad else y


def to_array(data: npt.ArrayLike) -> NumpyArray:
    """Convert data to a NumPy array. Raise a ShapeError if nested lists have different lengths."""
    try:
        return np.asarray(data)
    except ValueError as error:
        raise ShapeError(
            f"tensor: nested lists have different lengths; pad them, or make one tensor each ({error})"
        ) from None


for _method, _function in AUGMENTED_METHODS.items():
    setattr(Tensor, _method, _function)
