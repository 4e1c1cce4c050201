"""`minifuse course`: create a folder with tasks, check solutions with smallest failing cases, show hints, and grade."""

import json as json_
import secrets
import shlex
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
from ..course.student_process import TIME_S
from ..course.task import Effort, Task
from ..course.verdicts import Result
from .output import new_console, print_json

app = typer.Typer(
    no_args_is_help=True, help="Write the engine yourself, one function at a time; minifuse supplies the rest."
)


MAX_LIMIT_S = 86_400.0  # a day: timeouts of the system must be finite


def parse_path(text: str | Path) -> Path:
    """Return a path of the command line; refuse an empty name, which `Path` would take for the current folder."""
    if not str(text):
        raise typer.BadParameter("got an empty name, expected a path; write . for the current folder")
    return Path(text)


Folder = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", parser=parse_path, help="Folder of the course. Default: the one you are in."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the facts as JSON, and nothing else.")]
TaskNames = Annotated[
    list[str] | None, typer.Argument(metavar="[TASK]...", help="Tasks: 2.3, the name of a function, or 2 for a module.")
]
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="A task: 2.3, or the name of its function.")]
Examples = Annotated[int, typer.Option(min=1, help="Number of examples for each check.")]
Limit = Annotated[float, typer.Option(min=1, max=MAX_LIMIT_S, help="Stop a task after this many seconds.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Run only your functions. Do not fill in missing ones from the reference solution."),
]


def console() -> Console:
    """Create a console of at most 80 columns on the current standard output."""
    return new_console()


@app.command()
def init(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", parser=parse_path, help="A new folder, or one without any of the course's files."),
    ],
) -> None:
    """Create a folder with all files of the course for your solutions."""
    written_paths = workspace.init(folder)
    out = console()
    out.print(f"{folder} is yours: {', '.join(path.name for path in written_paths)}", soft_wrap=True)
    out.print(f"Begin:  cd {shlex.quote(str(folder))}  &&  minifuse course check {TASKS[0].id}", soft_wrap=True)


@app.command()
def check(
    names: TaskNames = None,
    folder: Folder = Path(),
    json: Json = False,
    seed: Annotated[int | None, typer.Option(help="Seed of other examples. Default: the same examples each time.")] = None,
    examples: Examples = Effort.examples,
    limit: Limit = TIME_S,
    strict: Strict = False,
) -> None:
    """Check tasks: for each, report the first check that fails, with the smallest failing case.

    Checks all tasks if none is named. Exits with 0 if all of them pass, else with 1.
    """
    root, tasks, out = workspace.find_folder(folder), tasks_of(names or []), console()
    results = []
    effort = Effort(examples, seed)
    for task, result in zip(tasks, runner.run(root, tasks, effort=effort, is_strict=strict, time_s=limit), strict=True):
        results.append(result)
        if not json:
            out.print(report.render_result(task, result))
            out.print()
    if json:
        print_json([result_facts(result) for result in results])
    raise typer.Exit(int(any(result.verdict != "passed" for result in results)))


def result_facts(result: Result) -> dict[str, object]:
    """Return a result as the data that --json prints."""
    return {"verdict": result.verdict, **asdict(result)}


@app.command()
def status(folder: Folder = Path(), json: Json = False, limit: Limit = TIME_S) -> None:
    """Check all tasks now and show your progress. Nothing is stored."""
    root, out = workspace.find_folder(folder), console()
    results: dict[str, Result] = {}
    with out.status("checking ...") if not json else out.capture():
        for result in runner.run(root, TASKS, effort=Effort(examples=30), time_s=limit):
            results[result.task] = result
    if json:
        print_json([result_facts(result) for result in results.values()])
        return
    out.print(report.render_status(results))
    out.print(report.indent(report.render_progress(results)))


@app.command()
def watch(
    name: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="The task to start with. Default: the first that fails.")
    ] = None,
    folder: Folder = Path(),
    limit: Limit = TIME_S,
    strict: Strict = False,
) -> None:
    """Check each file when you save it: one failure, your progress, and keys for hints, pictures and the next task."""
    from .watch import run

    raise typer.Exit(run(workspace.find_folder(folder), None if name is None else task_named(name), limit, strict))


@app.command()
def hint(
    name: TaskName,
    number: Annotated[int, typer.Option("--number", "-n", min=1, max=3, help="1 to 3; each hint is more detailed.")] = 1,
) -> None:
    """Print what a task asks for, and hints."""
    task, out = task_named(name), console()
    out.print(report.render_hints(task, number))
    if number < 3:
        out.print(f"\nMore: minifuse course hint {task.id} -n {number + 1}", style="dim")


