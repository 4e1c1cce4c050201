"""Results in a terminal: wide tables if the terminal is wide, else tables of medians that fit 80 columns.

The tables are colored if rich is installed. Curves and the roofline are drawn in characters below their tables.
"""

import shutil
from typing import Any

from minifuse.inspect.report import Column, InspectionReport, make_table

from . import chart, curves, roofline
from .formatting import duration, number
from .report import Table, compact, format_ours, rate, summary, tables
from .row import US, Result

WIDTH = 160  # columns of the output, if it is not a terminal
WIDE = 130  # columns of a terminal from which on tables include quartiles
SHORT = {  # short names of players, for narrow tables
    f"{US}, eager": "eager",
    f"{US}, parallel": "host",
    f"{US}, not waited for": "issued",
    f"{US}, one thread": "1 thread",
    "torch.compile": "compile",
    "torch.compile, graphs": "graphs",
    "cupy.ElementwiseKernel": "element",
    "cupy.fuse": "cu.fuse",
    "ten of a tenth": "10 x 1/10",
}
STYLES = {"met": "green", "missed": "red"}


def show(results: Result, has_picture: bool = True) -> None:
    """Print the summary and all tables; with `has_picture`, also the curves and the roofline."""
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    console = console_of(width)
    is_wide = width >= WIDE
    for line in summary(results):
        console.print(line)
    console.print(
        f"Columns of peers: their time over that of {US}, median of the rounds"
        + " (quartiles)." * is_wide
        + "." * (not is_wide)
    )
    all_tables = tables(results) if is_wide else [narrow(group, width) for group in groups(results)] + curve_tables(results)
    curve_of_title = {title(curve): curve for curve in curves.curves_of(results) if curve.is_of_sizes}
    for table in all_tables:
        console.print()
        console.table(table)
        for note in table.notes:
            console.print(note)
        if has_picture and table.title in curve_of_title:
            console.print()
            console.print(picture(curve_of_title[table.title], min(width, 100)))
    if has_picture and (text := under_the_roof(results, min(width, 100))):
        console.print()
        console.print(text)
    if "device" in results and is_wide:
        console.print("\n" + plain(compact(results)))


def title(curve: curves.Measured) -> str:
    """Return the title of the table of a curve."""
    from .report import TITLES

    return f"{TITLES.get(curve.group, curve.group)}: {curve.title}"


def groups(results: Result) -> list[list[Result]]:
    """Return the rows outside curves, group by group."""
    rows = [row for row in results["rows"] if "curve" not in row]
    return [[row for row in rows if row["group"] == group] for group in dict.fromkeys(row["group"] for row in rows)]


def curve_tables(results: Result) -> list[Table]:
    """Return the tables of all curves, with short names of players."""
    titles = {title(curve) for curve in curves.curves_of(results)}
    long_named = [table for table in tables(results) if table.title in titles]
    return [table._replace(header=[SHORT.get(name, name) for name in table.header]) for table in long_named]


def narrow(rows: list[Result], width: int) -> Table:
    """Return a group as a narrow table: medians, half the distance of the quartiles, verdicts; notes on missed targets."""
    from .report import TITLES

    peers = list(dict.fromkeys(who for row in rows for who in row.get("ratios", {})))
    has_rates, has_targets = any(rate(row, US) for row in rows), any(row.get("targets") for row in rows)
    header = ["", US, "+-", *["rate"] * has_rates, *[SHORT.get(who, who) for who in peers], *["target"] * has_targets]
    lines, notes = [], []
    for row in rows:
        name = row["name"]
        if "times" not in row:
            lines.append([name, *[""] * (len(header) - 1)])
            notes.append(f"{name}: {format_ours(row)}")
            continue
        time, ratios = row["times"][US], row["ratios"]
        cells = [duration(time["median"]), f"{(time['q3'] - time['q1']) / 2 / time['median']:.0%}"]
        cells += [rate(row, US)] * has_rates
        cells += [f"{number(ratios[who]['median'])}x" if who in ratios else "" for who in peers]
        lines.append([name, *cells, *[verdict(row)] * has_targets])
        notes += [f"{name}: {', '.join(f'{n:,} {what}' for what, n in row['counts'].items())}"] if row["counts"] else []
        notes += [f"missed: {name}: {target['words']}" for target in row["targets"] if target["met"] is False]
    return Table(TITLES.get(rows[0]["group"], rows[0]["group"]), header, lines, notes)


