"""The methods of tensors for gradients: `backward`, hooks on gradients, `requires_grad_` and `data`.

`accumulate_gradients` and `gradients_of` do the work for several tensors at once: `mf.autograd.backward` and `grad`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import ref

from ..compiler.plan import Plan
from ..compiler.tensor_meta import TensorMeta
from ..core import autograd, dispatch
from ..core.dtypes import DType
from ..core.errors import BackendError, DTypeError, FuseError, GradientError
from ..core.layout import Layout
from ..ir.array_methods import Array
from ..runtime.memory_pool import MemoryBuffer

if TYPE_CHECKING:
    from .tensor import Tensor

MAX_CACHED_METAS = 10_000
BEFORE, AFTER = 0, 1  # the hooks of a leaf that run before its gradient is accumulated, and after it
RETAIN = -1  # the name of the hook that sets `grad`, which runs last; others are named by a count
_hook_count = count()


class RemovableHandle:
    """A registered hook. Call `remove`, or leave the block of the handle as a context manager, to unregister it."""

    def __init__(self, hooks: dict[int, Any], name: int, x: "GradMethods | None" = None) -> None:
        self.hooks, self.id, self.tensor = hooks, name, None if x is None else ref(x)

    def remove(self) -> None:
        """Unregister the hook."""
        self.hooks.pop(self.id, None)
        if self.tensor is not None and (x := self.tensor()) is not None:
            x.note_hooks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class GradMethods(Array):
    """The part of Tensor that deals with gradients. `_hooks` is set on a leaf that has had hooks."""

    __slots__ = {
        "_hooks": "The hooks by their kind; unset without hooks.",
        "address": "The address in memory of the element at index 0, 0, ...",
        "buffer": "The memory, which all views of a tensor share.",
        "grad": "The sum of the gradients that `backward` has computed so far; None before.",
        "grad_fn": "The recorded call that computed the tensor; None for a leaf.",
        "meta": "Layout, element type, backend and whether a gradient is computed: what a plan depends on.",
    }
    meta: TensorMeta
    buffer: MemoryBuffer
    address: int
    grad: "Tensor | None"
    grad_fn: autograd.GradFn | None
    _hooks: dict[int, dict[int, Callable[..., Any]]]

    if TYPE_CHECKING:

        @property
        def requires_grad(self) -> bool:  # Tensor defines it
            """Return True if `backward` computes a gradient for this tensor."""

        @requires_grad.setter
        def requires_grad(self, flag: bool) -> None: ...

    @property
    def is_leaf(self) -> bool:
        """Return True if the tensor was created by the user, not computed from tensors that require a gradient."""
        return self.grad_fn is None

    @property
    def grad_dtype(self) -> DType:
        """Return the element type of `grad`, which is that of the tensor. Only leaves have it."""
        if not self.is_leaf:
            raise GradientError("grad_dtype: the tensor is no leaf; use x.dtype, which its gradient has")
        return self.dtype

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad`, and return the tensor itself."""
        self.requires_grad = requires_grad
        return self

    def detach_(self) -> Self:
        """Remove the tensor from the graph that computed it, and return the tensor itself: it becomes a leaf."""
        if dispatch.active_tracer() is not None:
            raise FuseError("detach_: cannot change the history of a tensor inside @mf.fuse; write x = x.detach()")
        self.grad_fn = None
        self.meta = TensorMeta(self.meta.layout, self.dtype, self.meta.backend, False)
        return self

    @property
    def data(self) -> "Tensor":
        """Return a tensor of the same memory that is not part of the autograd graph. Assign a tensor to use its memory."""
        return cast("Tensor", self.detach())

    @data.setter
    def data(self, value: "Tensor") -> None:
        if (
            not isinstance(value, GradMethods)
            or value.dtype is not self.dtype
            or value.meta.backend is not self.meta.backend
        ):
            got = f"{value.dtype} on {value.meta.backend.name}" if isinstance(value, GradMethods) else type(value).__name__
            raise DTypeError(
                f"data: got {got}, expected a tensor of {self.dtype} on {self.meta.backend.name}; use x.to(...)"
            )
        if dispatch.active_tracer() is not None:
            raise FuseError("data: cannot replace the memory of a tensor inside @mf.fuse; write x.copy_(value) instead")
        self.buffer, self.address = value.buffer, value.address
        self.meta = TensorMeta(value.meta.layout, self.dtype, self.meta.backend, self.requires_grad)

    def backward(
        self,
        gradient: "Tensor | None" = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: "Tensor | Sequence[Tensor] | None" = None,
    ) -> None:
        """Add the gradient of this tensor to `grad` of every leaf that it was computed from.

        Parameters
        ----------
        gradient : Tensor, optional
            The gradient of the final result with respect to this tensor, with its shape. Default for one element: 1.
        retain_graph : bool, optional
            Keep the saved tensors, so that `backward` can be called again. Default: the value of `create_graph`.
        create_graph : bool
            Record the backward pass, so that the gradients can be differentiated again.
        inputs : tensors, optional
            The leaves whose `grad` to change. Default: all.

        Raises
        ------
        GradientError
            The tensor requires no gradient, or has more than one element and no `gradient` is passed; an earlier call
            freed the graph; or a tensor that the graph needs was modified in place.
        """
        accumulate_gradients([self], [gradient], retain_graph, create_graph, inputs)

    # Hooks.

    def register_hook(self, hook: "Callable[[Tensor], Tensor | None]") -> RemovableHandle:
        """Call `hook(gradient)` in each backward pass, when the gradient of this tensor is complete.

        If the hook returns a tensor, it replaces the gradient. Hooks run in the order in which they were registered.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook.

        Raises
        ------
        GradientError
            The tensor does not require a gradient.

        Examples
        --------
        >>> import minifuse as mf
        >>> x = mf.tensor([1.0, 2.0], requires_grad=True)
        >>> handle = x.register_hook(lambda g: 10 * g)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([20., 40.])
        """
        if not self.requires_grad:
            raise GradientError("register_hook: the tensor does not require a gradient; write x.requires_grad_() first")
        owner, k = self.grad_fn or (self, BEFORE)
        return self._add_hook(owner, k, hook, next(_hook_count))

    def register_post_accumulate_grad_hook(self, hook: "Callable[[Tensor], None]") -> RemovableHandle:
        """Call `hook(tensor)` in each backward pass, after the gradient was added to `grad` of this leaf."""
        if not self.requires_grad or not self.is_leaf:
            raise GradientError(
                "register_post_accumulate_grad_hook: expected a leaf that requires a gradient; use register_hook"
            )
        return self._add_hook(self, AFTER, hook, next(_hook_count))

    def retain_grad(self) -> None:
        """Let `backward` set `grad` of this tensor although it is not a leaf."""
        if not self.requires_grad:
            raise GradientError("retain_grad: the tensor does not require a gradient; write x.requires_grad_() first")
        if self.grad_fn is None or self.retains_grad:
            return
        tensor = ref(self)

        def retain(g: "Tensor") -> None:
            if (x := tensor()) is not None:
                x.grad = g.clone() if x.grad is None else x.grad + g

        self._add_hook(*self.grad_fn, retain, RETAIN)

    @property
    def retains_grad(self) -> bool:
        """Return True if `backward` sets `grad` of this tensor although it is not a leaf."""
        if self.grad_fn is None:
            return False
        node, k = self.grad_fn
        return RETAIN in getattr(node, "_hooks", {}).get(k, {})

    def _add_hook(self, owner: Any, k: int, hook: Callable[..., Any], name: int) -> RemovableHandle:
        if dispatch.active_tracer() is not None:
            raise FuseError("hooks cannot be registered inside @mf.fuse; register them before the call, or use mf.grad")
        if not hasattr(owner, "_hooks"):
            owner._hooks = {}
        hooks = owner._hooks.setdefault(k, {})
        retain = hooks.pop(RETAIN, None)
        hooks[name] = hook
        if retain is not None:
            hooks[RETAIN] = retain
        self.note_hooks()
        return RemovableHandle(hooks, name, self)

    def note_hooks(self) -> None:
        """Change the metadata of a leaf, so that a fused function is traced again with the hooks that it has now."""
        if self.grad_fn is None:
            version = (next(_hook_count),) if any(self._hooks.values()) else ()
            self.meta = TensorMeta(self.meta.layout, self.dtype, self.meta.backend, self.requires_grad, *version)


