"""Wait for another process by reading shared memory: spin for microseconds, then let others run, then sleep."""

import os
import time
from collections.abc import Callable
from threading import Lock

SPIN_SECONDS = 20e-6  # most waits of ranks in step end within it, and ranks that share a core wait no longer
YIELD_SECONDS = 1e-3
SLEEP_SECONDS = 5e-4  # a check takes some 10 us, so a rank that waits for long uses 2 % of a core

_lock = Lock()
_lock.acquire()


def wait_until(is_ready: Callable[[], bool], check: Callable[[], None] = lambda: None) -> None:
    """Return when a condition holds; call `check`, which may raise, now and then during a long wait."""
    for _ in range(20):  # without a look at the clock
        if is_ready():
            return
    start = time.perf_counter()
    while (waited := time.perf_counter() - start) < YIELD_SECONDS:
        if is_ready():
            return
        if waited > SPIN_SECONDS:
            os.sched_yield()
    while not is_ready():
        check()
        time.sleep(SLEEP_SECONDS)


def fence() -> None:
    """Order the memory accesses before and after it, as other processors see them.

    To release a lock and acquire it again has this effect. Processors of the x86 family need it not; others let a flag be
    seen before the data that was written first.
    """
    _lock.release()
    _lock.acquire()
