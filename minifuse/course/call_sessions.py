"""Sessions with caches of kernels for task 5.4, as data: requests to one or two caches, and what their builds do.

A build may return any value, also one that is false, may end in an error, and may ask the cache for other kernels.
"""

import gc
import weakref
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from ..core.wording import format_count
from .call_pairs import Call, Tensor

ERRORS: dict[str, type[Exception]] = {
    error.__name__: error for error in (ArithmeticError, KeyError, ValueError, TypeError, StopIteration)
}


class BuiltKernel:
    """A kernel that a build returns, to which weak references are possible; it is false if it has no length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


KERNELS: dict[str, Callable[[], object]] = {
    "object": lambda: BuiltKernel(1),
    "empty": lambda: BuiltKernel(0),
    "None": lambda: None,
    "0": lambda: 0,
    "text": lambda: "",
}


class Step(NamedTuple):
    """A request."""

    cache: int
    k: int
    """The function that is called has this number in its closure."""
    kernel: str = "object"
    """The kind of kernel that a build returns: a name in KERNELS."""
    error: str = ""
    """The error of a build: a name in ERRORS; none if empty."""
    asks: tuple[int, ...] = ()
    """Requests of the build to the same cache."""

    def __str__(self) -> str:
        build = f"; a build raises {self.error}" * bool(self.error)
        build += f"; a build asks for {', '.join(map(str, self.asks))} first" * bool(self.asks)
        build += f"; a build returns {self.kernel}" * (self.kernel != "object")
        return f"k = {self.k}" + f" of cache {self.cache}" * bool(self.cache) + build


class Session(NamedTuple):
    """Requests to caches, one after the other."""

    rooms: tuple[int, ...]
    """How many kernels each cache keeps."""
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        shown = [f"({step})" if step.cache or step[2:] != Step(0, 0)[2:] else str(step.k) for step in self.steps]
        rooms = f"room for {self.rooms[0]} kernels" if len(set(self.rooms)) == 1 else f"rooms for {self.rooms} kernels"
        return f"{format_count(len(self.rooms), 'cache')} with {rooms}; requests " + ", ".join(shown[:60])


class SessionFacts(NamedTuple):
    """The events of a session."""

    results: list[tuple[int, int, bool]]
    """For each request, as it ends: k, the number of builds during it, and whether it returned or raised what it should."""
    is_over: bool
    """True if more kernels are alive than the caches have room for."""
    is_holding: bool
    """True if functions or arguments of calls are alive."""


def run_session(make: Callable[[int], Any], session: Session) -> SessionFacts:
    """Make caches, and ask them."""
    caches = [make(room) for room in session.rooms]
    latest: dict[tuple[int, int], object] = {}
    results, count = list[tuple[int, int, bool]](), 0
    calls, kernels = list[weakref.ref[Any]](), list[weakref.ref[Any]]()

    def ask(step: Step) -> None:
        raised, before = list[Exception](), count

        def build() -> object:
            nonlocal count
            count += 1
            for k in step.asks:
                ask(Step(step.cache, k))
            if step.error:
                raised.append(ERRORS[step.error]("this kernel does not compile"))
                raise raised[0]
            kernel = KERNELS[step.kernel]()
            if isinstance(kernel, BuiltKernel):
                kernels.append(weakref.ref(kernel))
            latest[step.cache, step.k] = kernel
            return kernel

        function, arguments = Call("scaled", float(step.k), Tensor((4, 5)), Tensor((4, 5)), 1.0).build()
        calls.extend((weakref.ref(function), weakref.ref(arguments[0].storage)))  # type: ignore[union-attr]  # a tensor
        try:
            kernel = caches[step.cache].kernel(function, arguments, build)
        except Exception as error:
            if not raised or error is not raised[0]:
                raise
            error.__traceback__ = None  # its frames would keep the arguments
            results.append((step.k, count - before, True))
        else:
            is_right = not raised and (step.cache, step.k) in latest and kernel is latest[step.cache, step.k]
            results.append((step.k, count - before, is_right))

    for step in session.steps:
        ask(step)
    latest.clear()
    room = sum(session.rooms)
    if count_alive(kernels) > room or count_alive(calls):
        gc.collect()  # a cache may keep them in cycles
    return SessionFacts(results, count_alive(kernels) > room, count_alive(calls) > 0)


def count_alive(objects: Sequence["weakref.ref[Any]"]) -> int:
    """Count the objects that exist."""
    return sum(one() is not None for one in objects)


def draw_session(seed: int, room: int, count: int, failing: float = 0.1) -> Session:
    """Draw a session of some requests, with caches that have room for `room` kernels, or for a few more.

    `failing` is the fraction of requests whose builds raise an error.
    """
    random = Random(seed)
    rooms = random.choice(((room,), (room,), (room, room), (room, room + 1)))
    kinds, most = random.choice((("object",), ("object", *KERNELS))), max(room + random.randint(0, 3), 2)
    steps = list[Step]()
    for _ in range(count):
        k = random.randrange(most)
        step = Step(random.randrange(len(rooms)), k, random.choice(kinds))
        if random.random() < failing:
            step = step._replace(error=random.choice(list(ERRORS)))
        elif random.random() < 0.1:
            others = [other for other in range(most) if other != k]
            step = step._replace(asks=tuple(random.sample(others, min(random.randint(1, 3), len(others)))))
        steps.append(step)
    return Session(rooms, tuple(steps))
