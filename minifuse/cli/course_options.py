"""Options and arguments that several commands of `minifuse course` have."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..course import task_folder

MAX_LIMIT_S = 86_400.0  # a day: timeouts of the system must be finite


def parse_path(text: str | Path) -> Path:
    """Return a path of the command line; refuse an empty name, which `Path` would take for the current folder."""
    if not str(text):
        raise typer.BadParameter("got an empty name, expected a path; write . for the current folder")
    return Path(text)


def use_tasks(folder: Path | None) -> None:
    """Use a folder of tasks in this process and those that it starts."""
    if folder is not None:
        task_folder.use(folder)


def tasks_option(help_text: str, callback: Any = None) -> Any:
    """Return the option --tasks."""
    return typer.Option(
        "--tasks", metavar="DIR", envvar=task_folder.VARIABLE, parser=parse_path, help=help_text, callback=callback
    )


Tasks = Annotated[Path | None, tasks_option("Folder with a teacher's own tasks, beside those of the course.", use_tasks)]
Folder = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", parser=parse_path, help="Folder of the course. Default: the one you are in."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the facts as JSON, and nothing else.")]
TaskNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TASK]...", help="Tasks: 2.3, the name of a function or file, or 2 for a module."),
]
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="A task: 2.3, or the name of its function or file.")]
OptionalTaskName = Annotated[
    str | None, typer.Argument(metavar="[TASK]", help="A task, as 2.3. Default: the first that does not pass yet.")
]
Limit = Annotated[float, typer.Option(min=1, max=MAX_LIMIT_S, help="Stop a task after so many seconds of processor time.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Run only your functions. Do not fill in missing ones from the reference solution."),
]
