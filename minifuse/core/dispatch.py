"""The dispatch state of a thread: whether calls are recorded for autograd, the precision, and a dispatch hook.

Cache keys of calls contain the state, so a call in another state, for example inside `no_grad()`, never runs a plan that was
built for the default state. A call in the default state costs nothing extra.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from threading import local
from typing import Any, NamedTuple, ParamSpec, TypeVar

from .dtypes import HIGHEST
from .traceable import TraceableFunction

P = ParamSpec("P")
R = TypeVar("R")


class DispatchHook:
    """An object that receives every call of a thread instead: a tracer records calls, a profile measures them."""

    is_tracer = False  # True for hooks that run nothing: their tensors have no values

    def call(self, function: TraceableFunction, inputs: Sequence[object]) -> Any:
        """Return the result of a function call."""
        raise NotImplementedError

    def call_inplace(
        self, function: TraceableFunction, targets: tuple[int, ...], alias_of: tuple[int, ...], inputs: Sequence[object]
    ) -> Callable[..., object]:
        """Return the function that runs an in-place operation. A tracer handles these before they reach this method.

        `alias_of` contains for each input the index of the first input that is the same tensor.
        """
        raise NotImplementedError

    def call_fused(self, fused: Any, inputs: tuple[object, ...], named: dict[str, object]) -> Any:
        """Return the result of calling a fused function."""
        raise NotImplementedError

    def launch_custom_kernel(self, plan: Any, launch: Callable[..., None]) -> Callable[..., None]:
        """Return the function that launches a custom kernel of the user, in place of `launch`. A tracer rejects these."""
        raise NotImplementedError


class Precision(NamedTuple):
    """The precision of float32 arithmetic on a GPU: the settings of `minifuse.core.precision`."""

    matmul: str = HIGHEST
    is_fast_math: bool = False


DEFAULT_PRECISION = Precision()


class DispatchState:
    """A state with a hook, or with another precision than the default. bool(state) is True if calls are recorded."""

    __slots__ = ("hook", "is_recording", "precision")

    def __init__(self, is_recording: bool, hook: DispatchHook | None, precision: Precision) -> None:
        self.is_recording, self.hook, self.precision = is_recording, hook, precision

    def __bool__(self) -> bool:
        return self.is_recording


RecordingState = bool | DispatchState  # a bool in the default state


class DispatchMode(local):
    """The state of each thread."""

    initial: RecordingState = True  # the state of a thread before its first call

    def __init__(self) -> None:
        self.is_recording: RecordingState = self.initial


mode = DispatchMode()


def make_state(is_recording: bool, hook: DispatchHook | None, precision: Precision) -> RecordingState:
    """Return a state for `mode.is_recording`. States without a hook are shared, since cache keys compare by identity."""
    if hook is not None:
        return DispatchState(is_recording, hook, precision)
    return is_recording if precision == DEFAULT_PRECISION else state_without_hook(is_recording, precision)


@cache
def state_without_hook(is_recording: bool, precision: Precision) -> DispatchState:
    """Return the state with these values and no hook. Equal values return the same object."""
    return DispatchState(is_recording, None, precision)


def state_with_recording(is_recording: bool) -> RecordingState:
    """Return the state of this thread with recording turned on or off."""
    return make_state(is_recording, active_hook(), precision_of(mode.is_recording))


def active_hook() -> DispatchHook | None:
    """Return the hook that receives the calls of this thread, or None."""
    state = mode.is_recording
    return state.hook if isinstance(state, DispatchState) else None


def active_tracer() -> Any:
    """Return the tracer that records the calls of this thread, a `jit.tracer.Tracer`, or None."""
    hook = active_hook()
    return hook if hook is not None and hook.is_tracer else None


def precision_of(state: RecordingState) -> Precision:
    """Return the precision of a state."""
    return state.precision if isinstance(state, DispatchState) else DEFAULT_PRECISION


def matmul_precision() -> str:
    """Return the precision of float32 matrix products in this thread. See `minifuse.core.precision`."""
    return precision_of(mode.is_recording).matmul


def is_fast_math() -> bool:
    """Return whether this thread approximates functions of float32. See `minifuse.core.precision`."""
    return precision_of(mode.is_recording).is_fast_math


@contextmanager
def use_dispatch_hook(hook: DispatchHook | None) -> Iterator[None]:
    """Send the calls of a block of code to a hook, or run them directly if `hook` is None."""
    outer_state = mode.is_recording
    mode.is_recording = make_state(bool(outer_state), hook, precision_of(outer_state))
    try:
        yield
    finally:
        mode.is_recording = outer_state


@contextmanager
def grad_recording(is_recording: bool) -> Iterator[None]:
    """Turn recording for autograd on or off in a block of code."""
    outer_state, mode.is_recording = mode.is_recording, state_with_recording(is_recording)
    try:
        yield
    finally:
        mode.is_recording = outer_state


class no_grad:  # noqa: N801  # PyTorch's name
    """Turn off recording for autograd: results require no gradient, and intermediate results are freed at once.

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
        self.outer_states: list[RecordingState] = []  # a stack: one object may be entered several times

    def __enter__(self) -> None:
        self.outer_states.append(mode.is_recording)
        mode.is_recording = state_with_recording(False)

    def __exit__(self, *error: object) -> None:
        mode.is_recording = self.outer_states.pop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return the function, wrapped to run without recording."""

        @wraps(function)
        def run(*inputs: P.args, **named: P.kwargs) -> R:
            with grad_recording(False):
                return function(*inputs, **named)

        return run
