"""The metadata of a tensor: a part of the key of every plan."""

from ..backends.base import Backend
from ..core.dtypes import DType
from ..core.interning import Interned
from ..core.layout import Layout


class TensorMeta(metaclass=Interned):
    """The metadata of a tensor. The layout is relative to the tensor's address: its offset is 0.

    `hooks` numbers the sets of hooks of leaves: a tensor with other hooks needs another plan. It is 0 without hooks.
    """

    __slots__ = ("__weakref__", "backend", "dtype", "hooks", "layout", "requires_grad")

    def __init__(self, layout: Layout, dtype: DType, backend: Backend, requires_grad: bool, hooks: int = 0) -> None:
        self.hooks = hooks
        self.layout, self.dtype, self.backend, self.requires_grad = layout, dtype, backend, requires_grad
