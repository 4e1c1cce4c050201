"""Recorded calls that need no plan: a view, and a move to another backend. They stand where a plan's call would."""

from collections.abc import Sequence
from typing import Any

from ..ir.array_functions import View


class ViewBackward:
    """One recorded view. Its gradient needs the shape of what was seen, not the elements."""

    __slots__ = ("edges", "seen", "view")
    count = 1

    def __init__(self, view: View, x: Any) -> None:
        self.view, self.edges, self.seen = view, (x.grad_fn or x,), x.spec.layout

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """The view backwards."""
        return self.view.vjp(gradients[0], None, self.seen)

    def free_saved(self) -> None:
        """Nothing was kept."""


class ToBackward:
    """One recorded move to another backend."""

    __slots__ = ("backend", "edges")
    count = 1

    def __init__(self, x: Any) -> None:
        self.backend, self.edges = x.spec.backend, (x.grad_fn or x,)

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """The gradient moves back."""
        return (gradients[0].to(self.backend.name),)

    def free_saved(self) -> None:
        """Nothing was kept."""
