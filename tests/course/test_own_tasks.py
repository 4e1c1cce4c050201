"""A teacher's own tasks: the template, folders that are broken, and a class that is graded with them."""

import json
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from typer.testing import CliRunner

from minifuse.cli.commands import app
from minifuse.core.errors import CourseError
from minifuse.course import task_template, verify_tasks
from minifuse.course.registry import TASKS, all_modules, all_tasks, task_named
from minifuse.course.report import format_result
from minifuse.course.task import Effort
from minifuse.course.task_folder import VARIABLE, extend_packages, use
from tests.course.folder import judge

FEW = Effort(12)
LENT = "def doubled(values):\n    return [2 * value for value in running_sums(values)]\n"


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    """No folder of tasks before and after a test."""
    monkeypatch.setenv(VARIABLE, "")
    yield
    extend_packages(None)  # later tests of this process find the tasks of the library alone


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with two new tasks: one in a new module, and one of module 2 with a number of two digits."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "")
        task_template.create(folder, "10.1", "running_sums", "lists_more.py", module="Lists")
        task_template.create(folder, "2.11", "other_sums")
    return folder


@pytest.fixture
def own(written, tmp_path):
    """A copy of the folder, to be changed."""
    return Path(shutil.copytree(written, tmp_path / "own"))


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def course(*arguments):
    return CliRunner().invoke(app, ["course", *map(str, arguments)], catch_exceptions=False)


def test_the_template_meets_all_requirements(own):
    found = list(verify_tasks.verify(own, FEW))
    assert {task.id for task, _ in found} == {"2.11", "10.1"}
    assert [finding for _, finding in found if finding.problem] == []


def test_tasks_and_modules_are_sorted_by_number(own):
    use(own)
    ids = [task.id for task in all_tasks()]
    assert sorted(ids, key=lambda text: [int(part) for part in text.split(".")]) == ids
    assert len(ids) == len(TASKS) + 2
    assert list(all_modules())[-1] == 10
    assert all_modules()[10] == "Lists"
    assert task_named("task10_1") is task_named("running_sums")


def test_a_second_folder_replaces_the_first(own, tmp_path):
    use(own)
    assert task_named("10.1").title == "Running sums"
    task_template.create(tmp_path / "other", "10.1", "sums_so_far")
    use(tmp_path / "other")
    assert task_named("10.1").title == "Sums so far"
    with pytest.raises(CourseError, match="running_sums"):
        task_named("running_sums")


