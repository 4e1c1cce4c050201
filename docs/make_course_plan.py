"""Write the plans of docs/course/instructors.md: weeks and their tasks, with the minutes that the pages of the tasks name.

    python docs/make_course_plan.py

Only the text between the two markers is replaced. `tests/docs/test_course_plan.py` fails if the page differs, if a task is
named that does not exist, or if a task comes before a page that it needs.
"""

import re
from pathlib import Path
from typing import NamedTuple

COURSE = Path(__file__).parent / "course"
PAGE = COURSE / "instructors.md"
BEGIN, END = "<!-- made by docs/make_course_plan.py -->\n", "<!-- end of what is made -->\n"
ID = re.compile(r"\b\d+\.\d+\b")


class Week(NamedTuple):
    """A week: the topic of its lecture, its tasks, and what is read besides their pages."""

    topic: str
    tasks: tuple[str, ...]
    reading: tuple[str, ...] = ()
    """Ids of tasks whose page is read, or pages of the guide."""


PLANS = {
    "Twelve weeks": (
        Week("Floats have ends; properties instead of examples", ("0.1", "0.2")),
        Week("Three loops, a tree of modules, a network by hand", ("0.3", "0.4", "0.5")),
        Week("Slopes from two values; functions with a backward side", ("1.1", "1.2", "1.3")),
        Week("Topological order; a network that learns", ("1.4", "1.5"), ("gradients",)),
        Week("Strides: why a view is free; broadcasting", ("2.1", "2.2", "2.3"), ("layouts",)),
        Week("Gradients have shapes; all points in one call", ("2.4", "2.5")),
        Week("Why Python is slow; compiled and parallel loops", ("3.1", "3.2"), ("compiling",)),
        Week("Threads, blocks, guards, barriers; tiles", ("3.3", "3.4"), ("simulator",)),
        Week("Memory decides; windows over signals and images", ("3.5", "4.1", "4.2")),
        Week("Pooling, softmax, and the first capstone", ("4.3", "4.4", "4.5")),
        Week("A compiler: capture, emit, cache", ("5.1", "5.2", "5.4"), ("fusion",)),
        Week("A compiler: reductions, gradients, schedules", ("5.3", "5.5", "5.6")),
    ),
    "Six weeks of CPU": (
        Week("Floats have ends; three loops", ("0.1", "0.3")),
        Week("Slopes and the chain rule", ("1.1", "1.2", "1.3")),
        Week("Backpropagation, and a network that learns", ("1.4", "1.5"), ("0.5",)),
        Week("Strides, broadcasting, loops over tensors", ("2.1", "2.2", "2.3"), ("layouts",)),
        Week("Gradients have shapes; all points in one call", ("2.4", "2.5")),
        Week("Why Python is slow; compiled and parallel loops", ("3.1", "3.2", "3.5"), ("compiling",)),
    ),
    "GPU only": (
        Week("Memory is one line: strides and broadcasting", ("2.1", "2.2"), ("layouts",)),
        Week("The three loops, over strides", ("2.3",), ("0.3",)),
        Week("Threads, blocks, guards, barriers", ("3.3",), ("simulator",)),
        Week("Shared memory and registers: a product in tiles", ("3.4", "3.6"), ("cuda",)),
    ),
    "Compilers only": (
        Week("Layouts, since kernels depend on them", ("2.1", "2.2"), ("layouts",)),
        Week("Capture a graph, print a kernel", ("5.1", "5.2"), ("fusion",)),
        Week("Reductions and the kernel cache", ("5.3", "5.4"), ("2.4", "4.4")),
        Week("Gradients of graphs; schedules", ("5.5", "5.6", "5.7"), ("1.4", "3.4", "3.6")),
    ),
    "Transformers only": (
        Week("A row for each token", ("7.1",), ("2.4", "gradients")),
        Week("Exact far from zero; who attends to whom", ("7.2", "7.3"), ("4.4",)),
        Week("A model that writes: loss, clipping, samples", ("7.4",), ("4.7",)),
        Week("Generation without computing anything twice; eight bits", ("7.5", "7.6")),
    ),
    "Many devices only": (
        Week("Ranks and messages; the sum of all, in a ring", ("6.1",), ("distributed",)),
        Week("Copies of a network: averages and buckets", ("6.2",)),
        Week("Layers that are too large for one device", ("6.3",), ("2.5", "sharding-models")),
        Week("A network in stages: bubbles and memory", ("6.4",), ("1.4",)),
    ),
}


def page_of(task: str) -> Path:
    """Return the page of a task."""
    pages = list(COURSE.glob(f"{task}-*.md"))
    if len(pages) != 1:
        raise SystemExit(f"task {task} has no page docs/course/{task}-*.md; name a task of the course, such as 2.1")
    return pages[0]


def row_of_head(task: str, name: str) -> str:
    """Return the value of a row in the table at the top of a task's page."""
    found = re.search(rf"^\| {name} \| (.+) \|$", page_of(task).read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"{page_of(task)} has no row {name!r}"
    return found[1]


def minutes(task: str) -> int:
    """Return the minutes that the page of a task names."""
    found = re.fullmatch(r"about (\d+) minutes", row_of_head(task, "Time"))
    assert found, f"{page_of(task)} names no minutes"
    return int(found[1])


def needed(task: str) -> list[str]:
    """Return the tasks whose pages the page of a task asks for; a span such as "4.1 to 4.4" by its ends."""
    return ID.findall(re.sub(r"\]\(.*?\)", "]", row_of_head(task, "You need")))


def link(name: str) -> str:
    """Return a link to the page of a task, or to a page of the guide."""
    return f"[{name}]({page_of(name).name})" if ID.fullmatch(name) else f"[{name}](../guide/{name}.md)"


def make_table(weeks: tuple[Week, ...]) -> str:
    """Return the table of a plan."""
    rows = ["| week | lecture | tasks | quiz | reading | minutes |", "|---|---|---|---|---|---|"]
    for number, week in enumerate(weeks, 1):
        tasks, reading = (", ".join(map(link, names)) for names in (week.tasks, week.reading))
        total = sum(map(minutes, week.tasks))
        rows.append(f"| {number} | {week.topic} | {tasks} | `quiz {week.tasks[-1]}` | {reading} | {total} |")
    rows.append(f"| | | | | | {sum(minutes(task) for week in weeks for task in week.tasks):,} |")
    return "\n".join(rows)


def make_plans() -> str:
    """Return the text between the markers."""
    return "\n".join(f"### {name}\n\n{make_table(weeks)}\n" for name, weeks in PLANS.items())


def replace(text: str) -> str:
    """Return the text of the page with new plans."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{make_plans()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(replace(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
