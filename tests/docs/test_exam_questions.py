"""The exam questions: enough for each module, and rubrics whose points add up."""

import re

import pytest

from minifuse.course.registry import MODULES
from tests.sources import ROOT

TEXT = (ROOT / "docs" / "course" / "exam-questions.md").read_text()
QUESTION = re.compile(
    r"^### (?P<number>\d+)\. (?P<title>[^\n]+) \((?P<points>\d) points\)\n(?P<text>.*?)(?=^##|\Z)", re.M | re.S
)
QUESTIONS = [found.groupdict() for found in QUESTION.finditer(TEXT)]


def test_questions_are_numbered_and_of_each_module():
    assert [int(one["number"]) for one in QUESTIONS] == list(range(1, len(QUESTIONS) + 1))
    assert len(QUESTIONS) == TEXT.count("\n### ")
    sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    named = [section.splitlines()[0] for section in sections]
    assert named == [f"Module {module}: {name.lower()}" for module, name in MODULES.items()]
    assert all(section.count("\n### ") >= 4 for section in sections)


def test_the_introduction_says_how_many_questions_there_are():
    words = {36: "thirty-six", 37: "thirty-seven", 38: "thirty-eight", 39: "thirty-nine", 40: "forty", 41: "forty-one"}
    assert f"{words[len(QUESTIONS)]} questions" in TEXT


@pytest.mark.parametrize("question", [pytest.param(one, id=one["number"]) for one in QUESTIONS])
def test_a_question_has_an_answer_and_a_rubric(question):
    parts = re.split(r"^\*\*(Answer|Rubric)\.\*\* ", question["text"], flags=re.MULTILINE)
    assert parts[1::2] == ["Answer", "Rubric"]
    assert all(len(part.split()) > 10 for part in (parts[0], parts[2]))
    assert "point" in parts[4].partition("```")[0]
