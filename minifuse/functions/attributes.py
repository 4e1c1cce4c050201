"""The names of PyTorch's tensors for shapes, dtypes and devices: x.dim(), x.numel(), x.float(), x.cpu(), x.device."""

from collections.abc import Callable
from typing import Any

from ..backends.registry import backend_of_device, count_gpus, host_backend, set_default_backend
from ..core.dtypes import DType, as_dtype
from ..core.indexing import normalize_dim
from ..ir.array_methods import Array
from ..ir.pytorch_differences import indices_of
from .table import function

CONVERSIONS = {  # PyTorch's method -> dtype
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64", "float": "float32",
    "double": "float64",
}  # fmt: skip


def conversion(name: str) -> Callable[[Array], Array]:
    """Return the method that converts to a dtype."""

    def convert(x: Array) -> Array:
        return x.to(as_dtype(name))

    convert.__doc__ = f"Convert to {name}; return the array itself if it has this dtype."
    return convert


for _name, _dtype in CONVERSIONS.items():
    _method = conversion(_dtype)
    _method.__name__ = _name
    setattr(Array, _name, _method)


@function("dim", "ndimension", method=True)
def dim(x: Array) -> int:
    """Return the number of dims."""
    return x.ndim


@function("numel", "nelement")
def numel(x: Array) -> int:
    """Return the number of elements."""
    return int(x.size)


@function()
def element_size(x: Array) -> int:
    """Return the size of an element, in bytes."""
    return x.dtype.itemsize


@function()
def stride(x: Array, dim: int | None = None) -> Any:
    """Return the distances between neighbors along each dim, or along one, in elements."""
    return x.strides if dim is None else x.strides[normalize_dim(dim, x.ndim)]


@function()
def storage_offset(x: Array) -> int:
    """Return the position of the first element in its storage, in elements."""
    return x.offset


@function()
def data_ptr(x: Array) -> int:
    """Return the address of the first element."""
    return x.address


@function()
def is_floating_point(x: Any) -> bool:
    """Return whether the dtype is a float."""
    return x.is_float if isinstance(x, DType) else x.dtype.is_float


@function()
def is_signed(x: Array) -> bool:
    """Return whether the dtype has negative numbers."""
    return x.dtype.numpy.kind in "if"


@function()
def is_complex(x: Array) -> bool:
    """Return False: minifuse has no complex numbers."""
    return False


@function("type")
def type_(x: Array, dtype: Any = None) -> Any:
    """Convert to a dtype; without one, return the name of the dtype."""
    return x.dtype.name if dtype is None else x.to(as_dtype(dtype))


@function()
def type_as(x: Any, other: Any) -> Any:
    """Convert to the dtype of another array, on its backend."""
    return x.to(other.dtype) if x.backend == other.backend else x.to(other.dtype, backend=other.backend)


@function()
def cpu(x: Any) -> Any:
    """Copy to the memory of the CPU; return the array itself if it is there."""
    return x.to(backend="cpu") if is_cuda(x) else x


@function()
def cuda(x: Any, device: object = None) -> Any:
    """Copy to the memory of a GPU. `mf.cuda.is_available()` and `mf.cuda.device_count()` say whether there is one."""
    return x.to(backend=backend_of_device("cuda" if device is None else device))


def is_available() -> bool:
    """Return whether there is a GPU and what it needs. A GPU that the interpreter simulates does not count."""
    return count_gpus() > 0


vars(cuda).update(is_available=is_available, device_count=count_gpus)  # as PyTorch's module `torch.cuda`


def is_cuda(x: Array) -> bool:
    """Return whether the elements are in the memory of a GPU."""
    return x.backend.startswith("cuda")


PROPERTIES: dict[str, tuple[Callable[[Array], Any], str]] = {
    "device": (
        lambda x: "cpu" if x.backend == host_backend() else x.backend,
        "Where the elements are: cpu for the default backend of the CPU, else the name of the backend, as cuda:1.",
    ),
    "is_cuda": (is_cuda, "Whether the elements are in the memory of a GPU."),
    "is_cpu": (lambda x: not is_cuda(x), "Whether the elements are in the memory of the CPU."),
    "itemsize": (lambda x: x.dtype.itemsize, "The size of an element, in bytes."),
    "nbytes": (lambda x: int(x.size) * x.dtype.itemsize, "The size of all elements, in bytes."),
    "values": (lambda x: x, "The array itself, as in x.max(dim).values."),
    "indices": (indices_of, "The indices of the elements that x.max(dim) or x.min(dim) has selected."),
    "H": (lambda x: x.T, "The transpose of a matrix, as a view."),
    "real": (lambda x: x, "The array itself: minifuse has no complex numbers."),
}

for _name, (_get, _text) in PROPERTIES.items():
    setattr(Array, _name, property(_get, doc=_text))


@function()
def apply_(x: Array, callable: Callable[[Any], Any]) -> Array:  # noqa: A002  # PyTorch's name
    """Store `callable(number)` for each element, one after the other. For speed, use operators, or mf.elementwise."""
    flat = [callable(number) for number in x.reshape(x.size).tolist()]
    return x.copy_(x.asarray_like(flat).reshape(x.shape))


@function()
def map_(x: Array, other: Array, callable: Callable[[Any, Any], Any]) -> Array:  # noqa: A002  # PyTorch's name
    """Store `callable(number, other number)` for each element, one after the other."""
    pairs = zip(x.reshape(x.size).tolist(), other.expand(*x.shape).reshape(x.size).tolist(), strict=True)
    return x.copy_(x.asarray_like([callable(a, b) for a, b in pairs]).reshape(x.shape))


@function(method=False)
def is_same_size(x: Array, other: Array) -> bool:
    """Return whether two arrays have the same shape."""
    return x.shape == other.shape


@function("set_default_device", method=False)
def set_default_device(device: object) -> None:
    """Create tensors on a device from now on, as `mf.set_default_backend` does."""
    name = str(device)
    set_default_backend(host_backend() if name == "cpu" else name)


@function()
def to_device(x: Any, device: object, stream: object = None) -> Any:
    """Copy to a device; return the array itself if it is there."""
    return x.to(device=device)
