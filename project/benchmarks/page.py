"""The page about speed: its tables and pictures are made from the kept results, so that page and results cannot differ.

`python -m project.benchmarks --page` writes what stands between two comments of docs/guide/speed.md, an overview of
what was to be reached and a section for each file of results, and the pictures beside it. The text around them is
written by hand, and names no measured number.
"""

import json
from pathlib import Path

from . import kernel_counts, overview, pictures
from .peers import KINDS
from .report import TITLES, Table, summary, tables
from .row import Result

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "speed.md"
PICTURES = "speed"  # the folder beside the page
BEGIN = "<!-- begin: made by `python -m project.benchmarks --page` from project/benchmarks/results; do not edit -->"
END = "<!-- end -->"


def write(folder: Path, page: Path = PAGE) -> int:
    """Bring the page and its pictures in step with the results; gives the exit status."""
    page.write_text(updated(page.read_text(encoding="utf-8"), folder), encoding="utf-8")
    drawings = drawn(folder)
    place = page.parent / PICTURES
    place.mkdir(exist_ok=True)
    for old in place.glob("*.svg"):
        if old.name not in drawings:
            old.unlink()
    for name, text in drawings.items():
        (place / name).write_text(text, encoding="utf-8")
    return 0


def kept(folder: Path) -> dict[str, Result]:
    """The files of results by name, held against the targets of today; rows of groups that are no more are left out."""
    paths = sorted([*folder.glob("cpu-*.json"), *folder.glob("gpu-*.json")], key=lambda path: path.stem)
    found = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    return {
        name: overview.judged(of | {"rows": [row for row in of["rows"] if row["group"] in TITLES]})
        for name, of in found.items()
    }


def drawn(folder: Path) -> dict[str, str]:
    """The pictures of all files that have some, by the name of the file that they are written to."""
    made = {f"{Path(name).stem}.svg": pictures.drawn(found) for name, found in kept(folder).items()}
    return {name: text for name, text in made.items() if text}


def updated(text: str, folder: Path) -> str:
    """The text of the page with new tables between the comments.

    Raises
    ------
    ValueError
        The comments are not there, once each and in this order.
    """
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in tail or END in head + tail:
        raise ValueError(f"the page must hold these two comments once each:\n{BEGIN}\n{END}")
    files = kept(folder)
    sections = [goals(files), *[section(name, found) for name, found in files.items()]]
    counts = folder / kernel_counts.KEPT.name
    sections += [kernels(counts)] if counts.exists() else []
    return "\n".join([head + BEGIN, "", *sections, END + tail])


def goals(files: dict[str, Result]) -> str:
    """What was to be reached, line by line."""
    parts = ["## What was to be reached", "", overview.summary(files), ""]
    for is_on_gpu, title in ((True, "On one H200"), (False, "On two cores of a processor with AVX-512")):
        lines = [line for line in overview.lines_of(files) if line.goal.is_on_gpu == is_on_gpu]
        rows = [[escaped(cell) for cell in overview.cells_of(line, "")[:-1]] + [link(line.file)] for line in lines]
        head = ["", f"### {title}", "", *[row(cells) for cells in (overview.HEADER, ["---"] * len(overview.HEADER))]]
        parts += [*head, *[row(cells) for cells in rows], ""]
    return "\n".join(parts)


def row(cells: list[str]) -> str:
    """Cells as a line of a table."""
    return "| " + " | ".join(cells) + " |"


def link(name: str) -> str:
    """A file of results."""
    return f"[{name}](../../project/benchmarks/results/{name})" if name else ""


def section(name: str, found: Result) -> str:
    """One file of results in Markdown."""
    facts = [f"- {line}" for line in summary(found)]
    place = found["device"]["name"] if "device" in found else found["machine"]["processor"]
    place += next((f": {words}" for kind, words in KINDS.items() if name.endswith(f"-{kind}.json")), "")
    shown = ["", f"![Curves and roofs of {name}]({PICTURES}/{Path(name).stem}.svg)", ""] if pictures.charts(found) else []
    return "\n".join([f"## {place}", "", f"All numbers are in {link(name)}.", "", *facts, *shown, ""]) + "\n".join(
        markdown(table) for table in tables(found)
    )


def kernels(path: Path) -> str:
    """How many kernels twenty functions become, in Markdown."""
    found = kernel_counts.kept(path)
    header, *rows = kernel_counts.table(found)
    facts = [f"- {escaped(line)}" for line in kernel_counts.facts(found)]
    head = ["## Kernels", "", f"All numbers are in {link(path.name)}.", "", *facts, ""]
    return "\n".join(head) + markdown(Table("How many kernels twenty functions become", header, rows))


def markdown(table: Table) -> str:
    """A table in Markdown, under its title."""
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    notes = [f"- {escaped(note)}" for note in table.notes]
    return "\n".join(
        [
            "",
            f"### {table.title}",
            "",
            *(row([escaped(cell) for cell in line]) for line in lines),
            "",
            *notes,
            *[""] * bool(notes),
        ]
    )


def escaped(cell: str) -> str:
    """A cell that no character breaks out of."""
    return cell.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")
