"""Results of a task for a terminal: one failure, the smallest case, a hint."""

import io
from collections.abc import Iterable, Mapping

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from .registry import MODULES, TASKS
from .task import Task
from .verdicts import Outcome, Result

WIDTH = 80
MAX_PRINTED_LINES = 8  # lines
LONGEST_TITLE = 40  # with what stands before it: the names of files and the verdicts fit beside it
SIGNS = {"passed": ("✓", "green"), "pending": ("·", "yellow"), "": (" ", "dim")}
WRONG = ("✗", "red")
SAID = {"passed": "", "pending": "to be written", "failed": "not yet right", "timeout": "stopped", "": "..."}


def sign(verdict: str) -> Text:
    """One character for a verdict."""
    return Text(*SIGNS.get(verdict, WRONG))


def inside(what: RenderableType | str, style: str = "") -> RenderableType:
    """Two columns in, wrapped lines too."""
    return Padding(Text(what, style=style) if isinstance(what, str) else what, (0, 0, 0, 2), expand=False)


def of_result(task: Task, result: Result, address: str = "http://127.0.0.1:8501") -> RenderableType:
    """A task: a line for each demand, then what does not hold."""
    parts: list[RenderableType] = [Text(f"{task.id} {task.title}", style="bold")]
    parts += [inside(Text.assemble(sign(outcome.verdict), f" {outcome.check}")) for outcome in result.outcomes]
    known = {outcome.check for outcome in result.outcomes}
    parts += [inside(f"  {check.name}", "dim") for check in task.checks if check.name not in known]
    bad = next((o for o in result.outcomes if o.verdict != "passed"), None)
    if bad is not None:
        parts += ["", *of_outcome(task, bad, address)]
    elif result.outcomes:
        called = ", ".join(f"{slot} {count}" for slot, count in result.calls.items())
        parts.append(inside(f"all hold in {result.seconds:.1f} s; your functions were called: {called}", "green"))
    else:
        parts.append(inside("nothing was asked of it, so nothing holds", "red"))
    parts += [inside(note) for note in result.notes]
    return Group(*parts)


def of_outcome(task: Task, outcome: Outcome, address: str) -> Iterable[RenderableType]:
    """Describe a demand that does not hold."""
    if outcome.verdict == "pending":
        yield inside(outcome.said, "yellow")
        return
    if outcome.said:
        yield inside(outcome.said, "red")
    rows = Table.grid(padding=(0, 2))
    for name in ("case", "expected", "got"):
        if value := getattr(outcome, name):
            rows.add_row(Text(name, style="bold"), Text(value))
    if outcome.printed.strip():
        rows.add_row(Text("printed", style="bold"), Text(beginning(outcome.printed)))
    if rows.row_count:
        yield inside(rows)
    if outcome.drawing:
        yield inside(Panel(Text("\n".join(outcome.drawing)), style="dim", expand=False))
    for file, line, text in outcome.lines:
        yield inside(f"{file}:{line}", "cyan")
        if text:
            yield Padding(
                Syntax(text.strip(), "python", background_color="default", word_wrap=True), (0, 0, 0, 6), expand=False
            )
    if outcome.hint:
        yield inside(Text.assemble((f"It looks as if {outcome.mistake}. ", "bold"), outcome.hint))
    if outcome.link:
        yield inside(f"See it: {address}/{outcome.link}   (minifuse app)", "dim")
    yield inside(f"minifuse course hint {task.id}", "dim")


def beginning(text: str) -> str:
    """The first lines of what the student's code printed."""
    lines = text.rstrip().splitlines()
    more = [f"... {len(lines) - MAX_PRINTED_LINES} more lines"] if len(lines) > MAX_PRINTED_LINES else []
    return "\n".join([*lines[:MAX_PRINTED_LINES], *more])


def plain(what: RenderableType) -> str:
    """Render as text without colors."""
    out = io.StringIO()
    Console(file=out, width=WIDTH, color_system=None).print(what)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def text_of(task: Task, result: Result) -> str:
    """Return the result of a task as text."""
    return plain(of_result(task, result))


def of_hints(task: Task, number: int) -> RenderableType:
    """Describe a task: its text, some of its hints, and what to read."""
    parts: list[RenderableType] = [Text(f"{task.id} {task.title}", style="bold"), Text(task.text)]
    for kind, text in list(zip(("The idea", "In words", "Where to look"), task.hints, strict=True))[:number]:
        parts += ["", Text.assemble((f"{kind}. ", "bold"), text)]
    return Group(*parts, Text(f"To read first: {', '.join(task.reads)}", style="dim"))


def of_status(results: Mapping[str, Result], chosen: str = "", tasks: Iterable[Task] = TASKS) -> RenderableType:
    """Tasks, module by module, with points. A task that has no result yet is being judged; `chosen` has an arrow."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    for module, name in MODULES.items():
        those = [task for task in tasks if task.module == module]
        if not those:
            continue
        got, of = points(results, those)
        table.add_row(Text(f"{module} {name}", style="bold"), "", Text(f"{got} of {of} points"))
        for task in those:
            verdict = results[task.id].verdict if task.id in results else ""
            arrow = ">" if task.id == chosen else " "
            title = Text.assemble(f"{arrow} ", sign(verdict), f" {task.id} {task.title}")
            title.truncate(LONGEST_TITLE, overflow="ellipsis")
            table.add_row(title, task.file, SAID.get(verdict, verdict))
    return table


def points(results: Mapping[str, Result], tasks: Iterable[Task] = TASKS) -> tuple[int, int]:
    """The points of tasks that hold, and those of all."""
    all_tasks = list(tasks)
    got = [
        round(task.points * results[task.id].share)
        for task in all_tasks
        if task.id in results and results[task.id].verdict == "passed"
    ]
    return sum(got), sum(task.points for task in all_tasks)


def of_progress(results: Mapping[str, Result]) -> RenderableType:
    """A bar over all points, and how many tasks hold."""
    got, of = points(results)
    passed = sum(result.verdict == "passed" for result in results.values())
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(of, got, width=30), Text(f"{got} of {of} points, {passed} of {len(TASKS)} tasks"))
    return row
