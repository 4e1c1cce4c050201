"""`minifuse bench`: minifuse side by side with the libraries that people use, on this machine.

What runs is `project/benchmarks`, beside the package in a clone and inside it in a wheel, in a process of its own: how many
threads everybody has, and how they wait, must be settled before a library is loaded.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import MissingPartError
from .app import visualizer

START = "import sys; from project.benchmarks.__main__ import main; sys.exit(main(sys.argv[1:], 'minifuse bench'))"


@dataclass(frozen=True)
class Request:
    """What was asked for, as the options of `project.benchmarks` say it."""

    rows: Sequence[str]
    against: str | None = None
    is_quick: bool = False
    is_list: bool = False
    seed: int | None = None
    out: Path | None = None
    picture: Path | None = None

    def words(self, json: bool) -> list[str]:
        """The words of the command line. A run of a user's is written where the user says, and kept nowhere else."""
        options = {
            "--against": self.against,
            "--seed": self.seed,
            "--json": "-" if json else self.out,
            "--picture": self.picture,
        }
        given = [f"{name}={value}" for name, value in options.items() if value is not None]
        return ["--no-keep", *["--quick"] * self.is_quick, *["--list"] * self.is_list, *given, "--", *self.rows]


def run(request: Request, json: bool) -> int:
    """Measure until it is done; the exit status is 1 where a result is wrong, 2 where the request makes no sense."""
    if json and request.out:
        sys.stderr.write("minifuse bench: --json prints the results, and --out writes them; leave out one of the two\n")
        return 2
    try:
        root = visualizer()
    except MissingPartError as error:
        sys.stderr.write(f"minifuse bench: {error}\n")
        return 2
    places = [str(root), str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, places))  # `project` first, whatever else is called so; then this very minifuse
    line = [sys.executable, "-P", "-c", START, *request.words(json)]
    with subprocess.Popen(line, env=os.environ | {"PYTHONPATH": path}) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            return process.wait()  # it got the signal too, and ends by itself
