"""The instructor's guide: plans of weeks, mistakes by their names, and a map of the code that exists."""

import re

import pytest

from docs.make_course_plan import COURSE, PAGE, PLANS, Week, make_table, minutes, needed, replace
from minifuse.course.quizzes.quiz import tasks_with_quiz
from minifuse.course.registry import BY_ID, TASKS
from tests.sources import ROOT

TEXT = PAGE.read_text()
each_plan = pytest.mark.parametrize("name", PLANS)


def test_the_page_has_the_plans_of_the_generator():
    assert replace(TEXT) == TEXT, "run python docs/make_course_plan.py"


def test_the_long_plan_has_twelve_weeks_and_each_task_of_its_modules():
    weeks = PLANS["Twelve weeks"]
    planned = [task for week in weeks for task in week.tasks]
    assert len(weeks) == 12
    assert len(planned) == len(set(planned))
    assert {BY_ID[task].module for task in planned} >= set(range(6))


def test_a_task_without_a_page_is_named():
    with pytest.raises(SystemExit, match=r"task 5\.9 has no page docs/course/5\.9-\*\.md; name a task of the course"):
        make_table((Week("A task that does not exist", ("5.9",)),))


def test_the_page_of_the_course_has_the_number_and_the_time_of_its_tasks():
    hours = sum(minutes(task.id) for task in TASKS) / 60
    text = " ".join((COURSE / "README.md").read_text().split())
    assert f"The {len(TASKS)} tasks take about {hours:.0f} hours in all" in text


@each_plan
def test_a_plan_names_tasks_and_quizzes_that_exist(name):
    planned = {task for week in PLANS[name] for task in week.tasks}
    assert planned <= set(BY_ID)
    assert {week.tasks[-1] for week in PLANS[name]} <= set(tasks_with_quiz())


@each_plan
def test_a_task_comes_after_the_pages_that_it_needs(name):
    known, missing = set(), []
    for week in PLANS[name]:
        known |= set(week.reading) | set(week.tasks)
        missing += [f"{task} needs {page}" for task in week.tasks for page in needed(task) if page not in known]
    assert missing == []


def test_the_misconceptions_are_named_mistakes_of_their_module():
    section = TEXT.partition("## Misconceptions")[2].partition("\n## ")[0]
    for part in section.split("### Module ")[1:]:
        known = {mistake.name for task in TASKS if task.module == int(part[0]) for mistake in task.mistakes}
        shown = re.findall(r"^\| ([^|]+?) \|", part, re.MULTILINE)[2:]
        assert len(shown) >= 3
        assert set(shown) <= known, set(shown) - known


def test_the_map_of_the_code_names_what_exists():
    section = TEXT.partition("## A map of the code")[2].partition("\n## ")[0]
    places = re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)
    assert len(places) >= 12
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_the_page_of_the_course_leads_to_the_guide():
    assert "(instructors.md)" in (COURSE / "README.md").read_text()
