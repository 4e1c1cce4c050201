"""The page Map: each page answers one question, the machine table contains the findings of `doctor`; and warming up."""

import threading

import pytest

from minifuse.cli import doctor
from minifuse.cli.doctor import DoctorFinding
from minifuse.core.errors import MinifuseError
from project import warm_up
from project.screens import PAGES
from project.views.machine import Findings, examine_machine
from tests.app.tables import tables


def test_each_page_of_the_path_has_one_sentence():
    lessons = [page.lesson for page in PAGES[1:]]
    assert len(set(lessons)) == len(lessons)
    for lesson in lessons:
        assert lesson.count(".") == 1
        assert lesson.endswith(".")
        assert len(lesson) <= 110


def test_machine_table_contains_the_findings_of_doctor(monkeypatch):
    found = {
        "CUDA": [
            DoctorFinding("driver", "none"),
            DoctorFinding("torch", "no", False, "install it", needed=False),
            DoctorFinding("x", "old", False, "update"),
        ]
    }
    monkeypatch.setattr("project.views.machine.examine", lambda runs_kernels: found)
    assert [row["to do"] for row in examine_machine()] == ["", "", "update"]
    monkeypatch.undo()
    assert {row["part"] for row in examine_machine()} == set(doctor.examine())


@pytest.fixture
def slow_checks(monkeypatch):
    """Let `examine_machine` wait for an event before it checks kernels: it finds one row before, two after."""
    rows = [{"part": "CUDA", "what": what, "found": "it", "to do": ""} for what in ("GPU", "a kernel")]
    may_finish = threading.Event()

    def found(runs_kernels=True):
        assert not runs_kernels or may_finish.wait(60)
        return rows[: 1 + runs_kernels]

    monkeypatch.setattr("project.views.machine.PAUSE_S", 0)
    monkeypatch.setattr("project.views.machine.examine_machine", found)
    return may_finish, rows


def test_findings_without_kernels_come_first(slow_checks):
    may_finish, rows = slow_checks
    found = Findings()
    assert not found.are_complete(0.01)
    assert found.rows == rows[:1]
    may_finish.set()
    assert found.are_complete(60)
    assert found.rows == rows


def test_findings_without_kernels_run_no_kernel(monkeypatch):
    for name in ("check_kernel", "check_compilation", "check_cuda_kernel"):
        monkeypatch.setattr(doctor, name, lambda *args: 1 / 0)
    names = {row["what"] for row in examine_machine(runs_kernels=False)}
    assert {"Python", "numba", "kernel cache"} <= names


def test_failed_examination_raises_its_error(monkeypatch):
    monkeypatch.setattr("project.views.machine.PAUSE_S", 0)
    monkeypatch.setattr("project.views.machine.examine_machine", lambda runs_kernels=True: runs_kernels and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Findings().are_complete(60)


def app():
    from project.screens.map import page

    page()


def test_page_has_its_cards_before_kernel_checks_finish(slow_checks):
    testing = pytest.importorskip("streamlit.testing.v1")
    from project.screens import map as screen

    may_finish, rows = slow_checks
    screen.findings.clear()
    try:
        at = testing.AppTest.from_function(app, default_timeout=60).run()
        assert len(at.get("page_link")) == len(PAGES) - 1
        assert tables(at)[0].to_dict("records") == rows[:1]
        assert at.get("status")
        may_finish.set()
        assert screen.findings().are_complete(60)
        at.run()
        assert tables(at)[0].to_dict("records") == rows
        assert not at.get("status")
        assert not at.exception
    finally:
        screen.findings.clear()


# Warming up


def test_warm_up_runs_each_job_once_and_continues_after_a_failure(monkeypatch):
    done, failed = [], MinifuseError

    def fails():
        done.append("fails")
        raise failed("no")

    monkeypatch.setattr(warm_up, "PAUSE_S", 0)
    monkeypatch.setattr(warm_up, "jobs", lambda: iter([lambda: done.append("one"), fails, lambda: done.append("two")]))
    warm_up.begin.cache_clear()
    try:
        threads = {warm_up.begin() for _ in range(3)}
        assert len(threads) == 1
        thread = threads.pop()
        thread.join(60)
        assert thread.daemon
        assert done == ["one", "fails", "two"]
    finally:
        warm_up.begin.cache_clear()


def test_every_warm_up_job_succeeds():
    for job in warm_up.jobs():
        job()


def test_warm_up_waits_for_a_busy_page(monkeypatch):
    may_finish, done = threading.Event(), threading.Event()
    page = threading.Thread(target=may_finish.wait, args=(60,), name="minifuse-train", daemon=True)
    page.start()
    monkeypatch.setattr(warm_up, "PAUSE_S", 0.01)
    monkeypatch.setattr(warm_up, "jobs", lambda: iter([done.set]))
    thread = threading.Thread(target=warm_up.work, daemon=True)
    thread.start()
    assert not done.wait(0.2)
    may_finish.set()
    assert done.wait(60)