@app.command()
def quiz(
    name: TaskName,
    seed: Annotated[int | None, typer.Option(help="Seed of an earlier quiz to repeat. Default: a new one.")] = None,
    is_printed: Annotated[bool, typer.Option("--print", help="Print the questions, and do not ask.")] = False,
    answers: Annotated[bool, typer.Option("--answers", help="Print the questions and their answers.")] = False,
    json: Json = False,
) -> None:
    """Ask a few questions on a task. Their numbers are drawn anew each time.

    Answers are read from standard input, one a line. Ctrl-C ends the quiz.
    """
    from ..course.quizzes.quiz import draw_quiz
    from ..course.quizzes.session import print_quiz, quiz_facts, run

    drawn = draw_quiz(task_named(name), secrets.randbelow(10_000) if seed is None else seed)
    if json:
        print_json(quiz_facts(drawn))
    elif is_printed or answers:
        print_quiz(drawn, console(), with_answers=answers)
    else:
        run(drawn, console())


@app.command()
def diff(name: TaskName, folder: Folder = Path(), limit: Limit = TIME_S) -> None:
    """Compare your solution with the reference, once the task passes. Works in a clone of the repository only."""
    root, task = workspace.find_folder(folder), task_named(name)
    (result,) = runner.run(root, [task], time_s=limit)
    if result.verdict != "passed":
        raise CourseError(
            f"task {task.id} does not pass yet, and the reference would spoil it; run minifuse course check {task.id}"
        )
    lines = workspace.diff_with_reference(root, task)
    console().print(
        Syntax("\n".join(lines), "diff", background_color="default")
        if lines
        else "Your solution is identical to the reference."
    )


@app.command()
def reset(name: TaskName, folder: Folder = Path()) -> None:
    """Reset the functions of a task to their initial state, and keep a copy of yours."""
    root, task = workspace.find_folder(folder), task_named(name)
    copy = workspace.reset(root, task)
    copy_text = f"; a copy of yours is in {copy.relative_to(root)}" if copy else ""
    console().print(f"{', '.join(task.slots)} in {task.file} are reset{copy_text}", soft_wrap=True)


@app.command()
def upgrade(
    folder: Folder = Path(),
    mine: Annotated[bool, typer.Option("--mine", help="If both changed the same lines, keep yours.")] = False,
) -> None:
    """Update a folder to this version of the course, and keep your solutions."""
    changes = workspace.upgrade(workspace.find_folder(folder), mine)
    console().print("\n".join(changes) or "The folder is up to date.", soft_wrap=True)


@app.command()
def grade(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", parser=parse_path, help="Folder of a student; their .py files are enough.")
    ],
    names: TaskNames = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", parser=parse_path, help="Write the results to this file, in exercism's format, version 3."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of an earlier grading to repeat. Default: a new one.")] = None,
    examples: Examples = Effort.examples,
    limit: Limit = TIME_S,
    strict: Strict = False,
) -> None:
    """Grade a folder with new examples, each task in a process with limits on time and memory.

    Exits with 0 if at least one check of each task could call the student's functions, whatever its result; else with 1.
    """
    if not folder.is_dir():
        raise CourseError(f"{folder} is not a folder; write the path of the one with the student's files")
    tasks, effort = tasks_of(names or []), Effort(examples, secrets.randbelow(1 << 32) if seed is None else seed)
    results = list(
        runner.run(workspace.absolute(folder), tasks, effort=effort, is_strict=strict, runs_all_checks=True, time_s=limit)
    )
    grading = grades.results(tasks, results, effort, strict)
    if out:
        workspace.write(out, json_.dumps(grading, indent=2) + "\n")
    print_grades(tasks, results, effort.seed)
    raise typer.Exit(int(not all(result.has_run for result in results)))


def print_grades(tasks: list[Task], results: list[Result], seed: int | None) -> None:
    """Print the failed tasks, then the points."""
    out = console()
    for task, result in zip(tasks, results, strict=True):
        if result.verdict not in ("passed", "pending"):
            out.print(report.render_result(task, result))
            out.print()
    by_id = {result.task: result for result in results}
    out.print(report.render_status(by_id, tasks=tasks))
    points, total = report.count_points(by_id, tasks)
    not_run = [result.task for result in results if not result.has_run]
    out.print(Text(f"{points} of {total} points; repeat with --seed {seed}", style="bold"))
    if not_run:
        out.print(Text(f"no check could call the functions of {', '.join(not_run)}", style="red"))
