"""The limit on the time of a student's code: processor time, since other programs may use the same cores.

Compiled code may hold Python's lock, and no thread of Python runs then. So the thread that reads the clocks arms a timer of
`faulthandler`, which needs no lock, again and again; if the timer fires, it prints the stack and ends the process.
"""

import faulthandler
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

GRACE_S = 2.0  # for the process to report which line it is running
POLL_S = 0.25
MAX_WAIT = 5
"""The limit on the time of day, in limits on processor time: code may wait without computing."""


class Clock:
    """The time that a process has computed since a moment: that of its main thread, or of all its threads on average."""

    def __init__(self) -> None:
        self._main = getattr(time, "pthread_getcpuclockid", lambda _: None)(threading.get_ident())
        self._start = self._times()

    def _times(self) -> tuple[float, float, float]:
        """Return the time of day, of the process, and of the main thread."""
        return time.monotonic(), time.process_time(), time.clock_gettime(self._main) if self._main is not None else 0.0

    def used(self) -> float:
        """Return the seconds of processor time; a fraction of those of the day if nothing was computed."""
        day, process, main = (now - before for now, before in zip(self._times(), self._start, strict=True))
        numba: Any = sys.modules.get("numba")
        threads = numba.get_num_threads() if hasattr(numba, "get_num_threads") else 1
        return max(main, process / threads, day / MAX_WAIT)


def call_at_end(seconds: float, report: Callable[[], None]) -> None:
    """Call a function in another thread when the main thread, which calls this, has computed for some seconds from now."""
    clock = Clock()

    def watch() -> None:
        while (left := seconds - clock.used()) > 0:
            faulthandler.dump_traceback_later(left + GRACE_S, exit=True, file=sys.stderr)
            time.sleep(min(POLL_S, left))
        report()

    faulthandler.dump_traceback_later(seconds + GRACE_S, exit=True, file=sys.stderr)
    threading.Thread(target=watch, daemon=True).start()
