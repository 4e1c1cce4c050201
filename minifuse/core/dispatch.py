"""The dispatch state of a thread: whether calls are recorded for autograd, its settings, and a dispatch hook.

Cache keys of calls contain the state, so a call in another state, for example inside `no_grad()`, never runs a plan that was
built for the default state. A call in the default state costs nothing extra.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
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


class ThreadSettings(NamedTuple):
    """The settings of a thread: the precision of float32 arithmetic on a GPU (`minifuse.core.precision`), and its rank."""

    matmul: str = HIGHEST
    is_fast_math: bool = False
    rank: tuple[Hashable, ...] = ()
    """The rank of the thread and the axes of its mesh, since a function that reads these is traced for each rank."""


DEFAULT_SETTINGS = ThreadSettings()


class DispatchState:
    """A state with a hook, or with other settings than the default. bool(state) is True if calls are recorded."""

    __slots__ = ("hook", "is_recording", "settings")

    def __init__(self, is_recording: bool, hook: DispatchHook | None, settings: ThreadSettings) -> None:
        self.is_recording, self.hook, self.settings = is_recording, hook, settings

    def __bool__(self) -> bool:
        return self.is_recording


RecordingState = bool | DispatchState  # a bool in the default state


class DispatchMode(local):
    """The state of each thread."""

    initial: RecordingState = True  # the state of a thread before its first call

    def __init__(self) -> None:
        self.is_recording: RecordingState = self.initial


mode = DispatchMode()


def make_state(is_recording: bool, hook: DispatchHook | None, settings: ThreadSettings) -> RecordingState:
    """Return a state for `mode.is_recording`. States without a hook are shared, since cache keys compare by identity."""
    if hook is not None:
        return DispatchState(is_recording, hook, settings)
    return is_recording if settings == DEFAULT_SETTINGS else state_without_hook(is_recording, settings)


@cache
def state_without_hook(is_recording: bool, settings: ThreadSettings) -> DispatchState:
    """Return the state with these values and no hook. Equal values return the same object."""
    return DispatchState(is_recording, None, settings)


def state_with_recording(is_recording: bool) -> RecordingState:
    """Return the state of this thread with recording turned on or off."""
    return make_state(is_recording, active_hook(), settings_of(mode.is_recording))


def active_hook() -> DispatchHook | None:
    """Return the hook that receives the calls of this thread, or None."""
    state = mode.is_recording
    return state.hook if isinstance(state, DispatchState) else None


def active_tracer() -> Any:
    """Return the tracer that records the calls of this thread, a `jit.tracer.Tracer`, or None."""
    hook = active_hook()
    return hook if hook is not None and hook.is_tracer else None


def settings_of(state: RecordingState) -> ThreadSettings:
    """Return the settings of a state."""
    return state.settings if isinstance(state, DispatchState) else DEFAULT_SETTINGS


def matmul_precision() -> str:
    """Return the precision of float32 matrix products in this thread. See `minifuse.core.precision`."""
    return settings_of(mode.is_recording).matmul


def is_fast_math() -> bool:
    """Return whether this thread approximates functions of float32. See `minifuse.core.precision`."""
    return settings_of(mode.is_recording).is_fast_math


def set_default_hook(hook: DispatchHook | None) -> None:
    """Send the calls of this thread, and of threads that start to compute later, to a hook; None ends it."""
    DispatchMode.initial = make_state(True, hook, settings_of(DispatchMode.initial))
    mode.is_recording = make_state(bool(mode.is_recording), hook, settings_of(mode.is_recording))


def set_settings(change: Callable[[ThreadSettings], ThreadSettings]) -> None:
    """Change a setting of this thread, and of threads that start to compute later."""
    initial = DispatchMode.initial
    hook = initial.hook if isinstance(initial, DispatchState) else None
    DispatchMode.initial = make_state(True, hook, change(settings_of(initial)))
    change_settings(change)


def change_settings(change: Callable[[ThreadSettings], ThreadSettings]) -> None:
    """Change a setting of this thread."""
    state = mode.is_recording
    mode.is_recording = make_state(bool(state), active_hook(), change(settings_of(state)))


@contextmanager
def use_dispatch_hook(hook: DispatchHook | None) -> Iterator[None]:
    """Send the calls of a block of code to a hook, or run them directly if `hook` is None."""
    outer_state = mode.is_recording
    mode.is_recording = make_state(bool(outer_state), hook, settings_of(outer_state))
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


class RecordingMode:
    """A context manager and decorator that turns recording for autograd on or off. Usable as `@mode`, without brackets, too.

    `is_recording` is None for a mode that changes nothing.
    """

    is_recording: bool | None = None

    def __new__(cls, function: Callable[P, R] | None = None) -> Any:
        """Return the context manager, or the function in it."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self, function: None = None) -> None:
        self.outer_states: list[RecordingState] = []  # a stack: one object may be entered several times

    def __enter__(self) -> None:
        self.outer_states.append(mode.is_recording)
        if self.is_recording is not None:
            mode.is_recording = state_with_recording(self.is_recording)

    def __exit__(self, *error: object) -> None:
        mode.is_recording = self.outer_states.pop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return the function, wrapped to run in this mode."""

        @wraps(function)
        def run(*inputs: P.args, **named: P.kwargs) -> R:
            with self:
                return function(*inputs, **named)

        return run


class no_grad(RecordingMode):  # noqa: N801  # PyTorch's name
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

    is_recording = False


class enable_grad(RecordingMode):  # noqa: N801  # PyTorch's name
    """Turn on recording for autograd, inside `no_grad`. Use it as a context manager or as a decorator.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([1.0], requires_grad=True)
    >>> with mf.no_grad(), mf.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    is_recording = True


class FlaggedMode(RecordingMode):
    """A recording mode with a flag."""

    def __new__(cls, mode: bool | Callable[P, R] = True) -> Any:
        """Return the context manager, or the function in it."""
        return super().__new__(cls, mode if callable(mode) else None)


class inference_mode(FlaggedMode):  # noqa: N801  # PyTorch's name
    """Turn off recording for autograd, as `no_grad`: minifuse keeps no more for autograd that could be turned off.

    With mode=False, change nothing.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([1.0], requires_grad=True)
    >>> with mf.inference_mode():
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.is_recording = False if mode else None


class set_grad_enabled(FlaggedMode):  # noqa: N801  # PyTorch's name
    """Turn recording for autograd on or off from now on, or in a block of code if it is used as a context manager.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([1.0], requires_grad=True)
    >>> with mf.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    >>> mf.is_grad_enabled()
    True
    """

    is_used = False

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.is_recording = bool(mode)
        super().__enter__()

    def __enter__(self) -> None:
        if not self.is_used:
            self.undo()
        super().__enter__()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return the function, wrapped to run in this mode, and undo what the constructor did."""
        if not self.is_used:
            self.undo()
        return super().__call__(function)

    def undo(self) -> None:
        """Return to the mode before the constructor, since the object is used as a context manager or decorator."""
        self.is_used = True
        self.__exit__()


def is_grad_enabled() -> bool:
    """Return True if calls of this thread are recorded for autograd.

    Examples
    --------
    >>> import minifuse as mf
    >>> with mf.no_grad():
    ...     mf.is_grad_enabled()
    False
    """
    return bool(mode.is_recording)
