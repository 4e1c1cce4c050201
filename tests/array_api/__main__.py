"""Run the tests of the array API standard, version 2024.12, from a local checkout; nothing of it is part of this project.

python -m tests.array_api SUITE                      on the python backend, which compiles nothing
python -m tests.array_api SUITE --backend parallel   on another one
python -m tests.array_api SUITE --json FILE          write the outcomes

SUITE is a folder with a checkout of github.com/data-apis/array-api-tests and its submodule, at the tag 2025.05.23. It needs
hypothesis and pytest-json-report. `skips.txt` lists the tests that are skipped, each with its reason.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MISSING_DTYPES = "complex64,complex128,uint16,uint32,uint64"
NAMESPACE = 'import minifuse as mf; mf.set_default_backend("{}"); xp = mf.zeros(()).__array_namespace__()'


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="tests.array_api", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", type=Path, nargs="?", help="folder of the checkout")
    parser.add_argument("--backend", default="python", help="backend of the arrays")
    parser.add_argument("--examples", type=int, default=20, help="examples of each property (default: 20)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes")
    chosen, rest = parser.parse_known_args()
    if chosen.suite is None or not (chosen.suite / "array_api_tests").is_dir():
        print(
            f"array API tests skipped: no checkout in {chosen.suite}; clone data-apis/array-api-tests, and pass SUITE=folder"
        )
        return 0
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": f"exec('{NAMESPACE.format(chosen.backend)}')",
        "ARRAY_API_TESTS_VERSION": "2024.12",
        "ARRAY_API_TESTS_SKIP_DTYPES": MISSING_DTYPES,
        "MINIFUSE_ARRAY_API_BACKEND": chosen.backend,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    if chosen.json is not None:
        environment["MINIFUSE_ARRAY_API_JSON"] = str(chosen.json.resolve())
    command = [
        sys.executable, "-m", "pytest", "array_api_tests", "-q", "-p", "tests.array_api.plugin", "-p", "no:cacheprovider",
        "--disable-warnings", "--disable-deadline", "--max-examples", str(chosen.examples), *rest,
    ]  # fmt: skip
    return subprocess.run(command, cwd=chosen.suite, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
