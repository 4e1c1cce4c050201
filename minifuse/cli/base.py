"""The command line if only NumPy and Numba are installed: help, version, and `doctor`.

All other commands need typer and rich. Calling one of them prints the line that installs its packages.
"""

import argparse
import sys
from collections.abc import Sequence
from textwrap import fill

from .. import __version__

EXTRAS = {
    "app": "app",
    "bench": "cli",
    "check": "cli,simt",
    "course": "course",
    "demo": "cli",
    "equivalence": "cli",
    "explain": "cli",
    "grad": "cli",
    "launch": "cli",
    "layout": "cli",
    "merge": "cli",
    "race": "cli",
    "trace": "cli,simt",
    "train": "train",
    "tune": "cli",
    "warmup": "cli",
}
"""The extras that each command needs. Commands that are not listed need none."""


def run(arguments: Sequence[str], package: str) -> int:
    """Run a command that needs no extra; return the exit status, 2 for any other command.

    Parameters
    ----------
    arguments : sequence of str
        The command line after `minifuse`.
    package : str
        A package that is not installed.
    """
    if arguments and arguments[0] in EXTRAS:
        sys.stderr.write(
            f"minifuse {arguments[0]} needs {package}, which is not installed; run: {install_command(arguments[0])}\n"
        )
        return 2
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    from .doctor import run as doctor

    return doctor(options.json)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the commands that need no extra; its help lists the others."""
    parser = argparse.ArgumentParser(
        "minifuse",
        description="minifuse: a tensor engine to read in a week.",
        epilog=format_extras(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"minifuse {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    summary = "Check this machine: print what is installed, what is missing, and how to install it."
    doctor = commands.add_parser("doctor", help=summary, description=summary, allow_abbrev=False)
    doctor.add_argument("--json", action="store_true", help="Print the facts as JSON, and nothing else.")
    return parser


def format_extras() -> str:
    """Return the commands that need extras, each group above the line that installs its extras."""
    lines = {install_command(name): [other for other in EXTRAS if EXTRAS[other] == EXTRAS[name]] for name in EXTRAS}
    parts = [fill(", ".join(names), 78, initial_indent="  ", subsequent_indent="  ") for names in lines.values()]
    pairs = zip(lines, parts, strict=True)
    return "these commands need more packages:\n" + "\n".join(f"{names}\n      {command}" for command, names in pairs)


def install_command(command: str) -> str:
    """Return the line that installs the packages of a command."""
    return f'pip install "minifuse[{EXTRAS[command]}]"'
