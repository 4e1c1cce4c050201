"""Quizzes: what holds for each question, how answers are typed, the session, and the command."""

import io
import json
import math
from functools import cache
from random import Random
from string import ascii_lowercase

import pytest

pytest.importorskip("greenlet", reason="needs minifuse[course]")

from rich.console import Console
from typer.testing import CliRunner

from minifuse.cli.commands import app
from minifuse.core.errors import CourseError
from minifuse.course.quizzes.question import Question, UnreadableAnswerError, choose
from minifuse.course.quizzes.quiz import Quiz, draw_question, draw_quiz, questions_on, tasks_with_quiz
from minifuse.course.quizzes.session import ask, lines_of, print_quiz, quiz_facts
from minifuse.course.registry import TASKS, task_named

SEEDS = range(20)
WIDTH = 80


@cache
def drawn(task):
    """Each question on a task, at each seed."""
    return [
        (draw, [draw_question(draw, Random(f"{task} {seed} {draw.__name__}")) for seed in SEEDS])
        for draw in questions_on(task)
    ]


# Questions.


def test_each_task_has_four_to_six_questions():
    counts = {task.id: len(questions_on(task.id)) for task in TASKS}
    assert set(counts) == set(tasks_with_quiz())
    assert all(4 <= count <= 6 for count in counts.values()), counts


@pytest.mark.parametrize("task", tasks_with_quiz())
def test_each_question_has_one_right_answer_and_named_mistakes(task):
    for draw, questions in drawn(task):
        for question in questions:
            assert question.is_right(question.answer), draw.__name__
            assert question.wrong, draw.__name__
            for wrong, mistake in question.wrong.items():
                assert not question.is_right(wrong), (draw.__name__, wrong, question)
                assert mistake == mistake.strip(" .") != "", (draw.__name__, mistake)
                assert question.mistake(wrong), (draw.__name__, wrong)
            if question.choices:
                letters = set(ascii_lowercase[: len(question.choices)])
                assert len(set(question.choices)) == len(question.choices), question
                assert letters == {question.answer, *question.wrong}, question


@pytest.mark.parametrize("task", tasks_with_quiz())
def test_a_printed_answer_is_read_as_the_answer(task):
    for draw, questions in drawn(task):
        for question in questions:
            typed = question.answer if question.choices else question.format_answer()
            assert question.is_right(question.read(typed)), (draw.__name__, typed, question)
            if question.kind == "tuple":
                spaced = " ".join(map(str, question.answer)) or "()"
                assert question.is_right(question.read(spaced)), (draw.__name__, spaced)
            if question.choices:
                assert question.read(question.choices[ascii_lowercase.index(question.answer)].upper()) == question.answer


@pytest.mark.parametrize("task", tasks_with_quiz())
def test_questions_are_drawn_anew_and_fit_a_terminal(task):
    for draw, questions in drawn(task):
        assert len({(q.prompt, q.figure, q.format_answer()) for q in questions}) >= 3, draw.__name__
        for question in questions:
            lines = [*question.figure.splitlines(), *question.drawing.splitlines(), *question.choices]
            assert all(len(line) <= WIDTH - 4 for line in lines), (draw.__name__, lines)


def test_equal_seeds_draw_equal_quizzes():
    task = task_named("2.1")
    assert draw_quiz(task, 7) == draw_quiz(task, 7)
    assert draw_quiz(task, 7) != draw_quiz(task, 8)


def test_a_question_whose_mistakes_give_the_right_answer_is_drawn_again():
    tries = []

    def draw(rng):
        tries.append(rng.randint(0, 9))
        return Question("?", 0, "", {0 if len(tries) < 4 else 1: "a mistake"})

    assert draw_question(draw, Random(0)).wrong == {1: "a mistake"}
    assert len(tries) == 4


# Typed answers.


@pytest.mark.parametrize(
    ("answer", "typed"),
    [
        (14, "14"), (14, " 14. "), (14, "14.0"), (14, "+14"), (14, "14 bytes"), (14, "(14)"), (-2, "-2"),
        (24000, "24,000"), (24000, "24 000"), (24000, "24_000"), (1_234_567, "1,234,567"), (0.25, "0.25"), (0.25, ".25"),
        (0.25, "1/4"), (0.25, "0,25"), (0.001, "1e-3"), (math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "nan"),
        (25, "25%"),
    ],
)  # fmt: skip
def test_a_number_can_be_typed_in_many_forms(answer, typed):
    question = Question("?", answer, "", {99: "a mistake"})
    assert question.is_right(question.read(typed))


