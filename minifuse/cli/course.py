"""`minifuse course`: a folder of one's own, tasks, checks that find the smallest case, hints, grades."""

import json as json_
import secrets
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from ..core.errors import CourseError
from ..course import grade as grades
from ..course import report, runner, workspace
from ..course.registry import TASKS, task_named, tasks_of
from ..course.task import Effort, Result, Task

app = typer.Typer(no_args_is_help=True, help="Write the engine yourself, one function at a time; the rest is there.")


LONGEST_S = 86_400.0  # a day: the clocks of the system end at some time, so a limit is a finite number


def path_of(text: str | Path) -> Path:
    """Return a path of the command line; a name must not be empty, which `Path` would take for the folder here."""
    if not str(text):
        raise typer.BadParameter("got an empty name, expected a path; write . for the folder that you are in")
    return Path(text)


Folder = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", parser=path_of, help="The folder of the course; the one around here if left out."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the facts as JSON, and nothing else.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[TASK]...", help="2.3, a function's name, or 2 for a module.")]
One = Annotated[str, typer.Argument(metavar="TASK", help="2.3, or a function's name.")]
Examples = Annotated[int, typer.Option(min=1, help="How many each demand is tried on.")]
Limit = Annotated[float, typer.Option(min=1, max=LONGEST_S, help="Seconds after which a task is stopped.")]
Strict = Annotated[bool, typer.Option("--strict", help="Your functions alone: other tasks' are not lent to you.")]


def console() -> Console:
    """Of at most 80 columns, on standard output as it is now."""
    return Console(width=min(report.WIDTH, Console().width), highlight=False)


@app.command()
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", parser=path_of, help="A folder, new or with none of these files.")
    ],
) -> None:
    """Make a folder with all files of the course, for you to write in."""
    written = workspace.init(folder)
    out = console()
    out.print(f"{folder} is yours: {', '.join(path.name for path in written)}", soft_wrap=True)
    out.print(f"Begin:  cd {shlex.quote(str(folder))}  &&  minifuse course check {TASKS[0].id}", soft_wrap=True)


@app.command()
def check(
    names: Names = None,
    folder: Folder = Path(),
    json: Json = False,
    seed: Annotated[int | None, typer.Option(help="Other examples than those of each time.")] = None,
    examples: Examples = Effort.examples,
    limit: Limit = runner.TIME_S,
    strict: Strict = False,
) -> None:
    """Judge tasks: the first demand that does not hold, with the smallest case that shows it.

    All tasks if none is named. Ends with 0 if all that were named hold, 1 if not.
    """
    place, tasks, out = workspace.found(folder), tasks_of(names or []), console()
    results = []
    effort = Effort(examples, seed)
    for task, result in zip(tasks, runner.run(place, tasks, effort=effort, is_strict=strict, time_s=limit), strict=True):
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
def status(folder: Folder = Path(), json: Json = False, limit: Limit = runner.TIME_S) -> None:
    """Say where you are, by judging every task now; nothing is remembered."""
    place, out = workspace.found(folder), console()
    results: dict[str, Result] = {}
    with out.status("judging ...") if not json else out.capture():
        for result in runner.run(place, TASKS, effort=Effort(examples=30), time_s=limit):
            results[result.task] = result
    if json:
        sys.stdout.write(json_.dumps([facts(result) for result in results.values()], indent=2) + "\n")
        return
    out.print(report.of_status(results))
    out.print(report.inside(report.of_progress(results)))


@app.command()
def watch(
    name: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="To begin with; the first that does not hold.")
    ] = None,
    folder: Folder = Path(),
    limit: Limit = runner.TIME_S,
    strict: Strict = False,
) -> None:
    """Judge whatever you save, at once: one failure, how far you are, and keys for hints, the picture, the next task."""
    from .watch import run

    raise typer.Exit(run(workspace.found(folder), None if name is None else task_named(name), limit, strict))


@app.command()
def hint(
    name: One, number: Annotated[int, typer.Option("--number", "-n", min=1, max=3, help="1 to 3, each says more.")] = 1
) -> None:
    """Say what a task asks, and how to think of it."""
    task, out = task_named(name), console()
    out.print(report.of_hints(task, number))
    if number < 3:
        out.print(f"\nMore: minifuse course hint {task.id} -n {number + 1}", style="dim")


@app.command()
def diff(name: One, folder: Folder = Path(), limit: Limit = runner.TIME_S) -> None:
    """Hold your solution against the reference, once the task holds. Only a clone of the repository has the reference."""
    place, task = workspace.found(folder), task_named(name)
    (result,) = runner.run(place, [task], time_s=limit)
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
def upgrade(
    folder: Folder = Path(),
    mine: Annotated[bool, typer.Option("--mine", help="Keep your lines where the course changed the same ones.")] = False,
) -> None:
    """Bring a folder to this version of the course; what you wrote stays."""
    said = workspace.upgrade(workspace.found(folder), mine)
    console().print("\n".join(said) or "Nothing has changed since.", soft_wrap=True)


@app.command()
def grade(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", parser=path_of, help="A student's folder; their .py files are enough.")
    ],
    names: Names = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=path_of, help="Write results.json here: exercism's format, version 3."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="To repeat a grading; a new one each time if left out.")] = None,
    examples: Examples = Effort.examples,
    limit: Limit = runner.TIME_S,
    strict: Strict = False,
) -> None:
    """Grade a folder with examples that nobody has seen, each task in a process with limits on time and memory.

    Ends with 0 if at least one check of each task could ask the student's functions, whatever came of it; with 1 if not.
    """
    if not folder.is_dir():
        raise CourseError(f"{folder} is no folder; name the one with the student's files")
    tasks, effort = tasks_of(names or []), Effort(examples, secrets.randbelow(1 << 32) if seed is None else seed)
    results = list(
        runner.run(workspace.absolute(folder), tasks, effort=effort, is_strict=strict, is_whole=True, time_s=limit)
    )
    found = grades.results(tasks, results, effort, strict)
    if out:
        workspace.write(out, json_.dumps(found, indent=2) + "\n")
    tell(tasks, results, effort.seed)
    raise typer.Exit(int(not all(result.has_run for result in results)))


def tell(tasks: list[Task], results: list[Result], seed: int | None) -> None:
    """A grading in lines: what does not hold, then the points."""
    out = console()
    for task, result in zip(tasks, results, strict=True):
        if result.verdict not in ("passed", "pending"):
            out.print(report.of_result(task, result))
            out.print()
    by_id = {result.task: result for result in results}
    out.print(report.of_status(by_id, tasks=tasks))
    got, of = report.points(by_id, tasks)
    unasked = [result.task for result in results if not result.has_run]
    out.print(Text(f"{got} of {of} points; the same again: --seed {seed}", style="bold"))
    if unasked:
        out.print(Text(f"no check could ask anything of {', '.join(unasked)}", style="red"))
