"""Warm up the server in a background thread, so that the first page of each kind is fast. Busy pages go first.

Tables need pandas, pictures of kernels need the interpreter, and Train and Race need kernels that take seconds to compile if
none are cached on disk. Warming up is optional: a page that is opened first loads and compiles what it needs.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib import import_module

from minifuse.core.errors import MinifuseError

PAUSE_S = 1.5  # seconds until the first page is drawn
BUSY = {"minifuse-train", "minifuse-doctor"}  # threads of pages; waiting for them avoids compiling the same kernels twice
LIBRARIES = ("pandas", "pyarrow", "numba", "minifuse.simt")


def jobs() -> Iterator[Callable[[], object]]:
    """Yield short jobs, most useful first."""
    yield from (partial(import_module, name) for name in LIBRARIES)
    from .views import functions, fusion, race, train

    first = train.begin(train.Settings())
    yield partial(train.curve, first)
    yield partial(train.advance, first, 1, 0)
    yield partial(fusion.split_function, functions.FUSED[0], 64, "parallel")
    yield train.digits
    for settings in (train.Settings(train.DIGITS), train.Settings(activation="Tanh", optimizer="Adam")):
        yield partial(train.advance, train.begin(settings), 1, 0)
    for operation in race.OPERATIONS.values():
        yield partial(race.check_result, operation, "parallel")


def work() -> None:
    """Run all jobs. If one fails, the page that needs it reports the error."""
    time.sleep(PAUSE_S)
    for job in jobs():
        while any(thread.name in BUSY for thread in threading.enumerate()):
            time.sleep(PAUSE_S / 10)
        with suppress(MinifuseError, ImportError):
            job()


@cache
def begin() -> threading.Thread:
    """Start the thread in the first call."""
    thread = threading.Thread(target=work, name="minifuse-warm-up", daemon=True)
    thread.start()
    return thread
