"""The workflow that grades a student's repository on GitHub."""

import json
import re
import shutil
import subprocess

import pytest
from typer.testing import CliRunner

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.cli.commands import app
from minifuse.core.errors import CourseError
from minifuse.course import classroom
from tests.course.folder import written


def steps(text):
    """The scripts of the steps, by name."""
    return dict(re.findall(r"- name: (.+)\n(?:        env:\n(?: {10}.+\n)+)?        run: \|\n((?:(?: {10}.*)?\n)+)", text))


def test_the_workflow_has_the_names_that_github_classroom_looks_for():
    text = classroom.workflow()
    assert "\nname: Autograding Tests\n" in text
    assert re.findall(r"^  ([\w-]+):$", text.partition("\njobs:\n")[2], re.MULTILINE) == ["run-autograding-tests"]
    assert f'REQUIREMENT: "{classroom.REQUIREMENT}"' in text
    assert "permissions:\n  contents: read\n" in text


def test_the_workflow_is_valid_yaml_without_ambiguous_values():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    found = yaml.safe_load(classroom.workflow(["2", "3.1"], 7, "minifuse[course] @ git+https://example.org/x.git@main"))
    (job,) = found["jobs"].values()
    assert job["runs-on"] == "ubuntu-latest"
    assert job["timeout-minutes"] == 30
    assert job["steps"][1]["with"]["python-version"] == "3.12"
    assert job["steps"][2]["env"]["REQUIREMENT"] == "minifuse[course] @ git+https://example.org/x.git@main"
    assert 'course grade . --out "$RESULTS" 2 3.1 --seed 7 ||' in job["steps"][3]["run"]
    assert [set(step) <= {"name", "uses", "with", "env", "run"} for step in job["steps"]] == [True] * 5


@pytest.mark.skipif(shutil.which("bash") is None or shutil.which("jq") is None, reason="needs bash and jq")
def test_the_report_has_the_points(tmp_path):
    content = {"course": {"points": 4.5, "of": 7, "tasks": [{"id": "2.1", "title": "x", "points": 4.5, "of": 7}]}}
    (tmp_path / "results.json").write_text(json.dumps(content))
    names = {
        "RESULTS": str(tmp_path / "results.json"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "PATH": "/usr/bin:/bin",
    }
    script = steps(classroom.workflow())["Report points"]
    run = subprocess.run(["bash", "-e", "-c", script], env=names, capture_output=True, text=True, check=True)
    assert '::notice title=Autograding report::{"totalPoints":4.5,"maxPoints":7}' in run.stdout.splitlines()
    assert "| 2.1 x | 4.5 | 7 |" in (tmp_path / "summary.md").read_text()
    (tmp_path / "results.json").unlink()
    assert subprocess.run(["bash", "-e", "-c", script], env=names, capture_output=True, check=False).returncode


def test_commands_that_a_student_prints_stand_between_the_marks():
    lines = [line.strip() for line in steps(classroom.workflow())["Grade"].splitlines() if line.strip()]
    assert lines[1] == 'echo "::stop-commands::$token"'
    assert lines[-1] == 'echo "::$token::"'
    assert "env" not in lines[0].partition("#")[0]


def test_the_command_writes_the_file_once(tmp_path):
    folder = written(tmp_path / "repository")
    result = CliRunner().invoke(app, ["course", "workflow", "2.1", "--dir", str(folder), "--seed", "3"])
    assert result.exit_code == 0, result.output
    assert (folder / ".github/workflows/classroom.yml").read_text() == classroom.workflow(["2.1"], 3)
    for arguments, message in [
        (("2.1",), "exists, and nothing was written"),
        (("2.9",), "there is no task or module '2.9'"),
    ]:
        error = CliRunner().invoke(app, ["course", "workflow", *arguments, "--dir", str(folder)]).exception
        assert isinstance(error, CourseError)
        assert message in str(error)
