"""`minifuse course watch`: the screen after each event, and the command in a terminal."""

import os
import re
import signal
import subprocess
import sys
from queue import SimpleQueue

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")
pytest.importorskip("watchfiles", reason="needs minifuse[course]")

from minifuse.cli import app
from minifuse.cli import watch as terminal
from minifuse.course import verdict_cache, workspace
from minifuse.course.registry import TASKS, task_named
from minifuse.course.report import to_plain_text
from minifuse.course.verdicts import Outcome, Result
from minifuse.course.watch import KEYS, Watch
from tests.course.folder import FILE, TASK, written
from tests.course.terminal import Terminal
from tests.sources import ROOT

MAP = task_named("2.3")


@pytest.fixture
def folder(tmp_path):
    """A folder as a student gets it."""
    workspace.init(tmp_path / "mine")
    return tmp_path / "mine"


def passed(task):
    return Result(task.id, [Outcome(check.name, "passed") for check in task.checks], dict.fromkeys(task.slots, 1))


def failed(task, **more):
    return Result(task.id, [Outcome(task.checks[0].name, "failed", "no good", **more)], {})


def text(watch):
    """The screen as one line; it fits a terminal."""
    shown = to_plain_text(watch.screen())
    assert max(map(len, shown.splitlines())) <= 80, shown
    return " ".join(shown.split())


def at_rest(folder, task=TASK, result=None, show=str):
    """A watch at a task, with every other task passed and nothing to be run."""
    watch = Watch(folder, task, show)
    watch.results = {other.id: passed(other) for other in TASKS if other is not task}
    while watch.running is not None:
        watch.ended((result or passed(task)) if watch.running is task else passed(watch.running))
    return watch


def edit(folder, old, new):
    path = folder / FILE
    source = path.read_text()
    assert old in source
    path.write_text(source.replace(old, new, 1))


def test_watch_starts_with_the_first_task_that_does_not_pass(folder):
    for task in TASKS:
        path = folder / task.file
        path.write_text(path.read_text().replace("todo(", "None or todo("))
    watch = Watch(folder)
    seen = []
    while watch.running is not None:
        seen.append(watch.running)
        assert watch.task is (MAP if MAP in seen else watch.running)
        watch.ended(passed(watch.running) if watch.running is not MAP else failed(MAP))
    assert seen == list(TASKS)
    assert watch.task is MAP
    assert "no good" in text(watch)
    points = sum(task.points for task in TASKS)
    assert f"{points - MAP.points} of {points} points, {len(TASKS) - 1} of {len(TASKS)} tasks" in text(watch)


def test_unchanged_tasks_are_pending_without_a_run(folder):
    watch = Watch(folder)
    assert watch.running is watch.task is TASKS[0]  # which has more to say than that
    assert set(watch.results) == {task.id for task in TASKS[1:]}
    watch.ended(passed(TASKS[0]))
    assert watch.running is None
    assert watch.task is TASKS[1]
    assert f"task {TASKS[1].id} is still to be written" in text(watch)
    edit(folder, 'todo("2.3b")', "return 3")
    watch = Watch(folder, TASK)
    assert watch.running is TASK
    watch.ended(failed(TASK))
    assert watch.running is MAP


def test_watch_begins_with_the_known_results(folder):
    results = {task.id: passed(task) for task in TASKS if task is not MAP}
    watch = Watch(folder, known=results)
    assert watch.task is watch.running is MAP
    points = sum(task.points for task in TASKS)
    assert f"{points - MAP.points} of {points} points, {len(TASKS) - 1} of {len(TASKS)} tasks" in text(watch)
    watch.ended(failed(MAP))
    assert watch.running is None
    assert "minifuse course hint" not in text(watch)  # the key h is shown


def test_watch_starts_with_the_given_task(folder):
    watch = Watch(folder, MAP)
    assert watch.running is watch.task is MAP
    watch.ended(passed(MAP))
    assert watch.task is MAP


