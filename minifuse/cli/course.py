"""`minifuse course`: create a folder with tasks, check solutions with smallest failing cases, show hints, and grade."""

import secrets
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.syntax import Syntax

from ..core.errors import CourseError
from ..core.wording import format_count
from ..course import report, workspace
from ..course.progress import known_results, next_task
from ..course.reading import locate
from ..course.registry import all_tasks, files, task_named, tasks_of
from ..course.scoring import earned_points, points_of_task
from ..course.student_process import TIME_S
from ..course.task import Effort, Task
from ..course.verdicts import Result
from .course_authoring import make_stubs, new_task, verify
from .course_grading import grade, similar, workflow
from .course_options import Folder, Json, Limit, OptionalTaskName, Strict, TaskName, TaskNames, Tasks, parse_path
from .judging import judge_tasks
from .output import new_console, print_json

app = typer.Typer()
NOT_CHECKED = "not checked"
Examples = Annotated[int, typer.Option(min=1, help="Number of examples for each check.")]


def console() -> Console:
    """Create a console of at most 80 columns on the current standard output."""
    return new_console()


@app.command()
def init(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", parser=parse_path, help="A new folder, or one without any of the course's files."),
    ],
    tasks: Tasks = None,
) -> None:
    """Create a folder with all files of the course for your solutions."""
    workspace.init(folder)
    out = console()
    counts = f"{format_count(len(files()), 'file')} for {format_count(len(all_tasks()), 'task')}"
    out.print(f"{folder} is yours: {counts}, README.md, and tests", soft_wrap=True)
    commands = (f"cd {shlex.quote(str(folder))}", f"minifuse course check {all_tasks()[0].id}")
    out.print("\n  ".join(("Begin:", *commands)), soft_wrap=True)  # a line each: not all shells have &&


@app.command()
def check(
    names: TaskNames = None,
    folder: Folder = Path(),
    json: Json = False,
    seed: Annotated[int | None, typer.Option(help="Seed of other examples. Default: the same examples each time.")] = None,
    examples: Examples = Effort.examples,
    limit: Limit = TIME_S,
    strict: Strict = False,
    tasks: Tasks = None,
) -> None:
    """Check tasks: for each, report the first check that fails, with the smallest failing case.

    Checks all tasks if none is named. Exits with 0 if all of them pass, else with 1.
    """
    root, chosen, out = workspace.find_folder(folder), tasks_of(names or []), console()
    results = []
    effort = Effort(examples, seed)
    run = judge_tasks(root, chosen, effort=effort, is_strict=strict, time_s=limit)
    for task, result in zip(chosen, run, strict=True):
        results.append(result)
        if not json:
            out.print(report.render_result(task, result))
            out.print()
    has_passed = all(result.verdict == "passed" for result in results)
    if has_passed and not json:
        out.print(report.render_next(known_results(root) | {result.task: result for result in results}, chosen[-1]))
    if json:
        print_json([result_facts(task, result) for task, result in zip(chosen, results, strict=True)])
    raise typer.Exit(int(not has_passed))


def result_facts(task: Task, result: Result) -> dict[str, object]:
    """Return a result as the data that --json prints."""
    checks = [{"check": name, "got": points.got, "of": points.of} for name, points in earned_points(task, result).items()]
    points = points_of_task(task, result)
    return {"verdict": result.verdict, **asdict(result), "points": points.got, "of": points.of, "points_of_checks": checks}


@app.command()
def status(
    folder: Folder = Path(),
    run: Annotated[
        bool, typer.Option("--run", help="Also check the tasks that changed since they were last checked.")
    ] = False,
    json: Json = False,
    limit: Limit = TIME_S,
    tasks: Tasks = None,
) -> None:
    """Show your progress: the last verdict of each task, as `check` and `watch` found it.

    Runs nothing. A verdict is shown only while your file, the files that it imports and the course have not changed since.
    """
    root, out = workspace.find_folder(folder), console()
    results = known_results(root)
    changed = [task for task in all_tasks() if task.id not in results]
    if run and changed:
        results |= {result.task: result for result in judge_tasks(root, changed, time_s=limit)}
        changed = []
    if json:
        found = [result_facts(task, results.get(task.id) or Result(task.id, [], {})) for task in all_tasks()]
        print_json([facts if facts["task"] in results else facts | {"verdict": NOT_CHECKED} for facts in found])
        return
    out.print(report.render_status(results, tasks=all_tasks(), missing=NOT_CHECKED))
    out.print(report.indent(report.render_progress(results)))
    out.print(report.render_next(results))
    if changed:
        names = " ".join(task.id for task in changed)
        text = f"Not checked since the last change: {names}. `minifuse course status --run` checks these."
        out.print(report.indent(text, "yellow"))


