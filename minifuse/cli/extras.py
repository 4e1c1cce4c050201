"""The extras of minifuse that its commands need."""

EXTRAS = {
    "app": "app",
    "bench": "cli",
    "check": "cli,simt",
    "--engine": "course",
    "course": "course",
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
"""The extras that each command needs, and the option before a command. Commands that are not listed need none."""


def install_command(command: str) -> str:
    """Return the line that installs the packages of a command."""
    return f'pip install "minifuse[{EXTRAS[command]}]"'
