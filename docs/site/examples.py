"""Examples of public names whose docstrings have none: docs/site/examples/TOPIC.txt, a paragraph for each name.

A paragraph is a name and a doctest, in which `mf` and `np` are known. Most of these objects are made by a table, or are a
line of one, so that their docstring is one line. `tests/docs/test_reference.py` runs them, and finds names without one.
"""

from functools import cache
from pathlib import Path

from docs.site.public_names import Entry, docstring

FOLDER = Path(__file__).with_name("examples")


@cache
def examples(topic: str) -> dict[str, str]:
    """Return the examples of a page: name -> doctest."""
    path = FOLDER / f"{topic}.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return dict(part.strip("\n").split("\n", 1) for part in text.split("\n\n") if part.strip())


def has_own(entry: Entry) -> bool:
    """Return whether the docstring of an object has an example."""
    return ">>>" in docstring(entry.value)


def example_of(entry: Entry, topic: str) -> str:
    """Return the example of an object as Markdown; nothing, if its docstring has one."""
    text = "" if has_own(entry) else examples(topic).get(entry.title, "")
    return f"**Examples:**\n\n```pycon\n{text}\n```\n" if text else ""
