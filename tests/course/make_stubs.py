"""Stubs of the course from its reference solutions: what lies between `# begin 2.3a` and `# end` becomes `todo("2.3a")`.

`python -m tests.course.make_stubs` writes minifuse/course/stubs; a test holds them against each other.
"""

from pathlib import Path

from minifuse.course.stub_regions import stubs_of

REFERENCE = Path(__file__).with_name("reference")
STUBS = Path(__file__).parents[2] / "minifuse" / "course" / "stubs"


def stubs() -> dict[str, str]:
    """The text of each stub, by the name under which it is kept."""
    return stubs_of(REFERENCE)


if __name__ == "__main__":
    for name, text in stubs().items():
        (STUBS / name).write_text(text)