def test_a_saved_function_is_judged_first_then_what_lies_beside_it(folder):
    watch = at_rest(folder)
    edit(folder, 'todo("2.3b")', "return 3")
    before = watch.number
    watch.saved([FILE])
    assert watch.task is watch.running is MAP
    assert watch.number > before
    assert "waiting" not in text(watch)
    watch.began("a check")
    assert "judging 2.3: a check" in text(watch)
    watch.ended(failed(MAP))
    seen = []
    while watch.running is not None:
        seen.append(watch.running)
        watch.ended(failed(watch.running))
    assert seen == [task for task in TASKS if task.file == FILE and task is not MAP]
    assert watch.task is MAP


def test_a_comment_judges_the_same_task_again(folder):
    watch = at_rest(folder, MAP)
    edit(folder, '"""Module 2', '# a comment\n"""Module 2')
    watch.saved([FILE])
    assert watch.running is watch.task is MAP


def test_what_is_saved_as_it_was_is_not_judged_again(folder):
    watch = at_rest(folder)
    watch.saved([FILE])
    assert watch.running is None


def test_students_other_file_may_affect_every_task(folder):
    watch = at_rest(folder, MAP)
    watch.saved(["helper.py"])
    assert watch.running is watch.task is MAP
    count = 0
    while watch.running is not None:
        watch.ended(passed(watch.running))
        count += 1
    assert count == len(TASKS)


def test_a_file_that_is_no_python_any_more_stays_with_the_task(folder):
    watch = at_rest(folder, MAP)
    edit(folder, "def tensor_map(", "def tensor_map((")
    watch.saved([FILE])
    assert watch.running is watch.task is MAP


def test_save_during_a_run_starts_a_new_run(folder):
    watch = Watch(folder, MAP)
    first = watch.number
    edit(folder, 'todo("2.3b")', "return 3")
    watch.saved([FILE])
    assert watch.number > first  # what the first run says is late
    assert watch.running is MAP


def test_each_press_of_h_shows_another_hint(folder):
    watch = at_rest(folder, result=failed(TASK))
    for k, kind in enumerate(("The idea.", "In words.", "Where to look.", "A first line.", "A first line.")):
        assert (kind in text(watch)) is (k == 4)
        watch.pressed("h")
        assert kind in text(watch)
        assert " ".join([*TASK.hints, "row_major_strides: strides, step"][min(k, 3)].split())[:40] in text(watch)


def test_l_lists_and_goes_back(folder):
    watch = at_rest(folder, result=failed(TASK))
    watch.pressed("l")
    assert all(f"{task.id} {task.title}"[:30] in text(watch) for task in TASKS)
    assert f"> ✗ {TASK.id}" in text(watch)
    watch.pressed("l")
    assert "no good" in text(watch)


def test_d_shows_the_difference_only_after_passing(folder):
    watch = at_rest(folder, result=failed(TASK))
    watch.pressed("d")
    assert "2.1 does not pass yet, and the reference would spoil it" in text(watch)
    edit(folder, 'todo("2.1b")', "return offset")
    watch = at_rest(folder)
    watch.pressed("d")
    assert "+    position = offset" in to_plain_text(watch.screen())


def test_v_shows_the_case_that_fails(folder):
    watch = at_rest(folder, result=failed(TASK, link="strides?shape=2"), show=lambda link: f"opened {link}")
    watch.pressed("v")
    assert "opened strides?shape=2" in text(watch)
    watch = at_rest(folder)
    watch.pressed("v")
    assert "the visualizer has no page for this result" in text(watch)


@pytest.mark.parametrize(("key", "is_reset"), [("y", True), ("n", False), ("q", False), ("r", False)])
def test_r_asks_before_it_resets(folder, key, is_reset):
    edit(folder, 'todo("2.1a")', "return 3")
    mine = (folder / FILE).read_text()
    watch = at_rest(folder, result=failed(TASK))
    watch.pressed("r")
    assert "Reset row_major_strides, position_of, index_of, permuted? y/n" in text(watch)
    watch.pressed(key)
    assert ((folder / FILE).read_text() != mine) is is_reset
    assert ("your version is in .minifuse/backups/tensors.py.1" in text(watch)) is is_reset
    assert ("nothing was changed" in text(watch)) is not is_reset
    assert (watch.running is TASK) is is_reset
    assert not watch.is_over


def test_n_goes_to_the_next_task_that_does_not_pass(folder):
    watch = at_rest(folder, TASK, failed(TASK))
    watch.pressed("n")
    assert "all other tasks pass" in text(watch)
    watch.results[MAP.id] = failed(MAP)
    watch.pressed("n")
    assert watch.task is watch.running is MAP
    watch.pressed("n")
    assert watch.task is TASK
    watch = at_rest(folder)
    watch.pressed("n")
    assert "every task passes" in text(watch)


