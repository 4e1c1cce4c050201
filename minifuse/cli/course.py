"""`minifuse course`: a folder of one's own, tasks, checks that find the smallest case, hints."""

import json as json_
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from ..course import report, runner, workspace
from ..course.registry import TASKS, task_named, tasks_of
from ..course.task import Effort, Result
from ..errors import CourseError

app = typer.Typer(no_args_is_help=True, help="Write the engine yourself, one function at a time; the rest is there.")

Folder = Annotated[Path, typer.Option("--dir", help="The folder of the course; the one around here if left out.")]
Json = Annotated[bool, typer.Option("--json", help="Print the facts as JSON, and nothing else.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[TASK]...", help="2.3, a function's name, or 2 for a module.")]
One = Annotated[str, typer.Argument(metavar="TASK", help="2.3, or a function's name.")]


def console() -> Console:
    """Of at most 80 columns, on standard output as it is now."""
    return Console(width=min(report.WIDTH, Console().width), highlight=False)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="A folder that is not there yet, or has none of these files.")],
) -> None:
    """Make a folder with all files of the course, for you to write in."""
    written = workspace.init(folder)
    out = console()
    out.print(f"{folder} is yours: {', '.join(path.name for path in written)}", soft_wrap=True)
    out.print(f"Begin:  cd {folder}  &&  minifuse course check {TASKS[0].id}", soft_wrap=True)


@app.command()
def check(
    names: Names = None,
    folder: Folder = Path(),
    json: Json = False,
    seed: Annotated[int | None, typer.Option(help="Other examples than those of each time.")] = None,
    examples: Annotated[int, typer.Option(min=1, help="How many each demand is tried on.")] = Effort.examples,
    limit: Annotated[float, typer.Option(min=1, help="Seconds after which a task is stopped.")] = runner.TIME_S,
) -> None:
    """Judge tasks: the first demand that does not hold, with the smallest case that shows it.

    All tasks if none is named. Ends with 0 if all that were named hold, 1 if not.
    """
    place, tasks, out = workspace.found(folder), tasks_of(names or []), console()
    results = []
    for task, result in zip(tasks, runner.run(place, tasks, effort=Effort(examples, seed), time_s=limit), strict=True):
        results.append(result)
        if not json:
            out.print(report.of_result(task, result))
            out.print()
    if json:
        sys.stdout.write(json_.dumps([facts(result) for result in results], indent=2) + "\n")
    raise typer.Exit(int(any(result.verdict != "passed" for result in results)))


def facts(result: Result) -> dict[str, object]:
    """A result for programs."""
    return {"verdict": result.verdict, **asdict(result)}


@app.command()
def status(folder: Folder = Path(), json: Json = False) -> None:
    """Say where you are, by judging every task now; nothing is remembered."""
    place, out = workspace.found(folder), console()
    results: dict[str, Result] = {}
    with out.status("judging ...") if not json else out.capture():
        for result in runner.run(place, TASKS, effort=Effort(examples=20)):
            results[result.task] = result
    if json:
        sys.stdout.write(json_.dumps([facts(result) for result in results.values()], indent=2) + "\n")
        return
    out.print(report.of_status(results))


@app.command()
def hint(
    name: One, number: Annotated[int, typer.Option("--number", "-n", min=1, max=3, help="1 to 3, each says more.")] = 1
) -> None:
    """Say what a task asks, and how to think of it."""
    task, out = task_named(name), console()
    out.print(Text(f"{task.id} {task.title}", style="bold"), Text(task.text), sep="\n")
    for k, kind in enumerate(("The idea", "In words", "Where to look")[:number]):
        out.print(Text.assemble((f"\n{kind}. ", "bold"), task.hints[k]))
    if number < 3:
        out.print(f"\nMore: minifuse course hint {task.id} -n {number + 1}", style="dim")
    out.print(f"To read first: {', '.join(task.reads)}", style="dim")


@app.command()
def diff(name: One, folder: Folder = Path()) -> None:
    """Hold your solution against the reference, once the task holds. Only a clone of the repository has the reference."""
    place, task = workspace.found(folder), task_named(name)
    (result,) = runner.run(place, [task])
    if result.verdict != "passed":
        raise CourseError(
            f"task {task.id} does not hold yet, and the reference would spoil it; minifuse course check {task.id}"
        )
    lines = workspace.difference(place, task)
    console().print(Syntax("\n".join(lines), "diff", background_color="default") if lines else "The same, line by line.")


@app.command()
def reset(name: One, folder: Folder = Path()) -> None:
    """Put the functions of a task back to what they were at first; what you had is kept."""
    place, task = workspace.found(folder), task_named(name)
    copy = workspace.reset(place, task)
    kept = f"; what you had is in {copy.relative_to(place)}" if copy else ""
    console().print(f"{', '.join(task.slots)} in {task.file} are as at first{kept}", soft_wrap=True)


@app.command()
def upgrade(folder: Folder = Path()) -> None:
    """Bring a folder to this version of the course; what you wrote stays."""
    said = workspace.upgrade(workspace.found(folder))
    console().print("\n".join(said) or "Nothing has changed since.", soft_wrap=True)
