"""A class: folders of students, whatever is in them, and tables for gradebooks."""

import csv
import io
import json
import os
import shutil
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import ModuleType

import pytest
from typer.testing import CliRunner

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.cli.commands import app
from minifuse.core.errors import CourseError
from minifuse.course import classes, gradebooks, gradescope, runner
from minifuse.course.classes import Grading
from minifuse.course.registry import TASKS, task_named
from minifuse.course.task import Effort
from minifuse.course.verdicts import Outcome, Result
from tests.course.folder import FILE, TASK, written
from tests.course.make_stubs import REFERENCE

BROADCAST = task_named("2.2")
TASKS_OF_FILE = [TASK, BROADCAST]
SPEED = task_named("3.5")


def course(*arguments):
    """The result of a command."""
    return CliRunner().invoke(app, ["course", *map(str, arguments)], env={"COLUMNS": "80"})


def table(path):
    """The rows of a CSV file."""
    return list(csv.reader(io.StringIO(path.read_text())))


@pytest.fixture
def room(tmp_path):
    """A class: a right solution, a wrong one in an inner folder, one that never ends, one that is refused, and no files."""
    folder = tmp_path / "class"
    written(folder / "ann@uni.edu")
    (folder / "bob" / "bobs work").mkdir(parents=True)
    written(folder / "bob" / "bobs work", "def broadcast_shape(a, b):\n    return a")
    written(folder / "carl", text="while True:\n    pass\n")
    written(folder / "dora", text="import os\nos.remove('/nothing')\n")
    (folder / "eve").mkdir()
    (folder / ".git").mkdir()
    (folder / "notes.txt").write_text("not a student")
    return folder


def grading(student, task=TASK, verdict="passed"):
    """A grading with one task, all of whose checks have a verdict."""
    result = Result(task.id, [Outcome(check.name, verdict) for check in task.checks], dict.fromkeys(task.slots, 1))
    return Grading(student, {task.id: result})


# which folder is what


def test_a_folder_of_students_is_a_class(room, tmp_path):
    assert classes.is_class(room)
    assert [path.name for path in classes.student_folders(room)] == ["ann@uni.edu", "bob", "carl", "dora", "eve"]
    assert not classes.is_class(room / "ann@uni.edu")
    assert not classes.is_class(room / "eve")
    (room / "ann@uni.edu" / "sub").mkdir()
    assert not classes.is_class(room / "ann@uni.edu")
    (tmp_path / "one" / "__pycache__").mkdir(parents=True)
    assert not classes.is_class(tmp_path / "one")


def test_an_unpacked_archive_is_looked_into_unless_there_are_two(room):
    assert classes.solution_folder(room / "bob") == room / "bob" / "bobs work"
    written(room / "bob" / "older")
    assert classes.solution_folder(room / "bob") == room / "bob"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes of files")
def test_only_regular_files_of_a_sensible_size_are_copied(tmp_path):
    one = written(tmp_path / "one")
    (one / "autodiff.py").symlink_to(REFERENCE / "autodiff.py")
    os.mkfifo(one / "lists.py")
    (one / "huge.py").write_bytes(b" " * (classes.MAX_FILE_BYTES + 1))
    (one / "notes.md").write_text("no code")
    (tmp_path / "copy").mkdir()
    notes = classes.collect(one, tmp_path / "copy", [FILE, "speed.py"])
    assert [path.name for path in (tmp_path / "copy").iterdir()] == [FILE]
    assert notes == [
        "autodiff.py is a link",
        "huge.py has 1,048,577 bytes, more than 1,048,576",
        "lists.py is not a regular file",
        "missing: speed.py",
    ]


# grading