def test_every_key_is_shown_and_does_something(folder):
    for key, name in KEYS.items():
        watch = at_rest(folder, result=failed(TASK))
        before = text(watch)
        assert f"{key} {name}" in before
        watch.pressed(key)
        assert watch.is_over if key == "q" else text(watch) != before
    watch.pressed("é")
    watch.pressed("\x00")


# the visualizer


def test_a_server_that_runs_is_used(monkeypatch):
    monkeypatch.setattr(app, "is_up", lambda port: port == app.PORT)
    assert terminal.VisualizerServer().address("strides?shape=2") == f"http://127.0.0.1:{app.PORT}/strides?shape=2"


def test_missing_extra_is_reported_with_the_install_command(monkeypatch):
    monkeypatch.setattr(app, "is_up", lambda port: False)
    monkeypatch.setattr(terminal, "find_spec", lambda name: None)
    assert terminal.VisualizerServer().address("strides") == (
        'pictures need the visualizer, which is not installed; run: pip install "minifuse[app]"'
    )


def test_a_server_is_started_once_and_ended(monkeypatch):
    monkeypatch.setattr(app, "is_up", lambda port: False)
    monkeypatch.setattr(terminal, "find_spec", lambda name: True)
    popen, started = subprocess.Popen, []
    monkeypatch.setattr(
        terminal.subprocess,
        "Popen",
        lambda line, **options: (
            started.append(line) or popen([sys.executable, "-c", "import time; time.sleep(60)"], **options)
        ),
    )
    pictures = terminal.VisualizerServer()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/a   \(starting; wait a few seconds\)", pictures.address("a"))
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/b", pictures.address("b"))
    assert [line[1:4] for line in started] == [["-m", "minifuse", "app"]]
    pictures.close()
    assert pictures._server.poll() is not None


def test_watch_stores_results_for_status(folder, tmp_path, monkeypatch):
    """Of the last run only: a run that a newer one replaced is no result."""
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "cache"))
    events, runs = SimpleQueue(), []

    def start(watch, events, limit_s, is_strict):
        runs.append(watch.running)
        if len(runs) == 1:
            events.put(("ended", watch.number + 5, failed(TASK)))
            events.put(("ended", watch.number, passed(TASK)))
        else:
            events.put(("pressed", 0, "q"))

    monkeypatch.setattr(terminal, "start", start)
    edit(folder, 'todo("2.1a")', "return 3")
    terminal.loop(Watch(folder, TASK), events, 60.0, False)
    assert runs[0] is TASK
    assert verdict_cache.load(folder, TASK) == passed(TASK)


# at a terminal


@pytest.mark.skipif(sys.version_info < (3, 11) or os.name == "nt", reason="needs a pseudo-terminal")
def test_watch_in_a_terminal(folder):
    it = Terminal("course", "watch", "2.1", "--dir", str(folder))
    it.until("task 2.1a is still to be written")
    it.press("h")
    it.until("The idea.")
    written(folder, "while True:\n    pass")
    it.until("judging 2.1: tensors.py can be read")
    it.press("l")  # a run holds up no key
    it.until("> 2.1 Where an element is stored", 5)
    it.press("l")
    written(folder)
    it.until("all hold in")  # long before the limit of the run that is cancelled
    it.press("q")
    assert it.end() == (0, True)


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_ctrl_c_leaves_the_terminal_as_it_was(folder):
    it = Terminal("course", "watch", "2.1", "--dir", str(folder))
    it.until("task 2.1a is still to be written")
    it.process.send_signal(signal.SIGINT)
    it.until("minifuse: stopped")
    assert it.end() == (130, True)
    assert "Traceback" not in it.seen


def test_without_a_terminal_there_are_no_keys_and_results_are_printed(folder):
    command = [sys.executable, "-m", "minifuse", "course", "watch", "2.1", "--dir", str(folder)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    seen = ""
    while "q quit" not in seen:  # the last line of a screen
        seen += process.stdout.readline()
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "task 2.1a is still to be written" in seen
    assert "\x1b" not in seen
