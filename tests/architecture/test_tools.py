"""The ways to run the checks agree: what a developer runs, what a commit runs, what CI runs."""

import re
import shutil
import subprocess

import pytest

from tests.sources import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def recipe(target: str) -> list[str]:
    """The commands of a target of the Makefile."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
    assert found, f"the Makefile has no target {target}"
    return [line.strip().lstrip("@") for line in found[1].splitlines()]


def test_ci_runs_what_check_runs():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    needed = re.search(r"^check: (.*?) ##", MAKEFILE, re.MULTILINE)
    assert needed
    assert re.findall(r"^make ([\w-]+)$", script, re.MULTILINE) == needed[1].split()


def test_a_commit_is_checked_with_the_tools_of_lint():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = [" ".join(entry.split()[:2]) for entry in re.findall(r"entry: \.venv/bin/(.*)", hooks)]
    commands = [command.removeprefix("$(BIN)/") for command in recipe("lint")]
    assert len(entries) == len(commands)
    assert all(command.startswith(entry) for entry, command in zip(entries, commands, strict=True)), (entries, commands)


def test_lint_says_what_rewrites_the_sources():
    assert "make format rewrites these files" in recipe("lint")[0]


@pytest.mark.skipif(not shutil.which("make"), reason="no make")
def test_make_tests_is_make_test():
    commands = [subprocess.run(["make", "-n", name], cwd=ROOT, capture_output=True, text=True) for name in ("test", "tests")]
    assert " -m pytest " in commands[0].stdout
    assert commands[1].stdout == commands[0].stdout


def test_every_target_is_explained_and_phony():
    targets = re.findall(r"^([a-z-]+): ", MAKEFILE, re.MULTILINE)
    explained = re.findall(r"^([a-z-]+):.* ## \S", MAKEFILE, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)", MAKEFILE.replace("\\\n", ""), re.MULTILINE)
    assert phony
    assert targets == explained
    assert sorted(targets) == sorted(phony[1].split())