def test_a_class_is_graded_whatever_is_in_it(room, tmp_path, monkeypatch):
    main = ModuleType("__main__")  # as in a program that starts a grading: its processes must not run it again
    main.__file__ = str(tmp_path / "main.py")
    (tmp_path / "main.py").write_text("raise RuntimeError('the main file runs again')")
    monkeypatch.setitem(sys.modules, "__main__", main)
    out, tables = tmp_path / "results", [tmp_path / name for name in ("all.csv", "canvas.csv", "moodle.csv")]
    options = ("--csv", tables[0], "--canvas", tables[1], "--moodle", tables[2], "--out", out, "--jobs", "2")
    result = course("grade", room, "2.1", "2.2", "--seed", "3", "--examples", "5", "--limit", "10", *options)
    assert result.exit_code == 0, result.output
    assert table(tables[0]) == [
        ["student", "2.1", "2.2", "total", "of", "seed", "notes"],
        ["ann@uni.edu", "4", "3", "7", "7", "3", ""],
        ["bob", "4", "1", "5", "7", "3", "found in bobs work"],
        ["carl", "0", "0", "0", "7", "3", "2.1 timeout; 2.2 timeout"],
        ["dora", "0", "0", "0", "7", "3", "2.1 refused; 2.2 refused"],
        ["eve", "0", "0", "0", "7", "3", "no file of the course; it is empty"],
    ]
    assert table(tables[1])[1:3] == [
        ["    Points Possible", "", "", "", "", "4", "3"],
        ["ann@uni.edu", "", "", "ann@uni.edu", "", "4", "3"],
    ]
    assert table(tables[2])[1] == ["", "", "", "ann@uni.edu", "ann@uni.edu", "4", "3", "7"]
    assert sorted(path.name for path in out.iterdir()) == [f"{row[0]}.json" for row in table(tables[0])[1:]]
    found = json.loads((out / "bob.json").read_text())
    assert (found["version"], found["status"], found["course"]["points"]) == (3, "fail", 5)
    assert "5 students; repeat with --seed 3" in result.stdout
    assert "5 of 5: eve, 0 of 7 points" in result.stderr
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert not list((room / "ann@uni.edu").glob("*cache*"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["doeann_1_2_tensors.py", "roebob_3_4_tensors.py"], "it has doeann_1_2_tensors.py, roebob_3_4_tensors.py. Make a"),
        (["ann.zip", "bob.zip", "carl.zip", "dora.zip"], "it has ann.zip, bob.zip, carl.zip and 1 more: unpack it. Make a"),
        ([], "it is empty. Make a folder for each student"),
    ],
)
def test_a_folder_that_is_neither_class_nor_solution_is_refused(tmp_path, names, message):
    for name in names:
        (tmp_path / name).touch()
    error = course("grade", tmp_path, "2.1").exception
    assert isinstance(error, CourseError)
    assert f"has no folder of a student and no file of the course; {message}" in str(error)


@pytest.mark.parametrize("name", ["my-engine.zip", "tensors_1.py"])
def test_a_note_names_what_is_there_instead_of_the_courses_files(tmp_path, name):
    (tmp_path / "ann").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "ann" / name).touch()
    advice = ": unpack it" if name.endswith(".zip") else ""
    assert classes.collect(tmp_path / "ann", tmp_path / "copy") == [f"no file of the course; it has {name}{advice}"]


def test_one_student_is_a_class_of_one(tmp_path):
    folder = written(tmp_path / "ann")
    result = course("grade", folder, "2.1", "--examples", "5", "--seed", "1", "--csv", tmp_path / "one.csv")
    assert result.exit_code == 0
    assert table(tmp_path / "one.csv")[1] == ["ann", "4", "4", "4", "1", ""]


def test_tasks_run_at_the_same_time_but_those_that_measure_time_alone(tmp_path, monkeypatch):
    both, running, most = threading.Barrier(2), [], []

    def judge(folder, task_id, **options):
        running.append(task_id)
        if task_id != SPEED.id:
            both.wait(timeout=60)
        most.append(sorted(running))
        if task_id != SPEED.id:
            both.wait(timeout=60)
        running.remove(task_id)
        return Result(task_id, [], {})

    monkeypatch.setattr(classes, "judge_task", judge)
    monkeypatch.setattr(classes, "ProcessPoolExecutor", lambda count, context: ThreadPoolExecutor(count))
    found = classes.ClassGrader([SPEED, *TASKS_OF_FILE], Effort(), jobs=2).judge(tmp_path, [SPEED, *TASKS_OF_FILE])
    assert list(found) == ["3.5", "2.1", "2.2"]
    assert most == [["2.1", "2.2"], ["2.1", "2.2"], ["3.5"]]


