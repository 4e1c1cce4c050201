"""Recorded calls that need no plan: a view, and a move to another backend."""

from collections.abc import Sequence
from typing import Any

from ..ir.array_functions import View


class ViewBackward:
    """The backward node of a view. Its gradient needs the layout of the viewed tensor, not the elements."""

    __slots__ = ("edges", "seen", "view")
    count = 1

    def __init__(self, view: View, x: Any) -> None:
        self.view, self.edges, self.seen = view, (x.grad_fn or x,), x.spec.layout

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Apply the VJP of the view."""
        return self.view.vjp(gradients[0], None, self.seen)

    def free_saved(self) -> None:
        """Do nothing: no tensors were saved."""


class ToBackward:
    """The backward node of a move to another backend."""

    __slots__ = ("backend", "edges")
    count = 1

    def __init__(self, x: Any) -> None:
        self.backend, self.edges = x.spec.backend, (x.grad_fn or x,)

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Move the gradient back."""
        return (gradients[0].to(self.backend.name),)

    def free_saved(self) -> None:
        """Do nothing: no tensors were saved."""
