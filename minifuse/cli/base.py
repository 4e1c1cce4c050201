"""The command line if only NumPy and Numba are installed: help, version, `demo` and `doctor`.

All other commands need typer and rich. Calling one of them prints the line that installs its packages.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from textwrap import fill

from .. import __version__
from .extras import EXTRAS, install_command

OWN_COMMANDS = ("demo", "doctor")


def run(arguments: Sequence[str], package: str) -> int:
    """Run a command that needs no extra; return the exit status, 2 for any other command.

    Parameters
    ----------
    arguments : sequence of str
        The command line after `minifuse`.
    package : str
        A package that is not installed.
    """
    command = arguments[0].partition("=")[0] if arguments else ""
    if command in EXTRAS:
        sys.stderr.write(f"minifuse {command} needs {package}, which is not installed; run: {install_command(command)}\n")
        return 2
    parser = build_parser()
    if command and not command.startswith("-") and command not in OWN_COMMANDS:
        close = get_close_matches(command, [*OWN_COMMANDS, *EXTRAS], 1)
        hint = f"did you mean {close[0]}? " if close else ""
        parser.error(f"{command} is not a command; {hint}minifuse --help lists all")
    options = parser.parse_args(arguments)
    match options.command:
        case "demo":
            from .demo import run as demo

            return demo(options.backend, options.epochs, options.seed, options.digits, options.json)
        case "doctor":
            from .doctor import run as doctor

            return doctor(options.json)
    parser.print_help()
    return 0


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
    summary = "Train a network on 1,797 handwritten digits, then compare results and speed of all backends."
    demo = commands.add_parser("demo", help=summary, description=summary, allow_abbrev=False)
    demo.add_argument("--backend", metavar="NAME", help="Run on this backend. Default: the default backend.")
    demo.add_argument(
        "--epochs", metavar="N", type=at_least(1), help="Train for this many passes over the digits. Default: 20."
    )
    demo.add_argument(
        "--seed",
        metavar="N",
        type=int,
        default=0,
        help="Seed of the split, the weights and the order of the digits. Default: 0.",
    )
    demo.add_argument("--digits", metavar="N", type=at_least(8), help="Train on this many digits. Default: all 1,437.")
    summary = "Check this machine: print what is installed, what is missing, and how to install it."
    doctor = commands.add_parser("doctor", help=summary, description=summary, allow_abbrev=False)
    for command in (demo, doctor):
        command.add_argument("--json", action="store_true", help="Print the facts as JSON, and nothing else.")
    return parser


def at_least(smallest: int) -> Callable[[str], int]:
    """Return a function that parses an integer of at least `smallest`."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = smallest - 1
        if number < smallest:
            raise argparse.ArgumentTypeError(f"got {text}, expected an integer of at least {smallest}")
        return number

    return parse


def format_extras() -> str:
    """Return the commands that need extras, each group above the line that installs its extras."""
    lines = {install_command(name): [other for other in EXTRAS if EXTRAS[other] == EXTRAS[name]] for name in EXTRAS}
    parts = [fill(join_commands(names), 78, initial_indent="  ", subsequent_indent="  ") for names in lines.values()]
    pairs = zip(lines, parts, strict=True)
    return "these commands need more packages:\n" + "\n".join(f"{names}\n      {command}" for command, names in pairs)


def join_commands(names: Sequence[str]) -> str:
    """Join the names of commands, and of options, which come last: `course, and the option --engine`."""
    options = [f"and the option {name}" for name in names if name.startswith("-")]
    return ", ".join([*[name for name in names if not name.startswith("-")], *options])
