"""`FILE.py:name` on the command line: a file of the user, or a page of the visualizer wherever it is installed."""

from pathlib import Path

from ..core.errors import MinifuseError, MissingPartError

PACKAGE = Path(__file__).resolve().parents[1]
VISUALIZER_FOLDERS = PACKAGE / "_visualizer", PACKAGE.parent  # in a wheel (see setup.py), in a clone
PAGES = "project"  # commands shown on the pages name files in this folder
CUDA_CPP_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp")


class RequestError(MinifuseError, ValueError):
    """A command got an argument that is unknown, or arguments that contradict each other."""


def file_and_name(what: str, expected_form: str = "FILE.py:function") -> tuple[Path, str]:
    """Split `FILE.py:name` into file and name; the name is empty if it is missing.

    Raises
    ------
    RequestError
        The argument has another form, the file is CUDA C++, or it does not exist.
    """
    refuse_cuda_cpp(what)
    stem, dot_py, name = what.rpartition(".py")
    if not dot_py:
        raise RequestError(f"got {what}, expected {expected_form}")
    return find_file(Path(stem + dot_py)), name.removeprefix(":")


def refuse_cuda_cpp(what: str) -> None:
    """Raise RequestError for `FILE` or `FILE:name` if the file is not Python but CUDA C++."""
    file, _, name = what.rpartition(":")
    file = file if name.isidentifier() else what
    if file.endswith(CUDA_CPP_SUFFIXES):
        raise RequestError(
            f"{file} is CUDA C++; minifuse runs kernels written in Python for numba.cuda, as in "
            "@cuda.jit def k(a): a[cuda.threadIdx.x] = 1"
        )


def find_visualizer() -> Path:
    """Return the folder that contains `project`.

    Raises
    ------
    MissingPartError
        The pages of the visualizer are not installed.
    """
    for folder in VISUALIZER_FOLDERS:
        if (folder / "project" / "app.py").is_file():
            return folder
    raise MissingPartError(
        f"the pages of the visualizer are in neither of {' and '.join(map(str, VISUALIZER_FOLDERS))}; "
        "install minifuse from a wheel or a clone: pip install -e '.[app]'"
    )


def find_file(path: Path) -> Path:
    """Find a file: relative to the current folder, or a page of the visualizer."""
    if path.is_file():
        return path
    if path.parts[:1] == (PAGES,):
        for folder in VISUALIZER_FOLDERS:
            if (folder / path).is_file():
                return folder / path
    raise RequestError(f"{path} is not a file")