@pytest.mark.parametrize(
    "typed", ["(1, 2)", "1 2", "1,2", "[1, 2]", "1, 2", "1;2", "1x2", "1 x 2", "[[1], [2]]", "(1.0, 2.0)", "%1 %2"]
)
def test_a_tuple_can_be_typed_in_many_forms(typed):
    question = Question("?", (1, 2), "", {(2, 1): "a mistake"})
    assert question.is_right(question.read(typed))


@pytest.mark.parametrize(
    ("answer", "typed"), [((3,), "3"), ((3,), "(3,)"), ((), "()"), ((0.5, -1), "1/2 -1"), ((-1, 2), "(-1,2)")]
)
def test_short_tuples_and_signs_are_read(answer, typed):
    question = Question("?", answer, "", {(9, 9): "a mistake"})
    assert question.is_right(question.read(typed))


@pytest.mark.parametrize("typed", ["y4 y2 x0", "Y4, Y2, X0", "[y4, y2, x0]", "(y4 , 'y2', x0)"])
def test_words_can_be_typed_in_many_forms(typed):
    question = Question("?", "y4 y2 x0", "", {"x0 y2 y4": "a mistake"})
    assert question.is_right(question.read(typed))


@pytest.mark.parametrize("typed", ["b", "B", "b)", "(b)", "b.", "no, never", "No Never"])
def test_a_choice_is_a_letter_or_the_option(typed):
    question = Question("?", "b", "", {"a": "a mistake"}, choices=("yes", "no, never"))
    assert question.is_right(question.read(typed))


@pytest.mark.parametrize(
    ("answer", "typed", "expected"),
    [(1, "one", "a number"), (1, "1 2", "a number"), ((1, 2), "a, b", "numbers"), ((1, 2), "1 and 2", "numbers")],
)
def test_what_cannot_be_read_is_refused(answer, typed, expected):
    with pytest.raises(UnreadableAnswerError, match=f"got .*, expected {expected}"):
        Question("?", answer, "", {}).read(typed)
    with pytest.raises(UnreadableAnswerError, match="expected one of the letters"):
        Question("?", "a", "", {}, choices=("yes", "no")).read("c")


def test_a_rounded_number_is_right_within_the_tolerance():
    question = Question("?", 1 / 3, "", {0.5: "a mistake"}, tolerance=5e-3)
    assert question.is_right(question.read("0.33"))
    assert not question.is_right(question.read("0.3"))
    assert question.mistake(question.read("1/2")) == "a mistake"


def test_a_choice_names_the_mistake_behind_each_other_option():
    question = choose(Random(0), "?", "green", {"red": "it is a stop", "blue": "it is no light"}, "")
    assert question.choices[ascii_lowercase.index(question.answer)] == "green"
    assert {question.choices[ascii_lowercase.index(letter)]: text for letter, text in question.wrong.items()} == {
        "red": "it is a stop",
        "blue": "it is no light",
    }


# The session.


QUESTIONS = (
    Question(
        "Shape (2, 3): strides?", (3, 1), "A row has 3 elements.", {(1, 2): "this is column-major"}, "figure", "drawing"
    ),
    Question("How many?", 6, "2 * 3 = 6.", {5: "sizes are multiplied"}),
    Question("Why?", "b", "It is so.", {"a": "no reason"}, choices=("so", "because")),
)


def session(*typed, is_interactive=False, interrupt=False):
    """The number of right answers, and what was printed, for these lines."""
    out = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    read_line = lines_of(iter([f"{line}\n" for line in typed]))

    def read_or_interrupt():
        try:
            return read_line()
        except EOFError:
            raise KeyboardInterrupt from None

    right = ask(Quiz(task_named("2.1"), 7, QUESTIONS), out, read_or_interrupt if interrupt else read_line, is_interactive)
    return right, out.file.getvalue()


def test_right_answers_are_counted_and_explained():
    right, text = session("3 1", "6", "b")
    assert right == 3
    assert text.count("✓ right") == 3
    assert "2 * 3 = 6." in text
    assert "3 of 3 right\n" in text
    assert "minifuse course quiz 2.1 --seed 7" in text


