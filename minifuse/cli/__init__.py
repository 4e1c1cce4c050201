"""The command `minifuse`. Each command lives in a file of its own and is imported when it is called."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it with one line and exit status 130."""
    try:
        from .commands import app
    except ImportError as error:
        sys.exit(f'minifuse: the command needs {error.name}, which is not installed; run: pip install "minifuse[cli]"')
    from ..errors import MinifuseError

    try:
        app()
    except MinifuseError as error:
        sys.exit(f"minifuse: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("\nminifuse: stopped\n")
        sys.exit(130)
