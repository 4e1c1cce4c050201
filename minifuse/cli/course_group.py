"""The group of commands `minifuse course`, without importing them: they need the tasks, which take half a second."""

from typing import Any

import typer
from typer.core import TyperGroup


class CourseGroup(TyperGroup):
    """The commands of `course`, which are imported when one of them is called or listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names in the order of the help."""
        self._import_commands()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with a name."""
        self._import_commands()
        return super().get_command(ctx, cmd_name)

    def _import_commands(self) -> None:
        """Import the commands, once."""
        if not self.commands:
            from .course import app as course

            self.commands.update(typer.main.get_group(course).commands)
