"""Run a command at a pseudo-terminal, and read what it shows."""

import os
import re
import select
import signal
import subprocess
import sys
import time

from tests.sources import ROOT


class Terminal:
    """A command at a terminal of 80 columns."""

    def __init__(self, *command):
        import termios

        self.ours, self.its = os.openpty()
        termios.tcsetwinsize(self.its, (50, 80))
        self.before = termios.tcgetattr(self.its)
        self.seen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "minifuse", *command],
            stdin=self.its,
            stdout=self.its,
            stderr=self.its,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell ignores it for what runs behind it
        )

    def until(self, words, seconds=60):
        """Read until the last screen has these words."""
        end = time.monotonic() + seconds
        while words not in " ".join(self.seen.rpartition("\x1b[2J")[2].split()):
            assert time.monotonic() < end, f"no {words!r} in {self.seen[-3000:]}"
            if select.select([self.ours], [], [], 0.1)[0]:
                self.seen += re.sub(r"\x1b\[[0-9;]*m", "", os.read(self.ours, 1 << 16).decode(errors="replace"))

    def press(self, key):
        os.write(self.ours, key.encode())

    def end(self):
        """Its status, and whether the terminal is as it was."""
        import termios

        status = self.process.wait(60)
        is_restored = termios.tcgetattr(self.its) == self.before
        os.close(self.ours)
        os.close(self.its)
        return status, is_restored
