"""A plugin of pytest that skips the tests of `skips.txt` and writes the outcomes as JSON."""

import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import minifuse as mf

SKIPS = Path(__file__).with_name("skips.txt")


def skips() -> dict[str, str]:
    """Return the starts of names of tests that are skipped, with the reason of each."""
    rows = [line.split("  |  ") for line in SKIPS.read_text().splitlines() if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, reason in rows}


class Outcomes:
    """Count outcomes, and remember the names of tests that fail."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failed: list[str] = []
        self.reasons = skips()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark the tests of the list as skipped."""
        for item in items:
            name = item.nodeid.partition("array_api_tests/")[2]
            reason = next((text for start, text in self.reasons.items() if name.startswith(start)), None)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the outcome of a test."""
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1
            if report.failed:
                self.failed.append(report.nodeid.partition("array_api_tests/")[2])

    def pytest_sessionfinish(self) -> None:
        """Write the counts, and the names of the tests that failed."""
        if (path := os.environ.get("MINIFUSE_ARRAY_API_JSON")) is not None:
            run = {
                "suite": "array-api-tests 2024.12", "backend": os.environ["MINIFUSE_ARRAY_API_BACKEND"],
                "minifuse": mf.__version__, "numpy": np.__version__, **self.counts, "failures": sorted(self.failed),
            }  # fmt: skip
            Path(path).write_text(json.dumps(run, indent=1) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin's hooks."""
    config.pluginmanager.register(Outcomes())
