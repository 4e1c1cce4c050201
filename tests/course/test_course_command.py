"""`minifuse course`: commands of students and teachers, their output and exit codes."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from email.message import Message
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.cli.commands import app
from minifuse.core.errors import CourseError
from minifuse.course import grade, reading, registry, report, verdict_cache, workspace
from minifuse.course.progress import next_task
from minifuse.course.registry import TASKS, task_named
from minifuse.course.scoring import Points
from minifuse.course.task import Effort
from minifuse.course.verdicts import Outcome, Result
from tests.course.folder import FILE, RIGHT, TASK, written
from tests.course.terminal import Terminal
from tests.sources import ROOT

FEW = ("--examples", "5")


@pytest.fixture
def folder(tmp_path):
    """A folder as a student gets it."""
    workspace.init(tmp_path / "mine")
    return tmp_path / "mine"


def course(*arguments):
    """The result of a command; what it prints fits a terminal."""
    result = CliRunner().invoke(app, ["course", *map(str, arguments)], env={"COLUMNS": "80"})
    is_for_people = "--json" not in arguments
    assert not is_for_people or all(len(line) <= 80 or "/" in line for line in result.stdout.splitlines()), result.stdout
    return result  # a path may be longer than any terminal


def graded(folder, *arguments, out=None):
    """The status of a grading, and its file."""
    path = out or folder.parent / "results.json"
    result = course("grade", folder, *arguments, *FEW, "--out", path)
    return result, json.loads(path.read_text())


# init, check, status, hint


@pytest.mark.parametrize("name", ["mine", "my course", "über-课程"])
def test_the_first_minutes_of_a_student(tmp_path, name):
    place = tmp_path / name
    begun = course("init", place)
    assert begun.exit_code == 0
    counts = f"{len(registry.files())} files for {len(TASKS)} tasks"
    assert f"{place} is yours: {counts}, README.md, and tests\n" in begun.stdout
    assert begun.stdout.splitlines()[1:] == ["Begin:", f"  cd {shlex.quote(str(place))}", "  minifuse course check 0.1"]
    pending = course("check", "2.1", "--dir", place)
    assert pending.exit_code == 1
    assert "task 2.1a is still to be written; `minifuse course hint 2.1` helps" in pending.stdout
    written(place)
    passed = course("check", "2.1", "--dir", place)
    assert passed.exit_code == 0, passed.stdout
    assert "all hold in " in passed.stdout
    last = [line.strip() for line in passed.stdout.splitlines()[-2:]]
    assert last == ["Next: 2.2 Broadcasting, in tensors.py", "Quiz: minifuse course quiz 2.1"]


def test_a_task_that_fails_or_json_names_no_next_task(folder):
    assert "Next:" not in course("check", "2.1", "--dir", folder).stdout
    written(folder)
    assert "Next:" not in course("check", "2.1", "2.2", "--dir", folder, "--json").stdout
    assert json.loads(course("check", "2.1", "--dir", folder, "--json").stdout)[0]["calls"]["row_major_strides"] == 60


def test_check_prints_its_facts_as_json(folder):
    written(folder, "def permuted(x, dims):\n    print('here')\n    return x")
    result = course("check", "permuted", "--dir", folder, "--json")
    assert result.exit_code == 1
    (facts,) = json.loads(result.stdout)
    assert (facts["task"], facts["verdict"]) == ("2.1", "failed")
    assert set(facts["outcomes"][-1]["printed"].splitlines()) == {"here"}
    assert list(facts["outcomes"][-1])[:4] == ["check", "verdict", "message", "case"]


def test_a_long_name_of_a_check_hangs_under_its_text(folder):
    lines = course("check", "0.2", "--dir", folder).stdout.splitlines()
    assert any(line.startswith("  · each property is True for right operators, whatever the") for line in lines), lines
    assert "    numbers" in [line.rstrip() for line in lines]


def test_check_stops_an_endless_loop(folder):
    written(folder, "def row_major_strides(shape):\n    while True:\n        pass")
    result = course("check", "2.1", "--dir", folder, "--limit", "3")
    assert result.exit_code == 1
    assert "stopped after 3 s; is there a loop that does not end?" in result.stdout
    assert "case  shape " in result.stdout


ENDLESS = """
def row_major_strides(shape):
    while True:
        try:
            sum(range(100))
        except BaseException:
            pass
