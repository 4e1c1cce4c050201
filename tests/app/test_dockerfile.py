"""The Dockerfiles: what `make docker-commands` performs of them, and what Docker gets to build them from."""

import re
import tomllib

import pytest

from tests.app.run_dockerfile import Debian, context_files, instructions
from tests.sources import ROOT

INSTRUCTIONS = list(instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")))
OF_COURSE = list(instructions((ROOT / "project" / "course.Dockerfile").read_text(encoding="utf-8")))
KNOWN = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def performed(*names, of=INSTRUCTIONS):
    """Return a Debian in which these instructions were performed; they touch no file."""
    debian = Debian(ROOT / "no-such-folder")
    for name, rest in of:
        if name in names:
            debian.perform(name, rest)
    return debian


def test_continued_lines_are_joined_and_comments_left_out():
    assert list(instructions("# a\nRUN x \\\n# b\n  && y\n\nUSER 1\n")) == [("RUN", "x    && y"), ("USER", "1")]


def test_only_instructions_that_are_performed_are_used():
    assert {name for name, _ in [*INSTRUCTIONS, *OF_COURSE]} <= KNOWN
    with pytest.raises(SystemExit, match="VOLUME /x: expected one of"):
        Debian(ROOT).perform("VOLUME", "/x")


def test_the_server_is_public_and_runs_without_the_rights_of_root():
    debian = performed("USER", "HEALTHCHECK", "CMD")
    assert int(debian.user) > 0
    assert {"app", "--public", "--host", "0.0.0.0"} <= set(debian.command)
    port = debian.command[debian.command.index("--port") + 1]
    assert f"http://127.0.0.1:{port}/_stcore/health" in debian.health[-1]


def test_docker_gets_what_a_wheel_is_built_from_and_nothing_else():
    sent = {str(file) for file in context_files()}
    folders, files = (
        ("minifuse", "project", ".streamlit"),
        ("setup.py", "pyproject.toml", "MANIFEST.in", "LICENSE", "README.md"),
    )
    found = {str(path.relative_to(ROOT)) for name in folders for path in (ROOT / name).rglob("*") if path.is_file()}
    assert {name for name in found if "__pycache__" not in name} <= sent
    assert {*files, "docs/guide/counters-h200.json", "pytest_minifuse.py", "requirements.txt"} <= sent
    assert not [file for file in sent if file.startswith(("tests/", ".git/", "docs/course")) or "__pycache__" in file]


def test_the_container_of_the_course_runs_its_commands_without_rights():
    debian = performed("USER", "ENV", "ENTRYPOINT", of=OF_COURSE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    installs = [rest for name, rest in OF_COURSE if name == "RUN" and "pip install" in rest]
    assert [re.search(r"\.\[(\w+)\]", rest)[1] for rest in installs] == ["course"]
    assert "course" in extras
    assert "--constraint requirements.txt" in installs[0]
    assert int(debian.user) > 0
    assert debian.entry_point[-1] == "course"
    assert debian.variables["HOME"] == "/tmp"
    assert [rest for name, rest in OF_COURSE if name in ("FROM", "COPY")] == [
        rest for name, rest in INSTRUCTIONS if name in ("FROM", "COPY")
    ]
