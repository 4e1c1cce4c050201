"""`minifuse bench`: time minifuse and other libraries side by side on this machine.

The benchmarks are in `project/benchmarks`, beside the package in a clone and inside it in a wheel. They run in a separate
process, since the number of threads and their waiting policy must be set before a library is loaded.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import MissingPartError
from .files import find_visualizer
from .output import report_error

START_CODE = "import sys; from project.benchmarks.__main__ import main; sys.exit(main(sys.argv[1:], 'minifuse bench'))"


@dataclass(frozen=True)
class BenchRequest:
    """The options of `project.benchmarks`."""

    rows: Sequence[str]
    against: str | None = None
    is_quick: bool = False
    is_list: bool = False
    seed: int | None = None
    out: Path | None = None
    picture: Path | None = None

    def arguments(self, json: bool) -> list[str]:
        """Return the command line arguments. Results are stored only if the user names a file."""
        options = {
            "--against": self.against,
            "--seed": self.seed,
            "--json": "-" if json else self.out,
            "--picture": self.picture,
        }
        texts = [f"{name}={value}" for name, value in options.items() if value is not None]
        return ["--no-keep", *["--quick"] * self.is_quick, *["--list"] * self.is_list, *texts, "--", *self.rows]


def run(request: BenchRequest, json: bool) -> int:
    """Run the benchmarks; return 1 if a result is wrong, 2 if the request is invalid."""
    if json and request.out:
        sys.stderr.write(
            "minifuse bench: got --json and --out, expected one: --json prints the results, --out writes them\n"
        )
        return 2
    try:
        root = find_visualizer()
    except MissingPartError as error:
        return report_error("bench", error)
    folders = [str(root), str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, folders))  # this `project` and this minifuse first
    command = [sys.executable, "-P", "-c", START_CODE, *request.arguments(json)]
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            return process.wait()  # it also received the signal, and ends by itself
