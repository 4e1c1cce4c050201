"""The command `minifuse`. Each subcommand has its own file, which is imported when it is called."""

import sys
from importlib import import_module

from ..core.errors import MinifuseError
from . import base

NEEDED = ("typer", "rich")  # imported by all commands but those of `base`


def main() -> None:
    """Run the command line; Ctrl-C ends it with one line and exit status 130."""
    try:
        missing = first_missing()
        if missing:
            sys.exit(base.run(sys.argv[1:], missing))
        from .commands import app

        app()
    except MinifuseError as error:
        sys.exit(f"minifuse: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("\nminifuse: stopped\n")
        sys.exit(130)


def first_missing() -> str:
    """Return the first package that the commands need and that cannot be imported; "" if all can."""
    try:
        for name in NEEDED:
            import_module(name)
    except ImportError as error:
        return error.name or name
    return ""
