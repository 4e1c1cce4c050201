"""The map's questions lead to pages that are there, each page to one question; the machine is what `doctor` says."""

from minifuse.cli import doctor
from minifuse.cli.doctor import Finding
from project.screens import PAGES
from project.views.machine import QUESTIONS, machine


def test_each_page_answers_one_question():
    asked = [path for question in QUESTIONS for path in question.pages]
    assert sorted(asked) == sorted(page.path for page in PAGES if page.path)
    assert len(QUESTIONS) == 6


def test_the_machine_is_what_doctor_finds(monkeypatch):
    found = {
        "CUDA": [
            Finding("driver", "none"),
            Finding("torch", "no", False, "install it", needed=False),
            Finding("x", "old", False, "update"),
        ]
    }
    monkeypatch.setattr("project.views.machine.examine", lambda: found)
    assert [row["to do"] for row in machine()] == ["", "", "update"]
    monkeypatch.undo()
    assert {row["part"] for row in machine()} == set(doctor.examine())
