"""Write the points of a class as CSV: one row a student, for people, for Canvas, and for Moodle.

A roster says who is who: a CSV file with a column `folder`, such as an exported gradebook to which this column was added.
Without one, the name of a folder is the login name, and the e-mail address if it contains @.

References
----------
Canvas: the first columns are Student, ID, SIS User ID, SIS Login ID and Section, then one for each assignment; the second
row begins with "Points Possible". The importer finds a student by ID, else SIS User ID, else SIS Login ID, else the name:
https://github.com/instructure/canvas-lms/blob/master/lib/gradebook_importer.rb
https://teaching.resources.osu.edu/toolsets/carmencanvas/guides/calculating-final-grades/import-csv-file-carmen-grades

Moodle: any columns; on import the teacher says which one identifies the user ("Email address", "ID number", "Username"),
and to which grade item each other one belongs: https://docs.moodle.org/en/Grade_import
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..core.errors import CourseError
from .classes import Grading
from .scoring import points_of_task
from .task import Task

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("First name", "Last name", "ID number", "Username", "Email address")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet program would run a cell that begins with one
Roster = Mapping[str, Mapping[str, str]]


def read_roster(path: Path) -> dict[str, dict[str, str]]:
    """Read a CSV file with a column `folder`, and return its rows by folder.

    Raises
    ------
    CourseError
        The file cannot be read, has no such column, or names a folder twice.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig")), restval=""))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"the roster {path} cannot be read: {error}") from error
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        folder = (row.get("folder") or "").strip()
        if "folder" not in row:
            columns = ", ".join(map(str, row))
            raise CourseError(f"the roster {path} has the columns {columns}; expected one named folder among them")
        if folder in found:
            raise CourseError(f"the roster {path} has the folder {folder} twice")
        if folder:
            found[folder] = {str(name).strip(): value for name, value in row.items() if isinstance(value, str)}
    return found


def plain_csv(gradings: Sequence[Grading], tasks: Sequence[Task], seed: int | None) -> str:
    """Return a table with the points of each task, the total, the seed, and notes."""
    of = sum(task.points for task in tasks)
    header = ["student", *(task.id for task in tasks), "total", "of", "seed", "notes"]
    rows = [
        [one.student, *points(one, tasks), format_points(one.points(tasks).got), str(of), str(seed), "; ".join(notes(one))]
        for one in gradings
    ]
    return to_csv([header, *rows])


def notes(grading: Grading) -> list[str]:
    """Return the notes on a student's files, and the tasks whose verdict needs a look."""
    verdicts = [
        f"{task_id} {result.verdict}"
        for task_id, result in grading.results.items()
        if result.verdict not in ("passed", "failed", "pending") and not result.outcomes[-1].message.endswith("is missing")
    ]
    return [*grading.notes, *verdicts]


def canvas_csv(gradings: Sequence[Grading], tasks: Sequence[Task], roster: Roster) -> str:
    """Return a table that Canvas imports as one assignment for each task."""
    header = [*CANVAS, *(f"{task.id} {task.title}" for task in tasks)]
    possible = ["    Points Possible", "", "", "", "", *(format_points(task.points) for task in tasks)]
    rows = []
    for grading in gradings:
        name = grading.student
        person = identity(name, CANVAS, roster, {"Student": name, "SIS Login ID": name})
        rows.append([*person, *points(grading, tasks)])
    return to_csv([header, possible, *rows])


def moodle_csv(gradings: Sequence[Grading], tasks: Sequence[Task], roster: Roster) -> str:
    """Return a table that Moodle imports: who it is, the points of each task, and the total."""
    header = [*MOODLE, *(f"{task.id} {task.title}" for task in tasks), "Total"]
    rows = []
    for grading in gradings:
        name = grading.student
        person = identity(name, MOODLE, roster, {"Username": name, "Email address": name if "@" in name else ""})
        rows.append([*person, *points(grading, tasks), format_points(grading.points(tasks).got)])
    return to_csv([header, *rows])


def identity(name: str, columns: Sequence[str], roster: Roster, default: Mapping[str, str]) -> list[str]:
    """Return the columns that say who a student is: from the roster, if it has one of them."""
    known = [roster.get(name, {}).get(column, "") for column in columns]
    return known if any(known) else [default.get(column, "") for column in columns]


def points(grading: Grading, tasks: Sequence[Task]) -> list[str]:
    """Return the points of each task as text."""
    return [format_points(points_of_task(task, grading.results.get(task.id)).got) for task in tasks]


def format_points(number: float) -> str:
    """Return points with at most two decimals."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def to_csv(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV (RFC 4180), with an apostrophe before cells that a spreadsheet would take for formulas."""
    out = io.StringIO()
    writer = csv.writer(out)
    for row in rows:
        writer.writerow([f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell for cell in row])
    return out.getvalue()