def accumulate_gradients(
    roots: Sequence[GradMethods],
    gradients: Sequence["Tensor | None"],
    retain_graph: bool | None,
    create_graph: bool,
    inputs: "Tensor | Sequence[Tensor] | None" = None,
) -> None:
    """Add the gradient of some tensors to `grad` of leaves."""
    used = [check_gradient(x, g, "backward") for x, g in zip(roots, gradients, strict=True)]
    leaves = [inputs] if isinstance(inputs, GradMethods) else inputs
    if leaves is not None and not all(x.is_leaf for x in leaves):
        raise GradientError("backward: got inputs= with a tensor that is no leaf; use mf.autograd.grad, or x.retain_grad()")
    retain = create_graph if retain_graph is None else retain_graph
    grads = autograd.run_backward(roots, used, create_graph=create_graph, retain_graph=retain, wrt=leaves)
    used_buffers = {id(g.buffer) for g in used}
    for leaf, g in grads.items():
        if leaf.grad is not None:
            with dispatch.grad_recording(create_graph):
                g = leaf.grad + g
        elif id(g.buffer) in used_buffers or not is_dense(g.meta.layout):  # gradients of leaves never share memory
            with dispatch.grad_recording(create_graph):
                g = g.clone()
        used_buffers.add(id(g.buffer))
        leaf.grad = g
        for hook in tuple(getattr(leaf, "_hooks", {}).get(AFTER, {}).values()):
            hook(leaf)


