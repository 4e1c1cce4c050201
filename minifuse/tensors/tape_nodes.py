"""Recorded calls that need no plan: a view, and a move to another backend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.array_functions import View

if TYPE_CHECKING:
    from .tensor import Tensor


class ViewBackward:
    """The backward node of a view. Its gradient needs the layout of the viewed tensor, not the elements."""

    __slots__ = ("_hooks", "edges", "view", "viewed_layout")
    count = 1

    def __init__(self, view: View, x: "Tensor") -> None:
        self.view, self.edges = view, (x.grad_fn or x,)
        self.viewed_layout: Any = x.meta.layout  # passed to the VJP in place of x, since the VJP reads only the shape

    def backward(self, gradients: "Sequence[Tensor]") -> Sequence[Any]:
        """Apply the VJP of the view."""
        return self.view.vjp(gradients[0], None, self.viewed_layout)

    def free_saved(self) -> None:
        """Do nothing: no tensors were saved."""


class ToBackward:
    """The backward node of a move to another backend."""

    __slots__ = ("_hooks", "backend", "edges")
    count = 1

    def __init__(self, x: "Tensor") -> None:
        self.backend, self.edges = x.meta.backend, (x.grad_fn or x,)

    def backward(self, gradients: "Sequence[Tensor]") -> "Sequence[Tensor]":
        """Move the gradient back."""
        return (gradients[0].to(self.backend.name),)

    def free_saved(self) -> None:
        """Do nothing: no tensors were saved."""
