"""Commands of `minifuse course` for authors of tasks: create one from a template, write stubs, verify a folder of tasks."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..core.errors import CourseError
from ..course import report, stub_regions, task_template, verify_tasks, workspace
from ..course.registry import all_tasks
from ..course.task import Effort
from .course_options import Json, tasks_option
from .output import new_console, print_json

OwnTasks = Annotated[Path | None, tasks_option("Folder with your tasks.")]


def chosen(folder: Path | None) -> Path:
    """Return the folder of --tasks.

    Raises
    ------
    CourseError
        None was given.
    """
    if folder is None:
        raise CourseError("no folder of tasks is named; write --tasks DIR, or set MINIFUSE_TASKS")
    return workspace.absolute(folder)


def new_task(
    task_id: Annotated[str, typer.Argument(metavar="ID", help="The module, a dot, and the number in the module: 10.1.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The function that students write: running_sums.")],
    file: Annotated[str, typer.Option(metavar="FILE", help="The students' file. Default: NAME.py.")] = "",
    module: Annotated[str, typer.Option(metavar="TEXT", help="The name of a new module.")] = "",
    tasks: OwnTasks = None,
) -> None:
    """Write the files of a new task into your folder of tasks: a template that runs, to be changed into your task."""
    folder = chosen(tasks)
    out = new_console()
    for path in task_template.create(folder, task_id, name, file, module):
        out.print(str(path.relative_to(folder)), soft_wrap=True)
    out.print(f"Verify it:  minifuse course test-tasks --tasks {tasks}", soft_wrap=True)


def make_stubs(tasks: OwnTasks = None) -> None:
    """Write the stubs of your tasks anew: the reference solutions without what is between `# begin` and `# end`."""
    folder = chosen(tasks)
    stubs = stub_regions.stubs_of(folder / "reference")
    if not stubs:
        raise CourseError(f"{folder} has no files in its folder reference; minifuse course new-task writes the first")
    for name, text in stubs.items():
        workspace.write(folder / "stubs" / name, text)
        new_console().print(f"stubs/{name}", soft_wrap=True)


def verify(
    tasks: OwnTasks = None,
    examples: Annotated[int, typer.Option(min=1, help="Number of examples for each check.")] = Effort.examples,
    json: Json = False,
) -> None:
    """Verify your tasks: the reference passes, the stub is pending, each wrong solution fails with its mistake.

    Exits with 0 if all requirements are met, else with 1.
    """
    out, found, last = new_console(), [], ""
    for task, finding in verify_tasks.verify(chosen(tasks), Effort(examples)):
        found.append({"task": task.id, **finding._asdict()})
        if json:
            continue
        if task.id != last:
            out.print(Text(f"{task.id} {task.title}", style="bold"))
            last = task.id
        verdict = "failed" if finding.problem else "passed"
        out.print(report.indent(Text.assemble(report.sign(verdict), f" {finding.requirement}")))
        if finding.problem:
            out.print(report.indent(report.indent(finding.problem, "red")))
    failed = sum(bool(one["problem"]) for one in found)
    if json:
        print_json(found)
    else:
        count = len({one["task"] for one in found})
        state = "all requirements are met" if not failed else f"{failed} of {len(found)} requirements are not met"
        out.print(
            Text(f"{count} {'tasks' if count != 1 else 'task'}, {len(all_tasks())} with the course: {state}", style="bold")
        )
    raise typer.Exit(int(failed > 0))