"""


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_ctrl_c_in_a_check_prints_the_case_and_the_running_line(folder):
    written(folder, ENDLESS)
    it = Terminal("course", "check", "2.1", "--dir", str(folder))
    it.until(" s: a row-major stride is the product of all sizes")
    it.until("case shape (")
    it.until("Ctrl-C stops it, and shows the line that is running")
    assert re.search(r"judging 2\.1 for \d+ s: a row", it.seen)
    it.process.send_signal(signal.SIGINT)
    it.until("minifuse: stopped")
    assert it.end() == (130, True)
    report = it.seen.rpartition("2.1 Where an element is stored")[2]
    assert re.search(r"stopped by Ctrl-C after \d+ s; is there a loop that does not end\?", report)
    assert re.search(r"case +shape \(", report)
    assert re.search(r"tensors\.py:\d+\r\n +(while True:|try:|sum\(range\(100\)\))", report)


def test_check_shows_no_progress_where_errors_go_to_a_file(folder):
    written(folder, "def row_major_strides(shape):\n    while True:\n        pass")
    command = [sys.executable, "-m", "minifuse", "course", "check", "2.1", "--dir", str(folder), "--limit", "2"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr == ""


def test_strict_uses_nothing_from_the_oracle(folder):
    written(folder, "def index_of(ordinal, shape):\n    todo('2.1c')")
    assert course("check", "2.3", "--dir", folder).exit_code == 0
    strict = course("check", "2.3", "--dir", folder, "--strict")
    assert strict.exit_code == 1
    assert "task 2.1c is still to be written" in strict.stdout


def test_wrong_folders_and_tasks_are_errors(tmp_path, folder):
    (tmp_path / "other").mkdir()
    for arguments, message in [
        (("check", "--dir", tmp_path / "other"), "is not a folder of the course; create one: minifuse course init DIR"),
        (("check", "2.9", "--dir", folder), "there is no task or module '2.9'"),
        (("hint", "permutted"), "did you mean permuted?"),
        (("grade", tmp_path / "nowhere"), "is not a folder; write the path of the one with the student's files"),
    ]:
        error = course(*arguments).exception
        assert isinstance(error, CourseError)
        assert message in str(error)


@pytest.mark.parametrize("name", ["9.9", "zzz", "", " ", "über", "课程", "2.99", "9", "0x2", "-", "²"])
@pytest.mark.parametrize("command", ["check", "hint", "diff", "reset", "watch", "grade"])
def test_unknown_task_error_shows_one_name_of_each_kind(folder, command, name):
    place = () if command == "hint" else (folder,) if command == "grade" else ("--dir", folder)
    error = course(command, *place, "--", name).exception if command != "grade" else course(command, folder, name).exception
    assert isinstance(error, CourseError)
    many = command in ("check", "grade")
    assert f"there is no task {'or module ' * many}{name!r}; " in str(error)
    module = ", a module such as 0" * many
    assert f"xpected the number of a task, such as 0.1{module}, the name of its function, such as identity" in str(error)
    assert "or its file, such as operators.py; `minifuse course status` lists all" in str(error)


@pytest.mark.parametrize(
    ("name", "near"), [("0.11", "0.1"), ("broadcast_shap", "broadcast_shape"), ("operator.py", "operators.py")]
)
def test_unknown_task_error_begins_with_a_close_name(folder, name, near):
    assert f"{name!r}; did you mean {near}? Expected" in str(course("check", name, "--dir", folder).exception)


def test_a_file_is_a_name_of_its_tasks(folder):
    assert [task.id for task in registry.tasks_of(["tensors.py"])] == ["2.1", "2.2", "2.3"]
    assert task_named("operators.py").id == "0.1"
    error = course("hint", "tensors.py").exception
    assert str(error) == "tensors.py is a file of several tasks, expected a task; name one of 2.1, 2.2, 2.3"


@pytest.mark.parametrize("command", ["hint", "diff", "reset", "watch"])
def test_error_for_a_module_lists_its_tasks(folder, command):
    error = course(command, "2", *(() if command == "hint" else ("--dir", folder))).exception
    assert str(error) == "2 is a module, expected a task; name one of 2.1, 2.2, 2.3, 2.4, 2.5, 2.6"


def test_a_task_that_is_named_twice_is_judged_once():
    assert [task.id for task in registry.tasks_of(["2.1", "2", "row_major_strides"])] == [
        "2.1",
        "2.2",
        "2.3",
        "2.4",
        "2.5",
        "2.6",
    ]


@pytest.mark.parametrize("command", ["check", "status", "watch", "diff 2.1", "reset 2.1", "upgrade"])
def test_a_folder_that_does_not_exist_is_not_the_one_around_it(folder, command):
    for place in (folder / "nowhere", folder / FILE):
        error = course(*command.split(), "--dir", place).exception
        assert isinstance(error, CourseError)
        assert f"{place} is not a folder that exists" in str(error)


@pytest.mark.parametrize("command", ["init", "grade", "check --dir", "upgrade --dir", "grade . 2.1 --out"])
def test_an_empty_name_is_no_folder(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    result = course(*command.split(), "")
    assert result.exit_code == 2
    assert "got an empty name, expected a path" in " ".join(result.output.replace("│", " ").split())


def test_a_second_init_says_what_is_there(folder):
    error = course("init", folder).exception
    assert f"{folder} has operators.py and {len(workspace.fresh()) - 1} more files of the course already" in str(error)
    assert f"to go on: cd {folder}; otherwise name another folder" in str(error)
    assert "minifuse course upgrade" in str(error)
    (folder.parent / "README.md").write_text("")
    assert "to go on" not in str(course("init", folder.parent).exception)


def test_no_folder_is_created_in_a_folder_of_the_course(folder):
    error = course("init", folder / "deeper" / "mine").exception
    assert isinstance(error, CourseError)
    assert str(error) == (
        f"{folder / 'deeper' / 'mine'} would be in {folder}, which is a folder of the course already; begin there: "
        "minifuse course check 0.1"
    )
    assert not (folder / "deeper").exists()


def test_error_above_a_folder_of_the_course_names_it(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    error = course("check", "0.1").exception
    assert str(error) == "the current folder is not a folder of the course, but mine in it is; run: cd mine"
    workspace.init(folder.parent / "my second")
    error = course("check", "--dir", folder.parent).exception
    assert f"{folder.parent} is not a folder of the course, but mine, my second in it are; run: cd {folder}" in str(error)


def test_results_cannot_be_written_to_a_folder(folder):
    error = course("grade", folder, "2.1", *FEW, "--out", folder).exception
    assert f"{folder} is a folder, expected the name of a file" in str(error)


@pytest.mark.skipif(os.name == "nt", reason="Windows removes no folder that a process is in")
@pytest.mark.parametrize("arguments", ["check 2.1", "status", "grade . 2.1"])
def test_removed_working_directory_is_an_error(tmp_path, monkeypatch, arguments):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    error = course(*arguments.split()).exception
    assert isinstance(error, CourseError)
    assert "was the folder that you are in removed?" in str(error)


def test_limit_is_a_finite_number_of_seconds(folder):
    assert course("check", "2.1", "--dir", folder, "--limit", "inf").exit_code == 2


@pytest.fixture
def two_tasks(folder, tmp_path, monkeypatch):
    """A folder whose task 2.1 is right and 2.2 wrong, of a course that has these two, with an empty cache."""
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "cache"))
    for module in ("minifuse.cli.course", "minifuse.course.progress"):
        monkeypatch.setattr(f"{module}.all_tasks", lambda: (TASK, task_named("2.2")))
    return written(folder, "def broadcast_shape(a, b):\n    return a")


def test_status_shows_what_check_found_and_runs_nothing(two_tasks, monkeypatch):
    unchecked = course("status", "--dir", two_tasks)
    assert unchecked.exit_code == 0
    assert unchecked.stdout.count("not checked") == 2
    assert "Not checked since the last change: 2.1 2.2." in " ".join(unchecked.stdout.split())
    course("check", "2", "--dir", two_tasks)
    monkeypatch.setattr("minifuse.course.runner.run", None)  # a call would be an error
    result = course("status", "--dir", two_tasks)
    assert "✓ 2.1 Where an element is stored" in result.stdout
    assert "✗ 2.2 Broadcasting" in result.stdout
    assert "not yet right" in result.stdout
    assert f"{TASK.points} of {sum(task.points for task in TASKS)} points, 1 of {len(TASKS)} tasks" in result.stdout
    assert "Not checked" not in result.stdout
    assert "Next: 2.2 Broadcasting, in tensors.py" in result.stdout
    assert "Quiz:" not in result.stdout
    facts = json.loads(course("status", "--dir", two_tasks, "--json").stdout)
    assert [(one["verdict"], one["points"], one["of"]) for one in facts] == [("passed", 4, 4), ("failed", 0, 3)]
    assert [check["of"] for check in facts[0]["points_of_checks"]] == [1, 1, 1, 1]


def test_status_can_check_what_has_changed(two_tasks):
    course("check", "2.2", "--dir", two_tasks)
    facts = json.loads(course("status", "--dir", two_tasks, "--json").stdout)
    assert [one["verdict"] for one in facts] == ["not checked", "failed"]
    result = course("status", "--run", "--dir", two_tasks)
    assert "✓ 2.1 Where an element is stored" in result.stdout
    assert "not checked" not in result.stdout
    assert "not checked" not in course("status", "--dir", two_tasks).stdout


def test_status_of_a_fresh_folder_needs_no_check(folder):
    result = course("status", "--dir", folder)
    assert result.stdout.count("to be written") == len(TASKS)
    assert f"0 of {sum(task.points for task in TASKS)} points" in result.stdout


def test_grade_neither_reads_nor_writes_stored_verdicts(two_tasks, tmp_path):
    graded(two_tasks, "2.1")
    assert not (tmp_path / "cache" / "verdicts").exists()
    broken = two_tasks / FILE
    forged = Result("2.2", [Outcome(check.name, "passed") for check in task_named("2.2").checks], {"broadcast_shape": 1})
    verdict_cache.store(two_tasks, task_named("2.2"), forged, verdict_cache.contents_of(two_tasks, task_named("2.2")))
    assert "✓ 2.2 Broadcasting" in course("status", "--dir", two_tasks).stdout
    before = broken.read_text()
    _, found = graded(two_tasks, "2.2")
    assert (found["status"], found["course"]["points"]) == ("fail", 1)  # of its other function, which is right
    assert broken.read_text() == before


def test_each_hint_adds_to_the_one_before():
    first, all_three = course("hint", "2.1").stdout, course("hint", "2.1", "-n", "3").stdout
    assert "The idea." in first
    assert "In words." not in first
    assert "More: minifuse course hint 2.1 -n 2" in first
    assert "Where to look." in all_three
    assert "-n 4" in all_three
    assert "A first line. row_major_strides: strides, step = [], 1" in course("hint", "2.1", "-n", "4").stdout


# diff, reset, upgrade


def test_hint_and_quiz_without_a_name_are_for_the_first_open_task(two_tasks, monkeypatch):
    course("check", "2", "--dir", two_tasks)
    monkeypatch.chdir(two_tasks)
    assert course("hint").stdout.startswith("2.2 Broadcasting\n")
    assert course("quiz", "--print").stdout.startswith("2.2 Broadcasting ")


def test_next_is_after_the_task_then_before_it_then_nothing():
    first, second, *_, last = TASKS
    results = {task.id: Result(task.id, [Outcome("right", "passed")], {}) for task in TASKS if task is not second}
    assert next_task({}, first) is second
    assert next_task(results) is second
    assert next_task(results, last) is second
    results[second.id] = results[first.id]
    assert next_task(results, last) is None
    assert report.to_plain_text(report.render_next(results)) == "  Every task passes.\n"


def test_a_hint_names_paths_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = course("hint", "2.1").stdout.partition("To read first:\n")[2].split()
    paths = [(tmp_path / line).resolve() for line in lines if "/" in line]
    assert [path.relative_to(ROOT).as_posix() for path in paths] == list(task_named("2.1").reads)


@pytest.mark.parametrize(
    ("urls", "place"),
    [
        (["Issues, https://a.example/b/issues", "Repository, https://a.example/b"], "https://a.example/b/blob/main/{}"),
        (None, "{} of the repository"),
    ],
)
def test_a_page_that_is_not_installed_is_in_the_repository(tmp_path, monkeypatch, urls, place):
    metadata = Message()
    for url in urls or ():
        metadata["Project-URL"] = url
    monkeypatch.setattr("minifuse.course.reading.ROOT", tmp_path)
    monkeypatch.setattr("minifuse.course.reading.metadata", lambda name: metadata)
    reading.repository.cache_clear()
    try:
        assert reading.locate("docs/course/0.1-operators.md") == place.format("docs/course/0.1-operators.md")
    finally:
        reading.repository.cache_clear()


def test_diff_only_after_passing(folder):
    error = course("diff", "2.1", "--dir", folder).exception
    assert "task 2.1 does not pass yet, and the reference would spoil it" in str(error)
    written(folder, RIGHT.replace("for d", "for k").replace("[d]", "[k]"))
    assert "+    shape = tuple(x.shape[d] for d in dims)" not in course("diff", "2.2", "--dir", folder).stdout
    written(folder)
    assert "Your solution is identical to the reference." in course("diff", "2.1", "--dir", folder).stdout


def test_reset_names_the_backup(folder):
    written(folder)
    result = course("reset", "position_of", "--dir", folder)
    assert "a copy of yours is in .minifuse/backups/tensors.py.1" in result.stdout
    assert 'todo("2.1b")' in (folder / FILE).read_text()


def test_upgrade_of_a_fresh_folder_changes_nothing(folder):
    pytest.importorskip("merge3", reason="needs minifuse[course]")
    assert course("upgrade", "--dir", folder).stdout == "The folder is up to date.\n"


# grade


def test_a_grading_in_exercisms_format(folder):
    written(folder, "def tensor_map(fn, out, a):\n    print('map')")
    result, found = graded(folder, "2")
    assert result.exit_code == 0  # it was graded, whatever came of it
    tasks = [task for task in TASKS if task.module == 2]
    assert (found["version"], found["status"], found["message"]) == (3, "fail", None)
    assert [test["name"] for test in found["tests"]] == [f"{t.id} {check.name}" for t in tasks for check in t.checks]
    for test in found["tests"]:
        assert set(test) >= {"name", "status", "test_code", "task_id"}
        assert test["status"] in ("pass", "fail", "error")
        assert ("message" in test) is (test["status"] != "pass")
        assert registry.TASKS[test["task_id"] - 1].id == test["name"].split()[0]
    bad = next(test for test in found["tests"] if test["name"].startswith("2.3 map"))
    assert bad["status"] == "fail"
    assert "expected" in bad["message"]
    assert bad["output"] == "map\n"
    assert f"minifuse course check 2.3 --seed {found['course']['seed']}" in bad["test_code"]
    assert [t["status"] for t in found["tests"] if t["name"].startswith(("2.3 zip", "2.3 red"))] == ["pass", "pass"]
    by_id = {task["id"]: task for task in found["course"]["tasks"]}
    assert (by_id["2.1"]["points"], by_id["2.3"]["points"]) == (TASK.points, 4)
    assert [check["points"] for check in by_id["2.3"]["checks"]] == [0, 2, 2]
    assert [t["score"] for t in found["tests"] if t["name"].startswith("2.3")] == [0, 2, 2]
    assert found["course"]["points"] == sum(task["points"] for task in found["course"]["tasks"])
    assert f"{found['course']['points']:g} of {found['course']['of']:g} points" in result.stdout
    assert "4 of 6 points" in result.stdout


def test_a_right_folder_passes_and_needs_nothing_but_its_files(tmp_path):
    result, found = graded(written(tmp_path / "sent in"), "2.1", "2.2")
    assert result.exit_code == 0
    assert found["status"] == "pass"
    assert found["course"]["points"] == found["course"]["of"] > 0
    assert [path.name for path in (tmp_path / "sent in").iterdir()] == [FILE]


def test_a_fresh_folder_is_graded_and_has_no_points(folder):
    result, found = graded(folder, "2.1")
    assert result.exit_code == 0
    assert (found["status"], found["course"]["points"]) == ("fail", 0)
    assert all("still to be written" in test["message"] for test in found["tests"])


@pytest.mark.parametrize("text", ["", "def f(:", "import os", "1 / 0", "exit()"])
def test_file_that_cannot_be_loaded_is_graded_as_error(tmp_path, text):
    result, found = graded(written(tmp_path / "mine", text=text), "2.1")
    assert result.exit_code == 1
    assert found["status"] == "error"
    assert found["message"].startswith("2.1: ")
    assert {test["status"] for test in found["tests"]} == {"error"}
    assert "no check could call the functions of 2.1" in result.stdout


def test_new_examples_each_time_and_the_same_with_a_seed(tmp_path):
    folder = written(tmp_path / "mine", "def permuted(x, dims):\n    print(x.shape, x.strides, x.offset)\n    return x")
    seeds = {graded(folder, "2.1")[1]["course"]["seed"] for _ in range(2)}
    assert len(seeds) == 2
    one, other = (graded(folder, "2.1", "--seed", "7")[1]["tests"] for _ in range(2))
    assert one == other


def test_results_are_written_whole_or_not_at_all(folder, monkeypatch):
    path = folder.parent / "results.json"
    path.write_text("before")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    result = course("grade", folder, "2.1", *FEW, "--out", path)
    assert "cannot be written: No space left on device" in str(result.exception)
    assert path.read_text() == "before"


def test_long_texts_are_cut_as_the_format_asks():
    outcome = Outcome("a demand", "failed", message="x" * 70_000, printed="y" * 600)
    test = grade.test(TASK, "a demand", outcome, Effort(), Points(0, 1))
    assert len(test["message"]) == grade.MAX_MESSAGE_LENGTH
    assert len(test["output"]) == grade.MAX_OUTPUT_LENGTH
    assert test["output"].endswith("(the rest is cut off)")


def test_checks_that_did_not_run_are_errors():
    found = [Result(TASK.id, [Outcome(TASK.checks[0].name, "timeout", "stopped")], {"permuted": 1})]
    tests = grade.results([TASK], found, Effort(), False)["tests"]
    assert [test["status"] for test in tests] == ["error"] * len(TASK.checks)
    assert "did not run" in tests[-1]["message"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="rights to write bind neither root nor Windows")
def test_a_folder_that_cannot_be_written_is_judged_all_the_same(folder):
    written(folder)
    folder.chmod(0o555)
    try:
        assert course("check", "2.1", "--dir", folder).exit_code == 0
        assert "may you write in this folder?" in str(course("reset", "2.1", "--dir", folder).exception)
    finally:
        folder.chmod(0o755)


# pytest in the student's folder


@pytest.mark.parametrize(("more", "status", "words"), [("", 0, "1 passed"), ("def permuted(x, dims): pass", 1, "1 failed")])
def test_pytest_knows_the_tasks(folder, more, status, words):
    written(folder, more)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "task2_1", "-q"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == status, run.stdout + run.stderr
    assert f"{words}, {len(TASKS) - 1} deselected" in run.stdout
    if status:
        assert "permuted returns a value of type NoneType; expected a Strided" in run.stdout


def test_pytest_takes_pending_for_pending(folder):
    command = [sys.executable, "-m", "pytest", "-m", "task2_1", "-q"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert "1 xfailed" in run.stdout
    assert "passed" not in run.stdout
