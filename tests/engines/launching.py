"""Run `minifuse launch` in tests."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

from tests.sources import ROOT


class Result(NamedTuple):
    code: int
    out: str
    err: str
    seconds: float
    """From when the script wrote the file `stamp`, or else from the start, to the end of the launcher."""


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"}


def command(script, *arguments, n=2, engine="shared", options=()):
    return [
        *(sys.executable, "-m", "minifuse", "launch", "-n", str(n), "--engine", engine),
        *options,
        *map(str, (script, *arguments)),
    ]


def write(folder, text):
    script = Path(folder, "script.py")
    script.write_text(textwrap.dedent(text), encoding="utf-8")
    return script


def launch(folder, text, *arguments, **options):
    """Run a script; it may write the file `stamp` when it begins to go wrong."""
    return run(folder, command(write(folder, text), *arguments, **options))


def run(folder, words):
    start = time.time()
    done = subprocess.run(
        words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    stamp = Path(folder, "stamp")
    since = stamp.stat().st_mtime if stamp.exists() else start
    return Result(done.returncode, done.stdout, done.stderr, time.time() - since)