@app.command()
def watch(
    name: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="The task to start with. Default: the first that fails.")
    ] = None,
    folder: Folder = Path(),
    limit: Limit = TIME_S,
    strict: Strict = False,
    tasks: Tasks = None,
) -> None:
    """Check each file when you save it: one failure, your progress, and keys for hints, pictures and the next task."""
    from .watch import run

    raise typer.Exit(run(workspace.find_folder(folder), None if name is None else task_named(name), limit, strict))


def named_or_next(name: str | None) -> Task:
    """Return the task with a name; for None, the first that is not known to pass in the folder of the course."""
    if name is not None:
        return task_named(name)
    return next_task(known_results(workspace.find_folder(Path()))) or all_tasks()[-1]


@app.command()
def hint(
    name: OptionalTaskName = None,
    number: Annotated[int, typer.Option("--number", "-n", min=1, max=4, help="1 to 4; the last is a first line.")] = 1,
    tasks: Tasks = None,
) -> None:
    """Print what a task asks for, and hints."""
    task, out = named_or_next(name), console()
    out.print(report.render_hints(task, number))
    for line in ["To read first:", *(f"  {locate(name)}" for name in task.reads)] if task.reads else ():
        out.print(line, style="dim", soft_wrap=True)
    if number < len(report.hints_of(task)):
        out.print(f"\nMore: minifuse course hint {task.id} -n {number + 1}", style="dim")


@app.command()
def quiz(
    name: OptionalTaskName = None,
    seed: Annotated[int | None, typer.Option(help="Seed of an earlier quiz to repeat. Default: a new one.")] = None,
    is_printed: Annotated[bool, typer.Option("--print", help="Print the questions, and do not ask.")] = False,
    answers: Annotated[bool, typer.Option("--answers", help="Print the questions and their answers.")] = False,
    json: Json = False,
    tasks: Tasks = None,
) -> None:
    """Ask a few questions on a task. Their numbers are drawn anew each time.

    Answers are read from standard input, one a line. Ctrl-C ends the quiz.
    """
    from ..course.quizzes.quiz import draw_quiz
    from ..course.quizzes.session import print_quiz, quiz_facts, run

    drawn = draw_quiz(named_or_next(name), secrets.randbelow(10_000) if seed is None else seed)
    if json:
        print_json(quiz_facts(drawn))
    elif is_printed or answers:
        print_quiz(drawn, console(), with_answers=answers)
    else:
        run(drawn, console())


@app.command()
def diff(name: TaskName, folder: Folder = Path(), limit: Limit = TIME_S, tasks: Tasks = None) -> None:
    """Compare your solution with the reference, once the task passes. Works in a clone of the repository only."""
    root, task = workspace.find_folder(folder), task_named(name)
    (result,) = judge_tasks(root, [task], time_s=limit)
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
def reset(name: TaskName, folder: Folder = Path(), tasks: Tasks = None) -> None:
    """Reset the functions of a task to their initial state, and keep a copy of yours."""
    root, task = workspace.find_folder(folder), task_named(name)
    copy = workspace.reset(root, task)
    copy_text = f"; a copy of yours is in {copy.relative_to(root)}" if copy else ""
    console().print(f"{', '.join(task.slots)} in {task.file} are reset{copy_text}", soft_wrap=True)


@app.command()
def upgrade(
    folder: Folder = Path(),
    mine: Annotated[bool, typer.Option("--mine", help="If both changed the same lines, keep yours.")] = False,
    tasks: Tasks = None,
) -> None:
    """Update a folder to this version of the course, and keep your solutions."""
    changes = workspace.upgrade(workspace.find_folder(folder), mine)
    console().print("\n".join(changes) or "The folder is up to date.", soft_wrap=True)


for command in (grade, similar, workflow, new_task, make_stubs):
    app.command()(command)
app.command("test-tasks")(verify)
