"""Render results of tasks for a terminal: one failure, its smallest case, a hint."""

import io
from collections.abc import Iterable, Mapping

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from .progress import next_task
from .quizzes.quiz import tasks_with_quiz
from .registry import all_modules, all_tasks
from .scoring import count_points, points_of_checks, points_of_task
from .task import Task
from .verdicts import Outcome, Result
from .workspace import first_lines_of_code

WIDTH = 80
MAX_PRINTED_LINES = 8
MAX_TITLE_LENGTH = 40  # with the arrow, sign and id before it; leaves room for the file and the verdict
ADVICE = "minifuse course hint {}"
SIGNS = {"passed": ("✓", "green"), "pending": ("·", "yellow"), "": (" ", "dim")}
WRONG = ("✗", "red")
VERDICT_LABELS = {"passed": "", "pending": "to be written", "failed": "not yet right", "timeout": "stopped"}


def sign(verdict: str) -> Text:
    """Return the character of a verdict."""
    return Text(*SIGNS.get(verdict, WRONG))


def indent(content: RenderableType | str, style: str = "") -> RenderableType:
    """Indent text or a renderable by two columns, wrapped lines included."""
    return Padding(Text(content, style=style) if isinstance(content, str) else content, (0, 0, 0, 2), expand=False)


def render_result(
    task: Task, result: Result, address: str = "http://127.0.0.1:8501", advice: str = ADVICE
) -> RenderableType:
    """Render the result of a task: a line for each check with its points, then the first failure.

    `address` is that of the visualizer, and `advice` the last line of a failure, with {} for the id of the task.
    """
    parts: list[RenderableType] = [Text(f"{task.id} {task.title}", style="bold"), indent(render_checks(task, result))]
    failure = next((o for o in result.outcomes if o.verdict != "passed"), None)
    if failure is not None:
        parts += ["", *render_outcome(task, failure, address, advice)]
    elif result.outcomes:
        parts.append(indent(f"all hold in {result.seconds:.1f} s", "green"))
    else:
        parts.append(indent("no check ran, so nothing is known to be right", "red"))
    parts += [indent(note) for note in result.notes]
    return Group(*parts)


def render_checks(task: Task, result: Result) -> RenderableType:
    """Render a table of the checks of a task: verdict, name, and what it is worth. Checks that did not run are dim."""
    table, points = Table.grid(padding=(0, 1, 0, 0)), points_of_checks(task)
    worth = {name: f"  {one:g} point{'s' * (one != 1)}" for name, one in points.items()}
    for outcome in result.outcomes:
        table.add_row(sign(outcome.verdict), Text(outcome.check), Text(worth.get(outcome.check, ""), style="dim"))
    known = {outcome.check for outcome in result.outcomes}
    for name in [name for name in points if name not in known]:
        table.add_row("", Text(name, style="dim"), Text(worth[name], style="dim"))
    return table


def render_outcome(task: Task, outcome: Outcome, address: str, advice: str = ADVICE) -> Iterable[RenderableType]:
    """Render the outcome of a check that did not pass."""
    if outcome.verdict == "pending":
        yield indent(outcome.message, "yellow")
        return
    if outcome.message:
        yield indent(outcome.message, "red")
    rows = Table.grid(padding=(0, 2))
    for name in ("case", "expected", "got"):
        if value := getattr(outcome, name):
            rows.add_row(Text(name, style="bold"), Text(value))
    if outcome.printed.strip():
        rows.add_row(Text("printed", style="bold"), Text(first_lines(outcome.printed)))
    if rows.row_count:
        yield indent(rows)
    if outcome.drawing:
        yield indent(Panel(Text("\n".join(outcome.drawing)), style="dim", expand=False))
    for file, line, text in outcome.lines:
        yield indent(f"{file}:{line}", "cyan")
        if text:
            yield Padding(
                Syntax(text.strip(), "python", background_color="default", word_wrap=True), (0, 0, 0, 6), expand=False
            )
    if outcome.hint:
        yield indent(Text.assemble((f"It looks as if {outcome.mistake}. ", "bold"), outcome.hint))
    if outcome.link:
        yield indent(f"See it: {address}/{outcome.link}   (minifuse app)", "dim")
    if advice:
        yield indent(advice.format(task.id), "dim")


