"""Backpropagation over any values that remember how they were made.

It knows a protocol, not Tensor. A value has `requires_grad` and `history`: (call, k) where the value is output k of a
call, else None. Its *edge* is its history, or the value itself where that is a leaf. A call has `count` outputs and the
`edges` of its inputs; `backward(gradients of its outputs)` gives those of its inputs, None where nothing flows, and
`release()` lets go of what it kept for that. Scalar and Tensor both follow the protocol.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from threading import local
from typing import Any, Protocol

from .dag import topological
from .errors import GradientError


class Call(Protocol):
    """One recorded computation."""

    @property
    def count(self) -> int:
        """How many outputs it has."""

    @property
    def edges(self) -> Sequence[Any]:
        """Of each input: (call, k), or a leaf, or None where no gradient is wanted."""

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Gradients of the inputs from those of the outputs."""

    def release(self) -> None:
        """Let go of what was kept for `backward`."""


class Mode(local):
    """Whether calls are recorded, for each thread."""

    is_recording = True


mode = Mode()
FREED = (
    "backward: this part of the graph was used before, and what it kept was freed then; "
    "call backward(retain_graph=True) the first time, or compute the value again"
)


@contextmanager
def recording(flag: bool) -> Iterator[None]:
    """Record calls, or do not, in a block of code."""
    before, mode.is_recording = mode.is_recording, flag
    try:
        yield
    finally:
        mode.is_recording = before


class no_grad:  # noqa: N801  # PyTorch's name
    """Record nothing: results need no gradient, and memory is freed at once. A context manager and a decorator.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([1.0], requires_grad=True)
    >>> with mf.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self) -> None:
        self.before: list[bool] = []

    def __enter__(self) -> None:
        self.before.append(mode.is_recording)
        mode.is_recording = False

    def __exit__(self, *error: object) -> None:
        mode.is_recording = self.before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, run without recording."""

        @wraps(function)
        def run(*inputs: Any, **named: Any) -> Any:
            with recording(False):
                return function(*inputs, **named)

        return run


def edge(x: Any) -> Any:
    """Where the gradient of a value goes: to the call that made it, or to the value, a leaf."""
    return x.history or x


def gradients(
    root: Any, gradient: Any, *, create_graph: bool = False, retain_graph: bool = False, at: Sequence[Any] = ()
) -> dict[Any, Any]:
    """The gradient of `root`, times `gradient`, for every leaf below it.

    Parameters
    ----------
    root
        The value to differentiate.
    gradient
        What it receives, of its own shape.
    create_graph
        Whether the gradients can be differentiated again.
    retain_graph
        Whether the graph may be used once more; else each call lets go of what it kept.

    at
        Edges of other values whose gradients are wanted.

    Returns
    -------
    dict
        {leaf or edge: gradient}.
    """
    if not root.requires_grad:
        raise GradientError(
            "backward: this value does not depend on anything that requires a gradient; set requires_grad=True"
        )
    received: dict[Any, Any] = {edge(root): gradient}
    found: dict[Any, Any] = {}
    order = topological(
        [root.history[0]] if root.history else [],
        lambda call: [e[0] for e in call.edges if type(e) is tuple],
    )
    with recording(create_graph):
        for call in reversed(order):
            arrived = [received.pop((call, k), None) for k in range(call.count)]
            if at:
                found |= {e: g for e in at if type(e) is tuple and e[0] is call and (g := arrived[e[1]]) is not None}
            if any(g is not None for g in arrived):
                edges = call.edges
                for e, g in zip(edges, call.backward(arrived), strict=True):
                    if e is not None and g is not None:
                        received[e] = received[e] + g if e in received else g
            if not retain_graph:
                call.release()
    return received | found
