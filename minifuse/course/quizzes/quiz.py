"""Draw the quiz of a task by a seed."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from random import Random

from ...core.errors import CourseError
from ..task import Task
from .question import Question

Draw = Callable[[Random], Question]
"""Draws the numbers of a question and computes its answer."""

MAX_DRAWS = 500


@dataclass(frozen=True)
class Quiz:
    """The questions on a task for one seed."""

    task: Task
    seed: int
    questions: tuple[Question, ...]


def draw_quiz(task: Task, seed: int) -> Quiz:
    """Draw each question on a task. Equal seeds give equal questions.

    Raises
    ------
    CourseError
        The task has no quiz.
    """
    draws = questions_on(task.id)
    questions = [draw_question(draw, Random(f"{task.id} {seed} {draw.__name__}")) for draw in draws]
    return Quiz(task, seed, tuple(questions))


def draw_question(draw: Draw, rng: Random) -> Question:
    """Draw a question until each typical mistake leads to a wrong answer."""
    for _ in range(MAX_DRAWS):
        question = draw(rng)
        if question.wrong and not any(question.is_right(wrong) for wrong in question.wrong):
            return question
    raise AssertionError(f"{draw.__name__}: in {MAX_DRAWS} draws, a mistake always led to the right answer")


def questions_on(task_id: str) -> tuple[Draw, ...]:
    """Return the questions on a task, in order. Imports the file of this task only."""
    if task_id not in tasks_with_quiz():
        raise CourseError(f"task {task_id} has no quiz; there is one on {', '.join(tasks_with_quiz())}")
    draws: tuple[Draw, ...] = import_module(f"{__package__}.quiz{task_id.replace('.', '_')}").QUESTIONS
    return draws


def tasks_with_quiz() -> list[str]:
    """Return the ids of the tasks that have a quiz."""
    names = [module.name for module in pkgutil.iter_modules(import_module(str(__package__)).__path__)]
    ids = [name[4:].split("_") for name in names if name.startswith("quiz") and name != "quiz"]
    return [f"{module}.{number}" for module, number in sorted(ids, key=lambda parts: tuple(map(int, parts)))]
