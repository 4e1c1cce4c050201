"""The metadata of a tensor: a part of the key of every plan."""

from ..backends.base import Backend
from ..core.dtypes import DType
from ..core.interning import Interned
from ..core.layout import Layout


class TensorMeta(metaclass=Interned):
    """The metadata of a tensor. The layout is relative to the tensor's address: its offset is 0."""

    __slots__ = ("__weakref__", "backend", "dtype", "layout", "requires_grad")

    def __init__(self, layout: Layout, dtype: DType, backend: Backend, requires_grad: bool) -> None:
        self.layout, self.dtype, self.backend, self.requires_grad = layout, dtype, backend, requires_grad
