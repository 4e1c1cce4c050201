"""What pages want at first, made ready while nobody waits: a thread of the server, once, which lets pages at work go first.

Tables want pandas, pictures of kernels want the interpreter, and Train and Race want kernels that take seconds to compile
where none are kept on the disk. Nothing here is needed: a page that comes first makes for itself what it wants.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib import import_module

from minifuse.core.errors import MinifuseError

PAUSE_S = 1.5  # until the page that came first is drawn
BUSY = {"minifuse-train", "minifuse-doctor"}  # threads of pages; what they compile now is not to be compiled twice
LIBRARIES = ("pandas", "pyarrow", "numba", "minifuse.simt")


def jobs() -> Iterator[Callable[[], object]]:
    """What is made ready, what pages want most first; each job is short."""
    yield from (partial(import_module, name) for name in LIBRARIES)
    from .views import functions, fusion, race, train

    first = train.begin(train.Settings())
    yield partial(train.curve, first)
    yield partial(train.advance, first, 1, 0)
    yield partial(fusion.taken_apart, functions.FUSED[0], 64, "parallel")
    yield train.digits
    for settings in (train.Settings(train.DIGITS), train.Settings(activation="Tanh", optimizer="Adam")):
        yield partial(train.advance, train.begin(settings), 1, 0)
    for operation in race.OPERATIONS.values():
        yield partial(race.check, operation, "parallel")


def work() -> None:
    """Do all jobs; one that fails is left to the page that wants it, which says why."""
    time.sleep(PAUSE_S)
    for job in jobs():
        while any(thread.name in BUSY for thread in threading.enumerate()):
            time.sleep(PAUSE_S / 10)
        with suppress(MinifuseError, ImportError):
            job()


@cache
def begin() -> threading.Thread:
    """Start the thread, the first time that it is asked for."""
    thread = threading.Thread(target=work, name="minifuse-warm-up", daemon=True)
    thread.start()
    return thread