@pytest.mark.parametrize(
    ("file", "old", "new", "requirement", "problem"),
    [
        ("reference/other_sums.py", "total += value", "total -= value", "the reference passes", "the verdict is failed"),
        ("reference/other_sums.py", "total += value", "total -= value", "the stub is", ""),
        ("stubs/other_sums.py.txt", "todo", "print", "what students begin with is pending", "the verdict is"),
        ("zoo/task2_11.py", "[:-1]", "", "each wrong solution", "the verdict passed"),
        ("zoo/task2_11.py", "[:-1]:\n        total +=", ":\n        total -=", "each wrong solution", "no known mistake"),
        ("zoo/task2_11.py", "the last value is not added", "it is slow", "each wrong solution", "which is no mistake"),
        (
            "questions/task2_11.py",
            "from ..student",
            "from .. import check\nfrom ..student",
            "the questions",
            "imports check",
        ),
        ("tasks/task2_11.py", '("other_sums",)', '("unknown",)', "later tasks", "unknown has no reference answer"),
        ("quizzes/quiz2_11.py", "sum(values[:-1])", "sum(values)", "the quiz", "AssertionError"),
        ("pages/2.11-other-sums.md", "# 2.11", "# 2.1", "the page", "does not begin"),
    ],
)
def test_a_requirement_that_is_not_met_is_named(own, file, old, new, requirement, problem):
    replace(own / file, old, new)
    use(own)
    task = task_named("2.11")
    ((name, problems),) = [one for one in verify_tasks.requirements(own, task, FEW) if one[0].startswith(requirement)]
    found = "; ".join(problems())
    assert problem in found if problem else not found, f"{name}: {found}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    # end\n", "", "reference/other_sums.py, line 8: `# begin 2.11a` has no `# end`; write it below"),
        ("    # end\n", "    # begin 2.11b\n    # end\n", "line 8: `# begin 2.11a` has no `# end`"),
        ("# begin 2.11a", "# begin 2.11", "line 8: `# begin 2.11` names no part; expected the id of the task and a letter"),
        ("# begin 2.11a", "", "`# end` has no `# begin`; write one above"),
    ],
)
def test_a_part_without_its_marks_is_refused_and_no_stub_written(own, old, new, message):
    replace(own / "reference" / "other_sums.py", old, new)
    before = (own / "stubs" / "other_sums.py.txt").read_text()
    with pytest.raises(CourseError, match=re.escape(message)):
        course("make-stubs", "--tasks", own)
    assert (own / "stubs" / "other_sums.py.txt").read_text() == before
    use(own)
    problems = dict(verify_tasks.requirements(own, task_named("2.11"), FEW))[
        "the stub is the reference without its solutions"
    ]
    (problem,) = problems()
    assert message in problem


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "questions/task2_11.py",
            "student.other_sums(",
            "student.other_sum(",
            "questions/task2_11.py, line 8: AttributeError: other_sum; if that line is right, the returned value has a",
        ),
        (
            "tasks/task2_11.py",
            "st.integers(-9, 9)",
            "st.integers(low, 9)",
            "tasks/task2_11.py, line 20: NameError: name 'low' is not defined; if that line is right, the answer is of",
        ),
        ("oracle/task2_11.py", "np.cumsum(", "cumsum(", "oracle/task2_11.py, line 11: NameError: name 'cumsum'"),
    ],
    ids=["question", "cases", "oracle"],
)
def test_an_error_in_a_teachers_file_names_its_line(own, tmp_path, file, old, new, message):
    replace(own / file, old, new)
    use(own)
    shutil.copy(own / "reference" / "other_sums.py", tmp_path)
    (*_, last) = judge(tmp_path, task_named("2.11"), FEW).outcomes
    assert message in last.message


def test_a_quiz_and_a_page_of_the_template_are_named(own):
    replace(own / "tasks" / "task2_11.py", "[1, 2, 3] has [1, 3, 6]", "[1, 2] has [1, 3]")
    use(own)
    name = "quiz and page are about the task"
    problems = dict(verify_tasks.requirements(own, task_named("2.11"), FEW))[name]
    assert [problem.partition(" is still about running sums")[0] for problem in problems()] == [
        "quizzes/quiz2_11.py",
        "pages/2.11-other-sums.md",
    ]
    replace(own / "quizzes" / "quiz2_11.py", "Which is the last", "What is the last")
    (own / "pages" / "2.11-other-sums.md").unlink()
    assert list(problems()) == []


BROKEN = [
    ("id=", 'id="2.11"', 'id="2.12"', "the id is '2.12'"),
    ("points", "points=2", "points=0", "points is 0; expected"),
    ("hints", '        "Compare with itertools.accumulate in Python\'s documentation.",\n', "", "2 hints; expected 3"),
    ("file", 'file="other_sums.py"', 'file="../x.py"', "expected the name of a Python file"),
    ("check", "check=SUMS", 'check="sums"', "names the check 'sums'"),
    ("slots", '("other_sums",)', '("other_sums")', "expected a tuple of names"),
    ("taken", '("other_sums",)', '("index_of",)', "index_of is a function of tasks 2.1 and 2.11"),
    ("shared", 'file="other_sums.py"', 'file="tensors.py"', "which is a file of the course"),
    ("no stub", 'file="other_sums.py"', 'file="sums.py"', "has no stubs/sums.py.txt"),
    ("no task", "TASK = Task(", "OTHER = Task(", "has no TASK; write"),
    ("type", "TASK = Task(", "TASK = dict(", "TASK of type dict"),
    ("syntax", "TASK = Task(", "TASK = Task((", "SyntaxError"),
    ("import", "from .. import oracle", "import numpy.gone\nfrom .. import oracle", "line 5, cannot be imported"),
]


@pytest.mark.parametrize(("old", "new", "message"), [pytest.param(*case[1:], id=case[0]) for case in BROKEN])
def test_a_broken_task_is_refused_with_the_reason(own, old, new, message):
    replace(own / "tasks" / "task2_11.py", old, new)
    use(own)
    with pytest.raises(CourseError) as error:
        all_tasks()
    assert message in str(error.value)
    assert str(own) in str(error.value)