@pytest.mark.parametrize("error", [OSError(12, "no memory"), KeyError("outcomes"), TypeError("forged")])
def test_an_error_in_one_task_is_a_result(room, monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(runner, "run", fail)
    found = classes.ClassGrader([TASK], Effort(1)).grade(room / "ann@uni.edu")
    assert found.results["2.1"].verdict == "error"
    assert found.points([TASK]).got == 0


def test_a_judge_that_dies_fails_the_tasks_that_are_left(tmp_path, monkeypatch):
    class Pool(ThreadPoolExecutor):
        def submit(self, *arguments):
            future = Future()
            future.set_exception(BrokenProcessPool("it was killed"))
            return future

    monkeypatch.setattr(classes, "ProcessPoolExecutor", lambda count, context: Pool(count))
    found = classes.ClassGrader(TASKS_OF_FILE, Effort(), jobs=2).judge(tmp_path, TASKS_OF_FILE)
    assert [result.verdict for result in found.values()] == ["error", "error"]


def test_an_interrupted_grading_ends(room, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        classes.ClassGrader([TASK], Effort(1)).grade(room / "ann@uni.edu")


def test_each_student_has_the_same_cases(room, tmp_path):
    for name in ("one", "two"):
        shutil.copytree(room / "bob" / "bobs work", tmp_path / "again" / name)
    (tmp_path / "again" / "class.toml").write_text("seed = 11\nexamples = 20\ntasks = ['2.2']\n")
    result = course("grade", tmp_path / "again", "--out", tmp_path / "out", "--limit", "30")
    assert "repeat with --seed 11" in result.stdout
    first, second = (json.loads((tmp_path / "out" / f"{name}.json").read_text()) for name in ("one", "two"))
    assert (first["course"]["seed"], first["course"]["examples"]) == (11, 20)
    assert [test.get("message") for test in first["tests"]] == [test.get("message") for test in second["tests"]]
    assert first["tests"][0]["status"] == "fail"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sed = 1", "has sed; expected seed, examples, tasks"),
        ("seed = '1'", "seed is '1'; expected a whole number"),
        ("examples = 0", "examples is 0; expected a whole number"),
        ("tasks = '2'", 'expected a list of names, such as tasks = ["2", "3.1"]'),
        ("seed =", "class.toml cannot be read: "),
    ],
)
def test_a_wrong_class_file_is_an_error(room, text, message):
    (room / "class.toml").write_text(text)
    assert message in str(course("grade", room).exception)


def test_outputs_that_cannot_be_written_are_an_error_at_once(room, tmp_path):
    for option, path, message in [
        ("--csv", tmp_path, "is a folder, expected the name of a file"),
        ("--csv", tmp_path / "class" / "notes.txt" / "x.csv", "cannot be written"),
        ("--out", room / "notes.txt", "is a file; for a class, --out is a folder"),
        ("--gradescope", tmp_path / "x.json", "Gradescope grades one submission at a time"),
    ]:
        error = course("grade", room, option, path).exception
        assert isinstance(error, CourseError)
        assert message in str(error)


# gradebooks


