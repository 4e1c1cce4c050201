"""Print reports, tables and facts on the command line.

`doctor` and `demo` run without rich: they use `print_plain` and `print_json`. The other commands print on a console of rich.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..inspect.report import WIDTH, Column, InspectionReport, Line, ReportTable, make_table

if TYPE_CHECKING:
    from rich.console import Console

EXIT_INTERRUPTED = 130  # the exit status of a program that Ctrl-C has ended
STYLE_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32"}  # of ANSI escape sequences


def new_console(*, is_quiet: bool = False, to_stderr: bool = False) -> "Console":
    """Return a console for reports, as wide as the terminal, and at most WIDTH columns wide."""
    from rich.console import Console

    return Console(width=min(WIDTH, Console().width), highlight=False, quiet=is_quiet, stderr=to_stderr)


def print_report(report: InspectionReport | ReportTable, console: "Console") -> None:
    """Print a report or a table in color."""
    from rich.text import Text

    for line in report.lines(console.width):
        console.print(Text.assemble(*line), soft_wrap=True)


def print_plain(lines: Iterable[Line]) -> None:
    """Print lines without rich, with their styles if standard output is a terminal that supports them."""
    is_plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb" or os.name == "nt"
    for line in lines:
        print("".join(text if is_plain else add_style(text, style) for text, style in line))
    sys.stdout.flush()


def add_style(text: str, style: str) -> str:
    """Add ANSI escape sequences for a style, such as "bold green".

    Examples
    --------
    >>> add_style("ok", "bold green"), add_style("ok", "")
    ('\\x1b[1;32mok\\x1b[0m', 'ok')
    """
    return f"\x1b[{';'.join(STYLE_CODES[word] for word in style.split())}m{text}\x1b[0m" if style else text


def report_width() -> int:
    """Return the number of columns for reports: those of the terminal, and at most WIDTH."""
    return min(WIDTH, shutil.get_terminal_size().columns)


def print_json(facts: object) -> None:
    """Print facts as JSON, and nothing else."""
    sys.stdout.write(json.dumps(facts, indent=2) + "\n")


def report_error(command: str, error: Exception, status: int = 2) -> int:
    """Print an error of a command in one line, and return the exit status."""
    sys.stderr.write(f"minifuse {command}: {error}\n")
    return status


def report_interrupt() -> int:
    """Print that Ctrl-C stopped the command, and return the exit status."""
    sys.stderr.write("\nminifuse: stopped\n")
    return EXIT_INTERRUPTED


def overview_table(rows: Iterable[tuple[str, str, str]]) -> ReportTable:
    """Return the table of a label (TRACED, DERIVED or THEORY), a name and a text in each row."""
    return make_table([Column("label", style="dim"), Column("name"), Column("text", wraps=True)], [*rows], 0, False)
