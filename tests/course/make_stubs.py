"""Stubs of the course from its reference solutions: what lies between `# begin 2.3a` and `# end` becomes `todo("2.3a")`.

`python -m tests.course.make_stubs` writes minifuse/course/stubs; a test holds them against each other.
"""

import re
from pathlib import Path

REFERENCE = Path(__file__).with_name("reference")
STUBS = Path(__file__).parents[2] / "minifuse" / "course" / "stubs"
REGION = re.compile(r"^(?P<indent> *)# begin (?P<part>\S+)\n.*?^ *# end\n", re.MULTILINE | re.DOTALL)


def stub_of(text: str) -> str:
    """A reference solution without its solutions."""
    return REGION.sub(lambda found: f'{found["indent"]}todo("{found["part"]}")\n', text)


def stubs() -> dict[str, str]:
    """The text of each stub, by the name under which it is kept."""
    return {f"{path.name}.txt": stub_of(path.read_text()) for path in sorted(REFERENCE.glob("*.py"))}


if __name__ == "__main__":
    for name, text in stubs().items():
        (STUBS / name).write_text(text)
