"""Write the files of a new task into a teacher's folder. The task runs at once, and is then changed into the wanted one.

The template's function returns running sums: its reference passes, its stub is pending, and its wrong solution, which
forgets the last value, fails with the name of that mistake.
"""

import keyword
from collections.abc import Mapping
from importlib import invalidate_caches
from pathlib import Path

from ..core.errors import CourseError
from . import own_tasks
from .registry import MODULES, TASKS, all_tasks, tasks_of_folder
from .stub_regions import first_lines_of, stub_of
from .task import Task
from .task_folder import use
from .workspace import write

TASK = '''"""Task ID: TITLE."""

from typing import TYPE_CHECKING

from .. import oracle
from ..check import agreement
from ..questions import taskMARK
from ..task import Mistake, Task

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SUMS = "element k of the result is the sum of the elements 0 to k"


def lists() -> "SearchStrategy[list[int]]":
    """Draw the cases. Hypothesis shrinks one that fails to the smallest."""
    from hypothesis import strategies as st

    return st.lists(st.integers(-9, 9), max_size=6)


TASK = Task(
    id="ID",
    title="TITLE",
    file="FILE",
    slots=("NAME",),
    points=2,
    text="Write the running sums of a list: [1, 2, 3] has [1, 3, 6].",
    hints=(
        "Each element of the result is the one before it, plus one value of the list.",
        "Begin with a total of 0. For each value, add it to the total, and append the total to the result.",
        "Compare with itertools.accumulate in Python's documentation.",
    ),
    reads=(),
    checks=(
        agreement(
            SUMS, lists, taskMARK.answer, lambda case: oracle.function("NAME")(case), describe=lambda case: f"values {case}"
        ),
    ),
    mistakes=(
        Mistake(
            "the last value is not added",
            "A list of one value has one running sum. Which values has your loop seen when it ends?",
            wrong_answer=lambda case: oracle.function("NAME")(case[:-1]),
            check=SUMS,
        ),
    ),
)
'''
QUESTION = '''"""Questions of task ID, which the process with the student's code answers. They know no expected value."""

from ..student import Student


def answer(student: Student, case: list[int]) -> object:
    """Return what the student's function returns."""
    return student.NAME(list(case))
'''
ORACLE = '''"""The right answers of task ID, which are lent to later tasks. Write them so that they show no solution."""

import numpy as np

from . import answers


@answers
def NAME(values: list[int]) -> list[int]:
    """Return the running sums."""
    sums: list[int] = np.cumsum(np.asarray(values, np.int64)).tolist()
    return sums
'''
QUIZ = '''"""Questions on task ID."""

from random import Random

from .question import Question


def last(rng: Random) -> Question:
    """Ask for the last running sum."""
    values = [rng.randint(1, 9) for _ in range(4)]
    return Question(
        f"Which is the last of the running sums of {values}?",
        sum(values),
        f"It is the sum of all values: {' + '.join(map(str, values))} = {sum(values)}.",
        {sum(values[:-1]): "the last value is missing", values[-1]: "this is the last value, not a sum"},
    )


QUESTIONS = (last,)
'''
REFERENCE = '''

def NAME(values):
    """Return the running sums of a list: [1, 2, 3] -> [1, 3, 6]."""
    # begin IDa
    total, sums = 0, []
    for value in values:
        total += value
        sums.append(total)
    return sums
    # end
'''
HEAD = '''"""Module MODULE."""

from minifuse.course import todo
'''
ZOO = '''"""Wrong solutions of task ID, one a cell: `# %% name: the mistake that the check must name`."""


# %% last_value_left_out: the last value is not added
def NAME(values):
    total, sums = 0, []
    for value in values[:-1]:
        total += value
        sums.append(total)
    return sums
'''
PAGE = """# ID TITLE

| | |
|---|---|
| Time | about 15 minutes |
| Difficulty | 1 of 5 |
| You need | Python lists and loops; no earlier task |
| In PyTorch this is | `torch.cumsum(x, dim=0)` |

After this page you can

- say what element k of a running sum contains, and compute it with one addition an element.

## The smallest example

```python
from itertools import accumulate

print(list(accumulate([1, 2, 3])))
```

```text
[1, 3, 6]
```

## What you write

One function in `FILE`:

| function | returns |
|---|---|
| `NAME(values)` | the running sums, a list as long as `values` |

## What the checks ask

1. Element k of the result is the sum of the elements 0 to k, also for a list of no or one element.

## Common mistakes

| what you see | what happened |
|---|---|
| the result is one element too short | The last value is not added. |
"""


