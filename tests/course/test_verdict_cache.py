"""Stored results: what invalidates them, who writes them, and that no grading reads them."""

import json
import os

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course import runner, verdict_cache
from minifuse.course.registry import task_named
from minifuse.course.task import Effort
from minifuse.course.verdicts import Outcome, Result
from tests.course.folder import TASK, written

BROADCAST = task_named("2.2")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "verdicts"


@pytest.fixture
def folder(tmp_path):
    """A student's folder."""
    return written(tmp_path / "mine")


def passed(task=TASK):
    """A result with something in each field."""
    outcomes = [Outcome(check.name, "passed", lines=[("tensors.py", 3, "x")], drawing=["|"]) for check in task.checks]
    return Result(task.id, outcomes, dict.fromkeys(task.slots, 3), 1.5, ["a note"], 0.5)


def stored(folder, task=TASK):
    """Store a result, and return it."""
    result = passed(task)
    verdict_cache.store(folder, task, result, verdict_cache.contents_of(folder, task))
    return result


def test_a_stored_result_is_the_same(folder):
    assert verdict_cache.load(folder, TASK) is None
    result = stored(folder)
    assert verdict_cache.load(folder, TASK) == result
    assert verdict_cache.load(folder, BROADCAST) is None
    assert verdict_cache.load_all(folder, [TASK, BROADCAST]) == {TASK.id: result}


def test_a_changed_file_has_no_result_until_it_is_changed_back(folder):
    result = stored(folder)
    text = (folder / TASK.file).read_text()
    written(folder, "HALF = 0.5")
    assert verdict_cache.load(folder, TASK) is None
    (folder / TASK.file).unlink()
    assert verdict_cache.load(folder, TASK) is None
    (folder / TASK.file).write_text(text)
    assert verdict_cache.load(folder, TASK) == result


def test_a_task_stays_solved_while_another_in_its_file_is_written(folder):
    result = stored(folder)
    failed = stored(folder, BROADCAST)
    failed.outcomes[0].verdict = "failed"
    verdict_cache.store(folder, BROADCAST, failed, verdict_cache.contents_of(folder, BROADCAST))
    assert verdict_cache.load(folder, BROADCAST) == failed
    written(folder, "# a comment\n\n\ndef tensor_map(fn, out, a):\n    return 3\n")
    assert verdict_cache.load(folder, TASK) == result
    assert verdict_cache.load(folder, BROADCAST) is None  # its lines may have moved


@pytest.mark.parametrize(
    "line",
    ["def index_of(k, shape):\n    return 3", "@print\ndef tensor_map():\n    pass", "def tensor_map():\n    import abc"],
)
def test_what_can_change_a_result_invalidates_it(folder, line):
    stored(folder)
    written(folder, line)
    assert verdict_cache.load(folder, TASK) is None


@pytest.mark.parametrize("line", ["from helpers import half", "import helpers", "helpers = __import__('hel' + 'pers')"])
def test_imported_files_count_and_others_do_not(folder, line):
    written(folder, line)
    (folder / "helpers.py").write_text("from more import *")
    (folder / "more.py").write_text("half = 0.5")
    result = stored(folder)
    (folder / "other.py").write_text("") if "__import__" not in line else None
    assert verdict_cache.load(folder, TASK) == result
    (folder / "more.py").write_text("half = 0.25")
    assert verdict_cache.load(folder, TASK) is None


def test_other_checks_and_other_versions_invalidate_a_result(folder, monkeypatch):
    stored(folder)
    monkeypatch.setattr(verdict_cache, "digest_of_checks", lambda folder: "other checks")
    assert verdict_cache.load(folder, TASK) is None
    monkeypatch.undo()
    monkeypatch.setattr(verdict_cache, "versions", lambda: ("numpy 9",))
    assert verdict_cache.load(folder, TASK) is None


def test_the_versions_name_what_runs_the_code():
    assert {version.split()[0] for version in verdict_cache.versions()} >= {"minifuse", "cpython", "numpy", "numba"}


@pytest.mark.parametrize("damage", ["", "{}", "[]", "null", "\x00", "cut", "verdict", "extra field", "link"])
def test_damaged_entries_are_ignored(folder, cache, damage):
    stored(folder)
    (path,) = cache.iterdir()
    text = path.read_text()
    if damage == "link":
        path.rename(path.with_suffix(".moved"))
        path.symlink_to(path.with_suffix(".moved"))
    else:
        entry = json.loads(text)
        changed = {
            "cut": text[: len(text) // 2],
            "verdict": json.dumps(entry | {"result": entry["result"].replace("a note", "a vote")}),
            "extra field": json.dumps(entry | {"result": entry["result"].replace('"notes"', '"nodes"')}),
        }
        path.write_text(changed.get(damage, damage))
    assert verdict_cache.load(folder, TASK) is None
    assert stored(folder) == verdict_cache.load(folder, TASK)  # it is replaced


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_entries_that_others_may_have_written_are_ignored(folder, cache):
    stored(folder)
    (path,) = cache.iterdir()
    path.chmod(0o666)
    assert verdict_cache.load(folder, TASK) is None
    path.chmod(0o644)
    cache.chmod(0o777)
    assert verdict_cache.load(folder, TASK) is None
    stored(folder)
    assert len(list(cache.iterdir())) == 1


def test_a_file_that_changed_during_the_run_stores_nothing(folder, cache):
    contents = verdict_cache.contents_of(folder, TASK)
    written(folder, "# saved again")
    verdict_cache.store(folder, TASK, passed(), contents)
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_is_no_error(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "file"))
    stored(folder)
    assert verdict_cache.load(folder, TASK) is None


@pytest.mark.parametrize(
    ("effort", "is_strict", "time_s", "verdict", "is_kept"),
    [
        (Effort(), False, 60.0, "passed", True),
        (Effort(seed=3), False, 60.0, "failed", True),
        (Effort(5), False, 60.0, "passed", False),
        (Effort(), True, 60.0, "passed", False),
        (Effort(), False, 1.0, "timeout", False),
        (Effort(), False, 1.0, "failed", True),
    ],
)
def test_only_results_of_a_plain_check_are_stored(effort, is_strict, time_s, verdict, is_kept):
    result = Result(TASK.id, [Outcome(TASK.checks[0].name, verdict)], {})
    assert verdict_cache.is_kept(result, effort, is_strict, time_s) is is_kept


def test_a_run_stores_what_it_yields(folder, monkeypatch):
    monkeypatch.setattr(runner, "run", lambda folder, tasks, **options: iter([passed(tasks[0])]))
    results = list(verdict_cache.run(folder, [TASK, BROADCAST]))
    assert verdict_cache.load_all(folder, [TASK, BROADCAST]) == {result.task: result for result in results}
    assert len(results) == 2