def verdict(row: Result) -> str:
    """Return "met", "missed", "open" if a peer is missing, or "" without targets."""
    verdicts = [target["met"] for target in row["targets"]]
    return "missed" if False in verdicts else "met" if True in verdicts else "open" if verdicts else ""


def plain(table: Table, width: int = 0) -> str:
    """Format a table as text. If it is wider than `width`, names that are too long get their own lines."""
    lines = [table.header, *table.rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(table.header))]
    other_widths = sum(widths[1:]) + 2 * len(widths[1:])
    if width and widths[0] + other_widths > width:
        widths[0] = max(width - other_widths, 2)
    body = []
    for line in lines:
        name = line[0]
        if len(name) > widths[0]:
            body.append(name)
            name = ""
        cells = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        body.append("  ".join(cells).rstrip())
    return "\n".join([table.title, *body])


def picture(curve: curves.Measured, width: int) -> str:
    """Draw a curve in characters, with a legend of its signs."""
    drawn = curves.chart_of(curve)
    legend = ", ".join(f"{sign} {name}" for sign, name in zip(chart.SIGNS, drawn.names(), strict=False))
    return f"{chart.text(drawn, width)}\n{legend}"


def under_the_roof(results: Result, width: int) -> str:
    """Draw the roofline in characters, with its rows as a table; empty if no row can be drawn."""
    drawn = roofline.chart_of(results)
    if drawn is None:
        return ""
    header = ["", "row", "op/byte", "GFLOP/s", "of the roof"]
    rows = roofline.lines_of(results)
    max_name_length = width - 38
    rows = [
        [sign, name if len(name) <= max_name_length else name[: max_name_length - 3] + "...", *rest]
        for sign, name, *rest in rows
    ]
    columns = [Column(name, is_number=k > 1) for k, name in enumerate(header)]
    table = str(InspectionReport("", {"": [make_table(columns, rows)]}))
    notes = ["above 100%: caches hold the data"] if any(dot.share > 1 for dot in roofline.dots_of(results)) else []
    return "\n".join([drawn.title, chart.text(drawn, width), table, *notes])


def console_of(width: int) -> Any:
    """Return the printer: with colors if rich is installed and the output is a terminal."""
    try:
        from rich.console import Console
    except ImportError:
        return Plain(width)
    return Colored(Console(width=width, highlight=False, soft_wrap=True), width)


class Plain:
    """A printer of plain text."""

    def __init__(self, width: int) -> None:
        self.width = width

    def print(self, text: str = "") -> None:
        """Print a text, with long lines broken."""
        print(wrap_lines(text, self.width))

    def table(self, table: Table) -> None:
        """Print a table."""
        print(plain(table, 0 if self.width >= WIDE else self.width))


class Colored(Plain):
    """A printer with rich: titles are bold, met targets green, missed targets red."""

    def __init__(self, console: Any, width: int) -> None:
        super().__init__(width)
        self.console = console

    def print(self, text: str = "") -> None:
        """Print a text; missed targets are red."""
        from rich.text import Text

        for line in wrap_lines(text, self.width).split("\n"):
            self.console.print(Text(line, "red" if line.startswith("missed:") else ""))

    def table(self, table: Table) -> None:
        """Print a table."""
        from rich.text import Text

        first, *rest = plain(table, 0 if self.width >= WIDE else self.width).split("\n")
        self.console.print(Text(first, "bold"))
        for line in rest:
            text = Text(line)
            text.highlight_regex(r"\b(not met: [^;]*|missed)", "red")
            text.highlight_regex(r"(?<!not )\bmet\b(: [^;]*)?", "green")
            self.console.print(text)


def wrap_lines(text: str, width: int) -> str:
    """Break long lines between words; other lines are unchanged."""
    import textwrap

    return "\n".join(
        part
        for line in text.split("\n")
        for part in (textwrap.wrap(line, width, subsequent_indent="  ") if len(line) > width else [line])
    )
