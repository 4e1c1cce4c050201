"""The saved results of benchmarks, which contain device and date: tables of times, and of the times of others over ours."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from minifuse.core.errors import MinifuseError

from ..benchmarks import kernel_counts, report
from .cited_facts import MEASURED, Fact
from .picture import LOAD, SHARED, STORE, Cell, Grid, Picture

FOLDER = Path(report.__file__).parent / "results"
TARGET = "target"
RATIO = re.compile(r"[\d.,]+x \(([\d.,]+) to ([\d.,]+)\)")  # what report.ratio writes
WORDS = ((LOAD, "minifuse is faster"), (STORE, "minifuse is slower"), (SHARED, "a tie: the quartiles include 1"))
MAX_ROWS = 100  # of a table that a picture shows


@dataclass(frozen=True)
class SavedResults:
    """A file of results."""

    device: str
    date: str
    lines: tuple[str, ...]
    tables: tuple[report.Table, ...]


def result_files(folder: Path = FOLDER) -> list[str]:
    """Return the names of the files of results."""
    return sorted(path.name for path in folder.glob("*.json"))


def load_results(name: str, folder: Path = FOLDER) -> SavedResults:
    """Load a file of results.

    Raises
    ------
    MinifuseError
        There is no such file, or it is damaged.
    """
    if name not in result_files(folder):
        raise MinifuseError(
            f"there is no file of results {name!r}; expected one of {', '.join(result_files(folder)) or 'none'}"
        )
    try:
        return read_results(folder / name)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise MinifuseError(
            f"{folder / name} is no file of results, or a damaged one ({type(error).__name__}: {error}); take it from the "
            "repository again, or measure anew"
        ) from error


def read_results(path: Path) -> SavedResults:
    """Return the content of a file of results."""
    if path.name == kernel_counts.KEPT.name:
        counts = kernel_counts.load_counts(path)
        header, *lines = kernel_counts.table(counts)
        dates = ", ".join(dict.fromkeys(results["date"] for results in counts.values()))
        table = report.Table("How many kernels twenty functions become", header, lines)
        return SavedResults("no device: kernels are counted", dates, tuple(kernel_counts.facts(counts)), (table,))
    results = json.loads(path.read_text(encoding="utf-8"))
    device = results["device"]["name"] if "device" in results else results["machine"]["processor"]
    return SavedResults(device, results["date"][:10], tuple(report.summary(results)), tuple(report.tables(results)))


def as_rows(table: report.Table) -> list[dict[str, str]]:
    """Return a table as rows; the column without a name contains what is measured."""
    header = [name or "what" for name in table.header]
    return [dict(zip(header, line, strict=True)) for line in table.rows]


def picture(found: SavedResults, table: report.Table) -> Picture:
    """Draw a table: our times, the times of others over ours with their quartiles, and targets."""
    rows, heads = table.rows[:MAX_ROWS], table.header
    columns = [k for k in range(1, len(heads)) if heads[k] != TARGET]
    ours, others = columns[:1], columns[1:]
    grids = [table_grid("ours", table.title, rows, heads, ours)]
    grids += [table_grid("others", "quartiles in parentheses", rows, heads, others)] if others else []
    if TARGET in heads and any(row[heads.index(TARGET)] for row in rows):
        grids.append(target_grid(rows, heads.index(TARGET)))
    return Picture(sentence(found, table), tuple(grids), words=WORDS, layout=(tuple(grid.name for grid in grids),))


def table_grid(name: str, title: str, rows: list[list[str]], heads: list[str], columns: list[int]) -> Grid:
    """Draw some columns of a table. The name of a row stands before the first one."""
    cells = tuple(
        Cell(r, c, row[k], f"{row[0]}, {heads[k]}: {row[k] or 'not measured'}", ratio_kind(row[k]), (row[0],))
        for r, row in enumerate(rows)
        for c, k in enumerate(columns)
    )
    names = tuple(row[0] for row in rows) if columns[0] == 1 else ()
    return Grid(name, title, len(rows), len(columns), cells, names, tuple(heads[k] for k in columns))


def target_grid(rows: list[list[str]], column: int) -> Grid:
    """Draw whether the targets of each row are met."""
    cells = tuple(
        Cell(r, 0, "; ".join(part.split(":")[0] for part in row[column].split("; ") if part), f"{row[0]}: {row[column]}")
        for r, row in enumerate(rows)
    )
    return Grid("targets", "targets", len(rows), 1, cells, (), (TARGET,))


def ratio_kind(text: str) -> str:
    """Return the kind of a ratio by its quartiles: a tie if they are on both sides of 1."""
    found = RATIO.fullmatch(text)
    if not found:
        return ""
    low, high = (float(part.replace(",", "")) for part in found.groups())
    return LOAD if low > 1 else STORE if high < 1 else SHARED


def sentence(found: SavedResults, table: report.Table) -> str:
    """Say what a table shows, and where and when it was measured."""
    shown = f", rows 1 to {MAX_ROWS} of {len(table.rows)}" if len(table.rows) > MAX_ROWS else ""
    kinds = [kind for row in table.rows for text in row if (kind := ratio_kind(text))]
    won = f": minifuse is faster in {kinds.count(LOAD)} of {len(kinds)} comparisons, {kinds.count(SHARED)} are ties"
    return f"{found.device}, {found.date}{shown}{won if kinds else ''}."


def facts(found: SavedResults, table: report.Table, has_versions: bool = True) -> list[Fact]:
    """Return facts about a file of results: where and, if asked, with which versions it was measured."""
    known = [Fact("device", found.device, MEASURED, f"on {found.date}")]
    known += [Fact(f"about it, {k}", line, MEASURED) for k, line in enumerate(found.lines, 1) if has_versions]
    known += [Fact(f"note {k}", note, MEASURED) for k, note in enumerate(table.notes, 1)]
    if any(ratio_kind(text) for row in table.rows for text in row):
        known.append(Fact("the columns of others", "their time over that of minifuse", MEASURED, "median (quartiles)"))
    return known