def test_a_wrong_answer_shows_its_mistake_and_the_answer_with_its_drawing():
    right, text = session("1,2", "7", "a")
    assert right == 0
    assert "✗ 1,2: this is column-major" in text
    assert "The answer is (3, 1)." in text
    assert "    drawing\n" in text
    assert "✗ 7 is not right" in text
    assert "The answer is b) because." in text


def test_an_empty_line_leaves_a_question_out():
    right, text = session("", "6", "b")
    assert right == 2
    assert "✗" not in text
    assert "The answer is (3, 1)." in text


def test_a_terminal_asks_again_and_a_pipe_does_not():
    assert session("what", "3 1", "6", "b", is_interactive=True)[0] == 3
    right, text = session("what", "6", "b")
    assert right == 2
    assert "got 'what', expected numbers" in text


@pytest.mark.parametrize("interrupt", [False, True], ids=["end of input", "Ctrl-C"])
def test_a_session_can_end_early(interrupt):
    right, text = session("3 1", interrupt=interrupt)
    assert right == 1
    assert "1 of 3 right (2 not asked)" in text


@pytest.mark.parametrize(("count", "words"), [(1, "1 question, seed 7"), (3, "3 questions, seed 7")])
def test_the_head_of_a_quiz_counts_its_questions(count, words):
    out = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    print_quiz(Quiz(task_named("2.1"), 7, QUESTIONS[:count]), out, with_answers=False)
    assert out.file.getvalue().splitlines()[0].endswith(f"   {words}")


def test_questions_are_printed_without_their_answers():
    out = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    quiz = Quiz(task_named("2.1"), 7, QUESTIONS)
    print_quiz(quiz, out, with_answers=False)
    assert "How many?" in out.file.getvalue()
    assert "2 * 3 = 6." not in out.file.getvalue()
    print_quiz(quiz, out, with_answers=True)
    assert "2  6\n    2 * 3 = 6." in out.file.getvalue()


# The command.


def course(*arguments, typed=None):
    """The result of `minifuse course quiz`; no line is longer than a terminal."""
    result = CliRunner().invoke(app, ["course", "quiz", *arguments], input=typed, env={"COLUMNS": str(WIDTH)})
    assert "--json" in arguments or all(len(line) <= WIDTH for line in result.stdout.splitlines()), result.stdout
    return result


@pytest.mark.parametrize("task", tasks_with_quiz())
def test_each_quiz_is_printed_with_its_answers(task):
    result = course(task, "--seed", "3", "--answers")
    assert result.exit_code == 0, result.output
    for question in draw_quiz(task_named(task), 3).questions:
        assert question.format_answer() in result.stdout


def test_the_command_asks_and_counts():
    quiz = draw_quiz(task_named("2.1"), 5)
    typed = "".join(f"{question.answer}\n" for question in quiz.questions)
    result = course("2.1", "--seed", "5", typed=typed)
    assert result.exit_code == 0
    assert f"{len(quiz.questions)} of {len(quiz.questions)} right" in result.stdout


def test_a_new_quiz_prints_the_seed_that_repeats_it():
    first = course("position_of", "--print").stdout
    seed = first.splitlines()[0].rpartition(" ")[2]
    assert course("2.1", "--seed", seed, "--print").stdout == first
    assert any(course("2.1", "--print").stdout != first for _ in range(5))


def test_data_for_teachers_has_questions_and_answers():
    facts = json.loads(course("3.3", "--seed", "2", "--json").stdout)
    assert (facts["task"], facts["seed"]) == ("3.3", 2)
    quiz = draw_quiz(task_named("3.3"), 2)
    assert facts == json.loads(json.dumps(quiz_facts(quiz)))
    for fact, question in zip(facts["questions"], quiz.questions, strict=True):
        answer = fact["answer"]
        assert question.is_right(tuple(answer) if isinstance(answer, list) else answer)
        assert fact["prompt"] == question.prompt
        assert len(fact["wrong"]) == len(question.wrong)


def test_an_unknown_task_is_refused_with_those_there_are():
    assert isinstance(course("9.9").exception, CourseError)
    assert "there is no task '9.9'; expected the number of a task, such as 0.1, " in str(course("9.9").exception)
    with pytest.raises(CourseError, match=r"task 9\.9 has no quiz; there is one on 0\.1, 0\.2"):
        questions_on("9.9")