def check_gradient(x: GradMethods, gradient: "Tensor | None", caller: str) -> "Tensor":
    """Return the gradient of a root: 1 for one element if none is given. Raise an error if it does not fit the root."""
    if gradient is None:
        if x.size != 1:
            raise GradientError(
                f"{caller}: got shape {x.shape} with {x.size} elements, expected one element; "
                "call sum() or mean() first, or pass gradient="
            )
        tracer = dispatch.active_tracer()
        return ones_like_meta(x.meta) if tracer is None else tracer.full(x.shape, 1, x.dtype)
    if not isinstance(gradient, GradMethods) or gradient.shape != x.shape or gradient.dtype is not x.dtype:
        got = f"{gradient.dtype} {gradient.shape}" if isinstance(gradient, GradMethods) else type(gradient).__name__
        raise GradientError(f"{caller}: gradient is {got}, expected {x.dtype} {x.shape}, as this tensor")
    if gradient.meta.backend is not x.meta.backend:
        name = x.meta.backend.name
        raise BackendError(
            f'{caller}: gradient is on {gradient.meta.backend.name}, expected {name}; move it with x.to("{name}")'
        )
    return gradient


@lru_cache(MAX_CACHED_METAS)
def ones_like_meta(meta: TensorMeta) -> "Tensor":
    """Return the gradient of a result with respect to itself. It is cached: never modify it, never pass it to a user."""
    return cast("Tensor", Plan.tensor.full(meta.layout.shape, 1, meta.dtype, meta.backend))


@lru_cache(MAX_CACHED_METAS)
def is_dense(layout: Layout) -> bool:
    """Return True if the elements of a layout fill their memory."""
    return layout.is_dense


def non_leaf_error() -> GradientError:
    """Return the error for a tensor that must not stop requiring a gradient, since it was computed from others."""
    return GradientError("requires_grad: cannot set it to False on a tensor that was computed from others; use x.detach()")


def no_gradient_error(dtype: DType) -> DTypeError:
    """Return the error for setting `requires_grad` on a tensor whose dtype has no gradients."""
    return DTypeError(f"requires_grad: got {dtype}, expected a float type; convert it with x.to(mf.float32)")
