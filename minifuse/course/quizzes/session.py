"""Ask a quiz on the terminal, print it, or return it as data."""

import sys
from collections.abc import Callable, Iterator
from string import ascii_lowercase
from textwrap import fill

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ...core.wording import format_count
from ..report import WIDTH
from .question import Answer, Question, UnreadableAnswerError
from .quiz import Quiz

RIGHT, WRONG = "✓", "✗"


def ask(quiz: Quiz, out: Console, read_line: Callable[[], str], is_interactive: bool) -> int:
    """Ask each question, comment on the answer, and return the number of right answers.

    Ends early with the end of the input or with Ctrl-C. A line without an answer leaves a question out.
    """
    out.print(render_head(quiz))
    right = asked = 0
    try:
        for number, question in enumerate(quiz.questions, start=1):
            out.print(render_question(question, number, len(quiz.questions)))
            value, typed = read_answer(question, out, read_line, is_interactive)
            asked += 1
            right += value is not None and question.is_right(value)
            out.print(render_verdict(question, value, typed))
    except (EOFError, KeyboardInterrupt):
        if is_interactive:
            out.print()  # the cursor is behind the prompt
    of = len(quiz.questions)
    left = f" ({of - asked} not asked)" if asked < of else ""
    out.print(Text(f"\n{right} of {of} right{left}", style="bold"))
    out.print(Text(f"These again: minifuse course quiz {quiz.task.id} --seed {quiz.seed}", style="dim"))
    return right


def read_answer(
    question: Question, out: Console, read_line: Callable[[], str], is_interactive: bool
) -> tuple[Answer | None, str]:
    """Read an answer, and return its value and its text; None if it is empty or cannot be read.

    Whoever sits at a terminal is asked again if an answer cannot be read.
    """
    out.print()
    while True:
        if is_interactive:
            out.print(Text("  > ", style="bold cyan"), end="")
        typed = read_line().strip()
        if not is_interactive:
            out.print(Text(f"  > {typed}"))
        if not typed:
            return None, ""
        try:
            return question.read(typed), typed
        except UnreadableAnswerError as error:
            out.print(Text(f"  {error}", style="yellow"))
            if not is_interactive:
                return None, typed


def lines_of(stream: Iterator[str]) -> Callable[[], str]:
    """Return a function that returns the next line; it raises EOFError at the end."""

    def read_line() -> str:
        line = next(stream, None)
        if line is None:
            raise EOFError
        return line

    return read_line


def run(quiz: Quiz, out: Console) -> int:
    """Ask a quiz on standard input, and return the number of right answers."""
    is_interactive = sys.stdin.isatty()
    return ask(quiz, out, input if is_interactive else lines_of(iter(sys.stdin)), is_interactive)


def print_quiz(quiz: Quiz, out: Console, *, with_answers: bool) -> None:
    """Print the questions, and after them the answers with their explanations."""
    out.print(render_head(quiz))
    for number, question in enumerate(quiz.questions, start=1):
        out.print(render_question(question, number, len(quiz.questions)))
    if with_answers:
        out.print(Text("\nAnswers", style="bold"))
        for number, question in enumerate(quiz.questions, start=1):
            out.print(Text.assemble((f"\n{number}  ", "bold"), question.format_answer()))
            out.print(render_explanation(question))


# Rendering.


def block(text: str, columns: int, style: str = "") -> RenderableType:
    """Wrap a paragraph and indent it."""
    indent = " " * columns
    filled = fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return Text(filled, style=style)


def verbatim(lines: str, style: str = "") -> RenderableType:
    """Indent lines of text that are not wrapped, with an empty line before them."""
    indented = "\n".join(f"    {line}".rstrip() for line in lines.splitlines())
    return Text(f"\n{indented}", style=style, no_wrap=True, overflow="ignore")


def render_head(quiz: Quiz) -> RenderableType:
    """Render the title of a quiz and its seed."""
    size = format_count(len(quiz.questions), "question")
    return Text.assemble((f"{quiz.task.id} {quiz.task.title}", "bold"), (f"   {size}, seed {quiz.seed}", "dim"))


def render_question(question: Question, number: int, of: int) -> RenderableType:
    """Render a question with its figure and its choices."""
    parts: list[RenderableType] = [Text(f"\n{number} of {of}", style="bold cyan"), block(question.prompt, 2)]
    if question.figure:
        parts.append(verbatim(question.figure))
    if question.choices:
        parts.append(Text())
        parts += [
            Text(fill(f"{letter}  {choice}", WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 7))
            for letter, choice in zip(ascii_lowercase, question.choices, strict=False)
        ]
    return Group(*parts)


def render_verdict(question: Question, value: Answer | None, typed: str) -> RenderableType:
    """Render what a value is: right; or wrong, the mistake if it is known, and the answer. The explanation follows."""
    if value is not None and question.is_right(value):
        return Group(block(f"{RIGHT} right", 2, "green"), render_explanation(question))
    parts: list[RenderableType] = []
    mistake = "" if value is None else question.mistake(value)
    if typed:
        parts.append(block(f"{WRONG} {typed}: {mistake}" if mistake else f"{WRONG} {typed} is not right", 2, "red"))
    parts.append(Text.assemble("  The answer is ", (question.format_answer(), "bold"), "."))
    return Group(*parts, render_explanation(question))


def render_explanation(question: Question) -> RenderableType:
    """Render the explanation and its drawing."""
    parts: list[RenderableType] = [block(question.explanation, 4)]
    if question.drawing:
        parts.append(verbatim(question.drawing))
    return Group(*parts)


# Data.


def quiz_facts(quiz: Quiz) -> dict[str, object]:
    """Return a quiz as the data that --json prints."""
    return {
        "task": quiz.task.id,
        "title": quiz.task.title,
        "seed": quiz.seed,
        "questions": [
            {
                "prompt": question.prompt,
                "figure": question.figure,
                "kind": question.kind,
                "choices": dict(zip(ascii_lowercase, question.choices, strict=False)),
                "answer": as_json(question.answer),
                "tolerance": question.tolerance,
                "wrong": [{"answer": as_json(value), "mistake": text} for value, text in question.wrong.items()],
                "explanation": question.explanation,
                "drawing": question.drawing,
            }
            for question in quiz.questions
        ],
    }


def as_json(value: Answer) -> object:
    """Return an answer as a value of JSON, which has no infinity and no NaN."""
    if isinstance(value, tuple):
        return [as_json(x) for x in value]
    return str(value) if isinstance(value, float) and value - value != 0 else value
