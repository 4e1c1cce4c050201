"""Cases of earlier runs: what is asked of them, when they are drawn anew, and which files are read."""

import pickle

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course import check, runner
from minifuse.course.drawn_cases import DrawnCases
from minifuse.course.task import Effort
from tests.course.folder import TASK, written

FORGETS_DIMS = "def permuted(x, dims):\n    return x"
REMEMBERS = "seen = []\ndef position_of(index, strides, offset):\n    seen.append(index)\n    return 7 * (len(seen) > {}) + "
REMEMBERS += "sum(i * s for i, s in zip(index, strides)) + offset"


@pytest.fixture(autouse=True)
def path(tmp_path):
    """The file of the cases."""
    return tmp_path / "cases" / "2.1.bin"


def result_of(folder, path, key="today"):
    """Judge the task with a few examples, and keep its cases."""
    (result,) = runner.run(folder, [TASK], effort=Effort(6), drawn=DrawnCases(path, key))
    return result


def refuse(*_):
    """Search for nothing."""
    pytest.fail("a search has drawn cases")


def test_known_cases_are_asked_again_without_a_search(tmp_path, path, monkeypatch):
    first = result_of(written(tmp_path), path)
    monkeypatch.setattr(check, "search", refuse)
    again = result_of(written(tmp_path), path)
    assert first.verdict == again.verdict == "passed"
    assert again.calls == first.calls


def test_the_smallest_failure_is_the_same_with_known_cases(tmp_path, path):
    result_of(written(tmp_path), path)
    wrong = written(tmp_path, FORGETS_DIMS)
    known, drawn = (result_of(wrong, one).outcomes[-1] for one in (path, tmp_path / "none.bin"))
    assert known == drawn
    assert known.verdict == "failed"


def test_a_function_that_fails_once_on_known_cases_remembers(tmp_path, path):
    count = result_of(written(tmp_path), path).calls["position_of"]
    result = result_of(written(tmp_path, REMEMBERS.format(count - 1)), path)
    assert result.verdict == "failed"


def test_a_wrong_solution_leaves_no_cases_of_its_check(tmp_path, path):
    wrong = result_of(written(tmp_path, FORGETS_DIMS), path).outcomes[-1]
    kept = DrawnCases(path, "today")
    kept.begin(TASK.checks[0].name)
    assert kept.cases_at(kept.place())
    kept.begin(wrong.check)
    assert not kept.cases_at(kept.place())


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps("a text"), pickle.dumps(("yesterday", {("", 1): b""}))])
def test_a_file_with_other_content_has_no_cases(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    assert not DrawnCases(path, "today").cases_at(("", 1))


def test_cases_that_cannot_be_pickled_are_drawn_each_time(path):
    cases = DrawnCases(path, "today")
    cases.keep(("", 1), [lambda: 0])
    cases.keep(("", 2), [(2, 3)])
    cases.save()
    assert DrawnCases(path, "today").cases_at(("", 2)) == [(2, 3)]
    assert not DrawnCases(path, "today").cases_at(("", 1))


@pytest.mark.skipif(not hasattr(__import__("os"), "geteuid"), reason="Windows has no permission bits")
def test_a_folder_of_others_is_not_read(path):
    cases = DrawnCases(path, "today")
    cases.keep(("", 1), [(2, 3)])
    cases.save()
    path.parent.chmod(0o777)
    assert not DrawnCases(path, "today").cases_at(("", 1))