def test_a_task_without_an_oracle_says_so(tmp_path):
    task_template.create(tmp_path, "10.3", "sums_without_oracle")
    replace(tmp_path / "oracle" / "task10_3.py", "@answers\n", "")
    use(tmp_path)
    shutil.copy(tmp_path / "reference" / "sums_without_oracle.py", tmp_path)
    (*_, last) = judge(tmp_path, task_named("10.3"), FEW).outcomes
    assert last.message.startswith("sums_without_oracle has no reference answer; define it in a file of the folder oracle")


def test_an_oracle_that_cannot_be_imported_is_refused_with_its_line(own):
    replace(own / "oracle" / "task2_11.py", "import numpy as np", "import numpy.gone")
    use(own)
    with pytest.raises(CourseError, match=r"oracle.task2_11\.py, line 3, cannot be imported: ModuleNotFoundError"):
        all_tasks()


def test_a_folder_without_tasks_says_how_to_create_one(tmp_path):
    for folder, text in ((tmp_path, "has no tasks"), (tmp_path / "gone", "is not a folder that exists")):
        use(folder)
        with pytest.raises(CourseError, match=f"{text}.*minifuse course new-task"):
            all_tasks()


def test_a_name_of_the_courses_own_files_is_refused(own):
    shutil.copy(own / "questions" / "task2_11.py", own / "questions" / "calling.py")
    use(own)
    with pytest.raises(CourseError, match=r"calling\.py has the name of a file of the course"):
        all_tasks()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("2.1", "sums"), "task 2.1 .* has this id"),
        (("10.2", "index_of"), "has this id or function"),
        (("ten", "sums"), "expected two numbers"),
        (("10.2", "running sums"), "'running sums' is no name"),
        (("10.2", "sums", "tensors.py"), "tensors.py is a file of the course"),
    ],
)
def test_a_new_task_needs_free_names(tmp_path, arguments, message):
    with pytest.raises(CourseError, match=message):
        task_template.create(tmp_path, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_task_of_the_folder_is_lent_to_a_later_one(own, tmp_path):
    task_template.create(own, "10.2", "doubled", "lists_more.py")
    replace(own / "oracle" / "task10_2.py", "np.cumsum(np", "np.cumsum(2 * np")
    (tmp_path / "lists_more.py").write_text((own / "stubs" / "lists_more.py.txt").read_text() + "\n\n" + LENT)
    result = judge(tmp_path, task_named("10.2"), FEW)
    assert result.verdict == "passed", format_result(task_named("10.2"), result)
    assert judge(tmp_path, task_named("10.1"), FEW).verdict == "pending"


def test_the_error_for_an_unknown_task_names_the_option_of_own_tasks(own):
    advice = "a task of your teacher needs --tasks DIR, or MINIFUSE_TASKS with its folder"
    with pytest.raises(CourseError, match=re.escape(advice)):
        course("hint", "10.1")
    with pytest.raises(CourseError, match=r"there is no task '10\.9'") as error:
        course("hint", "10.9", "--tasks", own)
    assert advice not in str(error.value)


def test_a_class_is_graded_with_the_tasks_that_it_names(own, tmp_path):
    for name, file in (("ann", "reference/other_sums.py"), ("bob", "stubs/other_sums.py.txt")):
        (tmp_path / "class" / name).mkdir(parents=True)
        shutil.copy(own / file, tmp_path / "class" / name / "other_sums.py")
    settings = tmp_path / "class" / "class.toml"
    settings.write_text('seed = 7\ntasks = ["2.11"]\ntask_folder = "../own"\n')
    graded = course("grade", tmp_path / "class", "--out", tmp_path / "out", "--jobs", 2)
    assert graded.exit_code == 0, graded.output
    points = {path.stem: json.loads(path.read_text())["course"]["points"] for path in (tmp_path / "out").iterdir()}
    assert points == {"ann": 2.0, "bob": 0.0}
    settings.write_text('task_folder = "ann"\n')
    with pytest.raises(CourseError, match=r"is in the folder of the class, where students' files are"):
        course("grade", tmp_path / "class")