def create(folder: Path, task_id: str, name: str, file: str = "", module: str = "") -> list[Path]:
    """Write the files of a new task, and return their paths.

    Parameters
    ----------
    folder : Path
        The teacher's folder; it is created if it is missing.
    task_id, name : str
        The id, such as "10.1", and the name of the function that students write.
    file : str
        The student's file, such as "logic.py". If other tasks of the folder have it, the function is appended. Default:
        the name of the function.
    module : str
        The name of the module, for modules.toml.

    Raises
    ------
    CourseError
        A name is wrong or taken. Nothing is written then.
    """
    mark, file = f"task{task_id.replace('.', '_')}", file or f"{name}.py"
    found = own_tasks.FILE_NAME.fullmatch(mark)
    if not found or task_id.count(".") != 1:
        raise CourseError(f"{task_id!r} is no id of a task, expected two numbers with a dot, such as 10.1")
    for text, what in ((name, "a function, such as running_sums"), (file.removesuffix(".py"), "a file, such as logic.py")):
        if not text.isidentifier() or keyword.iskeyword(text):
            raise CourseError(f"{text!r} is no name of {what}; write letters, digits and underscores")
    known = TASKS
    if (folder / "tasks").is_dir():
        use(folder)
        known = all_tasks()
    for task in known:
        if task_id == task.id or name in task.slots:
            raise CourseError(f"task {task.id} {task.title} has this id or function; choose others")
    if file in {task.file for task in known} and not (folder / "reference" / file).is_file():
        raise CourseError(f"{file} is a file of the course; name another one with --file")
    number = int(found["module"])
    words = words_of(task_id, name.replace("_", " ").capitalize(), name, file)
    words["MODULE"] = f"{number}: {module or MODULES.get(number, number)}"
    reference = folder / "reference" / file
    head = reference.read_text(encoding="utf-8").rstrip() + "\n" if reference.exists() else fill(HEAD, words)
    solution = head + fill(REFERENCE, words)
    texts = {
        folder / "tasks" / f"{mark}.py": fill(TASK, words),
        folder / "questions" / f"{mark}.py": fill(QUESTION, words),
        folder / "oracle" / f"{mark}.py": fill(ORACLE, words),
        folder / "quizzes" / f"{mark.replace('task', 'quiz')}.py": fill(QUIZ, words),
        reference: solution,
        folder / "stubs" / f"{file}.txt": stub_of(solution),
        folder / "stubs" / f"{file}.lines.txt": first_lines_of(solution),
        folder / "zoo" / f"{mark}.py": fill(ZOO, words),
        folder / "pages" / f"{task_id}-{name.replace('_', '-')}.md": fill(PAGE, words),
    }
    if module:
        names = folder / own_tasks.MODULES_FILE
        lines = names.read_text(encoding="utf-8").splitlines() if names.exists() else []
        others = [line for line in lines if line.partition("=")[0].strip() != str(number)]
        texts[names] = "\n".join([*others, f'{number} = "{module}"']) + "\n"
    for path, text in texts.items():
        write(path, text)
    tasks_of_folder.cache_clear()
    invalidate_caches()  # of Python's finders, which do not know the new files
    return list(texts)


def words_of(task_id: str, title: str, name: str, file: str) -> dict[str, str]:
    """Return the words that a template has places for, by their place."""
    return {"ID": task_id, "MARK": task_id.replace(".", "_"), "TITLE": title, "NAME": name, "FILE": file, "MODULE": ""}


def left_of_template(folder: Path, task: Task) -> list[Path]:
    """Return the quiz and the page of a task that are still the template's, though the task is not."""
    words = words_of(task.id, task.title, task.slots[0], task.file)
    pages = sorted((folder / "pages").glob(f"{task.id}-*.md"))
    templates = {folder / "quizzes" / f"quiz{words['MARK']}.py": QUIZ, **dict.fromkeys(pages, PAGE)}

    def is_left(path: Path, template: str) -> bool:
        return path.is_file() and path.read_text(encoding="utf-8") == fill(template, words)

    if is_left(folder / "tasks" / f"task{words['MARK']}.py", TASK):
        return []
    return [path for path, template in templates.items() if is_left(path, template)]


def fill(text: str, words: Mapping[str, str]) -> str:
    """Put words into a template."""
    for name in ("ID", "MARK", "TITLE", "MODULE", "NAME", "FILE"):
        text = text.replace(name, words[name])
    return text
