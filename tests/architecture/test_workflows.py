"""The workflows of .github run targets of the Makefile, with few permissions, on the versions that are promised."""

import re
import subprocess
import sys
import tomllib
from itertools import product

import pytest
import yaml

from tests.architecture.test_tools import MAKEFILE
from tests.sources import ROOT

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.yml"))}
JOBS = {(name, key): job for name, workflow in WORKFLOWS.items() for key, job in workflow["jobs"].items()}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z-]+): ", MAKEFILE, re.MULTILINE))
SCHEMAS = {
    ".github/dependabot.yml": "dependabot",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
    "CITATION.cff": "citation-file-format",
    **{f".github/ISSUE_TEMPLATE/{name}.yml": "github-issue-forms" for name in ("bug", "course", "question")},
    **{f".github/workflows/{name}.yml": "github-workflows" for name in WORKFLOWS},
}
each_job = pytest.mark.parametrize(("workflow", "job"), JOBS, ids="-".join)


def combinations(matrix: dict) -> list[dict]:
    """Return the variables of each run of a job: a product of lists, or the entries of `include`."""
    lists = {name: values for name, values in matrix.items() if name != "include"}
    runs = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())] if lists else []
    return [*runs, *matrix.get("include", [])] or [{}]


def commands(job: dict) -> list[str]:
    """Return the commands of a job in all its runs, with the values of its matrix."""
    lines = [step["run"] for step in job["steps"] if "run" in step]
    found = []
    for run in combinations(job.get("strategy", {}).get("matrix", {})):
        for line in lines:
            for name, value in run.items():
                line = line.replace(f"${{{{ matrix.{name} }}}}", value)
            found.append(line)
    return found


@each_job
def test_each_step_is_a_target_of_the_makefile(workflow, job):
    found = commands(JOBS[workflow, job])
    assert [line for line in found if not re.fullmatch("make [a-z-]+", line)] == []
    assert {line.removeprefix("make ") for line in found} <= TARGETS


@each_job
def test_each_job_ends_in_time(workflow, job):
    assert 0 < JOBS[workflow, job]["timeout-minutes"] <= 150


@each_job
def test_no_job_but_the_publisher_may_write(workflow, job):
    assert WORKFLOWS[workflow]["permissions"] == {"contents": "read"}
    granted = JOBS[workflow, job].get("permissions", {})
    assert granted == ({"id-token": "write"} if (workflow, job) == ("release", "publish") else {})


def test_the_publisher_runs_no_code_of_the_repository():
    publish = JOBS["release", "publish"]
    assert (publish["needs"], publish["environment"]) == ("build", "pypi")
    assert [step["uses"].partition("@")[0] for step in publish["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_each_workflow_runs_once_at_a_time(name):
    assert WORKFLOWS[name]["concurrency"]["group"].startswith(name)


@each_job
def test_checkouts_store_no_token(workflow, job):
    steps = [step for step in JOBS[workflow, job]["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert [step["with"]["persist-credentials"] for step in steps] == [False] * len(steps)


def test_the_versions_tested_are_the_versions_promised():
    prefix = "Programming Language :: Python :: "
    promised = [line.removeprefix(prefix) for line in PROJECT["classifiers"] if line.startswith(prefix)]
    matrix = JOBS["ci", "test"]["strategy"]["matrix"]
    assert matrix["python"] == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"
    bounds = {run["target"]: run["python"] for run in combinations(JOBS["ci", "bounds"]["strategy"]["matrix"])}
    assert bounds == {"test-lowest": promised[0], "test-newest": promised[-1]}


def test_all_parts_of_check_run():
    needed = re.search(r"^check: (.*?) ##", MAKEFILE, re.MULTILINE)[1].split()
    run = {line for (workflow, _), job in JOBS.items() if workflow == "ci" for line in commands(job)}
    assert {f"make {target}" for target in needed} <= run


@pytest.mark.parametrize("file", SCHEMAS)
def test_each_file_has_the_form_that_its_reader_expects(file):
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{SCHEMAS[file]}", ROOT / file]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("name", ["bug", "course", "question"])
def test_each_issue_form_says_where_to_report_a_vulnerability(name):
    first = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))["body"][0]
    assert first["type"] == "markdown"
    assert 'use "Report a vulnerability" on the Security tab. SECURITY.md has' in first["attributes"]["value"]


def test_all_files_of_the_folder_are_checked():
    files = {str(path.relative_to(ROOT).as_posix()) for path in (ROOT / ".github").rglob("*.yml")}
    assert files | {"CITATION.cff"} == SCHEMAS.keys()
