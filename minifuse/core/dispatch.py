"""The dispatch state of a thread: whether calls are recorded for autograd, the matmul precision, and a dispatch hook.

Cache keys of calls contain the state. A call under another state, for example inside `no_grad()`, therefore never finds a
plan that was built for this one, and a call in the default state costs nothing extra.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from threading import local
from typing import Any

from .dtypes import HIGHEST


class DispatchHook:
    """Receives every call of a thread instead of running it: a tracer records calls, a profile measures them."""

    is_tracer = False  # a tracer runs nothing, so its tensors have no values

    def call(self, function: Any, inputs: Sequence[Any]) -> Any:
        """Return the result of a function call."""
        raise NotImplementedError

    def call_inplace(self, function: Any, targets: tuple[int, ...], same: tuple[int, ...], inputs: Sequence[Any]) -> Any:
        """Return the plan to run for an in-place operation. A tracer handles these before they reach this method."""
        raise NotImplementedError

    def launch_custom_kernel(self, plan: Any, launch: Any) -> Any:
        """Return the function that launches a custom kernel of the user, in place of `launch`. A tracer rejects these."""
        raise NotImplementedError


class DispatchState:
    """A state with a hook, or with another matmul precision than the default. As a bool: whether calls are recorded."""

    __slots__ = ("hook", "is_recording", "precision")

    def __init__(self, is_recording: bool, hook: Any, precision: str) -> None:
        self.is_recording, self.hook, self.precision = is_recording, hook, precision

    def __bool__(self) -> bool:
        return self.is_recording


class DispatchMode(local):
    """The state of each thread. `is_recording` is a bool in the default state, otherwise a DispatchState."""

    initial: Any = True  # the state of a thread that computes for the first time

    def __init__(self) -> None:
        self.is_recording = self.initial


mode = DispatchMode()


def make_state(is_recording: bool, hook: Any, precision: str) -> Any:
    """Return a state for `mode.is_recording`. States without a hook are shared, since cache keys compare by identity."""
    if hook is not None:
        return DispatchState(is_recording, hook, precision)
    return is_recording if precision == HIGHEST else state_without_hook(is_recording, precision)


@cache
def state_without_hook(is_recording: bool, precision: str) -> DispatchState:
    """Return the one state with these values and no hook."""
    return DispatchState(is_recording, None, precision)


def with_flag(is_recording: bool) -> Any:
    """Return the state of this thread with recording turned on or off."""
    return make_state(is_recording, active_hook(), matmul_precision())


def active_hook() -> Any:
    """Return the hook that receives the calls of this thread, or None."""
    return getattr(mode.is_recording, "hook", None)


def active_tracer() -> Any:
    """Return the tracer that records the calls of this thread, or None."""
    hook = active_hook()
    return hook if hook is not None and hook.is_tracer else None


def matmul_precision() -> str:
    """Return the precision of float32 matrix products in this thread. See `minifuse.core.precision`."""
    return getattr(mode.is_recording, "precision", HIGHEST)


@contextmanager
def use_dispatch_hook(hook: DispatchHook | None) -> Iterator[None]:
    """Send the calls of a block of code to a hook, or run them directly if it is None."""
    before = mode.is_recording
    mode.is_recording = make_state(bool(before), hook, matmul_precision())
    try:
        yield
    finally:
        mode.is_recording = before


@contextmanager
def grad_recording(is_recording: bool) -> Iterator[None]:
    """Turn recording for autograd on or off in a block of code."""
    before, mode.is_recording = mode.is_recording, with_flag(is_recording)
    try:
        yield
    finally:
        mode.is_recording = before


class no_grad:  # noqa: N801  # PyTorch's name
    """Record nothing for autograd: results require no gradient, and memory is freed at once.

    Use it as a context manager or as a decorator.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([1.0], requires_grad=True)
    >>> with mf.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self) -> None:
        self.before: list[Any] = []  # a stack: one object may be entered several times

    def __enter__(self) -> None:
        self.before.append(mode.is_recording)
        mode.is_recording = with_flag(False)

    def __exit__(self, *error: object) -> None:
        mode.is_recording = self.before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, wrapped to run without recording."""

        @wraps(function)
        def run(*inputs: Any, **named: Any) -> Any:
            with grad_recording(False):
                return function(*inputs, **named)

        return run
