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

from .dtypes import HIGHEST
from .errors import GradientError
from .interning import Interned, toposort


class TapeNode(Protocol):
    """One recorded computation."""

    @property
    def count(self) -> int:
        """How many outputs it has."""

    @property
    def edges(self) -> Sequence[Any]:
        """Of each input: (call, k), or a leaf, or None where no gradient is wanted."""

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Gradients of the inputs from those of the outputs."""

    def free_saved(self) -> None:
        """Let go of what was kept for `backward`."""


class DispatchHook:
    """Who stands between a call and its run: a capture, which only takes note of calls, or a profile, which measures them.

    It is found through `mode.is_recording`, which is a part of the key of every call: while there is one, no call finds the
    plan that it would run by itself, and a call costs nothing more while there is none.
    """

    is_capture = False  # whether nothing runs: then tensors have no elements either

    def call(self, function: Any, inputs: Sequence[Any]) -> Any:
        """What a call gives instead of running."""
        raise NotImplementedError

    def call_inplace(self, function: Any, targets: tuple[int, ...], same: tuple[int, ...], inputs: Sequence[Any]) -> Any:
        """What runs in the place of an operation in place. A capture takes those before they come here."""
        raise NotImplementedError

    def launch_custom_kernel(self, plan: Any, launch: Any) -> Any:
        """What launches a kernel of the user's own in the place of `launch`. A capture refuses those."""
        raise NotImplementedError


class Intercepted:
    """Whether calls are recorded, as a truth value, where an interceptor takes them."""

    __slots__ = ("by", "flag", "precision")

    def __init__(self, by: Any, flag: bool, precision: str) -> None:
        self.by, self.flag, self.precision = by, flag, precision

    def __bool__(self) -> bool:
        return self.flag


class Precise(metaclass=Interned):
    """Whether calls are recorded, as a truth value, where products have another precision than the highest."""

    __slots__ = ("__weakref__", "flag", "precision")
    by = None

    def __init__(self, flag: bool, precision: str) -> None:
        self.flag, self.precision = flag, precision

    def __bool__(self) -> bool:
        return self.flag


class DispatchMode(local):
    """Whether calls are recorded, for each thread: a bool, `Precise` or `Intercepted`. A part of the key of every call."""

    start: Any = True  # of threads that compute for the first time

    def __init__(self) -> None:
        self.is_recording = self.start


mode = DispatchMode()


def active_hook() -> Any:
    """Who takes the calls of this thread; None if nobody does."""
    return getattr(mode.is_recording, "by", None)


def matmul_precision() -> str:
    """The precision of float32 products in this thread; see `minifuse.core.precision`."""
    return getattr(mode.is_recording, "precision", HIGHEST)


def active_capture() -> Any:
    """The capture that takes the calls of this thread; None if there is none."""
    by = active_hook()
    return by if by is not None and by.is_capture else None


def make_state(flag: bool, by: Any, precise: str) -> Any:
    """A mode that records or does not, with an interceptor or none, and a precision."""
    if by is not None:
        return Intercepted(by, flag, precise)
    return flag if precise == HIGHEST else Precise(flag, precise)


@contextmanager
def use_dispatch_hook(by: DispatchHook | None) -> Iterator[None]:
    """Hand calls to an interceptor in a block of code; to nobody, if None."""
    before = mode.is_recording
    mode.is_recording = make_state(bool(before), by, matmul_precision())
    try:
        yield
    finally:
        mode.is_recording = before


def with_flag(flag: bool) -> Any:
    """The mode of this thread with recording on or off, and the same interceptor and precision."""
    return make_state(flag, active_hook(), matmul_precision())


FREED_GRAPH = (
    "backward: this part of the graph was used before, and what it kept was freed then; "
    "call backward(retain_graph=True) the first time, or compute the value again"
)


@contextmanager
def grad_recording(flag: bool) -> Iterator[None]:
    """Record calls, or do not, in a block of code."""
    before, mode.is_recording = mode.is_recording, with_flag(flag)
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
        self.before: list[Any] = []

    def __enter__(self) -> None:
        self.before.append(mode.is_recording)
        mode.is_recording = with_flag(False)

    def __exit__(self, *error: object) -> None:
        mode.is_recording = self.before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, run without recording."""

        @wraps(function)
        def run(*inputs: Any, **named: Any) -> Any:
            with grad_recording(False):
                return function(*inputs, **named)

        return run


def grad_edge(x: Any) -> Any:
    """Where the gradient of a value goes: to the call that made it, or to the value, a leaf."""
    return x.grad_fn or x


def run_backward(
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
    received: dict[Any, Any] = {grad_edge(root): gradient}
    found: dict[Any, Any] = {}
    order = toposort(
        [root.grad_fn[0]] if root.grad_fn else [],
        lambda call: [e[0] for e in call.edges if type(e) is tuple],
    )
    with grad_recording(create_graph):
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
                call.free_saved()
    return received | found
