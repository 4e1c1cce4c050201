"""The page about speed: its tables are made from the kept results, so that page and results cannot differ.

`python -m project.benchmarks --page` writes what stands between two comments of docs/guide/speed.md, a section for each
file of results. The text around them is written by hand, and names no measured number.
"""

import json
from pathlib import Path

from . import kernel_counts
from .peers import KINDS
from .report import Table, summary, tables
from .row import Result

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "speed.md"
BEGIN = "<!-- begin: made by `python -m project.benchmarks --page` from project/benchmarks/results; do not edit -->"
END = "<!-- end -->"


def write(folder: Path, page: Path = PAGE) -> int:
    """Bring the page in step with the results; gives the exit status."""
    page.write_text(updated(page.read_text(encoding="utf-8"), folder), encoding="utf-8")
    return 0


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
    paths = sorted([*folder.glob("cpu-*.json"), *folder.glob("gpu-*.json")], key=lambda path: path.stem)
    sections = [section(path.name, json.loads(path.read_text(encoding="utf-8"))) for path in paths]
    counts = folder / kernel_counts.KEPT.name
    sections += [kernels(counts)] if counts.exists() else []
    return "\n".join([head + BEGIN, "", *sections, END + tail])


def section(name: str, found: Result) -> str:
    """One file of results in Markdown."""
    facts = [f"- {line}" for line in summary(found)]
    link = f"../../project/benchmarks/results/{name}"
    place = found["device"]["name"] if "device" in found else found["machine"]["processor"]
    place += next((f": {words}" for kind, words in KINDS.items() if name.endswith(f"-{kind}.json")), "")
    return "\n".join([f"## {place}", "", f"All numbers are in [{name}]({link}).", "", *facts, ""]) + "\n".join(
        markdown(table) for table in tables(found)
    )


def kernels(path: Path) -> str:
    """How many kernels twenty functions become, in Markdown."""
    found = kernel_counts.kept(path)
    header, *rows = kernel_counts.table(found)
    facts = [f"- {escaped(line)}" for line in kernel_counts.facts(found)]
    link = f"../../project/benchmarks/results/{path.name}"
    head = ["## Kernels", "", f"All numbers are in [{path.name}]({link}).", "", *facts, ""]
    return "\n".join(head) + markdown(Table("How many kernels twenty functions become", header, rows))


def markdown(table: Table) -> str:
    """A table in Markdown, under its title."""
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    return "\n".join(["", f"### {table.title}", "", *("| " + " | ".join(map(escaped, line)) + " |" for line in lines), ""])


def escaped(cell: str) -> str:
    """A cell that no character breaks out of."""
    return cell.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")
