"""`FILE.py:name` on the command line: a file of the user, or one of the visualizer's pages wherever they are installed."""

from pathlib import Path

from ..core.errors import MinifuseError

PACKAGE = Path(__file__).resolve().parents[1]
PLACES = (PACKAGE / "_visualizer", PACKAGE.parent)  # of the visualizer: in a wheel (setup.py puts it there), in a clone
PAGES = "project"  # the folder there; commands that pages show name files in it


class RequestError(MinifuseError, ValueError):
    """A command asks for something that does not exist, or that does not fit together."""


def file_and_name(what: str, shown: str = "FILE.py:function") -> tuple[Path, str]:
    """Return the file and the name in `FILE.py:name`; the name is empty where none is given.

    Raises
    ------
    RequestError
        It has another form, or there is no such file.
    """
    before, dot_py, name = what.rpartition(".py")
    if not dot_py:
        raise RequestError(f"{what}: expected {shown}")
    return found(Path(before + dot_py)), name.removeprefix(":")


def found(path: Path) -> Path:
    """Return a file that exists: in the current folder, or a page's below the visualizer."""
    if path.is_file():
        return path
    if path.parts[:1] == (PAGES,):
        for place in PLACES:
            if (place / path).is_file():
                return place / path
    raise RequestError(f"{path} is not a file")
