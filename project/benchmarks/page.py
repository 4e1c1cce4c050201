"""The pages about speed: their tables and pictures are generated from the stored results, so that they cannot differ.

`python -m project.benchmarks --page` writes the answer to "how fast is it", with charts and a list of all pages, between two
comments of docs/guide/speed.md, the goals between two comments of docs/guide/speed/goals.md, and a page for each file of
results. The text around the comments is written by hand, and contains no measured number.
"""

import json
from pathlib import Path

from . import dots, highlights, kernel_counts, overview, pictures
from .peers import KINDS
from .report import TITLES, Table, summary, tables
from .row import Result

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
FIRST, FOLDER = "speed.md", "speed"  # the first page, and the folder of the others and of the pictures
GOALS, KERNELS = f"{FOLDER}/goals.md", f"{FOLDER}/kernels.md"
RESULTS = "project/benchmarks/results"
BEGIN = "<!-- begin: made by `python -m project.benchmarks --page` from project/benchmarks/results; do not edit -->"
END = "<!-- end -->"
MADE = BEGIN.replace("begin: ", "")  # begins a page that contains nothing else
MAIN = "calls, arrays, functions, matmuls, training, start"  # the suite without a word of its own
HOW_FAST = """## How fast is it?

Functions that memory limits gain most from fusion. Large matmuls and large networks gain less: there, all libraries are near
the same limit. Times are medians. The last column is the time of a peer divided by the time of minifuse, with the same
number of threads: **above 1, minifuse is faster**.
"""
HOW_SLOW = """## Where is it slow?

- **The first call compiles**, a network for seconds. Kernels are stored on disk, for all later processes.
- **A call on few numbers**, such as `a + b`, costs more than in NumPy, a view most.
- **Sorts of long vectors, scatters, and programs that gather along the edges of a graph** are slower on a GPU than in the
  fastest other library.
"""
PROGRAMS = """[Programs from publications](../../project/benchmarks/held_out), beside torch.compile:
"""
CONTENTS = """## Where to find what

[How it is measured](speed/measuring.md), [how to read the tables](speed/measuring.md#how-to-read-the-tables), [the
goals](speed/goals.md), met and not met, and the results, file by file:
"""


def write(folder: Path, guide: Path = GUIDE) -> int:
    """Update the pages and their pictures, and return the exit status."""
    made = generate(folder, guide)
    for old in stale_files(made, guide):
        old.unlink()
    for name, text in made.items():
        (guide / name).parent.mkdir(exist_ok=True)
        (guide / name).write_text(text, encoding="utf-8")
    return 0


def generate(folder: Path, guide: Path = GUIDE) -> dict[str, str]:
    """Return all generated files by their paths in the guide, pictures included."""
    files, counts = load_results(folder), folder / kernel_counts.KEPT.name
    made = {f"{FOLDER}/{Path(name).stem}.md": section(name, found) for name, found in files.items()}
    made |= {KERNELS: kernels(counts)} if counts.exists() else {}
    made |= {f"{FOLDER}/{name}": text for name, text in draw_pictures(files).items()}
    made[FIRST] = update_text((guide / FIRST).read_text(encoding="utf-8"), answer(files))
    made[GOALS] = update_text((guide / GOALS).read_text(encoding="utf-8"), goals(files))
    return made


def stale_files(made: dict[str, str], guide: Path) -> list[Path]:
    """Return the files in the folder of the pages that were generated once, and are no longer."""
    found = [path for path in (guide / FOLDER).glob("*") if f"{FOLDER}/{path.name}" not in made]
    return [path for path in found if path.suffix == ".svg" or MADE in path.read_text(encoding="utf-8")]


def load_results(folder: Path) -> dict[str, Result]:
    """Load the files of results by name, judged by the present targets, without groups that no longer exist."""
    paths = sorted([*folder.glob("cpu-*.json"), *folder.glob("gpu-*.json")], key=lambda path: path.stem)
    found = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    return {
        name: overview.judge_again(of | {"rows": [row for row in of["rows"] if row["group"] in TITLES]})
        for name, of in found.items()
    }


def draw_pictures(files: dict[str, Result]) -> dict[str, str]:
    """Draw the pictures of all files that have some, and the charts of the first page, by the names of the picture files."""
    made = {f"{Path(name).stem}.svg": pictures.draw_charts(found) for name, found in files.items()}
    made |= {f"{spec.name}.svg": dots.draw(highlights.chart_of(spec, files)) for spec in highlights.charts_from(files)}
    return {name: text for name, text in made.items() if text}


def update_text(text: str, made: str) -> str:
    """Return the text of a page with new contents between the comments.

    Raises
    ------
    ValueError
        The comments are not there, once each and in this order.
    """
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in tail or END in head + tail:
        raise ValueError(f"the page must hold these two comments once each:\n{BEGIN}\n{END}")
    return f"{head}{BEGIN}\n\n{made}\n{END}{tail}"


