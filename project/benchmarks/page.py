"""The page about speed: its tables and pictures are generated from the stored results, so that they cannot differ.

`python -m project.benchmarks --page` writes the text between two comments of docs/guide/speed.md, with an overview of the
goals and a section for each file of results, and the pictures. The text around them is written by hand, and contains no
measured number.
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
    """Update the page and its pictures, and return the exit status."""
    page.write_text(update_text(page.read_text(encoding="utf-8"), folder), encoding="utf-8")
    drawings = draw_pictures(folder)
    place = page.parent / PICTURES
    place.mkdir(exist_ok=True)
    for old in place.glob("*.svg"):
        if old.name not in drawings:
            old.unlink()
    for name, text in drawings.items():
        (place / name).write_text(text, encoding="utf-8")
    return 0


def load_results(folder: Path) -> dict[str, Result]:
    """Load the files of results by name, judged by the present targets, without groups that no longer exist."""
    paths = sorted([*folder.glob("cpu-*.json"), *folder.glob("gpu-*.json")], key=lambda path: path.stem)
    found = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    return {
        name: overview.judge_again(of | {"rows": [row for row in of["rows"] if row["group"] in TITLES]})
        for name, of in found.items()
    }


def draw_pictures(folder: Path) -> dict[str, str]:
    """Draw the pictures of all files that have some, by the names of the picture files."""
    made = {f"{Path(name).stem}.svg": pictures.draw_charts(found) for name, found in load_results(folder).items()}
    return {name: text for name, text in made.items() if text}


def update_text(text: str, folder: Path) -> str:
    """Return the text of the page with new tables between the comments.

    Raises
    ------
    ValueError
        The comments are not there, once each and in this order.
    """
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in tail or END in head + tail:
        raise ValueError(f"the page must hold these two comments once each:\n{BEGIN}\n{END}")
    files = load_results(folder)
    sections = [goals(files), *[section(name, found) for name, found in files.items()]]
    counts = folder / kernel_counts.KEPT.name
    sections += [kernels(counts)] if counts.exists() else []
    return "\n".join([head + BEGIN, "", *sections, END + tail])


def goals(files: dict[str, Result]) -> str:
    """Return the goals, line by line."""
    parts = ["## What was to be reached", "", overview.summary(files), ""]
    for is_on_gpu, title in ((True, "On one H200"), (False, "On two cores of a processor with AVX-512")):
        lines = [line for line in overview.lines_of(files) if line.goal.is_on_gpu == is_on_gpu]
        rows = [[escape_cell(cell) for cell in overview.cells_of(line, "")[:-1]] + [link(line.file)] for line in lines]
        head = ["", f"### {title}", "", *[row(cells) for cells in (overview.HEADER, ["---"] * len(overview.HEADER))]]
        parts += [*head, *[row(cells) for cells in rows], ""]
    return "\n".join(parts)


def row(cells: list[str]) -> str:
    """Format cells as a line of a table."""
    return "| " + " | ".join(cells) + " |"


def link(name: str) -> str:
    """Format a link to a file of results."""
    return f"[{name}](../../project/benchmarks/results/{name})" if name else ""


def section(name: str, found: Result) -> str:
    """Format one file of results in Markdown."""
    facts = [f"- {line}" for line in summary(found)]
    place = found["device"]["name"] if "device" in found else found["machine"]["processor"]
    place += next((f": {words}" for kind, words in KINDS.items() if name.endswith(f"-{kind}.json")), "")
    shown = ["", f"![Curves and roofs of {name}]({PICTURES}/{Path(name).stem}.svg)", ""] if pictures.charts(found) else []
    return "\n".join([f"## {place}", "", f"All numbers are in {link(name)}.", "", *facts, *shown, ""]) + "\n".join(
        markdown(table) for table in tables(found)
    )


def kernels(path: Path) -> str:
    """Format in Markdown how many kernels the twenty functions become."""
    found = kernel_counts.load_counts(path)
    header, *rows = kernel_counts.table(found)
    facts = [f"- {escape_cell(line)}" for line in kernel_counts.facts(found)]
    head = ["## Kernels", "", f"All numbers are in {link(path.name)}.", "", *facts, ""]
    return "\n".join(head) + markdown(Table("How many kernels twenty functions become", header, rows))


def markdown(table: Table) -> str:
    """Format a table in Markdown, below its title."""
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    notes = [f"- {escape_cell(note)}" for note in table.notes]
    return "\n".join(
        [
            "",
            f"### {table.title}",
            "",
            *(row([escape_cell(cell) for cell in line]) for line in lines),
            "",
            *notes,
            *[""] * bool(notes),
        ]
    )


def escape_cell(cell: str) -> str:
    """Escape the characters of a cell that have a meaning in Markdown tables."""
    return cell.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")