def first_lines(text: str) -> str:
    """Return the first lines of a text, and how many more there are."""
    lines = text.rstrip().splitlines()
    more = [f"... {len(lines) - MAX_PRINTED_LINES} more lines"] if len(lines) > MAX_PRINTED_LINES else []
    return "\n".join([*lines[:MAX_PRINTED_LINES], *more])


def to_plain_text(content: RenderableType) -> str:
    """Render without colors and return the text."""
    out = io.StringIO()
    Console(file=out, width=WIDTH, color_system=None).print(content)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def format_result(task: Task, result: Result) -> str:
    """Return the result of a task as text without colors."""
    return to_plain_text(render_result(task, result))


def hints_of(task: Task) -> list[tuple[str, str]]:
    """Return the hints of a task, from the idea to a first line of code, each with its kind."""
    hints = list(zip(("The idea", "In words", "Where to look"), task.hints, strict=True))
    lines = first_lines_of_code(task)
    return [*hints, ("A first line", "\n".join(lines))] if lines else hints


def render_hints(task: Task, number: int) -> RenderableType:
    """Render the text of a task, and its first `number` hints."""
    parts: list[RenderableType] = [Text(f"{task.id} {task.title}", style="bold"), Text(task.text)]
    for kind, text in hints_of(task)[:number]:
        parts += ["", Text.assemble((f"{kind}. ", "bold"), text)]
    return Group(*parts)


def render_status(
    results: Mapping[str, Result], chosen: str = "", tasks: Iterable[Task] | None = None, missing: str = "..."
) -> RenderableType:
    """Render a table of tasks with verdicts and points. Default: of all tasks."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    for module, name in all_modules().items():
        module_tasks = [task for task in (all_tasks() if tasks is None else tasks) if task.module == module]
        if not module_tasks:
            continue
        points = count_points(results, module_tasks)
        table.add_row(Text(f"{module} {name}", style="bold"), "", Text(f"{points} points"))
        for task in module_tasks:
            verdict = results[task.id].verdict if task.id in results else ""
            arrow = ">" if task.id == chosen else " "
            title = Text.assemble(f"{arrow} ", sign(verdict), f" {task.id} {task.title}")
            title.truncate(MAX_TITLE_LENGTH, overflow="ellipsis")
            table.add_row(title, task.file, label_of(task, results.get(task.id), missing))
    return table


def label_of(task: Task, result: Result | None, missing: str) -> str:
    """Return the verdict of a task in a word or two, or its points if it earned a part of them."""
    if result is None:
        return missing
    points = points_of_task(task, result)
    is_part = points.got and (result.verdict != "passed" or points.got < points.of)
    return f"{points} points" if is_part else VERDICT_LABELS.get(result.verdict, result.verdict)


def render_next(results: Mapping[str, Result], after: Task | None = None) -> RenderableType:
    """Render the task that comes next, and the quiz of the one that has just passed."""
    task = next_task(results, after)
    if task is None:
        return indent("Every task passes.", "bold")
    quiz = f"\nQuiz: minifuse course quiz {after.id}" if after and after.id in tasks_with_quiz() else ""
    return indent(f"Next: {task.id} {task.title}, in {task.file}{quiz}", "bold")


def render_progress(results: Mapping[str, Result]) -> RenderableType:
    """Render a progress bar of points, and the number of tasks that pass."""
    points = count_points(results, all_tasks())
    passed = sum(result.verdict == "passed" for result in results.values())
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(points.of, points.got, width=30), Text(f"{points} points, {passed} of {len(all_tasks())} tasks"))
    return row