def test_a_roster_says_who_is_who(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text('\ufefffolder,Student,ID,Email address\nann,"Doe, Ann",17,ann@uni.edu\nbob,,,\n')
    roster = gradebooks.read_roster(path)
    rows = [grading("ann"), grading("bob", verdict="failed")]
    canvas, moodle = gradebooks.canvas_csv(rows, [TASK], roster), gradebooks.moodle_csv(rows, [TASK], roster)
    assert canvas.splitlines() == [
        "Student,ID,SIS User ID,SIS Login ID,Section,2.1 Where an element is stored",
        "    Points Possible,,,,,4",
        '"Doe, Ann",17,,,,4',
        "bob,,,bob,,0",
    ]
    assert moodle.splitlines()[1:] == [",,,,ann@uni.edu,4,4", ",,,bob,,0,0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("name\nx\n", "has the columns name; expected one named folder"), ("folder\nx\nx\n", "has the folder x twice")],
)
def test_a_wrong_roster_is_an_error(tmp_path, text, message):
    (tmp_path / "roster.csv").write_text(text)
    with pytest.raises(CourseError, match=message):
        gradebooks.read_roster(tmp_path / "roster.csv")


def test_names_in_only_one_of_class_and_roster_are_reported(room, tmp_path):
    (tmp_path / "roster.csv").write_text("folder\nbob\nzoe\n")
    options = ("--canvas", tmp_path / "c.csv", "--roster", tmp_path / "roster.csv")
    result = course("grade", room, "1.1", *options)
    assert "ann@uni.edu, carl, dora, eve have no row in the roster" in result.stderr
    assert "zoe have a row, but no folder" in result.stderr


def test_a_name_is_no_formula_and_controls_no_terminal():
    text = gradebooks.plain_csv([grading('=HYPERLINK("http://x")'), grading("@ann")], [TASK], 1)
    assert [row[0] for row in csv.reader(io.StringIO(text))] == ["student", '\'=HYPERLINK("http://x")', "'@ann"]
    assert classes.printable("a\x1b[31m\udcff\nb") == "a?[31m??b"


def test_points_have_at_most_two_decimals():
    assert [gradebooks.format_points(number) for number in (0.0, 4.0, 1.5, 2.67, 168.25, 100.0)] == [
        *("0", "4", "1.5", "2.67", "168.25", "100")
    ]


# Gradescope


def test_results_for_gradescope(tmp_path):
    folder = written(tmp_path / "sent in", "def index_of(ordinal, shape):\n    return ()")
    result = course("grade", folder, "2.1", "--examples", "20", "--seed", "2", "--gradescope", tmp_path / "results.json")
    found = json.loads((tmp_path / "results.json").read_text())
    assert result.exit_code == 0
    assert (found["score"], found["stdout_visibility"], found["extra_data"]["seed"]) == (3, "hidden", 2)
    tests = found["tests"]
    assert [(test["number"], test["score"], test["max_score"], test["status"]) for test in tests] == [
        ("2.1.1", 1, 1, "passed"),
        ("2.1.2", 1, 1, "passed"),
        ("2.1.3", 0, 1, "failed"),
        ("2.1.4", 1, 1, "passed"),
    ]
    assert found["score"] == sum(test["score"] for test in tests)
    assert "expected" in tests[2]["output"]
    assert tests[0]["output"] == ""
    assert set(tests[0]) == {"score", "max_score", "status", "name", "number", "output", "tags", "visibility"}


def test_gradescope_has_a_test_for_each_failure():
    loading = Result(TASK.id, [Outcome("tensors.py can be read", "error", "it is not UTF-8")], {})
    tests = gradescope.results([TASK], [loading], Effort())["tests"]
    assert [test["status"] for test in tests] == ["failed"] * (len(TASK.checks) + 1)
    assert tests[-1]["name"] == "2.1 tensors.py can be read"
    assert "did not run: it is not UTF-8" in tests[0]["output"]
    assert len(gradescope.output(TASK, Outcome("x", "failed", "long " * 10_000))) < 10_100


def test_every_task_has_a_test_for_gradescope():
    results = [grading("x", task).results[task.id] for task in TASKS]
    found = gradescope.results(TASKS, results, Effort(seed=1))
    points = sum(task.points for task in TASKS)
    assert found["score"] == round(sum(test["max_score"] for test in found["tests"]), 2) == points
