"""The answer of each question, computed a second time from the drawn numbers."""

from random import Random
from string import ascii_lowercase

import numpy as np
import pytest

pytest.importorskip("greenlet", reason="needs minifuse[course]")

from minifuse.course.quizzes.quiz import draw_question, questions_on, tasks_with_quiz
from tests.course.quizzes import answers01, answers6, answers23, answers45, answers_text, answers_transformer

ANSWERS = answers01.ANSWERS | answers23.ANSWERS | answers45.ANSWERS | answers6.ANSWERS | answers_transformer.ANSWERS
ANSWERS |= answers_text.ANSWERS
SEEDS = range(15)


def plain(value):
    """A result of NumPy as an answer."""
    return (
        tuple(map(plain, value))
        if isinstance(value, tuple | list)
        else value.item()
        if isinstance(value, np.generic)
        else value
    )


@pytest.mark.parametrize("task", tasks_with_quiz())
def test_answers_are_those_of_a_second_computation(task):
    for draw in questions_on(task):
        for seed in SEEDS:
            question = draw_question(draw, Random(f"{task} {seed} {draw.__name__}"))
            expected = plain(ANSWERS[task][draw.__name__](question.numbers | {"figure": question.figure}))
            if question.choices:
                got = question.choices[ascii_lowercase.index(question.answer)]
                assert got == expected, (draw.__name__, question)
            else:
                assert question.is_right(expected), (draw.__name__, expected, question)


def test_each_question_has_a_second_computation():
    asked = {task: {draw.__name__ for draw in questions_on(task)} for task in tasks_with_quiz()}
    assert asked == {task: set(functions) for task, functions in ANSWERS.items()}
