"""Try the sdist that `make dist` has built, as a stranger would, in a new folder.

    make test-sdist

Only the standard library is imported, so that any Python can run it. The name of the folder has spaces, and a letter
outside ASCII.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.sources import ROOT

FOLDER = "a folder, gelöst"
OF_CHECKOUT = ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VIRTUAL_ENV")  # variables that would lead back here


def run(*command: object, folder: Path) -> None:
    """Run a command in a folder without the variables of this checkout; end with its status if it fails."""
    print("$", *command, flush=True)
    variables = {name: value for name, value in os.environ.items() if name not in OF_CHECKOUT}
    ended = subprocess.run([str(word) for word in command], cwd=folder, env=variables | {"PYTHONUTF8": "1"})
    if ended.returncode:
        sys.exit(f"status {ended.returncode}: {' '.join(map(str, command))}")


def the_only(pattern: str) -> Path:
    """Return the one file of dist/ that fits a pattern."""
    found = sorted((ROOT / "dist").glob(pattern))
    if len(found) != 1:
        sys.exit(f"dist/ has {len(found)} files {pattern}, expected one; run `make dist`")
    return found[0]


def try_sdist(folder: Path) -> None:
    """Unpack the sdist, and run the demo and some tests as its README says."""
    with tarfile.open(the_only("*.tar.gz")) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    run("make", "demo", folder=source)
    run("make", "test", "ARGS=tests/test_smoke.py tests/architecture", folder=source)


def main() -> None:
    """Try the sdist in a temporary folder."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, FOLDER)
        folder.mkdir()
        try_sdist(folder)
    print("the sdist works")


if __name__ == "__main__":
    main()
