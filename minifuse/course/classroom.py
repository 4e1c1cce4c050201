"""The workflow file with which GitHub grades each push to a student's repository.

GitHub Classroom reads the points from the annotation "Autograding report" of a workflow that is named "Autograding Tests"
and has one job, "run-autograding-tests". GitHub has announced the end of Classroom; without it, the workflow grades all the
same, and shows the points in the summary of its run. If a student's code prints a command of the runner (`::notice ...`), it
has no effect.

References
----------
https://github.com/classroom-resources/autograding-grading-reporter
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from ..core.errors import CourseError
from .workspace import write

WORKFLOW = Path(".github/workflows/classroom.yml")
REQUIREMENT = f"minifuse[course]=={__version__}"
PYTHON = "3.12"
MINUTES = 30  # limit of a run; the whole course takes a few

TEMPLATE = """# Grades the course's folder at each push. Written by `minifuse course workflow`.
name: Autograding Tests

on: [push, workflow_dispatch]

permissions:
  contents: read

jobs:
  run-autograding-tests:
    runs-on: ubuntu-latest
    timeout-minutes: {minutes}
    steps:
      - uses: actions/checkout@v4
        with:
          persist-credentials: false
      - uses: actions/setup-python@v5
        with:
          python-version: "{python}"
      - name: Install minifuse
        env:
          REQUIREMENT: {requirement}
        run: python -P -m pip install "$REQUIREMENT"
      - name: Grade
        env:
          RESULTS: ${{{{ runner.temp }}}}/results.json
        run: |
          token=$(openssl rand -hex 16) # no variable of the environment: the code that is graded could read it
          echo "::stop-commands::$token"
          python -P -m minifuse course grade . --out "$RESULTS"{arguments} || true # tasks to be written are no error here
          echo "::$token::"
      - name: Report points
        env:
          RESULTS: ${{{{ runner.temp }}}}/results.json
        run: |
          points=$(jq '.course.points' "$RESULTS")
          of=$(jq '.course.of' "$RESULTS")
          echo "::notice title=Autograding complete::Points $points/$of"
          echo "::notice title=Autograding report::{{\\"totalPoints\\":$points,\\"maxPoints\\":$of}}"
          jq -r '"**\\(.course.points) of \\(.course.of) points**", "", "| task | points | of |", "|---|---|---|",
            (.course.tasks[] | "| \\(.id) \\(.title) | \\(.points) | \\(.of) |")' "$RESULTS" >> "$GITHUB_STEP_SUMMARY"
"""


def workflow(names: Sequence[str] = (), seed: int | None = None, requirement: str = REQUIREMENT) -> str:
    """Return the workflow file.

    Parameters
    ----------
    names : sequence of str
        The tasks and modules to grade; all if empty.
    seed : int, optional
        The seed of the drawn cases; a new one in each run if None.
    requirement : str
        What pip installs.
    """
    words = [*names, *([] if seed is None else ["--seed", str(seed)])]
    arguments = "".join(f" {shlex.quote(word)}" for word in words)
    return TEMPLATE.format(arguments=arguments, requirement=json.dumps(requirement), python=PYTHON, minutes=MINUTES)


def write_workflow(folder: Path, text: str) -> Path:
    """Write the workflow file of a repository, and return its path.

    Raises
    ------
    CourseError
        It exists, or cannot be written.
    """
    path = folder / WORKFLOW
    if path.exists():
        raise CourseError(f"{path} exists, and nothing was written; remove it to have a new one")
    write(path, text)
    return path
