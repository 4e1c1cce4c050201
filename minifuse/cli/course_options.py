"""Options and arguments that several commands of `minifuse course` have."""

from pathlib import Path
from typing import Annotated

import typer

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
Limit = Annotated[float, typer.Option(min=1, max=MAX_LIMIT_S, help="Stop a task after this many seconds.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Run only your functions. Do not fill in missing ones from the reference solution."),
]
