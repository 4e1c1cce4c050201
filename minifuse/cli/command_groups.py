"""The groups of commands: `minifuse`, and `minifuse course`, whose commands are imported when one of them is called."""

from typing import Any

import typer
from typer.core import TyperGroup

from .output import report_interrupt


class RootGroup(TyperGroup):
    """All commands. Ctrl-C in one of them prints that it stopped; typer itself exits without a word."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the command line names."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(report_interrupt()) from None


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
