"""Verify a teacher's own tasks as the course verifies its own: stubs, solutions, questions, quiz, page."""

import ast
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from rich.console import Group

from ..core.errors import CourseError
from . import oracle, workspace
from .own_tasks import load
from .quizzes.quiz import draw_question, questions_on, tasks_with_quiz
from .registry import TASKS
from .report import render_outcome, to_plain_text
from .runner import run
from .stub_regions import check_regions, first_lines_of, stub_of
from .task import Effort, Task
from .task_folder import use
from .task_template import left_of_template
from .verdicts import Result
from .worker import JUDGES

CELL = re.compile(r"^# %% (\w+): (.+)$", re.MULTILINE)
QUIZ_SEEDS = 20


class WrongSolution(NamedTuple):
    """A cell of a file of wrong solutions: its name, the mistake that a check must name, and the code."""

    name: str
    mistake: str
    code: str


class Finding(NamedTuple):
    """A requirement of a task, and why it is not met; "" if it is."""

    requirement: str
    problem: str


def wrong_solutions(path: Path) -> list[WrongSolution]:
    """Return the cells of a file of wrong solutions; none if it is missing."""
    _, *cells = CELL.split(path.read_text(encoding="utf-8") if path.is_file() else "")
    return [WrongSolution(*cells[k : k + 3]) for k in range(0, len(cells), 3)]


def judge_imports(path: Path) -> set[str]:
    """Return the modules of the judge that a file of questions imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            is_of_library = (node.level > 2 or parts[0] == "minifuse") and "course" not in parts
            names |= set() if is_of_library else {*parts, *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {part for alias in node.names for part in alias.name.split(".")}
    return names & {*JUDGES, "mutants", "hypothesis"}


def verify(folder: Path, effort: Effort | None = None) -> Iterator[tuple[Task, Finding]]:
    """Verify each task of a folder, and yield each requirement with its problem.

    Raises
    ------
    CourseError
        The folder cannot be loaded.
    """
    use(folder)
    for task in load(folder, TASKS):
        for requirement, problems in requirements(folder, task, effort or Effort()):
            yield task, Finding(requirement, "; ".join(problems()))


def requirements(folder: Path, task: Task, effort: Effort) -> Iterator[tuple[str, Callable[[], Iterator[str]]]]:
    """Yield the requirements of a task, each with a function that finds its problems."""
    mark = f"task{task.id.replace('.', '_')}"
    reference, stub = folder / "reference" / task.file, folder / "stubs" / f"{task.file}.txt"

    def stub_problems() -> Iterator[str]:
        if not reference.is_file():
            yield f"reference/{task.file} is missing"
            return
        try:
            check_regions(reference)
        except CourseError as error:
            yield str(error)
            return
        text = reference.read_text(encoding="utf-8")
        if stub_of(text) != stub.read_text(encoding="utf-8"):
            yield f"stubs/{stub.name} differs; write it: minifuse course make-stubs --tasks {folder}"
        lines = stub.with_name(f"{task.file}.lines.txt")
        if first_lines_of(text) != (lines.read_text(encoding="utf-8") if lines.is_file() else ""):
            yield f"stubs/{lines.name} differs; write it: minifuse course make-stubs --tasks {folder}"
        for slot in task.slots:
            if f"# begin {task.id}" not in workspace.definition_of(text, slot):
                yield f"{slot} in reference/{task.file} has no lines between `# begin {task.id}a` and `# end`"

    def judged(text: str) -> Result:
        with tempfile.TemporaryDirectory(prefix="minifuse-tasks-") as place:
            (Path(place) / task.file).write_text(text, encoding="utf-8")
            (result,) = run(Path(place), [task], effort=effort)
            return result

    def pending_problems() -> Iterator[str]:
        result = judged(stub.read_text(encoding="utf-8"))
        if result.verdict != "pending":
            yield describe(task, result)

    def reference_problems() -> Iterator[str]:
        if not reference.is_file():
            return
        result = judged(with_reference(stub, reference, task))
        if result.verdict != "passed":
            yield describe(task, result)

    def mistake_problems() -> Iterator[str]:
        wrong = wrong_solutions(folder / "zoo" / f"{mark}.py")
        named = {mistake.name for mistake in task.mistakes}
        for name in sorted(named - {one.mistake for one in wrong}):
            yield f"the mistake {name!r} has no wrong solution in zoo/{mark}.py"
        for one in wrong:
            if one.mistake not in named:
                yield f"{one.name} names {one.mistake!r}, which is no mistake of the task"
            elif reference.is_file():
                result = judged(f"{with_reference(stub, reference, task)}\n\n{one.code}")
                got = result.outcomes[-1].mistake if result.outcomes else ""
                if result.verdict != "failed" or got != one.mistake:
                    found = got or ("no known mistake" if result.verdict == "failed" else f"the verdict {result.verdict}")
                    yield f"{one.name}: expected the mistake {one.mistake!r}, got {found}"

    def question_problems() -> Iterator[str]:
        path = folder / "questions" / f"{mark}.py"
        if path.is_file() and (names := judge_imports(path)):
            yield f"questions/{path.name} imports {', '.join(sorted(names))}, which would be beside the student's code"

    def oracle_problems() -> Iterator[str]:
        oracle.load()
        for slot in task.slots:
            if slot not in oracle.registered():
                yield f"{slot} has no reference answer in oracle/, below @answers"

    def quiz_problems() -> Iterator[str]:
        for draw in questions_on(task.id) if task.id in tasks_with_quiz() else ():
            for seed in range(QUIZ_SEEDS):
                try:
                    question = draw_question(draw, Random(seed))
                except Exception as error:  # whatever the code of the folder raises
                    yield f"{draw.__name__}, seed {seed}: {type(error).__name__}: {error}"
                    break
                if not question.is_right(question.answer):
                    yield f"{draw.__name__}, seed {seed}: the answer {question.answer!r} is not right"
                    break

    def template_problems() -> Iterator[str]:
        for path in left_of_template(folder, task):
            name = path.relative_to(folder).as_posix()
            yield f"{name} is still about running sums, as the template is; change or remove it"

    def page_problems() -> Iterator[str]:
        title = f"# {task.id} {task.title}\n"
        for path in sorted((folder / "pages").glob(f"{task.id}-*.md")):
            if not path.read_text(encoding="utf-8").startswith(title):
                yield f"pages/{path.name} does not begin with {title.strip()!r}"

    yield "the stub is the reference without its solutions", stub_problems
    yield "what students begin with is pending", pending_problems
    yield "the reference passes", reference_problems
    yield "each wrong solution fails with its mistake", mistake_problems
    yield "the questions know no answers", question_problems
    yield "later tasks can be lent the right answers", oracle_problems
    yield "the quiz can be drawn", quiz_problems
    yield "the page has the task's title", page_problems
    yield "quiz and page are about the task", template_problems


def with_reference(stub: Path, reference: Path, task: Task) -> str:
    """Return the stub of a file with the reference solutions of one task."""
    text, solution = stub.read_text(encoding="utf-8"), reference.read_text(encoding="utf-8")
    for slot in task.slots:
        text = workspace.replace_definition(text, slot, workspace.definition_of(solution, slot))
    return text


def describe(task: Task, result: Result) -> str:
    """Return the verdict of a result and its first failure."""
    failure = next((one for one in result.outcomes if one.verdict != "passed"), None)
    if failure is None:
        return f"the verdict is {result.verdict}"
    text = " ".join(to_plain_text(Group(*render_outcome(task, failure, ""))).split())
    return f"the verdict is {result.verdict}: {failure.check}: {text}"
