"""Tensor: a Spec, an address in a buffer, and the call that made it. The user's face of arrays.

All that a tensor shares with graph nodes is in `array.Array`; here is what needs memory: views over the same buffer,
NumPy's and DLPack's protocols, changes in place, and `backward`.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..backends.base import Backend
from ..backends.registry import backends, get_backend
from ..compiler.plan import Plan, TensorMeta, call
from ..core import autograd, dispatch
from ..core.dtypes import BY_NAME, BY_NUMPY, DType, as_dtype, weak_type_of
from ..core.errors import BackendError, DTypeError, GradientError, IndexingError, ShapeError, ViewError
from ..core.indexing import infer_shape
from ..core.layout import Layout, row_major
from ..ir.array_functions import Copy, View
from ..ir.array_methods import Array
from ..runtime.memory_pool import MemoryBuffer, round_to_size_class
from .augmented_assignment import AUGMENTED_METHODS, as_operand, assign, drop_leading_ones
from .mutation import store_in
from .tape_nodes import ToBackward, ViewBackward

MAX_CACHED_VIEWS = 10_000  # views that are remembered

view_cache: dict[
    Any, tuple[TensorMeta, int]
] = {}  # (view, spec, recording) -> spec of what is seen, and where it starts, in bytes


class Tensor(Array):
    """A strided array of numbers on a backend, which remembers how it was computed where gradients are wanted.

    Make one with `mf.tensor`, `mf.zeros`, `mf.from_numpy` and their like. Operators and methods follow PyTorch's words
    and meanings.

    Attributes
    ----------
    shape, strides : tuple of int
        Sizes, and distances between neighbours along each dim, in elements.
    offset : int
        Where the first element lies in its storage, in elements.
    dtype : DType
        float32, float64, int32, int64 or bool.
    backend : str
        Where it lives and what computes with it.
    requires_grad : bool
        Whether `backward` computes a gradient for it.
    grad : Tensor or None
        The sum of the gradients that it has received.
    """

    __slots__ = ("__weakref__", "address", "buffer", "grad", "grad_fn", "spec")

    def __init__(self, buffer: MemoryBuffer, address: int, spec: TensorMeta) -> None:
        self.buffer, self.address, self.spec = buffer, address, spec
        self.grad: Tensor | None = None
        self.grad_fn: Any = None

    apply = staticmethod(call)  # type: ignore[assignment]  # the fastest way to the plan

    @classmethod
    def from_numpy(cls, array: npt.NDArray[Any], backend: Backend) -> "Tensor":
        """A tensor over the memory of an array; on a device, over a copy."""
        dtype = BY_NUMPY.get(array.dtype)
        if dtype is None:
            names = ", ".join(BY_NAME)
            raise DTypeError(
                f"an array of dtype {array.dtype} cannot become a tensor; use array.astype(...) with one of {names}"
            )
        if any(s % dtype.itemsize for s in array.strides) or not array.flags.aligned:
            raise ViewError(f"strides {array.strides} (bytes) are not whole elements of {dtype}; pass array.copy()")
        buffer, address, layout = backend.from_numpy(array)
        return cls(buffer, address, TensorMeta(layout, dtype, backend, False))

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: DType, backend: Backend) -> "Tensor":
        """A tensor whose elements are not set."""
        layout = row_major(shape)
        buffer = backend.allocate(round_to_size_class(layout.size * dtype.itemsize))
        return cls(buffer, buffer.address, TensorMeta(layout, dtype, backend, False))

    @classmethod
    def full(cls, shape: tuple[int, ...], value: Any, dtype: DType, backend: Backend) -> "Tensor":
        """A tensor of one number."""
        result = cls.empty(shape, dtype, backend)
        backend.fill(result.buffer, result.address, dtype, result.spec.layout, value)
        return result

    def asarray_like(self, data: Any) -> "Tensor":
        """An array, or nested lists of numbers, as a tensor on the same backend."""
        array = to_array(data)
        if array.dtype.kind not in "biuf" and array.ndim == 0:
            weak_type_of(data)  # says what it is
        return Tensor.from_numpy(array, self.spec.backend)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The size of each dim."""
        return self.spec.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """How far neighbours along each dim lie apart, in elements."""
        return self.spec.layout.strides

    @property
    def offset(self) -> int:
        """Where the element at index 0, 0, ... lies in the storage, in elements."""
        return (self.address - self.buffer.address) // self.dtype.itemsize

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        """The element type."""
        return self.spec.dtype

    @property
    def backend(self) -> str:
        """The name of the backend."""
        return self.spec.backend.name

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user, not computed from something that requires a gradient."""
        return self.grad_fn is None

    @property
    def requires_grad(self) -> bool:
        """Whether `backward` computes a gradient for it; may be set on what was not computed."""
        return self.spec.requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if flag and not self.dtype.is_float:
            raise no_gradient_error(self.dtype)
        if self.grad_fn is not None and not flag:
            raise non_leaf_error()
        if bool(flag) != self.requires_grad and (by := dispatch.active_capture()) is not None:
            by.lift(self).requires_grad = flag  # which says that nothing outside can be set
        self.spec = TensorMeta(self.spec.layout, self.dtype, self.spec.backend, bool(flag))

    def requires_grad_(self, flag: bool = True) -> "Tensor":
        """Set `requires_grad`, and give the tensor itself."""
        self.requires_grad = flag
        return self

    # Views: the same memory.

    def apply_view(self, view: View) -> Any:
        """The same memory in another layout. No kernel and no plan, so that a thousand different slices are cheap."""
        key = view, self.spec, dispatch.mode.is_recording
        found = view_cache.get(key)
        if found is None:
            if (by := dispatch.active_capture()) is not None:
                return by.view(view, self)
            try:
                layout = view.layout(self.spec.layout)
            except ViewError:
                return call(view, self)  # a copy, by a kernel
            if len(view_cache) > MAX_CACHED_VIEWS:
                view_cache.clear()
            requires_grad = self.requires_grad and dispatch.mode.is_recording
            spec = TensorMeta(layout.without_offset(), self.dtype, self.spec.backend, requires_grad)
            found = view_cache[key] = spec, layout.offset * self.dtype.itemsize
        spec, offset = found
        y = Tensor(self.buffer, self.address + offset, spec)
        if spec.requires_grad:
            y.grad_fn = ViewBackward(view, self), 0
        return y

    def view(self, *shape: Any) -> "Tensor":
        """The same elements under another shape, over the same memory; an error where strides do not allow it."""
        view = View("reshape", infer_shape(self.size, shape))
        view.layout(self.spec.layout)  # says why, where it is none
        y: Tensor = self.apply_view(view)
        return y

    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return self.spec.layout.is_contiguous

    def contiguous(self) -> "Tensor":
        """The tensor itself where it is contiguous, else a copy that is."""
        return self if self.is_contiguous() else self.clone()

    def clone(self) -> "Tensor":
        """A contiguous copy; gradients flow through it."""
        y: Tensor = call(Copy(), self)
        return y

    def detach(self) -> "Tensor":
        """The same memory, without history: no gradient flows."""
        if (by := dispatch.active_capture()) is not None:
            return by.detach_tensor(self)  # type: ignore[no-any-return]
        return Tensor(self.buffer, self.address, TensorMeta(self.spec.layout, self.dtype, self.spec.backend, False))

    def to(self, *wanted: Any, dtype: Any = None, backend: str | None = None) -> Any:
        """The tensor as another element type, on another backend, or both: x.to(mf.float64), x.to("python").

        Parameters
        ----------
        wanted
            A dtype or its name, or the name of a backend, in any order; also by keyword.

        Returns
        -------
        Tensor
            Itself where nothing changes, else a copy. Gradients flow through it.
        """
        for x in wanted:
            if isinstance(x, str) and x not in BY_NAME:
                if x not in backends() and not x.startswith("cuda:"):
                    names = f"{', '.join(BY_NAME)}, nor a backend: {', '.join(backends())}"
                    raise BackendError(f"to: {x!r} is neither a dtype: {names}")
                backend = x
            else:
                dtype = x
        y = self if dtype is None else super().to(as_dtype(dtype))
        target = self.spec.backend if backend is None else get_backend(backend)
        if target is self.spec.backend:
            return y
        requires_grad = y.requires_grad and dispatch.mode.is_recording
        array = y._fetch()
        moved = Tensor.from_numpy(array.copy() if y.spec.backend.is_host and target.is_host else array, target)
        if requires_grad:
            moved.requires_grad, moved.grad_fn = True, (ToBackward(y), 0)
        return moved

    # Out to Python, NumPy and others.

    def numpy(self) -> npt.NDArray[Any]:
        """The same memory as a NumPy array. What is written there is seen here; gradients do not see it.

        Of a tensor on a GPU it is a copy, which cannot be written.
        """
        array = self._fetch()
        if not self.spec.backend.is_host:
            array.flags.writeable = False
        return array

    def _fetch(self) -> npt.NDArray[Any]:
        if (by := dispatch.active_capture()) is not None:
            by.read(self)
        return self.spec.backend.to_numpy(self.buffer, self.address, self.dtype, self.spec.layout)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        """The memory for any library that knows DLPack, without a copy."""
        return self.spec.backend.to_dlpack(self, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.spec.backend.dlpack_device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of a GPU for CuPy, torch, Numba and others, without a copy."""
        return self.spec.backend.cuda_array_interface(self)

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self.size != 1:
            raise ShapeError(
                f"item: shape {self.shape} has {self.size} elements, expected 1; index it first, or use tolist()"
            )
        return self.numpy().item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; of a 0-d tensor the number."""
        return self.numpy().tolist()

    def __copy__(self) -> "Tensor":
        """The same memory, and the same history."""
        y = Tensor(self.buffer, self.address, self.spec)
        y.grad_fn = self.grad_fn
        return y

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles hold the elements, not the history."""
        return rebuild_tensor, (self.numpy(), self.backend, self.requires_grad)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(f"the truth of {self.size} elements (shape {self.shape}) is ambiguous; use x.any() or x.all()")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_integer or self.ndim:
            kind = f"{self.dtype} of shape {self.shape}"
            advice = "for positions use x.index_select(dim, index), for a mask where(mask, x, y)"
            raise IndexingError(f"only a 0-d tensor of integers is an index, this is {kind}; {advice}")
        return int(self.item())

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    def __repr__(self) -> str:
        text = np.array2string(self.numpy(), precision=4, suppress_small=True, separator=", ", prefix="tensor(")
        text = text if self.size else "[]" + f", shape={self.shape}" * (self.ndim > 1)
        more = [f"dtype={self.dtype}"] if self.dtype.name not in ("float32", "int64", "bool") else []
        more += [f'backend="{self.spec.backend!r}"'] if self.backend != "parallel" else []
        more += ["requires_grad=True"] if self.requires_grad else []
        return f"tensor({', '.join([text, *more])})"

    # In place.

    def copy_(self, value: Any) -> "Tensor":
        """Store values in this memory: a tensor that broadcasts to the shape, an array, or a number."""
        store_in(assign, self, as_operand(value))
        return self

    def fill_(self, value: float) -> "Tensor":
        """Store one number everywhere."""
        store_in(assign, self, as_operand(value))
        return self

    def zero_(self) -> "Tensor":
        """Store 0 everywhere."""
        store_in(assign, self, 0)
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        with dispatch.no_grad():
            target = self[index]
        if self.requires_grad:
            target.requires_grad = True
        value = to_array(value) if isinstance(value, list | tuple) else as_operand(value)
        store_in(assign, target, drop_leading_ones(value, len(target.shape)))

    # Gradients.

    def backward(self, gradient: Any = None, create_graph: bool = False, retain_graph: bool | None = None) -> None:
        """Add the gradient of this tensor to `grad` of every leaf that it was computed from.

        Parameters
        ----------
        gradient : Tensor, optional
            What this tensor receives, of its own shape; may be left out where it has one element.
        create_graph : bool
            Whether the gradients can be differentiated again.
        retain_graph : bool, optional
            Whether `backward` may be called once more; as `create_graph` if left out.

        Raises
        ------
        GradientError
            Nothing here requires a gradient, there is more than one element and no `gradient`, the graph was freed by
            an earlier call, or something that it needs was changed in place.
        """
        if gradient is None:
            if self.size != 1:
                raise GradientError(
                    f"backward: shape {self.shape} has {self.size} elements, and only a single number has a gradient by "
                    "itself; call sum() or mean() first, or pass gradient="
                )
            gradient = ones_like_meta(self.spec)
        elif not isinstance(gradient, Tensor) or gradient.shape != self.shape or gradient.dtype is not self.dtype:
            got = f"{gradient.dtype} {gradient.shape}" if isinstance(gradient, Tensor) else type(gradient).__name__
            raise GradientError(f"backward: gradient is {got}, expected a tensor like this one, {self.dtype} {self.shape}")
        elif gradient.spec.backend is not self.spec.backend:
            raise BackendError(
                f"backward: gradient is on {gradient.backend}, this tensor on {self.backend}; move it with to()"
            )
        retain = create_graph if retain_graph is None else retain_graph
        found = autograd.run_backward(self, gradient, create_graph=create_graph, retain_graph=retain)
        taken = {id(gradient.buffer)}
        for leaf, g in found.items():
            if leaf.grad is not None:
                with dispatch.grad_recording(create_graph):
                    g = leaf.grad + g
            elif id(g.buffer) in taken or not is_dense(g.spec.layout):  # two leaves never share the memory of a gradient
                with dispatch.grad_recording(create_graph):
                    g = g.clone()
            taken.add(id(g.buffer))
            leaf.grad = g


