"""A pytest plugin that records which tests execute the lines of the drawn mutants, and how long each test takes.

    MINIFUSE_MUTANTS=folder python -m pytest -p tests.mutants.trace

Each process writes a file of its own. Python 3.12 or newer: other lines are switched off where they run first, so that a
traced run costs little more than a plain one. Lines that only a child process or compiled code executes are not seen.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from .drawn import located
from .sites import ROOT, Site

TOOL = 4  # of sys.monitoring: a number that no debugger, profiler or coverage tool uses
lines_of: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))  # path -> line -> mutants
executed: dict[int, set[str]] = defaultdict(set)  # mutant -> tests
seconds: dict[str, float] = {}
failed: set[str] = set()  # tests that fail without a mutant too: they can kill none
current = ""


def executed_lines(site: Site) -> range:
    """Return the lines of a mutant: those of its code in a function, all of its module if it runs at import."""
    if site.mutant.function:
        return range(site.line, site.end_line + 1)
    return range(1, len((ROOT / site.mutant.path).read_text().splitlines()) + 1)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to watch lines."""
    for number, site in enumerate(located()):
        if site is not None:
            for line in executed_lines(site):
                lines_of[site.mutant.path][line].append(number)
    monitoring: Any = sys.monitoring
    monitoring.use_tool_id(TOOL, "mutants")
    root = f"{Path.cwd()}{os.sep}"

    def line_runs(code: CodeType, line: int) -> object:
        mutants = lines_of.get(code.co_filename.removeprefix(root), {}).get(line)
        if not mutants:
            return monitoring.DISABLE
        for number in mutants:
            executed[number].add(current)
        return None

    monitoring.register_callback(TOOL, monitoring.events.LINE, line_runs)
    monitoring.set_events(TOOL, monitoring.events.LINE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Name the test that runs."""
    global current
    current = item.nodeid
    result = yield
    current = ""
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds of a test: its fixtures, and itself."""
    seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write what this process has seen."""
    sys.monitoring.set_events(TOOL, sys.monitoring.events.NO_EVENTS)
    if executed:
        found = {"tests": {number: sorted(tests - failed - {""}) for number, tests in executed.items()}, "seconds": seconds}
        Path(os.environ["MINIFUSE_MUTANTS"], f"trace-{os.getpid()}.json").write_text(json.dumps(found))
