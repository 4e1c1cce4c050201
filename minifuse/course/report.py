"""What became of a task, for a terminal: one failure, the smallest case, what to think about."""

import io
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from .registry import MODULES, TASKS
from .task import Outcome, Result, Task

WIDTH = 80
SIGNS = {"passed": ("✓", "green"), "pending": ("·", "yellow"), "": (" ", "dim")}
WRONG = ("✗", "red")


def sign(verdict: str) -> Text:
    """One character for a verdict."""
    return Text(*SIGNS.get(verdict, WRONG))


def of_result(task: Task, result: Result, address: str = "http://127.0.0.1:8501") -> RenderableType:
    """A task: a line for each demand, then what does not hold."""
    parts: list[RenderableType] = [Text(f"{task.id} {task.title}", style="bold")]
    parts += [Text.assemble("  ", sign(outcome.verdict), f" {outcome.check}") for outcome in result.outcomes]
    if missing := [check.name for check in task.checks[len(result.outcomes) :]]:
        parts += [Text(f"    {name}", style="dim") for name in missing]
    bad = next((o for o in result.outcomes if o.verdict != "passed"), None)
    if bad is not None:
        parts += ["", *of_outcome(task, bad, address)]
    else:
        called = ", ".join(f"{slot} {count}" for slot, count in result.calls.items())
        parts.append(Text(f"  all hold in {result.seconds:.1f} s; your functions were called: {called}", style="green"))
    parts += [Text(f"  {note}") for note in result.notes]
    return Group(*parts)


def of_outcome(task: Task, outcome: Outcome, address: str) -> Iterable[RenderableType]:
    """What one demand says that does not hold."""
    if outcome.verdict == "pending":
        yield Text(f"  {outcome.said}", style="yellow")
        return
    if outcome.said:
        yield Text(f"  {outcome.said}", style="red")
    rows = Table.grid(padding=(0, 2))
    for name in ("case", "expected", "got"):
        if value := getattr(outcome, name):
            rows.add_row(Text(f"  {name}", style="bold"), Text(value))
    if rows.row_count:
        yield rows
    if outcome.drawing:
        yield Panel(Text("\n".join(outcome.drawing)), style="dim", expand=False)
    for file, line, text in outcome.lines:
        yield Text(f"  {file}:{line}", style="cyan")
        if text:
            yield Syntax(f"      {text.strip()}", "python", background_color="default")
    if outcome.hint:
        yield Text.assemble("  ", (f"It looks as if {outcome.mistake}. ", "bold"), outcome.hint)
    if outcome.link:
        yield Text(f"  See it: {address}/{outcome.link}   (minifuse app)", style="dim")
    yield Text(f"  minifuse course hint {task.id}", style="dim")


def text_of(task: Task, result: Result) -> str:
    """The same without colours."""
    out = io.StringIO()
    Console(file=out, width=WIDTH, color_system=None).print(of_result(task, result))
    return out.getvalue()


def of_status(results: dict[str, Result]) -> RenderableType:
    """All tasks, module by module, with points."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    for module, name in MODULES.items():
        tasks = [task for task in TASKS if task.module == module]
        if not tasks:
            continue
        got = sum(task.points for task in tasks if results[task.id].verdict == "passed")
        table.add_row(Text(f"{module} {name}", style="bold"), "", Text(f"{got} of {sum(t.points for t in tasks)} points"))
        for task in tasks:
            result = results[task.id]
            said = {"passed": "", "pending": "to be written"}.get(result.verdict, result.verdict)
            table.add_row(Text.assemble("  ", sign(result.verdict), f" {task.id} {task.title}"), task.file, said)
    return table
