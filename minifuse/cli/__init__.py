"""The command `minifuse`. Each subcommand has its own file, which is imported when it is called."""

import sys
from importlib import import_module

from ..core.errors import MinifuseError
from . import base

REQUIRED_PACKAGES = ("typer", "rich")  # imported by all commands but those of `base`
JUDGING = [["course", "check"], ["course", "grade"], ["course", "watch"]]
"""The commands that run a student's code."""


def main() -> None:
    """Run the command line; Ctrl-C ends it with one line and exit status 130."""
    try:
        if sys.argv[1:3] in JUDGING:
            from ..course.student_process import start_server

            start_server()
        missing_package = first_missing_package()
        if missing_package:
            sys.exit(base.run(sys.argv[1:], missing_package))
        from .commands import app

        app()
    except MinifuseError as error:
        sys.exit(f"minifuse: {error}")
    except KeyboardInterrupt:
        from .output import report_interrupt

        sys.exit(report_interrupt())


def first_missing_package() -> str:
    """Return the first package that the commands need and that cannot be imported; "" if all can be imported."""
    try:
        for name in REQUIRED_PACKAGES:
            import_module(name)
    except ImportError as error:
        return error.name or name
    return ""