def answer(files: dict[str, Result]) -> str:
    """Return the contents of the first page: figures, charts, and links to all other pages."""
    known = highlights.charts_from(files)
    charts = [f"![{spec.alt}]({FOLDER}/{spec.name}.svg)\n\n{highlights.caption(spec, files)}\n" for spec in known]
    return "\n".join(
        [
            HOW_FAST,
            *lines(["work", "device", "minifuse", "peers"], highlights.figures(highlights.FIGURES, files)),
            "",
            HOW_SLOW,
            *lines(["work", "device", "minifuse"], [cells[:3] for cells in highlights.figures(highlights.COSTS, files)]),
            "",
            "The rows that are slowest beside another library:",
            "",
            *lines(["work", "device", "minifuse", "peer"], highlights.losses(files)),
            "",
            PROGRAMS,
            *lines(["programs", "device", "at least as fast", "median", "slowest"], highlights.programs(files)),
            "",
            "## In pictures",
            "",
            *charts,
            CONTENTS,
            *contents(files),
            "",
        ]
    )


def contents(files: dict[str, Result]) -> list[str]:
    """Return a table with links to the pages of all files of results: a line for each suite."""
    cells: dict[str, list[list[str]]] = {}
    for name, found in files.items():
        at = cells.setdefault(KINDS.get(kind_of(name), MAIN), [[], []])
        at["device" in found].append(f"[{highlights.place_of(found)}]({FOLDER}/{Path(name).stem}.md)")
    rows = [[suite, *(", ".join(links) for links in found)] for suite, found in sorted(cells.items(), key=suite_order)]
    return lines(["what is measured", "processor", "GPU"], [*rows, ["number of kernels", f"[counted]({KERNELS})", ""]])


def suite_order(suite: tuple[str, list[list[str]]]) -> int:
    """Return the place of a suite in the table: the main one is first."""
    return [MAIN, *KINDS.values()].index(suite[0])


def kind_of(name: str) -> str:
    """Return the suite that a file of results is of; empty for the main one."""
    return next((kind for kind in KINDS if name.endswith(f"-{kind}.json")), "")


def goals(files: dict[str, Result]) -> str:
    """Return the goals, line by line."""
    parts = [overview.summary(files), ""]
    for is_on_gpu, title in ((True, "On one H200"), (False, "On two cores of a processor with AVX-512")):
        told = [line for line in overview.lines_of(files) if line.goal.is_on_gpu == is_on_gpu]
        rows = [[*overview.cells_of(line, "")[:-1], line.file] for line in told]
        made = lines(overview.HEADER, [row[:-1] for row in rows], [link(row[-1]) for row in rows])
        parts += [f"## {title}", "", *made, ""]
    return "\n".join(parts)


def lines(header: list[str], rows: list[list[str]], links: list[str] | None = None) -> list[str]:
    """Format a table: its cells are escaped, but not the links that are its last column, if there are some."""
    ends = [[cell] for cell in links] if links is not None else [[] for _ in rows]
    told = [[*(escape_cell(cell) for cell in cells), *end] for cells, end in zip(rows, ends, strict=True)]
    return [row(cells) for cells in [header, ["---"] * len(header), *told]]


def row(cells: list[str]) -> str:
    """Format cells as a line of a table."""
    return "| " + " | ".join(cells) + " |"


def link(name: str) -> str:
    """Format a link to a file of results, from a page in the folder."""
    return f"[{name}](../../../{RESULTS}/{name})" if name else ""


def head(title: str, name: str) -> list[str]:
    """Return the first lines of the page of a file of results."""
    back = "[Speed](../speed.md) · [How to read the tables](measuring.md#how-to-read-the-tables)"
    return [f"# {title}", "", MADE, "", f"{back} · All numbers are in {link(name)}.", ""]


def section(name: str, found: Result) -> str:
    """Return the page of one file of results."""
    facts = [f"- {line}" for line in summary(found)]
    title = highlights.place_of(found) + (f": {KINDS[kind]}" if (kind := kind_of(name)) else "")
    shown = ["", f"![Curves and roofs of {name}]({Path(name).stem}.svg)"] if pictures.charts(found) else []
    return "\n".join([*head(title, name), *facts, *shown, *map(markdown, tables(found))])


def kernels(path: Path) -> str:
    """Return the page of how many kernels the twenty functions become."""
    found = kernel_counts.load_counts(path)
    header, *rows = kernel_counts.table(found)
    facts = [f"- {escape_cell(line)}" for line in kernel_counts.facts(found)]
    table = markdown(Table("How many kernels twenty functions become", header, rows))
    return "\n".join([*head("Kernels", path.name), *facts, table])


def markdown(table: Table) -> str:
    """Format a table in Markdown, below its title."""
    notes = [f"- {escape_cell(note)}" for note in table.notes]
    made = lines([escape_cell(cell) for cell in table.header], table.rows)
    return "\n".join(["", f"## {table.title}", "", *made, "", *notes, *[""] * bool(notes)])


def escape_cell(cell: str) -> str:
    """Escape the characters of a cell that have a meaning in Markdown tables."""
    return cell.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")
