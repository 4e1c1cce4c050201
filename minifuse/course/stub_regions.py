"""Make stubs from reference solutions: the lines between `# begin 2.3a` and `# end` become `todo("2.3a")`.

The first line of each part is kept apart, as the last hint of a task.
"""

import re
from pathlib import Path

from ..core.errors import CourseError

REGION = re.compile(r"^(?P<indent> *)# begin (?P<part>\S+)\n(?P<solution>.*?)^ *# end\n", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^ *# (?P<word>begin|end)(?: (?P<part>\S+))? *$")
PART = re.compile(r"\d+\.\d+[a-z]")
TASK_OF_PART = re.compile(r"\d+\.\d+")


def check_regions(path: Path) -> None:
    """Check that each part of a reference solution has a name, a beginning and an end: what is outside is in the stub.

    Raises
    ------
    CourseError
        A part has no end or no beginning, or its name has no letter.
    """
    begun = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = MARK.match(line)
        if not found:
            continue
        place, mark = f"{path.parent.name}/{path.name}, line {number}: `{line.strip()}`", found["word"]
        if mark == "end" and not begun:
            raise CourseError(f"{place} has no `# begin`; write one above the solution, such as `# begin 10.1a`")
        if mark == "begin" and begun:
            break
        if mark == "begin" and not PART.fullmatch(found["part"] or ""):
            raise CourseError(f"{place} names no part; expected the id of the task and a letter, such as `# begin 10.1a`")
        begun = place if mark == "begin" else ""
    if begun:
        raise CourseError(f"{begun} has no `# end`; write it below the last line of the solution")


def stub_of(text: str) -> str:
    """Return the text of a reference solution without its solutions."""
    return REGION.sub(lambda found: f'{found["indent"]}todo("{found["part"]}")\n', text)


def first_lines_of(text: str) -> str:
    """Return the first line of code of each part of a reference solution that has more than one, as lines "2.3a code".

    A task whose parts have one line each gives away that of its first part.

    Examples
    --------
    >>> print(first_lines_of("# begin 2.1a\\ntotal = 0\\nreturn total\\n# end\\n# begin 2.1b\\nreturn 7\\n# end\\n"), end="")
    2.1a total = 0
    """
    codes: dict[str, list[str]] = {}
    for found in REGION.finditer(text):
        lines = [line.strip() for line in found["solution"].splitlines()]
        codes[found["part"]] = [line for line in lines if line and not line.startswith("#")]
    chosen = {part for part, code in codes.items() if len(code) > 1}
    tasks_with_lines = {task_of(part) for part in chosen}
    for part in codes:
        if task_of(part) not in tasks_with_lines:
            tasks_with_lines.add(task_of(part))
            chosen.add(part)
    return "".join(f"{part} {code[0]}\n" for part, code in codes.items() if part in chosen)


def task_of(part: str) -> str:
    """Return the id of the task of a part: "2.3" of "2.3a"."""
    found = TASK_OF_PART.match(part)
    return found[0] if found else part


def stubs_of(folder: Path) -> dict[str, str]:
    """Return what students begin with, by file name, for each reference solution in a folder.

    "tensors.py.txt" is the stub, "tensors.py.lines.txt" has the first lines.

    Raises
    ------
    CourseError
        A part of a solution has no end, no beginning, or no name.
    """
    paths = sorted(folder.glob("*.py"))
    for path in paths:
        check_regions(path)
    texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
    stubs = {f"{name}.txt": stub_of(text) for name, text in texts.items()}
    return stubs | {f"{name}.lines.txt": lines for name, text in texts.items() if (lines := first_lines_of(text))}
