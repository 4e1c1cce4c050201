"""The pages are right: their examples run and print what they say, and their links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.pages import all_pages, anchors, examples, links
from tests.sources import ROOT

PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in all_pages()]


def run(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Read a page as a newcomer does: in a new process, in an empty folder. Warnings are errors."""
    command = [sys.executable, "-W", "error", "-m", "tests.docs.run_page", str(page)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


def broken_links(page: Path) -> list[str]:
    """The links of a page that lead nowhere, a line each."""
    found = []
    for line, target in links(page):
        path, _, anchor = unquote(target).partition("#")
        to = (page.parent / path) if path else page
        if not to.exists():
            found.append(f"{page}:{line}: {target} does not exist")
        elif anchor and to.suffix == ".md" and anchor not in anchors(to):
            found.append(f"{page}:{line}: {to.name} has no heading #{anchor}; it has {', '.join(sorted(anchors(to)))}")
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", [page for page in PAGES if examples(page.values[0])])
def test_examples_print_the_documented_output(page, tmp_path):
    result = run(page, tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGES)
def test_the_links_lead_somewhere(page):
    found = broken_links(page)
    assert not found, "\n".join(found)


def test_commands_of_the_course_have_a_line_each():
    """Windows PowerShell 5.1 has no &&."""
    texts = {page.name: page.read_text() for page in (ROOT / "docs" / "course").rglob("*.md")}
    blocks = {name: re.findall(r"```console\n(.*?)```", text, re.DOTALL) for name, text in texts.items()}
    assert sum(map(len, blocks.values())) >= 10
    assert [name for name, found in blocks.items() if any("&&" in block for block in found)] == []


def test_pages_are_found():
    assert {"docs/guide/floors.md", "tests/README.md"} <= {page.id for page in PAGES}


GOOD = """
# A page

1. one namespace, a list included

    ```python
    x = [1, 2]
    print(x)
    ```

```python title="goes on"
print(len(x), 1 / 3)
```

```text
2  0.333...
```

```python
print("not compared")
```

Text.

```text
something else
```

```console
$ not run
```
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("", ""), None),
        (("2  0.333...", "3  0.333..."), "page.md:12: the example prints something else"),
        (("x = [1, 2]", "y = [1, 2]"), 'page.md", line 8, in <module>'),
        (('print("not compared")', "import warnings; warnings.warn('old', stacklevel=1)"), "UserWarning: old"),
    ],
)
def test_a_wrong_example_is_found(tmp_path, change, message):
    page = tmp_path / "page.md"
    page.write_text(GOOD.replace(*change))
    result = run(page, tmp_path)
    if message is None:
        assert result.returncode == 0, result.stderr
    else:
        assert result.returncode == 1
        assert message in result.stderr


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("[up](#a-page)", None),
        ("[there](other.md#the-name-x-and-more-1)", None),
        ("[out](https://example.org/nothing)", None),
        ("[folder](.) and [space](with%20space.md)", None),
        ("[gone](gone.md)", "page.md:3: gone.md does not exist"),
        ("![picture](gone.svg)", "gone.svg does not exist"),
        ("[gone]\n\n[gone]: gone.md", "gone.md does not exist"),
        ("[gone](#gone)", "page.md has no heading #gone"),
        ("[gone](other.md#gone)", "other.md has no heading #gone; it has the-name-x-and-more, the-name-x-and-more-1"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path, link, message):
    (tmp_path / "other.md").write_text("# The name `x`, and more!\n\n# The name `x`, and more!\n")
    (tmp_path / "with space.md").touch()
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n{link}\n")
    found = broken_links(page)
    if message is None:
        assert found == []
    else:
        assert len(found) == 1
        assert message in found[0]


def test_the_index_of_decisions_is_complete():
    folder = ROOT / "docs" / "adr"
    records = sorted(page.name for page in folder.glob("[0-9]*.md"))
    rows = [line for line in (folder / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| [")]
    assert [re.findall(r"\]\((.*?)\)", row)[0] for row in rows] == records
    assert [int(name[:4]) for name in records] == list(range(1, len(records) + 1))


def test_a_superseded_decision_links_to_the_one_that_replaces_it():
    text = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    rows = [
        line.partition("superseded by ") for line in text.splitlines() if line.startswith("| [") and "superseded" in line
    ]
    assert rows
    for row, _, status in rows:
        newer = re.match(r"\[(\d{4})\]\(\1-", status)
        assert newer, f"write superseded by [NNNN](NNNN-title.md): {row}{status}"
        assert newer[1] > row[3:7]
