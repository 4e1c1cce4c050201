"""Print reports, tables and facts on the command line."""

import json
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from ..inspect.report import WIDTH, Column, InspectionReport, ReportTable, make_table


def new_console(*, is_quiet: bool = False) -> Console:
    """Return a console for reports, as wide as the terminal, and at most WIDTH columns wide."""
    return Console(width=min(WIDTH, Console().width), highlight=False, quiet=is_quiet)


def print_report(report: InspectionReport | ReportTable, console: Console) -> None:
    """Print a report or a table in color."""
    for line in report.lines(console.width):
        console.print(Text.assemble(*line), soft_wrap=True)


def print_json(facts: object) -> None:
    """Print facts as JSON, and nothing else."""
    sys.stdout.write(json.dumps(facts, indent=2) + "\n")


def report_error(command: str, error: Exception, status: int = 2) -> int:
    """Print an error of a command in one line, and return the exit status."""
    sys.stderr.write(f"minifuse {command}: {error}\n")
    return status


def overview_table(rows: Iterable[tuple[str, str, str]]) -> ReportTable:
    """Return the table of a label (TRACED, DERIVED or THEORY), a name and a text in each row."""
    return make_table([Column("label", style="dim"), Column("name"), Column("text", wraps=True)], [*rows], 0, False)
