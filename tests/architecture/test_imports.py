"""What `import minifuse` does to a process: nothing but bring the names."""

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from tests.sources import ROOT

# Imports numba and numpy first, so that what they do is not counted, then reports what minifuse did on top.
PROBE = """
import json, os, sys, threading
import numba, numpy

def threads():
    tasks = "/proc/self/task"
    return len(os.listdir(tasks)) if os.path.isdir(tasks) else threading.active_count()

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.fork", "subprocess.Popen"}
changes = []

def watch(event, args):
    if (event == "open" and args[2] and args[2] & WRITES) or event in CHANGES:
        changes.append(f"{event} {args[0]}")

modules, started = set(sys.modules), threads()
sys.addaudithook(watch)
import minifuse
report = {
    "modules": sorted(set(sys.modules) - modules),
    "numba.cuda": "numba.cuda" in sys.modules,
    "threads": threads() - started,
    "changes": list(changes),
    "where": minifuse.__file__,
}
sys.__stderr__.write(json.dumps(report))
"""

LATE = (
    "torch",
    "streamlit",
    "rich",
    "typer",
    "sklearn",
    "scipy",
    "pytest",
    "hypothesis",
    "pandas",
    "matplotlib",
    "cuda",
    "cupy",
)


@cache
def imported() -> tuple[dict[str, Any], str]:
    """The report of a fresh process that imports minifuse, and what that printed."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    noise, _, report = process.stderr.rpartition("{")
    return json.loads("{" + report), process.stdout + noise


def test_it_imports_the_package_of_this_folder():
    assert imported()[0]["where"] == str(ROOT / "minifuse" / "__init__.py")


@pytest.mark.parametrize("name", LATE)
def test_optional_packages_are_imported_late(name):
    found = [module for module in imported()[0]["modules"] if module.split(".")[0] == name]
    assert not found, (
        f"import minifuse imports {found[0]}; import it where it is used, and name its extra when it is missing"
    )


def test_the_cuda_backend_is_imported_late():
    report = imported()[0]
    assert not report["numba.cuda"]
    assert not [
        module for module in report["modules"] if module.startswith(("numba.cuda", "numba_cuda", "minifuse.backends.cuda"))
    ]


def test_it_prints_nothing():
    assert imported()[1] == ""


def test_it_writes_nothing_and_starts_no_process():
    assert imported()[0]["changes"] == []


def test_it_starts_no_thread():
    assert imported()[0]["threads"] == 0