Plan.tensor = Tensor


@lru_cache(MAX_CACHED_VIEWS)
def ones_like_meta(spec: TensorMeta) -> Tensor:
    """What the result of a computation receives; never changed, and never given to a user."""
    return Tensor.full(spec.layout.shape, 1, spec.dtype, spec.backend)


@lru_cache(MAX_CACHED_VIEWS)
def is_dense(layout: Layout) -> bool:
    """Whether the elements of a layout fill their memory."""
    return layout.is_dense


def non_leaf_error() -> GradientError:
    """The error of a tensor that is to require no gradient, though it was computed from others that do."""
    return GradientError("requires_grad: this tensor was computed from others; use x.detach() to cut it off")


def no_gradient_error(dtype: DType) -> DTypeError:
    """The error of a gradient that is asked for where there is none."""
    return DTypeError(f"requires_grad: only floats have gradients, this is {dtype}; convert it with x.to(mf.float32)")


def check_float_argument(x: Any, k: int) -> None:
    """Raise where `grad` is to differentiate something that has no gradient."""
    if not isinstance(x, Tensor) or not x.dtype.is_float:
        got = f"a tensor of {x.dtype}" if isinstance(x, Tensor) else type(x).__name__
        raise DTypeError(f"grad: argument {k} is {got}, expected a tensor of floats; choose others with argnums")


def rebuild_tensor(array: npt.NDArray[Any], backend: str, requires_grad: bool) -> Tensor:
    """A tensor from its parts."""
    y = Tensor.from_numpy(array.copy(), get_backend(backend))
    return y.requires_grad_() if requires_grad else y


def to_array(data: Any) -> npt.NDArray[Any]:
    """Data as a NumPy array; a ShapeError where it has no shape."""
    try:
        return np.asarray(data)
    except ValueError as error:
        raise ShapeError(f"lists of different lengths have no shape; pad them, or make one tensor each ({error})") from None


for _method, _function in AUGMENTED_METHODS.items():
    setattr(Tensor, _method, _function)
